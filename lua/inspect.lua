-- Return what a server stores of one name, for people to read. The script changes nothing. A lock may have a hundred thousand
-- readers, and the key may be a large one of a user. The script must not block the server for its other clients, so it reads only
-- a part of a long list, and returns the full number of entries.
-- Redisson none
-- KEYS[1]  lock hash, or counter of a semaphore
-- ARGV[1]  how many holders to list at most
-- ARGV[2]  how many waiters of the queue to list at most; 0: count them only
-- ARGV[3]  channel of a plain or fair lock; in a cluster each of the three channels has a '+' before it
-- ARGV[4]  channel of a read/write lock
-- ARGV[5]  the start of the timeout keys of a read/write lock
-- ARGV[6]  holds hash                  ARGV[7]  fencing counter
-- ARGV[8]  Redisson's queue            ARGV[9]  Redisson's deadlines     ARGV[10]  our waiters
-- ARGV[11] waiting writer              ARGV[12] wake queue
-- ARGV[13] permits of a semaphore      ARGV[14] channel of a semaphore   ARGV[15] ends of our permits
-- ARGV[16] remembered total            ARGV[17] last holder
-- The keys in ARGV are not in KEYS, so a user without the right to one of them still sees the rest.
-- Returns  {'other', type}  the key is neither a lock nor a semaphore
--          {'free', ...}, {'plain', ...}, {'read', ...}, {'write', ...} or {'sem', ...}, with these members from the second on:
--          2  TTL in ms; -1: none; -2: no key. For a semaphore: in how many ms the first of the listed permits ends
--          3  the fencing counter; empty: none
--          4  the number of holders. For a semaphore a permit that is not listed counts as one holder
--          5  some of the holders, those that have held longest first. For a semaphore those whose permits end first:
--             {owner, holds, client, age, ttl in ms, token, slots, note, age of a request to stop, USER@HOST of its sender}
--             holds: the number of holds; for a semaphore the number of permits
--          6  how many wait in the fair queue
--          7  the first waiters in the fair queue: {owner, client, age, 1 if dead, note}
--          8  how many wait in the wake queue
--          9  how long the first waiter in the wake queue has waited
--          10 how many clients other than ours are subscribed to the channel of the lock
--          11 the writer that waits for readers, in the form of one waiter of 7; empty: none
--          12 what could not be read: {what, error}...
--          13 why the key is taken for a lock: 'record': a holder has a record; 'owners': all holders have Redisson's form;
--             'beside': the name has other keys of a lock; empty: only the form of the key looks like a lock
--          14 the number of permits in all, 0 for a lock; below 0 if the counter is far enough below 0
--          15 the number of free permits, which is the counter, 0 for a lock; it can be below 0
--          16 the number of permits that are held without an id, by RSemaphore; 0 for a lock
--          17 the last holder: {kind, owner, how long it held the lock, how long ago it released the lock, exit status of its
--             command or -1, the signal that ended its command or 0, why the command was ended, note}; empty: none is remembered
--          client: 0 not known, 1 ours, 2 an owner of Redisson's form, 3 any other. Times are in ms; -1: none; -2: not known

-- include: suffix
-- include: value
-- include: denied
-- include: clock
-- include: record
-- include: kept
-- include: all_fields
-- include: heartbeats
-- include: reader_holds
-- include: counter
-- include: semaphore_keys
-- include: permits
-- include: permit_holds

local name = { lock = KEYS[1], timeouts = ARGV[5], holds = ARGV[6], counter = ARGV[7], queue = ARGV[8],
	deadlines = ARGV[9], waiters = ARGV[10], writer = ARGV[11], wake_queue = ARGV[12], permits = ARGV[13], ends = ARGV[15],
	remembered = ARGV[16], last = ARGV[17] }
local semaphore_channel = ARGV[14]
local holders_max, waiters_max, mutex_channel, readwrite_channel = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], ARGV[4]

-- If a lock has more fields than this, only a part of them is read.
local FIELDS_LISTED_MAX = 128
-- If there are more records of holds than this, only a part of them is read.
local RECORDS_LISTED_MAX = 512
-- If a reader has more timeout keys than this, only the last ones are read.
local TIMEOUTS_MAX = 16
local NONE, UNKNOWN_TIME = -1, -2
local CLIENT_UNKNOWN, CLIENT_OURS, CLIENT_REDISSON, CLIENT_OTHER = 0, 1, 2, 3

-- wire: UUID:THREAD, and what Redisson appends for a writer and for a transaction.
local REDISSON_OWNER = '^' .. string.rep('[0-9a-f]', 8) .. string.rep('%-' .. string.rep('[0-9a-f]', 4), 3)
	.. '%-' .. string.rep('[0-9a-f]', 12) .. ':%d+'

local unread = {}

-- Run act. If a command is denied, or finds a key with another type, add the error to unread instead of raising it.
local function read_or_note(what, act)
	local is_done, err = pcall(act)
	if is_done then return end
	local text = type(err) == 'table' and err.err or tostring(err)
	-- Add the number of the script's line that failed: it shows the command if the error does not name it.
	local line = type(err) == 'table' and err.line
	unread[#unread + 1] = { what, text .. (line and ' @user_script:' .. line or '') }
end

-- Call a command inside read_or_note. Its error names the command, which the server's own error may not.
local function read(command, ...)
	local reply = redis.pcall(command, ...)
	if is_error(reply) then error(command_error(command, reply)) end
	return reply
end

-- How long ago since_ms was, in ms. If since_ms is NONE or UNKNOWN_TIME, which are negative, return it unchanged.
local function age_ms(since_ms) return since_ms < 0 and since_ms or math.max(now_ms() - since_ms, 0) end

local function client_by_form(owner)
	local rest = string.match(owner, REDISSON_OWNER .. '(.*)$')
	return rest and (rest == '' or string.sub(rest, 1, 1) == ':') and CLIENT_REDISSON or CLIENT_OTHER
end

-- The fields of a hash, each followed by its value: all of them, or a part if there are more than count_max.
local function some_of(key, count, count_max)
	if count <= count_max then return read('HGETALL', key) end
	return read('HSCAN', key, 0, 'COUNT', count_max)[2]
end

-- ---- holders ----

local records, are_records_complete = {}, false

local function request_of(request)
	local since_ms, by = string.match(request or '', '^ (%d+) (.*)$')
	return age_ms(tonumber(since_ms) or NONE), by or ''
end

-- For each owner, find the record of its first hold, and one request to stop any of its holds.
local function read_records()
	local count, owners, requests = read('HLEN', name.holds), {}, {}
	local listed = some_of(name.holds, count, RECORDS_LISTED_MAX)
	for i = 2, #listed, 2 do
		local owner, since_ms, _, token, note = hold_record_parse(listed[i])
		since_ms = tonumber(since_ms)
		if owner then owners[listed[i - 1] .. STOP] = owner else requests[listed[i - 1]] = listed[i] end
		if owner and (not records[owner] or since_ms < records[owner].since_ms) then
			records[owner] = { since_ms = since_ms, token = token, note = note }
		end
	end
	for field, owner in pairs(owners) do records[owner].request = records[owner].request or requests[field] end
	are_records_complete = count <= RECORDS_LISTED_MAX
end

-- How long the longest of a reader's timeout keys lasts. If there are many keys, read those with the highest numbers: they
-- were set last.
local function timeouts_ms(owner, count)
	local longest_ms = 0
	for number = count, math.max(1, count - TIMEOUTS_MAX + 1), -1 do
		longest_ms = math.max(longest_ms, read('PTTL', timeout_key(name, owner, number)))
	end
	return longest_ms
end

local function holder_ttl_ms(mode, field, count, lock_ttl_ms)
	local end_ms, ttl_ms = kept_until(field), UNKNOWN_TIME
	if end_ms then return math.max(end_ms - now_ms(), 0) end
	if not mode or is_writer_field(field) then return lock_ttl_ms end
	read_or_note('timeouts', function() ttl_ms = timeouts_ms(field, count) end)
	return ttl_ms
end

local function client_of(field)
	if records[field] then return CLIENT_OURS end
	if not are_records_complete then return CLIENT_UNKNOWN end
	return client_by_form(field)
end

local function holder_of_field(mode, field, count, lock_ttl_ms)
	local record = records[field] or { since_ms = UNKNOWN_TIME, token = '-', note = '' }
	return { field, count, client_of(field), age_ms(record.since_ms), holder_ttl_ms(mode, field, count, lock_ttl_ms),
		record.token, '', record.note, request_of(record.request) }
end

-- Whether holder a comes before holder b in the list. Holders that have held the lock longest come first, holders without a known
-- time last.
local function holds_for_longer(a, b)
	local a_ms, b_ms = records[a] and records[a].since_ms, records[b] and records[b].since_ms
	if a_ms ~= b_ms and (a_ms == nil or b_ms == nil) then return a_ms ~= nil end
	if a_ms ~= b_ms then return a_ms < b_ms end
	return a < b
end

-- ---- waiters ----

local function waiter_of(owner)
	local heartbeat = heartbeat_of(name, owner)
	local client = heartbeat and CLIENT_OURS or client_by_form(owner)
	return { owner, client, heartbeat and age_ms(math.floor(heartbeat.since_us / 1000)) or UNKNOWN_TIME, is_dead(name, owner) and 1 or 0,
		heartbeat and heartbeat.note or '' }
end

local queue_count, queue, wake_count, wake_ms, others, writer = 0, {}, 0, NONE, 0, {}

local function read_queue()
	local owners = read('LRANGE', name.queue, 0, math.max(waiters_max, 1) - 1)
	queue_count = #owners
	if queue_count > 0 then queue_count = math.max(queue_count, read('ZCARD', name.deadlines)) end
	for position = 1, math.min(#owners, waiters_max) do queue[position] = waiter_of(owners[position]) end
end

local function read_wake_queue()
	wake_count = read('ZCARD', name.wake_queue)
	local _, since_us = next_waiter(name)
	wake_ms = since_us and age_ms(math.floor(since_us / 1000)) or NONE
end

-- If count_redisson returns nil, the user may not run PUBSUB: run PUBSUB again to raise that error.
local function read_subscribers() others = count_redisson(name) or read('PUBSUB', 'NUMSUB', name.channel) end

local function read_writer()
	local turn = read('GET', name.writer)
	local since_us, owner, note = string.match(turn or '', '^(%d+) (%S+) (.*)$')
	writer = owner and { owner, CLIENT_OURS, age_ms(math.floor(tonumber(since_us) / 1000)), 0, note } or {}
end

-- ---- permits ----

local permit_holders, permit_count, permits_unlisted, permits_end_ms, has_permit_record = {}, 0, 0, NONE, false

local function permit_holder_of(id, hold_id, deadline_ms)
	local record = hold_id and read('HGET', name.holds, hold_id)
	local end_ms = hold_id and read('ZSCORE', name.ends, id) or deadline_ms
	local ttl_ms = tonumber(end_ms) < NO_DEADLINE_MS and math.max(end_ms - now_ms(), 0) or NONE
	local owner, since_ms, _, _, note = hold_record_parse(record or '')
	local _, slots = permits_of(record or '')
	if ttl_ms ~= NONE then
		permits_end_ms = permits_end_ms == NONE and ttl_ms or math.min(permits_end_ms, ttl_ms)
	end
	has_permit_record = has_permit_record or owner ~= nil
	return { owner or printable_id(id), 1, owner and CLIENT_OURS or hold_id and CLIENT_UNKNOWN or CLIENT_REDISSON,
		age_ms(tonumber(since_ms) or UNKNOWN_TIME), ttl_ms, '', table.concat(slots, ' '), note or '',
		request_of(hold_id and read('HGET', name.holds, hold_id .. STOP)) }
end

local function read_permits()
	permit_count = read('ZCARD', name.permits)
	local listed, of_hold = read('ZRANGE', name.permits, 0, holders_max - 1, 'WITHSCORES'), {}
	for i = 1, #listed, 2 do
		local hold_id = hold_of(listed[i])
		local holder = hold_id and of_hold[hold_id]
		if holder then
			holder[2] = holder[2] + 1
		else
			holder = permit_holder_of(listed[i], hold_id, listed[i + 1])
			permit_holders[#permit_holders + 1] = holder
			of_hold[hold_id or ''] = holder
		end
	end
	permits_unlisted = permit_count - #listed / 2
end

local token = ''

local function read_token() token = read('GET', name.counter) or '' end

-- ---- the last holder ----

local LAST_FIELDS = 6
local last = {}

-- Read the last holder. If the user lacks the right to its key, ignore that and show the rest.
local function read_last()
	local of = {}
	if redis.pcall('HLEN', name.last) ~= LAST_FIELDS then return end
	local listed = redis.pcall('HGETALL', name.last)
	for i = 1, #listed, 2 do of[listed[i]] = listed[i + 1] end
	local since_ms, until_ms = tonumber(of.since), tonumber(of['until'])
	if of.kind and of.owner and since_ms and until_ms and of['end'] and of.note then
		local how, number, reason = string.match(of['end'], '^(%S+) (%d%d?%d?) (.*)$')
		last = { of.kind, of.owner, math.max(until_ms - since_ms, 0), age_ms(until_ms), how == 'exit' and tonumber(number) or -1,
			how == 'signal' and tonumber(number) or 0, reason or '', of.note }
	end
end

-- ---- the lock ----

local replica = replica_error({ holds = name.lock })
if replica then return replica end
read_last()
local field_count = redis.pcall('HLEN', name.lock)
local free = is_wrong_type(field_count) and redis.pcall('GET', name.lock)
local is_counter = type(free) == 'string' and is_permits_counter(free)
if is_counter or field_count == 0 and redis.pcall('TYPE', name.permits).ok == 'zset' then
	local side_type = overwritten_kind(name)
	if side_type then return { 'other', side_type } end
	read_or_note('holders', read_permits)
	name.channel = channel_of(semaphore_channel)
	read_or_note('waiters', read_wake_queue)
	read_or_note('listeners', read_subscribers)
	free = tonumber(free or 0)
	local total = free + permit_count
	read_or_note('total', function() total = math.max(total, remembered_total(name) or total) end)
	return { 'sem', permits_end_ms, '', #permit_holders + permits_unlisted, permit_holders, 0, {}, wake_count,
		wake_ms, others, {}, unread, has_permit_record and 'record' or permit_count > 0 and 'beside' or '', total, free,
		total - free - permit_count, last }
end
if is_wrong_type(field_count) then return { 'other', redis.call('TYPE', name.lock).ok } end
if is_error(field_count) then return command_error('HLEN', field_count) end
local listed = {}
-- If the user has no right to HSCAN, no holder of a lock with many holders is listed. The reply then has only their number.
read_or_note('holders', function() listed = some_of(name.lock, field_count, FIELDS_LISTED_MAX) end)

local mode, counts, fields = fields_of(listed)
if not counts then return { 'other', NOT_A_LOCK } end
if not mode and field_count > FIELDS_LISTED_MAX then
	local value = redis.call('HGET', name.lock, 'mode')
	mode = value and is_mode('mode', value) and value or nil
end
local holder_count = field_count - (mode and 1 or 0)
local lock_ttl_ms = redis.call('PTTL', name.lock)

read_or_note('records', read_records)
-- Set the channel that is_dead and count_redisson use. Waiters in the fair queue use the channel of plain and fair locks; all
-- waiters for a read/write lock use the channel of that kind.
name.channel = channel_of(mutex_channel)
read_or_note('queue', read_queue)
if mode then
	name.channel = channel_of(readwrite_channel)
	read_or_note('writer', read_writer)
end
read_or_note('waiters', read_wake_queue)
if field_count > 0 then read_or_note('listeners', read_subscribers) end
read_or_note('token', read_token)

table.sort(fields, holds_for_longer)
local holders, are_redisson, has_record = {}, #fields > 0, false
for i, field in ipairs(fields) do
	has_record = has_record or records[field] ~= nil
	are_redisson = are_redisson and client_by_form(field) == CLIENT_REDISSON
	if i <= holders_max then
		holders[i] = holder_of_field(mode, field, counts[field], lock_ttl_ms)
	end
end
local ground = has_record and 'record' or are_redisson and 'owners'
	or (queue_count > 0 or token ~= '') and 'beside' or ''
local state = mode or field_count > 0 and 'plain' or 'free'
return { state, lock_ttl_ms, token, holder_count, holders, queue_count, queue, wake_count, wake_ms,
	others, writer, unread, ground, 0, 0, 0, last }
