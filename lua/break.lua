-- Break a lock of any kind by force. The client sends two requests. The first, the look, returns the holds; the second breaks
-- them.
-- Redisson forceUnlockAsync of RedissonLock, RedissonFairLock, RedissonReadLock, RedissonWriteLock
-- KEYS     lock hash, holds hash, Redisson's queue and deadlines, our waiters, ends of our readers
-- ARGV[1]  the owner that must still hold the lock; empty: any. If there are several readers, only this one loses its holds
-- ARGV[2]  wake queue
-- ARGV[3]  turn
-- ARGV[4]  permits of a semaphore
-- ARGV[5]  its remembered total
-- ARGV[6]  channel of a plain or fair lock; in a cluster with a '+' before it, as the next two
-- ARGV[7]  channel of a read/write lock
-- ARGV[8]  channel of a semaphore
-- ARGV[9]  the start of the timeout keys of a read/write lock
-- ARGV[10] plain, read, write or sem: the kind that the lock must have; empty: any. If a writer has read locks as well, read breaks
--          only these
-- ARGV[11] look: change nothing, and return the holds. break: break the holds in ARGV[12+]. again: as break, but an earlier request,
--          whose reply was lost, may already have broken them
-- ARGV[12+] what the look returned. A hold that is not among them was acquired later, and is not broken
-- Returns  {owner, ..., hold id, ...}, or the ids of permits  look: the lock is held
--          {1, holder, number of holders, note}  broken; one of the holders, and its note, which may be empty
--          {2, holder, number of holders, note, error}  broken, but this error kept the script from notifying a waiter
--          {3, holder, number of holders, note}  other owners hold the lock, or it has another kind; nothing was changed
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
-- subscribed. Return the reply.
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
-- The counter may have been deleted while permits are held.
local has_permits = may_be_semaphore and not is_error(listed) and #listed == 0 and redis.pcall('TYPE', permits).ok == 'zset'
if type(counter) == 'string' or has_permits then
	-- include: permit_holds
	-- include: reclaim
	-- include: counter
	-- include: semaphore_keys
	-- include: notify_permits

	-- All permits that are held: for each its id, hold, owner and note. is_meant: whether this request breaks it.
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

	-- Break the permits of the owner `expected`, and return the reply. If `expected` is empty, break the permits of all owners,
	-- or delete a semaphore that is free. If all held permits are then broken, also break those of RSemaphore, which have no
	-- ids.
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
		-- If the counter was deleted, compute its value as an acquisition does.
		local free = tonumber(counter or total - #held)
		if #held == 0 and (expected ~= '' or is_again) or total == free and free <= 0 then return { 0 } end
		if total == free then
			redis.call('DEL', name.lock, name.remembered, name.ends, name.holds)
			return { 5 }
		end
		-- Leave the permits of RSemaphore if an earlier request may have broken them: without ids, those acquired since look
		-- the same.
		local broken, is_for_all = total - free, expected == '' and #targets == #held and not is_again
		if is_for_all then
			redis.call('DEL', name.permits, name.ends, name.holds)
		else
			-- Delete the field of slots: the next acquisition makes it anew.
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
	-- The hash has no holder. If it still has the mode of a former lock, delete it: it would keep others from acquiring the
	-- lock.
	if mode then redis.call('DEL', name.lock, name.holds, name.ends) end
	return replica_error(name) or clear_queue()
end
name.channel = channel_of(mode and readwrite_channel or mutex_channel)
-- If the owner is a writer, break its write lock: its read locks, if it has any, stay.
if expected ~= '' and mode and wanted ~= 'read' and counts[expected .. WRITE] then
	expected = expected .. WRITE
end

local function kind_of(field) return mode and (is_writer_field(field) and 'write' or 'read') or 'plain' end

-- For each owner that has records: whether the look returned one of them. A client without records has no entry: for such a
-- client the loop below checks whether the look returned its field.
local function seen_owners()
	local listed, seen = redis.pcall('HGETALL', name.holds), {}
	for i = 1, #listed, 2 do
		local owner = hold_record_parse(listed[i + 1])
		if owner then seen[owner] = seen[owner] or was_seen[listed[i]] or false end
	end
	return seen
end

-- The holders that lose the lock.
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

-- Delete the timeout keys of these fields. Call this before anything else is deleted: the user may lack the right to these
-- keys.
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

-- Break the holds of one of several readers. Return the error of a missing right, or nil.
local function break_reader(reader)
	-- Try the rights to a timeout key on the number 0, which no hold has. A key with a higher number may exist: a lock that was
	-- deleted may have left it.
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

-- Some holders keep the lock: other readers, or a writer.
if mode and #targets < holders and not is_writer_field(holder) then
	-- Delete a holds hash that a user has overwritten. HLEN detects it; overwritten() would not if the user may not run TYPE.
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
