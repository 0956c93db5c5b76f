-- Leave the queue of every name, and release what the last try may have acquired.
-- Redisson RedissonFairLock.acquireFailedAsync; but it takes nothing off the others' deadlines, and notifies the next waiter
-- KEYS     for each name: lock hash, holds hash, Redisson's queue and deadlines, our waiters
-- ARGV[1]  hold id
-- ARGV[2]  owner
-- ARGV[3], ARGV[4] not used, but other leave scripts need them
-- ARGV[5+] for each name: wake queue, turn, channel
-- Returns  one number a name, see inc/names.lua

local FIXED_ARGS = 4
local KEY_FIELDS, ARG_FIELDS = { 'lock', 'holds', 'queue', 'deadlines', 'waiters' }, { 'wake_queue', 'turn', 'channel' }
local hold_id, owner = ARGV[1], ARGV[2]

local was_head = {}
for index, name in ipairs(names) do
	was_head[index] = redis.pcall('LINDEX', name.queue, 0) == owner
end
-- Before all else: whatever goes wrong with the queue, the lock must not stay held.
local results = release_all(hold_id, release_mutex)
for index, name in ipairs(names) do
	-- A key of another type has no waiters any more.
	if not is_wrong_type(leave_error(name)) then
		dequeue(name, owner)
		if waiter_in_turn(name) == owner then redis.pcall('DEL', name.turn) end
		if was_head[index] and redis.call('EXISTS', name.lock) == 0 then
			prune(name)
			wake_head(name)
		end
	end
end
return results
