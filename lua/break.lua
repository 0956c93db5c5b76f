-- Break a lock of any kind by force. The client sends this script twice. The first request, the look, returns the holds; the
-- second breaks the holds that the look has returned.
-- Redisson forceUnlockAsync of RedissonLock, RedissonFairLock, RedissonReadLock, RedissonWriteLock
-- KEYS     lock hash, holds hash, Redisson's queue and deadlines, our waiters, ends of our readers
-- ARGV[1]  the owner whose holds are broken; other readers keep theirs. Empty: the holds of all owners are broken
-- ARGV[2]  wake queue
-- ARGV[3]  turn
-- ARGV[4]  permits of a semaphore
-- ARGV[5]  its remembered total
-- ARGV[6]  channel of a plain or fair lock; in a cluster each of the three channels has a '+' before it
-- ARGV[7]  channel of a read/write lock
-- ARGV[8]  channel of a semaphore
-- ARGV[9]  the start of the timeout keys of a read/write lock
-- ARGV[10] plain, read, write or sem: the kind of the holds to break; empty: any. If a writer has read locks as well, "read"
--          breaks only these
-- ARGV[11] look: change nothing, and return the holds. break: break the holds in ARGV[12+]. again: as break, but an earlier request,
--          whose reply was lost, may already have broken them
-- ARGV[12+] what the look returned. The script breaks no other hold: such a hold was acquired after the look
-- Returns  {owner, ..., hold id, ...}, or the ids of permits  the reply to the look; empty: the lock is free
--          {1, holder, number of holders, note}  the holds were broken. holder: one of their holders; note: its note, which may
--            be empty
--          {2, holder, number of holders, note, error}  the holds were broken, but this error kept the script from notifying a
--            waiter
--          {3, holder, number of holders, note}  the lock is held, but no hold is one to break: another owner has it, it has
--            another kind, or it was acquired after the look
--          {0}  the lock is free
--          {4}  the lock is free, and dead waiters were removed from its queue
--          {5}  the semaphore was free, and was deleted
--          {-1, type}  the key is no lock; nothing was changed

-- include: mutex_notify
-- include: all_fields
-- include: holder
-- include: readwrite_left
-- include: unsubscribed

local name = { lock = KEYS[1], holds = KEYS[2], queue = KEYS[3], deadlines = KEYS[4], waiters = KEYS[5],
	ends = KEYS[6], timeouts = ARGV[9], wake_queue = ARGV[2], turn = ARGV[3], remembered = ARGV[5] }
local expected, mutex_channel, readwrite_channel, wanted = ARGV[1], ARGV[6], ARGV[7], ARGV[10]
local permits, semaphore_channel, is_look, is_again = ARGV[4], ARGV[8], ARGV[11] == 'look', ARGV[11] == 'again'

local was_seen = {}
for i = 12, #ARGV do
	was_seen[ARGV[i]] = true
end

-- Call this if the lock is free. Remove dead waiters from the head of its queue, and then waiters of Redisson's that are not
-- subscribed to their channels. Return the reply of the script.
local function clear_queue()
	if expected ~= '' or wanted ~= '' and wanted ~= 'plain' or redis.pcall('EXISTS', name.queue) ~= 1 or leave_error(name) then
		return { 0 }
	end
	name.channel = channel_of(mutex_channel)
	local head = head_of(name)
	prune(name)
	local unsubscribed = waiters_before(name, nil, UNSUBSCRIBED_MAX, is_unsubscribed_redisson)
	remove_waiters(name, unsubscribed)
	if unsubscribed[1] then prune(name) end
	local is_cleared = head_of(name) ~= head
	wake_head(name)
	return is_cleared and { 4 } or { 0 }
end

local listed = redis.pcall('HGETALL', name.lock)
local may_be_semaphore = wanted == '' or wanted == 'sem'
local counter = may_be_semaphore and is_wrong_type(listed) and redis.pcall('GET', name.lock)
-- If the key of the counter is missing, look for held permits: the counter may have been deleted while they are held.
local has_permits = may_be_semaphore and not is_error(listed) and #listed == 0 and redis.pcall('TYPE', permits).ok == 'zset'
if type(counter) == 'string' or has_permits then
	-- include: permit_holds
	-- include: reclaim
	-- include: counter
	-- include: semaphore_keys
	-- include: notify_permits

	-- All permits that are held. For each its id, hold, owner and note, and is_meant: whether this request breaks the permit.
	local function held_permits(name)
		local held, records = {}, {}
		local listed = redis.call('HGETALL', name.holds)
		for i = 1, #listed, 2 do
			records[listed[i]] = listed[i + 1]
		end
		for i, id in ipairs(redis.call('ZRANGE', name.permits, 0, -1)) do
			local hold_id = hold_of(id)
			local owner, _, _, _, note = hold_record_parse(hold_id and records[hold_id] or '')
			held[i] = { id = id, hold_id = hold_id, owner = owner or printable_id(id), note = note or '',
				is_meant = was_seen[id] and (expected == '' or (owner or printable_id(id)) == expected) }
		end
		return held
	end

	-- Break the permits of the owner `expected`, and return the reply of the script. If `expected` is empty, break the permits of
	-- all owners, or delete a semaphore that is free. Permits of RSemaphore have no ids. Break them only if all permits with an
	-- id are broken.
	local function break_permits(name)
		local counter = redis.call('GET', name.lock)
		name.held = redis.call('ZCARD', name.permits)
		local ended = counter and reclaim(name) or 0
		if ended > 0 then
			counter = redis.call('INCRBY', name.lock, ended)
			notify_of_permits(name, counter, ended)
		end
		local held, targets, owners, owner_count = held_permits(name), {}, {}, 0
		for _, permit in ipairs(held) do
			if permit.is_meant then
				targets[#targets + 1] = permit
				owner_count = owner_count + (owners[permit.owner] and 0 or 1)
				owners[permit.owner] = true
			end
		end
		local holder = targets[#targets] or held[#held] or { owner = 'a client without a record', note = '' }
		if #held > 0 and #targets == 0 then return { 3, holder.owner, #held, holder.note } end
		local total = math.max(remembered_total(name) or 0, (counter or 0) + #held)
		-- If the counter was deleted, compute the number of free permits as an acquisition does.
		local free = tonumber(counter or total - #held)
		if #held == 0 and (expected ~= '' or is_again) or total == free and free <= 0 then return { 0 } end
		if total == free then
			redis.call('DEL', name.lock, name.remembered, name.ends, name.holds)
			return { 5 }
		end
		-- An earlier request may have broken the permits of RSemaphore already. Then do not break those that are held now:
		-- without ids, permits that were acquired since cannot be told from those that were broken.
		local broken, is_for_all = total - free, expected == '' and #targets == #held and not is_again
		if is_for_all then
			redis.call('DEL', name.permits, name.ends, name.holds)
		else
			-- Delete the field of slots, since it still has the slots of the broken holds. The next acquisition makes it anew
			-- from the records.
			redis.call('HDEL', name.holds, SLOTS)
			broken = 0
		end
		for _, permit in ipairs(is_for_all and {} or targets) do
			redis.call('ZREM', name.ends, permit.id)
			redis.call('HDEL', name.holds, permit.hold_id or '', (permit.hold_id or '') .. STOP, permit.owner .. LAST)
			broken = broken + redis.call('ZREM', name.permits, permit.id)
		end
		if not counter then redis.call('SET', name.lock, digits(free)) end
		notify_of_permits(name, redis.call('INCRBY', name.lock, broken), broken)
		return { publish_error and 2 or 1, holder.owner, math.max(owner_count, 1), holder.note, publish_error }
	end

	if counter and not is_permits_counter(counter) then return { -1, NOT_A_COUNTER } end
	name.permits, name.channel = permits, channel_of(semaphore_channel)
	local side_type = overwritten_kind(name)
	if side_type then return { -1, side_type } end
	if is_look then return redis.call('ZRANGE', permits, 0, -1) end
	return replica_error(name) or break_permits(name)
elseif is_error(counter) and not is_wrong_type(counter) then
	return command_error('GET', counter)
elseif is_wrong_type(listed) then
	return { -1, redis.call('TYPE', name.lock).ok }
elseif is_error(listed) then
	return command_error('HGETALL', listed)
end

local mode, counts, fields = fields_of(listed)
if not counts then return { -1, NOT_A_LOCK } end
if is_look then
	for _, hold_id in ipairs(redis.pcall('HKEYS', name.holds)) do
		fields[#fields + 1] = hold_id
	end
	return fields
end
local holder, holders = fields[#fields], #fields
if holders == 0 then
	-- The hash has no holder. If it still has the field "mode" of a former read/write lock, delete the hash: no plain or fair
	-- lock could be acquired.
	if mode then redis.call('DEL', name.lock, name.holds, name.ends) end
	return replica_error(name) or clear_queue()
end
name.channel = channel_of(mode and readwrite_channel or mutex_channel)
-- If the owner is a writer, break its write lock. Its read locks then end as well, because break_all deletes the whole lock.
if expected ~= '' and mode and wanted ~= 'read' and counts[expected .. WRITE] then
	expected = expected .. WRITE
end

local function kind_of(field) return mode and (is_writer_field(field) and 'write' or 'read') or 'plain' end

-- For each owner that has records: whether the look has returned one of its holds. A client without records, such as Redisson,
-- has no entry: for such a client the loop below checks whether the look has returned its field.
local function seen_owners()
	local listed, seen = redis.pcall('HGETALL', name.holds), {}
	for i = 1, #listed, 2 do
		local owner = hold_record_parse(listed[i + 1])
		if owner then seen[owner] = seen[owner] or was_seen[listed[i]] or false end
	end
	return seen
end

-- The fields of the holders that lose the lock.
local targets, seen = {}, seen_owners()
for _, field in ipairs(fields) do
	local is_meant = seen[field]
	if is_meant == nil then is_meant = was_seen[field] end
	if is_meant and (wanted == '' or kind_of(field) == wanted) and (expected == '' or field == expected) then
		targets[#targets + 1] = field
	end
end
holder = targets[#targets] or holder
local holder_note = owner_note_and_age(name.holds, holder)
if #targets == 0 then return { 3, holder, holders, holder_note } end

local KEYS_AT_ONCE = 100

-- Delete the timeout keys of these fields. Call this before anything else is deleted: if the user lacks the right to these keys,
-- the script fails before it has changed anything.
local function delete_timeouts(of_fields)
	local keys = {}
	for _, field in ipairs(of_fields) do
		for number = 1, kind_of(field) == 'read' and counts[field] or 0 do
			keys[#keys + 1] = timeout_key(name, field, number)
		end
	end
	for i = 1, #keys, KEYS_AT_ONCE do
		redis.call('DEL', unpack(keys, i, math.min(i + KEYS_AT_ONCE - 1, #keys)))
	end
end

-- Break the holds of one reader while other holders keep the lock. Return the error of a missing right; nil: the holds are
-- broken.
local function break_reader(reader)
	-- Try the rights to a timeout key on the key with the number 0, which no hold has, so the key does not exist. A key with a
	-- number above those of the reader's holds could exist: a lock that was deleted may have left it.
	name.timeout = timeout_key(name, reader, 0)
	delete_overwritten_ends(name)
	local err = right_error(name, 'lock: PTTL0 HLEN0 HGET1 holds: HDEL1 ends: ZREM1 ZRANGE2 ZCARD0 timeout: HVALS0 HGETALL0 PEXPIRE1 DEL0 ')
	if err then return err end
	delete_timeouts({ reader })
	remove_readers(name, { [reader] = true })
	leave_or_free(name, holders_left(name), false)
	return nil
end

local function break_all()
	delete_timeouts(fields)
	redis.call('DEL', name.lock, name.holds, name.ends)
	if not mode then
		notify_waiters(name)
	else
		wake_waiters(name, mode == 'write' and WAKE_ALL or WAKE_ONE)
	end
end

-- Some holders keep the lock: other readers, or the writer whose read locks are broken.
if mode and #targets < holders and not is_writer_field(holder) then
	-- If a user has overwritten the holds hash, delete it. Use HLEN to detect that: overwritten() does not detect it if the user
	-- may not run TYPE.
	if is_wrong_type(redis.pcall('HLEN', name.holds)) then
		redis.call('DEL', name.holds)
	end
	for _, reader in ipairs(targets) do
		local err = break_reader(reader)
		if err then return err end
	end
	holders = #targets
else
	break_all()
end
return { publish_error and 2 or 1, holder, holders, holder_note, publish_error }
