-- Acquire the plain lock of every name, or of none. The first request after a release acquires it, unless a waiter has the next
-- turn (inc/turn.lua). The queue of a fair lock with the same name is ignored. Each release wakes one of our waiters.
-- Redisson RedissonLock.tryLockInnerAsync
-- KEYS     for each name: lock hash, holds hash, fencing counter. A request that undoes, or that tries the user's rights, also
--          has Redisson's queue and deadlines, and our waiters: a user without the rights that a release needs must not acquire
--          the lock
-- ARGV     see inc/request.lua; for each name: wake queue, turn, channel. The wake queue and the turn are not in KEYS, so a user
--          without a right to them can acquire the lock all the same. Such a user waits for messages on the channel of the lock
-- Returns  1  acquired as the first hold of the request's owner, without a token
--          {1, owner, hold count, token, ..., wait, run}  acquired; owner, hold count and token are given for each name
--            token: the fencing token, as text; "-": none was issued
--            wait: in how many ms this server counts for a majority; run: the run id of the server, if it is one of several
--          {0, index, ttl, holder, note, retry_after, since, watches_lock, held, position}  busy; times in ms, except since
--            index: the number of the busy name, from 1 on; ttl, holder, note and held describe its lock
--            ttl: TTL of the lock; -1: none; -2: the lock is free, and reserved for another waiter; then holder and note are
--              empty
--            retry_after: try again after this time at the latest; -1: when the ttl has passed; 0: immediately, even if the
--              caller does not wait, because the queue has more dead waiters than one script removes
--            since: the time since when the caller waits, in microseconds; the next attempt sends it
--            watches_lock: 1: the caller must subscribe to the channel of the lock, and try again when the ttl has passed; 0:
--              another waiter does so
--            held: how long the holder has held the lock; -1: not known
--            position: in the queue of a fair lock, from 1 on; 0: not in such a queue; -1: this attempt did not compute it, so
--              the caller keeps the last one
--          {2}  the reply to a probe: no name is busy; nothing was acquired
--          {-1, index, type}  the key is no lock; nothing was changed
--          {-3, index}  the fencing counter is no counter; nothing was changed
--          {result, ...}  the reply to an undo: see inc/results.lua

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
	-- include: mutex_keep
	-- include: leave
	-- include: last
	remember_holds(released_id, kept_ms)
	for _, name in ipairs(names) do leave_wake_queue(name, hold_id) end
	local results = release_all(hold_id, release_mutex, nil, kept_ms ~= '0' and keep)
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
