-- Leave the queue of every name, and give back what the last try may have been granted
-- (RedissonFairLock.acquireFailedAsync; but nobody's deadline is changed, and who is next now is told).
-- KEYS     for each name: lock hash, holds hash, Redisson's queue and deadlines, our waiters
-- ARGV[1]  hold id
-- ARGV[2]  owner
-- ARGV[3+] for each name: channel
-- Returns  one number a name, see inc/remove_hold.lua
local FIXED_ARGS = 2
local KEY_FIELDS, ARG_FIELDS = { 'lock', 'holds', 'queue', 'deadlines', 'waiters' }, { 'channel' }
local hold_id, owner = ARGV[1], ARGV[2]

-- include: names
-- include: queue_leave
-- include: release_all
-- include: mutex_release
-- include: wrong_type

local was_head = {}
for index, name in ipairs(names) do
	was_head[index] = redis.pcall('LINDEX', name.queue, 0) == owner
end
-- First of all: whatever may go wrong with the queue must not leave the lock held.
local results = release_all(hold_id, release_one)
for index, name in ipairs(names) do
	-- What is no queue any more has no waiters.
	if not is_wrong_type(leave_error(name)) then
		dequeue(name, owner)
		if was_head[index] and redis.call('EXISTS', name.lock) == 0 then
			prune(name)
			wake_head(name)
		end
	end
end
return results
