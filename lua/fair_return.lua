-- Give back what this server granted while others did not, and join the queue again, where we stood: the
-- next one is not woken, since we come back at once.
-- KEYS     for each name: lock hash, holds hash, Redisson's queue and deadlines, our waiters
-- ARGV[1]  hold id
-- ARGV[2]  owner
-- ARGV[3]  since when it is waited for, as an answer said; or empty
-- ARGV[4+] for each name: channel
-- Returns  one number a name, see inc/remove_hold.lua
local FIXED_ARGS = 3
local KEY_FIELDS, ARG_FIELDS = { 'lock', 'holds', 'queue', 'deadlines', 'waiters' }, { 'channel' }
local hold_id, owner, since_us = ARGV[1], ARGV[2], tonumber(ARGV[3])

-- include: names
-- include: publish
-- include: queue_leave
-- include: queue_join
-- include: release_all
-- include: mutex_settle
-- include: mutex_release
-- include: wrong_type

return release_all(hold_id, function(name, field, count, note)
	-- What is no queue any more has no position to keep.
	if count > 1 or field ~= owner or is_wrong_type(leave_error(name)) then
		return release_one(name, field, count)
	end
	redis.call('HDEL', name.lock, owner)
	if not leave_to_kept_holds(name) then
		redis.call('DEL', name.lock, name.holds)
	end
	if redis.call('EXISTS', name.waiters) == 0 then
		-- The queue begins with us: nobody stood still, and nobody is awaited.
		name.grace_ms = 0
	end
	join_queue(name, owner, note, since_us, '0')
	publish(name.channel, WAKE_ONE)
	return 2
end)
