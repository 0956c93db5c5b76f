-- Release what this server granted while others did not, and join the queue again, at the old position. The next waiter
-- in that queue is not woken, since the caller tries again at once; one for the plain lock is.
-- Redisson none
-- KEYS     for each name: lock hash, holds hash, Redisson's queue and deadlines, our waiters
-- ARGV[1]  hold id
-- ARGV[2]  owner
-- ARGV[3]  since when it waits, as a reply said; or empty
-- ARGV[4]  not used, but the scripts of other kinds need it
-- ARGV[5+] for each name: wake queue, turn, channel
-- Returns  one number a name, see inc/names.lua

local FIXED_ARGS = 4
local KEY_FIELDS, ARG_FIELDS = { 'lock', 'holds', 'queue', 'deadlines', 'waiters' }, { 'wake_queue', 'turn', 'channel' }
local hold_id, owner, since_us = ARGV[1], ARGV[2], tonumber(ARGV[3])

local NOT_LISTENING = '0'

local function release_and_enqueue(name, field, count, hold)
	-- A key of another type has no position to keep any more.
	if count > 1 or field ~= owner or is_wrong_type(leave_error(name)) then
		return release_mutex(name, field, count)
	end
	redis.call('HDEL', name.lock, owner)
	if not leave_to_others(name) then redis.call('DEL', name.lock, name.holds) end
	if redis.call('EXISTS', name.waiters) == 0 then
		-- This waiter begins the queue: no other has to come back to it.
		name.grace_until_ms = 0
	end
	join_queue(name, owner, hold.note, since_us, NOT_LISTENING)
	wake_waiters(name, WAKE_ONE)
	return 2
end

return release_all(hold_id, release_and_enqueue)
