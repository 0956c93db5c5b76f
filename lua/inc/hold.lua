-- The record of a hold, the count of holds, holds that are kept, and renewals.

-- The record of one hold, a value in the holds hash: "OWNER SINCE_MS END_MS TOKEN HOLDER NOTE". An owner, Redisson's too,
-- has no blank in it. Both times are the server's. TOKEN is "-" when none was issued; of a semaphore it is how many
-- permits the hold has, and which slots: inc/permits.lua. The client sends HOLDER and NOTE as one text, which scripts call
-- the note, and return as it is. lib/hold.c writes and reads HOLDER: "PURPOSE.NAMES.BOOT.NAMESPACE.PID.START+".
local function hold_record_parse(record)
	return string.match(record, '^(%S+) (%d+) (%d+) (%S+) (.*)$')
end

local function hold_record_make(owner, since_ms, end_ms, token, note)
	return owner .. ' ' .. since_ms .. ' ' .. digits(end_ms) .. ' ' .. token .. ' ' .. note
end

-- Whether a process renews the hold and reads requests to stop it: HOLDER, the first word of its note, ends in '+'.
local function reads_requests(note) return string.find(note, '^%l+%.%S+%+ ') ~= nil end

-- What the field of a request to stop has behind the hold id (stop.lua), beside that of the record. The value, " SINCE_MS USER@HOST",
-- begins with a blank, by which it is no record. Whatever removes the record of a hold removes it, too.
local STOP = ':stop'

-- The hold lasts for lease_ms at least.
local function hold_record_extend(holds, hold_id, record, lease_ms)
	local owner, since_ms, end_ms, token, note = hold_record_parse(record)
	local extended = hold_record_make(owner, since_ms, math.max(tonumber(end_ms), now_ms() + lease_ms), token, note)
	if is_error(redis.pcall('HSET', holds, hold_id, extended)) then
		-- A full server allows this, and what comes after a write.
		redis.call('HDEL', holds, '')
		redis.call('HSET', holds, hold_id, extended)
	end
end

-- The number in a field of a lock hash: how many holds an owner has.
-- No owner has more: a number that a user wrote there must not keep the server from its other clients, by a loop over
-- it.
local HOLDS_MAX = 10000

-- nil for what is no such number.
local function hold_count(value)
	local count = tonumber(string.match(value or '', '^[1-9]%d*$'))
	return count and count <= HOLDS_MAX and count or nil
end

-- A hold that is kept until some time (--at-least) has that time in its owner, "OWNER:lingering:END_MS" by the server's
-- clock. So it belongs to no process, and no leftover process of the holder can re-enter the lock.
-- wire: that word stays; the source says "keep until" and "kept".
local KEPT = ':lingering:'

-- Until when such an owner keeps its hold, in ms; nil for any other owner.
local function kept_until(owner) return tonumber(string.match(owner, KEPT .. '(%d+)$')) end

local function kept_owner(owner, end_ms) return owner .. KEPT .. digits(end_ms) end

-- The result of a release for a hold that has ended, as in inc/names.lua: it was lost, but not where the same request has come
-- before, and kept it until its end.
local function ended(hold) return kept_until(hold.field or '') and 0 or 3 end

-- Whether a hold was asked to stop. It is not kept, even if it learned of that too late: the sender waits for the lock to be free.
local function is_told(name, hold_id) return redis.call('HGET', name.holds, hold_id .. STOP) ~= false end

-- Puts the hold's record of that owner, for left_ms, in the place of its record.
local function put_kept_hold(name, hold_id, hold, owner, left_ms)
	-- A full server allows this, and what comes after a write.
	redis.call('HDEL', name.holds, '')
	write_for(math.max(left_ms, 1), 'HSET', name.holds, hold_id,
		hold_record_make(owner, hold.since_ms, now_ms() + left_ms, hold.token, hold.note))
end

-- The note of the hold, and for how long it has lasted, in ms; nil when a user wrote over the record.
local function told_by(record)
	local _, since_ms, _, _, owner_note = hold_record_parse(record)
	if owner_note then return owner_note, math.max(now_ms() - since_ms, 0) end
end

-- The same of the owner's hold; -1: it is not known.
local function record_of(holds, field)
	local records = redis.pcall('HVALS', holds)
	-- A user wrote over the holds hash: no obstacle, it ends with the holds.
	if is_wrong_type(records) then return '', -1 end
	-- A missing right is an obstacle: this call raises the error.
	if is_error(records) then records = redis.call('HVALS', holds) end
	for _, record in ipairs(records) do
		-- There may be thousands: those of others are not parsed.
		if string.sub(record, 1, #field + 1) == field .. ' ' then
			local owner_note, held_ms = told_by(record)
			if owner_note then return owner_note, held_ms end
		end
	end
	return '', -1
end

-- One of the holders: its field, its note, and for how long it has held the lock, in ms; -1: it is not known.
local function holder_of(name)
	for _, field in ipairs(redis.call('HKEYS', name.lock)) do
		if field ~= 'mode' then return field, record_of(name.holds, field) end
	end
	return '', '', -1
end

-- Removes the records of these owners, a set.
local function remove_records(name, owners)
	-- By pcall: a value that a user wrote over the holds hash is no obstacle, it ends with the holds.
	local listed = next(owners) and redis.pcall('HGETALL', name.holds) or {}
	for i = 1, #listed, 2 do
		local owner = hold_record_parse(listed[i + 1])
		if owner and owners[owner] then redis.call('HDEL', name.holds, listed[i], listed[i] .. STOP) end
	end
end

-- A removed hold that shortens the TTL by less than this notifies no waiter, so that short nested commands wake none.
-- Waiters may then try so much later than they could.
local LATE_MS = 5000

local function set_ttl(name, ttl_ms)
	redis.call('PEXPIRE', name.lock, digits(ttl_ms))
	redis.call('PEXPIRE', name.holds, digits(ttl_ms))
end

-- How long each of these owners holds the lock still by its records, in ms: as long as its longest hold; not above 0: all of
-- them are over, whatever TTL another hold gave the lock. math.huge: an owner has more holds than records, so these are Java's,
-- whose end is not known. records: theirs, if the caller has them.
local function owners_left_ms(name, owners, records)
	local counts, last_ms, left_ms = {}, {}, {}
	for _, record in ipairs(records or redis.call('HVALS', name.holds)) do
		local owner, _, end_ms = hold_record_parse(record)
		if owner then
			counts[owner] = (counts[owner] or 0) + 1
			last_ms[owner] = math.max(last_ms[owner] or 0, tonumber(end_ms))
		end
	end
	for _, owner in ipairs(owners) do
		local count = hold_count(redis.call('HGET', name.lock, owner)) or 0
		local is_known = count <= (counts[owner] or 0)
		left_ms[owner] = (kept_until(owner) or is_known and (last_ms[owner] or 0) or math.huge) - now_ms()
	end
	return left_ms
end

-- Leaves the lock to those of these owners that hold it still, for least_ms at least; the others are removed. The removed hold may
-- have had a longer lease: then set(name, ms) sets the TTL. Whether one of the owners is left; and whether the lock may expire
-- much earlier than the waiters know, or earlier at all where no process holds it.
local function leave_to(name, owners, least_ms, set)
	local over, longest_ms, are_kept = {}, 0, true
	for owner, left_ms in pairs(owners_left_ms(name, owners)) do
		if left_ms > 0 then
			longest_ms, are_kept = math.max(longest_ms, left_ms), are_kept and kept_until(owner)
		else
			redis.call('HDEL', name.lock, owner)
			over[owner] = true
		end
	end
	remove_records(name, over)
	if longest_ms == 0 then return false end
	longest_ms = math.max(longest_ms, least_ms)
	local ttl_ms = redis.call('PTTL', name.lock)
	if longest_ms == math.huge or ttl_ms >= 0 and ttl_ms <= longest_ms then return true end
	set(name, longest_ms)
	return true, are_kept or ttl_ms > longest_ms + LATE_MS
end

-- The frame of every renewal. renew(name, owner, record) extends the lease, and returns the lock's TTL, or nil when the
-- owner does not hold that name any more.
local function renew_one(name, renew)
	local record = read_field(name, name.holds, hold_id)
	local owner = hold_record_parse(record or '')
	if not owner or kept_until(owner) then return nil end
	local ttl_ms = renew(name, owner, record)
	if ttl_ms then
		extend(name.holds, lease_ms)
		hold_record_extend(name.holds, hold_id, record, lease_ms)
		name.request = redis.call('HGET', name.holds, hold_id .. STOP)
	end
	return ttl_ms
end

local function renew_all(renew)
	local lost, least_ttl_ms, request
	for index, name in ipairs(names) do
		local ttl_ms = renew_one(name, renew)
		request = request or name.request and { index, name.request }
		if ttl_ms then
			least_ttl_ms = math.min(least_ttl_ms or ttl_ms, ttl_ms)
		else
			lost = lost or { index, name.overwritten }
		end
	end
	if lost then return replica_error(names[lost[1]]) or lost end
	return { 0, least_ttl_ms, request or nil }
end
