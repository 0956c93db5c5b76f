-- Acquire the write lock of every name, or of none. A writer that waits for readers claims the next turn: our readers that come
-- later wait until the writer had its turn.
-- Redisson RedissonWriteLock.tryLockInnerAsync
-- KEYS     for each name: lock hash, holds hash, waiting writer, ends of our readers
-- ARGV     see inc/request.lua; of each name: wake queue, turn, channel, the start of its timeout keys
-- Returns  as plain_acquire.lua; and
--          {-2, index}  deadlock: the caller has a read lock of this name, and would wait for its own release

-- include: suffix
-- include: request

local FIXED_ARGS, KEY_COUNT, may_be_fast = 5, 4, not want_token
local field, counter, turn, own_key, ends = fresh_owner .. WRITE, nil, ARGV[FIXED_ARGS + 2], nil, nil

-- include: fast_acquire
local is_added = is_fast and call('HSET', lock, 'mode', 'write', field, '1') == 2
-- include: fast_acquired

local KEY_FIELDS, ARG_FIELDS = { 'lock', 'holds', 'writer', 'ends' }, { 'wake_queue', 'turn', 'channel', 'timeouts' }

-- include: options
-- include: names
-- include: wake

if undo_ms then
	-- include: readwrite_undo
	return undo_readwrite()
end

-- include: check_lock
-- include: holder
-- include: expired_readers
-- include: readwrite
-- include: first_hold
-- include: wait

-- The holder to report to a waiting writer, in the form of holder_of. If there are many readers, report one of the two that last
-- longest, because holder_of would read the records of all readers.
local function lasting_holder_of(name)
	local is_one_of_many = redis.call('HLEN', name.lock) > FIELDS_MAX
	for _, owner in ipairs(is_one_of_many and redis.call('ZRANGE', name.ends, -2, -1) or {}) do
		local _, records = reader_holds(name, owner, hold_count(redis.call('HGET', name.lock, owner)))
		local owner_note, held_ms = note_and_age(records and records[1] or '')
		if owner_note then return owner, owner_note, held_ms end
	end
	return holder_of(name)
end

-- Readers wait this long for a writer that sends no heartbeat.
local TURN_MS = 5000
-- A writer that waits for readers sends a heartbeat this often.
local HEARTBEAT_MS = 2000
-- If the heartbeat of the writer with the claim is late by this time, the next writer takes the claim.
local CLAIM_LATE_MS = 500

-- Claim the next turn. If several writers wait, the first one has the claim: readers that came before the second one then wait for the
-- first one alone. Return the error, or nil. If the server denies the claim because its memory is full, return nil: an error would end
-- the wait of a writer that is merely not next.
local function claim_turn(name)
	local own_since_us = waits_since_us or now_us()
	local since_us, owner = string.match(redis.call('GET', name.writer) or '', '^(%d+) (%S+) ')
	local is_later = owner and owner ~= fresh_owner and tonumber(since_us) < own_since_us
	if is_later and redis.call('PTTL', name.writer) > TURN_MS - HEARTBEAT_MS - CLAIM_LATE_MS then return nil end
	local reply = redis.pcall('SET', name.writer, digits(own_since_us) .. ' ' .. fresh_owner .. ' ' .. note, 'PX', TURN_MS)
	return is_error(reply) and not is_memory_error(reply) and command_error('SET', reply) or nil
end

-- Check a lock that is not free. If it cannot be acquired, and waiting would not help, return the reply. Else return nil, and set
-- name.owner if this request can acquire the lock, or name.is_busy if the caller has to wait.
local function check_held(index, name)
	local mode = redis.call('HGET', name.lock, 'mode')
	if not mode then return { -1, index, MUTEX_LOCK } end
	name.owner = holding_owner(name.lock, WRITE)
	if name.owner then return nil end
	for _, owner in ipairs(reentrant_owners) do remove_if_expired(name, owner) end
	remove_expired(name)
	free_if_empty(name)
	if name.is_free then
		name.owner = fresh_owner
		return nil
	end
	local reader = holding_owner(name.lock, '')
	if reader and not is_regain then return { -2, index } end
	-- A request that regains the write lock can find a read lock of its owner, which was nested in the write lock and was
	-- regained first. If no other reader has the lock, restore the write lock around that read lock.
	if reader and redis.call('HLEN', name.lock) == 2 then
		name.owner, name.is_read_within = reader, true
		return nil
	end
	name.is_busy, name.has_readers = true, mode == 'read'
	return nil
end

local function check(index, name)
	local reply = check_lock(index, name)
	name.owner = fresh_owner
	if not reply and not name.is_free then reply = check_held(index, name) end
	if name.owner then name.field = name.owner .. WRITE end
	name.waiter = name.is_free and earlier_waiter(name)
	name.is_busy = name.is_busy or name.waiter
	return reply
end

-- Acquire the write lock around a read lock of the same owner, which stays held.
local function regain_around_read(name)
	redis.call('HSET', name.lock, 'mode', 'write', name.field, 1)
	write_for(lease_ms, 'HSET', name.holds, hold_id, new_hold_record(name, NO_TOKEN))
	extend(name.lock, lease_ms)
	redis.call('DEL', name.writer)
	acquired_from_wake_queue(name)
	return 1, NO_TOKEN
end

local function acquire_write(name)
	if name.is_read_within then return regain_around_read(name) end
	-- wire: at a re-entry Redisson adds the lease to the TTL of the lock. We only raise the TTL to the lease.
	if not name.is_free then return reenter(name) end
	local count, token = acquire_free(name, NO_TOKEN, 'mode', 'write', name.field, 1)
	redis.call('DEL', name.writer)
	acquired_from_wake_queue(name)
	return count, token
end

-- Whether the caller waits for a writer, and whether for the turn of another waiter.
local function what_else_is_busy()
	local waits_for_writer, waits_for_turn = false, false
	for _, name in ipairs(names) do
		waits_for_turn = waits_for_turn or name.waiter
		waits_for_writer = waits_for_writer or name.is_busy and not name.has_readers and not name.waiter
	end
	return waits_for_writer, waits_for_turn
end

-- The reply if a name is busy. A writer that waits for readers tries again every HEARTBEAT_MS: without such a heartbeat its
-- claim expires. If it also waits for a writer or another waiter, it claims no turn: readers would wait for a lock that stays free.
local function busy_reply(index)
	if names[index].waiter then return turn_reply(index) end
	local reply = wait_reply(index, redis.call('PTTL', names[index].lock), lasting_holder_of(names[index]))
	local waits_for_writer, waits_for_turn = what_else_is_busy()
	for _, name in ipairs(may_wait and not waits_for_writer and names or {}) do
		if name.waiter then
			reply[6] = sooner_ms(reply[6], turn_retry_after_ms(name))
		elseif name.has_readers and not waits_for_turn then
			local err = claim_turn(name)
			if err then return err end
			reply[6] = sooner_ms(reply[6], HEARTBEAT_MS)
		end
	end
	return reply
end

return acquire_all(HASH_RIGHTS .. READWRITE_RIGHTS, check, acquire_write, busy_reply)
