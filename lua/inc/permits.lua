-- Semaphores.

-- The permits of a semaphore that are held: a sorted set of their ids, by when each may be reclaimed.
-- wire: RPermitExpirableSemaphore's. Its clients reclaim by their own clocks, so the deadline of a permit of ours is later
-- than the end of its lease, which is in a sorted set of ours, and one of theirs is reclaimed later than it says.
local AHEAD_MS = 10000 -- a Java client whose clock is ahead by less reclaims no permit in its lease
local BEHIND_MS = 5000 -- a Java client whose clock is behind by less loses no permit before its deadline

-- wire: RPermitExpirableSemaphore's deadline of a permit without a lease.
local NO_DEADLINE_MS = 922337203685477

local function permit_id(hold_id, number) return hold_id .. ':' .. number end

local function printable_id(id)
	return #id == 16 and string.gsub(id, '.', function(byte)
		return string.format('%02x', string.byte(byte))
	end) or id
end

-- The hold that a permit of ours belongs to; nil for one of Java's.
local OUR_ID = '^(' .. string.rep('%x', 32) .. '):%d+$'
local function hold_of(id) return string.match(id, OUR_ID) end

-- Whether this text is a counter of permits: a whole number as Redis writes it, and not too large to count exactly in Lua.
local COUNTER_LENGTH_MAX = 15
local NOT_A_COUNTER = 'string that is no counter'

local function is_permits_counter(text)
	return #text <= COUNTER_LENGTH_MAX and (text == '0' or string.match(text, '^%-?[1-9]%d*$') ~= nil)
end

-- The total of a semaphore that is remembered.
-- nil when none is, and when a user has overwritten it.
local function remembered_total(name)
	local text = redis.call('GET', name.remembered)
	return text and is_permits_counter(text) and tonumber(text) or nil
end

-- The type and the name of the first key beside the counter that a user has overwritten; nil when none was.
local SIDES = { { 'permits', 'zset' }, { 'ends', 'zset' }, { 'holds', 'hash' }, { 'remembered', 'string' } }
local function overwritten_side(name)
	for _, side in ipairs(SIDES) do
		local key = name[side[1]]
		local key_type = key and other_type(key, side[2])
		if key_type then return key_type, key end
	end
	return nil
end

-- The description, in the place of a type.
local function overwritten_kind(name)
	local key_type, key = overwritten_side(name)
	return key and 'semaphore whose side key ' .. key .. ' holds a ' .. key_type
end

-- Sets until when the permits of a hold are held; returns how many were not before. Their ends are kept until they are
-- reclaimed by their deadlines, too. What follows the hold's end are words for ZADD.
local function set_permits(name, hold_id, count, end_ms, ...)
	local permits, ends = { 'ZADD', name.permits, ... }, { 'ZADD', name.ends, ... }
	for number = 1, count do
		-- wire: a whole number of ms, as Java reads it.
		permits[#permits + 1], permits[#permits + 2] = digits(end_ms + AHEAD_MS), permit_id(hold_id, number)
		ends[#ends + 1], ends[#ends + 2] = digits(end_ms), permit_id(hold_id, number)
	end
	write_for(end_ms - now_ms() + AHEAD_MS + BEHIND_MS, unpack(ends))
	return redis.call(unpack(permits))
end

-- The slots of a hold: numbers from 1 on, one for each of its permits, which no two holds have at the same time. They stand in
-- its record behind how many permits it has, as in "2:1,4"; in one of an older version, "2", there are none. A field of the
-- holds hash says which are in use, as in "x--x", slots 1 and 4. It is no record, since it has no blank. When it is missing while
-- permits are held, or has a slot that no hold has, the next acquisition makes it anew of the records.
local SLOTS, USED, UNUSED = 'slots', 'x', '-'
local SLOT_MAX = 1000000 -- a number that a user wrote must not take up the server's memory

-- What the field that names the last hold of an owner has behind the owner. Its value, " HOLD_ID", begins with a blank, by which
-- it is no record. By that find.lua finds a hold among many without a look at all records, as it has to where the field is missing,
-- or names a hold that is gone. So the release of any hold of the owner removes it.
local LAST = ':last'

-- How many permits a hold has, and its slots, by its record.
local function permits_of(record)
	local count, text = string.match(record, '^%S+ %d+ %d+ (%d+):?([%d,]*) ')
	local slots = {}
	for slot in string.gmatch(text or '', '%d+') do
		slots[#slots + 1] = math.min(slot, SLOT_MAX)
	end
	return tonumber(count) or 0, slots
end

-- The field; false where it is missing, or has another form: that of an older version begins with '0' to 'o'. By pcall: it must
-- not keep a hold from being released.
local function known_slots(holds)
	local in_use = redis.pcall('HGET', holds, SLOTS)
	return type(in_use) == 'string' and string.find(in_use, '^[x-]') and in_use
end

local function lowest_free_slot(in_use) return string.find(in_use, UNUSED, 1, true) or #in_use + 1 end

local function mark_slot(in_use, slot, mark)
	in_use = in_use .. string.rep(UNUSED, slot - #in_use)
	return string.sub(in_use, 1, slot - 1) .. mark .. string.sub(in_use, slot + 1)
end

-- false when no slot is left.
local function without_slot(in_use, slot)
	in_use = mark_slot(in_use, slot, UNUSED)
	return string.find(in_use, USED, 1, true) and in_use
end

-- Whether a hold has all of its permits.
local function has_all_permits(name, hold_id, count)
	for number = 1, count do
		if not redis.call('ZSCORE', name.permits, permit_id(hold_id, number)) then return false end
	end
	return true
end

local RECLAIMED_MAX = 1000 -- at once: a script must not keep the server from its other clients

local function first_ids(key, until_ms, most)
	return redis.call('ZRANGE', key, '-inf', digits(until_ms), 'BYSCORE', 'LIMIT', 0, most)
end

-- Returns how many were reclaimed; they are in no set any more, and not free yet. Sets name.has_ended: there may be more than
-- one script reclaims.
local function reclaim(name)
	-- Without a deadline up to here no permit has ended, neither ours nor one of Java's.
	if not first_ids(name.permits, now_ms() + AHEAD_MS, 1)[1] then return 0 end
	-- Fails without the right to INCRBY, before anything is removed that could then not be counted.
	redis.call('INCRBY', name.lock, 0)
	-- The next acquisition finds out which slots are in use still.
	local count, fields = 0, { SLOTS }
	local ended = first_ids(name.ends, now_ms(), RECLAIMED_MAX)
	for _, id in ipairs(ended) do
		local hold_id = string.match(id, '^%x+') or ''
		fields[#fields + 1], fields[#fields + 2] = hold_id, hold_id .. STOP
	end
	if #ended > 0 then
		redis.call('ZREM', name.ends, unpack(ended))
		redis.call('HDEL', name.holds, unpack(fields))
		count = redis.call('ZREM', name.permits, unpack(ended))
		-- What is there without a permit is left over.
		if count == name.held then redis.call('DEL', name.holds) end
	end
	local overdue = first_ids(name.permits, now_ms() - BEHIND_MS, RECLAIMED_MAX)
	if #overdue > 0 then
		count = count + redis.call('ZREM', name.permits, unpack(overdue))
	end
	name.has_ended = #ended == RECLAIMED_MAX or #overdue == RECLAIMED_MAX
	return count
end

-- How many permits a semaphore has.
local REMEMBERED_MS = 24 * 3600 * 1000

-- Sets name.free, how many are free, nil when the counter is not there, and name.held. The type of what is no semaphore,
-- or nil; and the error when that can't be found out.
local function examine_permits(name)
	local free, held = redis.pcall('GET', name.lock), redis.pcall('ZCARD', name.permits)
	if is_wrong_type(free) then return redis.call('TYPE', name.lock).ok end
	if is_error(free) then return nil, command_error('GET', free) end
	if free and not is_permits_counter(free) then return NOT_A_COUNTER end
	if is_error(held) and not is_wrong_type(held) then return nil, command_error('ZCARD', held) end
	name.free, name.held = free and tonumber(free), held
	return overwritten_kind(name)
end

-- Reclaims what is to be reclaimed, makes the counter where there is none, for so many permits in all, and sets name.total;
-- name.more: so many have become free by that. wire: an RSemaphore leaves nothing but a lower counter, so the total is
-- remembered.
local function count_permits(name, wanted)
	name.more = reclaim(name)
	name.held = name.held - name.more
	if not name.free then
		name.free = wanted - name.held
		name.more = name.free
		redis.call('SET', name.lock, digits(name.free))
	elseif name.more > 0 then
		name.free = redis.call('INCRBY', name.lock, name.more)
	end
	local seen, known = name.free + name.held, remembered_total(name)
	name.total = math.max(seen, known or seen)
	if name.total == wanted and known ~= wanted then
		redis.call('SET', name.remembered, digits(wanted), 'PX', REMEMBERED_MS)
	end
end

-- When the next permit may be reclaimed, from now; -1: there is none that ends.
local function permits_ttl_ms(name)
	local ours, all = redis.call('ZRANGE', name.ends, 0, 0, 'WITHSCORES'), redis.call('ZRANGE', name.permits, 0, 0, 'WITHSCORES')
	local end_ms = tonumber(ours[2] or NO_DEADLINE_MS)
	-- If that deadline is one of our permits', this is no earlier than its end, and changes nothing.
	end_ms = math.min(end_ms, tonumber(all[2] or NO_DEADLINE_MS) + BEHIND_MS)
	return end_ms < NO_DEADLINE_MS and math.max(end_ms - now_ms(), 0) or -1
end

-- The one whose permit ends first: its owner, its note, and for how long it has held the permit, in ms; -1: not known. An
-- empty owner: no permit is held, and there are too few.
local function permit_holder(name)
	local id = redis.call('ZRANGE', name.ends, 0, 0)[1]
	local record = id and redis.call('HGET', name.holds, string.match(id, '^%x+') or '')
	local owner, since_ms, _, _, owner_note = hold_record_parse(record or '')
	if owner then return owner, owner_note, math.max(now_ms() - since_ms, 0) end
	return name.free < name.total and 'a client without a record' or '', '', -1
end

local WOKEN_MAX = 16 -- by one script; those wake the next ones

-- free: how many permits are free; more: how many of them were not before. wire: RSemaphore and
-- RPermitExpirableSemaphore publish how many are free.
local function notify_of_permits(name, free, more)
	if free <= 0 then return end
	give_others_turn(name, publish(name.channel, digits(free)))
	for _ = 1, math.min(free, more, WOKEN_MAX) do
		if not wake_next(name) then return end
	end
end

-- Whether there is a counter to add permits to; where there is none, the next acquisition counts anew what is held. Sets
-- name.overwritten. A missing right is an error, raised here: before anything is removed that could then not be counted.
local function has_counter(name)
	local counter = redis.pcall('GET', name.lock)
	if is_error(counter) and not is_wrong_type(counter) then redis.call('GET', name.lock) end
	if is_error(counter) or counter and not is_permits_counter(counter) then
		name.overwritten = redis.pcall('TYPE', name.lock).ok
		return false
	end
	-- The first write, and one that a full server allows; it then allows those after it, too.
	redis.call('HDEL', name.holds, '')
	return counter and redis.call('INCRBY', name.lock, 0) ~= nil
end

-- Of a removed hold. Where not all of its permits were there another may have its slots already.
local function free_permits(name, hold)
	local in_use = hold.removed == hold.count and known_slots(name.holds)
	for _, slot in ipairs(hold.slots) do in_use = in_use and without_slot(in_use, slot) end
	if not in_use or is_error(redis.pcall('HSET', name.holds, SLOTS, in_use)) then
		redis.pcall('HDEL', name.holds, SLOTS)
	end
	if name.has_counter and hold.removed > 0 then
		notify_of_permits(name, redis.call('INCRBY', name.lock, hold.removed), hold.removed)
	end
end

local function ids_of(hold_id, count)
	local ids = {}
	for number = 1, count do ids[number] = permit_id(hold_id, number) end
	return unpack(ids)
end

-- What its record says, and count: its permits. Sets name.has_counter. nil when there is no such hold; then name.overwritten may
-- be set.
local function find_permits(name, hold_id)
	local record = read_field(name, name.holds, hold_id)
	if not record then return nil end
	local hold = {}
	hold.field, hold.since_ms, hold.end_ms, hold.token, hold.note = hold_record_parse(record)
	hold.count, hold.slots = permits_of(record)
	name.has_counter = has_counter(name)
	return hold
end

-- The hold, which is removed; its slots stay in use. removed: how many of its permits were there; is_lost: not all, or its lease has
-- ended. nil: see find_permits.
local function remove_permits(name, hold_id)
	local hold = find_permits(name, hold_id)
	if not hold then return nil end
	redis.call('HDEL', name.holds, hold_id, hold_id .. STOP, (hold.field or '') .. LAST)
	if hold.count == 0 then return nil end
	-- A user may have overwritten it: no obstacle.
	redis.pcall('ZREM', name.ends, ids_of(hold_id, hold.count))
	hold.removed = redis.call('ZREM', name.permits, ids_of(hold_id, hold.count))
	hold.is_lost = hold.removed < hold.count or tonumber(hold.end_ms) <= now_ms()
	return hold
end

-- The result for the name, as in inc/names.lua.
local function release_permits(name, hold_id)
	local hold = remove_permits(name, hold_id)
	if not hold then return 0 end
	free_permits(name, hold)
	return hold.is_lost and 3 or 2
end
