-- Take the plain lock of every name, or of none. Whoever asks first when it is free has it: a fair lock's
-- queue under the same name is passed by (RedissonLock.tryLockInnerAsync).
-- KEYS     for each name: lock hash, holds hash, fence counter, Redisson's queue and deadlines, our waiters
--          (the last three for the sake of its release: who may not use them must not have the lock)
-- ARGV     see inc/request.lua
-- Returns  {1, owner, hold count, token, ..., young}  acquired; three values a name, token text, "-" when none;
--            young: how long, in ms, until this server counts as one of several
--          {0, index, ttl in ms, holder, note, retry_after, since}  busy: who holds that name; ttl -1 when
--            it has none. retry_after: when to try again at the latest, in ms, -1 for whenever the ttl says;
--            since: to be sent along with the next try
--          {-1, index, type}  the key is something else; nothing was changed
--          {-3, index}  the fencing counter is something else; nothing was changed
-- include: request
local KEY_FIELDS, ARG_FIELDS = { 'lock', 'holds', 'counter', 'queue', 'deadlines', 'waiters' }, {}
-- include: names
-- include: reentrant_owners
-- include: replica
-- include: acquire
-- include: mutex_acquire

-- What stands in the way of this name, as the reply to give; nil when nothing does.
local function obstacle(index, name)
	local reply = examine(index, name)
	if reply then
		return reply
	end
	name.owner = fresh_owner
	if not name.is_free then
		-- wire: Redisson's read/write locks keep their mode in this field
		if redis.call('HEXISTS', name.lock, 'mode') == 1 then
			return { -1, index, 'read/write lock' }
		end
		name.owner = holding_owner(name.lock, '')
	end
	name.field = name.owner
	if name.owner then
		return nil
	end
	local holder, holder_note = holder_of(name)
	return { 0, index, redis.call('PTTL', name.lock), holder, holder_note, -1, '' }
end

for index, name in ipairs(names) do
	local reply = obstacle(index, name)
	if reply then
		return replica_error(name) or reply
	end
end
return acquire_all(mutex_acquire)
