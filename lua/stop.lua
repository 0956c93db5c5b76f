-- Ask the processes that renew holds of a lock to end what they hold it for, and to release it: the next renewal returns the
-- request, which stands until the hold is gone. Also finds what is left of the holds that were asked, and asks them again where
-- the server has lost the request.
-- Redisson none
-- KEYS[1]  lock hash, or counter of a semaphore
-- KEYS[2]  holds hash
-- ARGV[1]  the owner whose holds are meant; empty: all
-- ARGV[2]  USER@HOST of the sender
-- ARGV[3]  permits of a semaphore, ARGV[4] its remembered total (not in KEYS: a user of locks needs no right to them)
-- ARGV[5+] ids of holds: only these are meant
-- Returns  {{hold id, owner, ttl in ms, note, 1 when it was asked}, ...}  the holds that are left; an empty id and note: of a
--            client without records, and the ttl is the key's, -1: none; of a hold that is over, and whose key has no TTL, it is -1
--          {-1, type}  the key is something else

local name = { lock = KEYS[1], holds = KEYS[2], permits = ARGV[3], remembered = ARGV[4] }
local expected, by = ARGV[1], ARGV[2]
local wanted = {}
for i = 5, #ARGV do wanted[ARGV[i]] = true end

local found, is_lasting = {}, false

local function add(owner, ttl_ms, hold_id, note, is_told)
	if (expected == '' or owner == expected) and (#ARGV < 5 or wanted[hold_id]) then
		found[#found + 1] = { hold_id or '', owner, ttl_ms, note or '', is_told and 1 or 0 }
		return is_told
	end
end

-- A hold that its record says is over is no hold, but where the key of the lock never expires. In front of the note is the
-- process: lib/hold.h.
local function ask(hold_id, owner, end_ms, note)
	local left_ms = end_ms - now_ms()
	if left_ms <= 0 then return is_lasting and not kept_until(owner) and add(owner, -1, hold_id, note) end
	local reads_requests = string.find(note, '^%x+%.%d+%.%d+%+ ') ~= nil and not kept_until(owner)
	local field = hold_id .. STOP
	if add(owner, left_ms, hold_id, note, reads_requests) and not redis.call('HGET', name.holds, field) then
		redis.call('HSET', name.holds, field, ' ' .. digits(now_ms()) .. ' ' .. by)
	end
end

local denied = right_error(name, 'holds: HDEL1 DEL0 HSET3 ')
if denied then return denied end

local ids, records, listed = {}, {}, redis.pcall('HGETALL', name.holds)
if is_error(listed) and not is_wrong_type(listed) then return denied_error('HGETALL', listed) end
for i = 1, is_error(listed) and 0 or #listed, 2 do
	local owner, _, end_ms, _, note = hold_record_parse(listed[i + 1])
	if owner then ids[#ids + 1], records[listed[i]] = listed[i], { owner, end_ms, note } end
end

local fields = redis.pcall('HGETALL', name.lock)
if is_error(fields) and not is_wrong_type(fields) then return denied_error('HGETALL', fields) end
local counter = is_error(fields) and redis.pcall('GET', name.lock)
if type(counter) == 'string' and is_permits_counter(counter) or #fields == 0 and redis.pcall('TYPE', name.permits).ok == 'zset' then
	local seen, held = {}, redis.call('ZRANGE', name.permits, 0, -1, 'WITHSCORES')
	for i = 1, #held, 2 do
		local hold_id = hold_of(held[i])
		local record = records[hold_id or '']
		if record and not seen[hold_id] then ask(hold_id, unpack(record)) end
		if not hold_id then add(printable_id(held[i]), tonumber(held[i + 1]) < NO_DEADLINE_MS and held[i + 1] - now_ms() or -1) end
		seen[hold_id or ''] = true
	end
	if (counter or 0) + #held / 2 < (remembered_total(name) or 0) then add('a client without a record', -1) end
	return found
end
if is_error(fields) then return { -1, redis.call('TYPE', name.lock).ok } end

local mode, counts, owners = fields_of(fields)
if not counts then return { -1, NOT_A_LOCK } end
local ours = {}
local ttl_ms = redis.call('PTTL', name.lock)
is_lasting = mode ~= 'read' and ttl_ms == -1
for _, hold_id in ipairs(ids) do
	local record = records[hold_id]
	local field = record[1]
	ours[field] = true
	if counts[field] then
		if string.sub(field, -#WRITE) == WRITE then record[1] = string.sub(field, 1, -#WRITE - 1) end
		ask(hold_id, unpack(record))
	end
end
for _, field in ipairs(owners) do
	if not ours[field] then add((string.gsub(field, WRITE .. '$', '')), ttl_ms) end
end
return found
