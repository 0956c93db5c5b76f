-- Acquire the plain lock of every name, or of none. The first request after a release acquires it, unless a waiter has
-- the turn (inc/wake.lua). The queue of a fair lock under the same name is ignored. Of our waiters each release wakes one.
-- Redisson RedissonLock.tryLockInnerAsync
-- KEYS     for each name: lock hash, holds hash, fencing counter; to undo, and where the login names a user, also Redisson's queue
--          and deadlines, our waiters (needed by its release: a user that has no right to them can't acquire the lock)
-- ARGV     see inc/request.lua; of each name: wake queue and turn (not in KEYS: without a right to them waiters are
--          woken by the channel), channel
-- Returns  1  acquired, without a token, as the first hold of the owner of the request
--          {1, owner, hold count, token, ..., young, run}  acquired; three values a name, token as text, "-" when none;
--            young: how long, in ms, until this server counts as one of several; run: its run_id, if it is one of several and says so
--          {0, index, ttl in ms, holder, note, retry_after, since, watches_lock, held in ms, position}  busy: the holder
--            of that name, and for how long it has held the lock, -1 when that is not known; ttl -1 when it has none, -2
--            when the lock is free and left to another waiter: then holder and note are empty.
--            retry_after: try again in so many ms at the latest, -1 when the ttl says it, 0 at once, also without a wait
--            time: the script has removed only a part of what is dead; since: to be sent with the next try; watches_lock: 1 when the caller has to listen to the channel of the lock, and to try when the
--            ttl is over, 0 when others do so for it; position: in the queue of a fair lock, from 1 on, -1: as
--            the last reply said, else 0
--          {-1, index, type}  the key is something else; nothing was changed
--          {-3, index}  the fencing counter is something else; nothing was changed

-- include: request

local FIXED_ARGS, KEY_COUNT, may_be_fast = 5, 3, true
local field, counter, turn, own_key, ends = fresh_owner, KEYS[3], ARGV[FIXED_ARGS + 2], nil, nil

-- include: fast_acquire
local is_added = is_fast and call('HSET', lock, field, '1') == 1
-- include: fast_acquired

-- include: options

local KEY_FIELDS, ARG_FIELDS = { 'lock', 'holds', 'counter' }, { 'wake_queue', 'turn', 'channel' }
if tries_rights or undo_ms then KEY_FIELDS = { 'lock', 'holds', 'counter', 'queue', 'deadlines', 'waiters' } end

-- include: names
-- include: wake

if undo_ms then
	-- include: mutex_release
	-- include: leave
	for _, name in ipairs(names) do leave_wake_queue(name, hold_id) end
	local results = release_all(hold_id, release_mutex)
	reserve_all()
	return results
end

-- include: check_lock
-- include: holder
-- include: mutex
-- include: wait

local function held_reply(index)
	return wait_reply(index, redis.call('PTTL', names[index].lock), holder_of(names[index]))
end

local function check(index, name)
	local reply = check_lock(index, name)
	if reply then return reply end
	name.owner = fresh_owner
	if not name.is_free then
		if is_readwrite_lock(name) then return { -1, index, READWRITE_LOCK } end
		name.owner = holding_owner(name.lock, '')
	end
	if not name.owner then return held_reply(index) end
	if name.is_free and earlier_waiter(name) then return turn_reply(index) end
	name.field = name.owner
	return nil
end

local function acquire_and_leave_queue(name)
	local count, token = mutex_acquire(name)
	acquired_from_wake_queue(name)
	return count, token
end

return acquire_all(HASH_RIGHTS, check, acquire_and_leave_queue)
