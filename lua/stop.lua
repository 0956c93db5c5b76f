-- Ask the processes that renew holds of a lock to stop: to terminate their COMMAND and to release the lock. The request is stored
-- until the hold is deleted, and the next renewal returns it.
-- The client first sends a look: it lists the holds, and writes nothing. Then the client sends the ids of the holds that can be
-- asked, again and again, until these holds have ended. A hold that was acquired after the look is not among these ids, so it is
-- never asked. If the server has lost a stored request, the next repetition stores it again.
-- Redisson none
-- KEYS[1]  lock hash, or counter of a semaphore
-- KEYS[2]  holds hash
-- ARGV[1]  the owner whose holds are looked for; empty: all owners
-- ARGV[2]  USER@HOST of the sender
-- ARGV[3]  permits of a semaphore, ARGV[4] its remembered total. They are not in KEYS, so a user of locks needs no right to them
-- ARGV[5+] ids of holds to ask; none: the look
-- Returns  {{hold id, owner, ttl in ms, note, 1 if the hold can be asked, else 0}, ...}  the holds that are still held
--            hold id, note: empty for a client without records, such as Redisson
--            owner: for a permit of Redisson's its id; empty for permits without an id, of RSemaphore
--            ttl: remaining lease of the hold; for a client without records the TTL of the lock, or until the deadline of the
--              permit. -1: none, or the lease has ended, but the lock has no TTL
--          {-1, type}  the key is no lock

-- include: suffix
-- include: denied
-- include: value
-- include: clock
-- include: record
-- include: kept
-- include: keep
-- include: all_fields
-- include: rights
-- include: counter
-- include: permits
-- include: permit_holds

local name = { lock = KEYS[1], holds = KEYS[2], permits = ARGV[3], remembered = ARGV[4] }
local expected, by = ARGV[1], ARGV[2]

local denied = right_error(name, 'holds: HDEL1 DEL0 HSET3 ')
if denied then return denied end

local key_type = redis.call('TYPE', name.lock).ok
local counter = key_type == 'string' and redis.call('GET', name.lock)
if counter and not is_permits_counter(counter) then return { -1, key_type } end
local is_lock = key_type == 'hash'
if not is_lock and not counter and key_type ~= 'none' then return { -1, key_type } end
local has_permits = counter or not is_lock and redis.pcall('TYPE', name.permits).ok == 'zset'
local ttl_ms = is_lock and redis.call('PTTL', name.lock)
local is_lasting = ttl_ms == -1 and redis.call('HGET', name.lock, 'mode') ~= 'read'

local found = {}

local function add(owner, left_ms, hold_id, note, can_be_asked)
	found[#found + 1] = { hold_id or '', owner, left_ms, note or '', can_be_asked and 1 or 0 }
end

local function is_meant(owner) return expected == '' or owner == expected end

-- The owner of a field, without the suffix of a writer.
local function owner_of(field) return (string.gsub(field, WRITE .. '$', '')) end

-- Whether a process renews the hold and reads requests to stop. Then HOLDER, the first word of the note, ends in '+'.
local function reads_requests(note) return string.find(note, '^%l+%.%S+%+ ') ~= nil end

-- Add a hold that has a record. Return whether it can be asked. Leave out a hold whose lease has ended, unless the key of
-- the lock never expires.
local function add_hold(hold_id, field, end_ms, note)
	local left_ms, is_kept = end_ms - now_ms(), kept_until(field)
	local can_be_asked = left_ms > 0 and not is_kept and reads_requests(note)
	if left_ms > 0 or is_lasting and not is_kept then
		add(owner_of(field), left_ms > 0 and left_ms or -1, hold_id, note, can_be_asked)
	end
	return can_be_asked
end

-- The script checks at most this many permits of a hold. A user may have written a larger number into a record, and counting to
-- that number would block the server.
local TAKE_MAX = 1000

local function is_held(hold_id, field, record)
	if is_lock then return redis.call('HGET', name.lock, field) end
	-- A hold of a semaphore is held while at least one of its permits exists.
	for number = 1, has_permits and math.min(permits_of(record), TAKE_MAX) or 0 do
		if redis.call('ZSCORE', name.permits, permit_id(hold_id, number)) then return true end
	end
	return false
end

local function ask_again()
	local unasked = {}
	for i = 5, #ARGV do
		local hold_id = ARGV[i]
		local record = redis.call('HGET', name.holds, hold_id) or ''
		local field, _, end_ms, _, note = hold_record_parse(record)
		if field and is_held(hold_id, field, record) and add_hold(hold_id, field, end_ms, note) then
			local request = redis.call('HGET', name.holds, hold_id .. STOP)
			if not request then unasked[#unasked + 1] = hold_id .. STOP end
		end
	end
	-- Write last, after everything that can fail.
	for _, field in ipairs(unasked) do
		redis.call('HSET', name.holds, field, ' ' .. digits(now_ms()) .. ' ' .. by)
	end
	return found
end

if #ARGV > 4 then return ask_again() end

-- ---- the look ----

local ids, records, listed = {}, {}, redis.pcall('HGETALL', name.holds)
if is_error(listed) and not is_wrong_type(listed) then return command_error('HGETALL', listed) end
for i = 1, is_error(listed) and 0 or #listed, 2 do
	local field, _, end_ms, _, note = hold_record_parse(listed[i + 1])
	if field then ids[#ids + 1], records[listed[i]] = listed[i], { field, end_ms, note } end
end

-- The remembered total, 0 if there is none; nil and an error if the user lacks the right to its key.
local function known_total()
	local reply = redis.pcall('GET', name.remembered)
	local err = is_error(reply) and key_error(reply)
	if err then return nil, err end
	return remembered_total(name) or 0
end

-- Add the holders of permits to `found`, the reply. Return an error if the user may not read the total, else nil.
local function add_permit_holders()
	-- If the total is larger than the free permits and the listed permits together, the rest is held without an id. Only the
	-- counter shows how many permits are free, so check this only if there is a counter.
	local total, denied_total = 0
	if counter then total, denied_total = known_total() end
	if denied_total then return denied_total end
	local seen, held = {}, redis.call('ZRANGE', name.permits, 0, -1, 'WITHSCORES')
	for i = 1, #held, 2 do
		local hold_id, owner = hold_of(held[i]), printable_id(held[i])
		local record = records[hold_id or '']
		if record and not seen[hold_id] and is_meant(record[1]) then add_hold(hold_id, unpack(record)) end
		if not hold_id and is_meant(owner) then add(owner, tonumber(held[i + 1]) < NO_DEADLINE_MS and held[i + 1] - now_ms() or -1) end
		seen[hold_id or ''] = true
	end
	if counter and counter + #held / 2 < total and is_meant('') then add('', -1) end
	return nil
end

local function add_lock_holders(counts, fields)
	local ours = {}
	for _, hold_id in ipairs(ids) do
		local record = records[hold_id]
		ours[record[1]] = true
		if counts[record[1]] and is_meant(owner_of(record[1])) then add_hold(hold_id, unpack(record)) end
	end
	for _, field in ipairs(fields) do
		if not ours[field] and is_meant(owner_of(field)) then add(owner_of(field), ttl_ms) end
	end
end

if is_lock then
	local _, counts, fields = fields_of(redis.call('HGETALL', name.lock))
	if not counts then return { -1, NOT_A_LOCK } end
	add_lock_holders(counts, fields)
elseif has_permits then
	local err = add_permit_holders()
	if err then return err end
end
-- If the holds hash was overwritten, return that error: without the hash, the owners of our holds are not known.
if #found > 0 and is_error(listed) then return listed end
return found
