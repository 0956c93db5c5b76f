-- Leave the line of every name, and give back what the last try may have been granted
-- (RedissonFairLock.acquireFailedAsync; but nobody's deadline is changed, and who is next now is told).
-- KEYS     for each name: lock hash, holds hash, Redisson's queue and deadlines, our waiters
-- ARGV[1]  hold id
-- ARGV[2]  owner
-- ARGV[3+] for each name: channel
-- Returns  one number a name, see inc/take_out.lua
local FIXED_ARGS = 2
local KEY_FIELDS, ARG_FIELDS = { 'lock', 'holds', 'queue', 'deadlines', 'waiters' }, { 'channel' }
local hold_id, owner = ARGV[1], ARGV[2]

-- include: names
-- include: now
-- include: refused
-- include: entry
-- include: extend
-- include: publish
-- include: overwritten
-- include: fields
-- include: take_out
-- include: lingering
-- include: leases
-- include: line
-- include: mutex_release

local was_head = {}
for index, name in ipairs(names) do
	was_head[index] = redis.pcall('LINDEX', name.queue, 0) == owner
end
-- First of all: whatever may go wrong with the line must not leave the lock held.
local results = release_all(hold_id, give_one)
for index, name in ipairs(names) do
	-- What is no line any more has nobody standing in it.
	if not is_other_type(refusal_in_line(name)) then
		step_out(name, owner)
		if was_head[index] and redis.call('EXISTS', name.lock) == 0 then
			prune(name)
			wake_head(name)
		end
	end
end
return results
