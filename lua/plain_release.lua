-- Release one hold of a plain or fair lock, for every name. It works on a full server: nothing needs memory before
-- something was deleted.
-- Redisson RedissonLock.unlockInnerAsync, RedissonFairLock.unlockInnerAsync
-- KEYS     for each name: lock hash, holds hash, Redisson's queue and deadlines, our waiters
-- ARGV[1]  hold id; with what is to be remembered of the hold, "HOLD_ID TTL_MS KIND END"
-- ARGV[2+] for each name: wake queue, turn, channel (not in KEYS: a user without the right to publish can still release)
-- Returns  one number a name, see inc/names.lua

local FIXED_ARGS = 1
local KEY_FIELDS, ARG_FIELDS = { 'lock', 'holds', 'queue', 'deadlines', 'waiters' }, { 'wake_queue', 'turn', 'channel' }
local hold_id = id_of_ending_hold(0, #KEY_FIELDS)

local field, has_waiter = only_field(1, KEYS[3])
local heard = field and free_lock(WAKE_ONE)
if heard == 0 and not has_waiter then return { 2 } end

if heard then return { freed(names[1], heard) } end

return release_all(hold_id, release_mutex)
