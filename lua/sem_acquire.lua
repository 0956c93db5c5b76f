-- Acquire permits of the semaphore of every name, or of none. No hold is re-entered: each has permits of its own.
-- Redisson RedissonPermitExpirableSemaphore.tryAcquireAsync, but by the server's clock; RedissonSemaphore has the same counter
-- KEYS     for each name: counter, holds hash, ends of our permits, permits, remembered total
-- ARGV     see inc/request.lua; for each name: wake queue, turn, channel. The wake queue and the turn are not in KEYS, so a user
--          without a right to them can acquire permits all the same. Such a user waits for messages on the channel of the
--          semaphore
-- Returns  SLOT  one permit was acquired, with this slot; the semaphore has as many permits in all as the request expects
--          any other reply  as in plain_acquire.lua, with these differences:
--            token: the number of permits in all, and the slots, as in "5:1,4"
--            ttl: in how many ms the next permit may be reclaimed
--            a busy reply has one more member at its end: the number of permits in all

-- include: request
-- include: suffix
-- include: permit_ids
-- include: slots

local FIXED_ARGS = 7

local function lowest_free_slot(in_use) return string.find(in_use, UNUSED, 1, true) or #in_use + 1 end

-- total: how many permits the semaphore has in all, as the caller expects; take: how many to acquire. The fast path uses both as
-- text; the slow path converts them to numbers.
local total, take = ARGV[6], ARGV[7]

-- The fast path of a semaphore; that of locks is fast_acquire.lua. It acquires one permit of one name. No waiter may be in the
-- queue, no permit may have to be reclaimed, and the number of permits in all must be the expected one. The slow path does the
-- rest: all other cases, and denied commands.
local KEY_COUNT, WAKE_QUEUE_ARG, TURN_ARG = 5, FIXED_ARGS + 1, FIXED_ARGS + 2

if take == '1' and #KEYS == KEY_COUNT and not asks_for_more then
	local lock, holds, ends, permits, remembered = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
	-- EXISTS counts a key each time it is named: 3 means that the counter exists, and neither the wake queue nor the turn.
	local held = redis.pcall('EXISTS', lock, lock, lock, ARGV[WAKE_QUEUE_ARG], ARGV[TURN_ARG]) == 3
		and redis.pcall('GET', remembered) == total and redis.pcall('ZCARD', permits)
	if type(held) == 'number' and held < tonumber(total) then
		local now = redis.call('TIME')
		local since_text = now[1] .. string.sub('00000' .. now[2], -6, -4)
		local end_ms = since_text + lease_ms
		local is_due = held > 0 and redis.call('ZRANGE', permits, '-inf',
			since_text + AHEAD_MS .. '', 'BYSCORE', 'LIMIT', 0, 1)[1]
		local in_use = held == 0 and '' or known_slots(holds)
		local slot = in_use and lowest_free_slot(in_use)
		local free = slot and slot <= tonumber(total) and not is_due and redis.pcall('INCRBY', lock, '-1')
		if type(free) == 'number' then
			local id, is_new = hold_id .. ':1', false
			-- Keep the time as text: Redis would have to convert a number, which takes longer (see fast_acquire.lua).
			local end_text = end_ms .. ''
			local ttl_ms = held > 0 and redis.pcall('PTTL', holds) or lease_ms
			if free >= 0 and free + 1 + held == tonumber(total) and (held == 0 or type(ttl_ms) == 'number') then
				-- NX: if this hold has its permit already, write nothing, because the hold may be one that is kept until some
				-- time.
				is_new = redis.pcall('ZADD', permits, 'NX', end_ms + AHEAD_MS .. '', id) == 1
			end
			ttl_ms = is_new and math.max(ttl_ms, lease_ms)
			local record = fresh_owner .. ' ' .. since_text .. ' ' .. end_text .. ' 1:' .. slot .. ' ' .. note
			if is_new and type(redis.pcall('HSET', holds, hold_id, record, SLOTS, mark_slot(in_use, slot, USED),
				fresh_owner .. LAST, ' ' .. hold_id)) == 'number'
				and redis.pcall('ZADD', ends, end_text, id) == 1 and redis.pcall('PEXPIRE', holds, ttl_ms) == 1
				and redis.pcall('PEXPIRE', ends, ttl_ms + AHEAD_MS + BEHIND_MS .. '') == 1 then
				return slot
			end
			redis.pcall('INCRBY', lock, '1')
			if is_new then
				redis.pcall('HDEL', holds, hold_id, SLOTS, fresh_owner .. LAST)
				redis.pcall('ZREM', permits, id)
				redis.pcall('ZREM', ends, id)
			end
		end
	end
end

local KEY_FIELDS, ARG_FIELDS = { 'lock', 'holds', 'ends', 'permits', 'remembered' }, { 'wake_queue', 'turn', 'channel' }
total, take = tonumber(total), tonumber(take)

-- include: options
-- include: names
-- include: wake
-- include: permits

if undo_ms then
	-- include: permits_keep
	-- include: leave
	-- include: last
	remember_holds(released_id, kept_ms)
	local results = for_each_name(hold_id, function(name)
		local result = keep_or_release(name)
		leave_wake_queue(name, hold_id)
		return result
	end)
	reserve_all()
	return results
end

-- include: acquire
-- include: semaphore
-- include: notify_permits
-- include: wait

-- When the next permit may be reclaimed, in ms from now; -1: no permit ends.
local function permits_ttl_ms(name)
	local ours, all = redis.call('ZRANGE', name.ends, 0, 0, 'WITHSCORES'), redis.call('ZRANGE', name.permits, 0, 0, 'WITHSCORES')
	local end_ms = tonumber(ours[2] or NO_DEADLINE_MS)
	-- A permit of Redisson's may be reclaimed first. If the first deadline is that of a permit of ours, it does not change
	-- end_ms: that deadline is later than the end of our permit.
	end_ms = math.min(end_ms, tonumber(all[2] or NO_DEADLINE_MS) + BEHIND_MS)
	return end_ms < NO_DEADLINE_MS and math.max(end_ms - now_ms(), 0) or -1
end

-- The holder of ours whose permit ends first: its owner, its note, and how long it has held the permit, in ms. If there is no
-- record of such a holder, the note is empty, the time is -1, and the owner is 'a client without a record'; or empty if no permit
-- is held, so that the semaphore has too few permits in all.
local function permit_holder(name)
	local id = redis.call('ZRANGE', name.ends, 0, 0)[1]
	local record = id and redis.call('HGET', name.holds, string.match(id, '^%x+') or '')
	local owner, since_ms, _, _, owner_note = hold_record_parse(record or '')
	if owner then return owner, owner_note, math.max(now_ms() - since_ms, 0) end
	return name.free < name.total and 'a client without a record' or '', '', -1
end

-- A waiter that needs more permits than are free reserves the free ones, once it has waited for RESERVED_AFTER_US. Each
-- reservation lasts RESERVED_MS. The waiter tries again every RESERVE_RETRY_MS, twice in that time, so one late attempt does not
-- end the reservation.
local RESERVED_AFTER_US, RESERVED_MS, RESERVE_RETRY_MS = 2000000, 1000, 500

-- Whether an earlier request with this hold id was granted, but its reply was lost. If the hold lacks one of its permits, acquire
-- it anew: then the counter is lowered by the number of missing permits.
local function is_repeated(name)
	name.record = redis.call('HGET', name.holds, hold_id)
	return name.record and has_all_permits(name, hold_id, take)
end

-- Whether the permits can be acquired. Set name.waiter to an earlier waiter if too few permits would remain for it.
local function has_room(name)
	local waiter, left = earlier_waiter(name)
	name.waiter = waiter and name.free - take < left and waiter
	return name.free >= take and not name.waiter
end

local function reserve_free_permits(name, reply)
	local since_us = tonumber(reply[7])
	-- Reserve nothing for a caller that needs more permits than there are in all: the free permits would stay reserved, although
	-- they can never be enough.
	if take > 1 and take <= name.total and name.free > 0 and reply[8] == 1 and caller_subscribed == '1'
		and now_us() - since_us > RESERVED_AFTER_US
		and not is_error(redis.pcall('SET', name.turn, reply[7] .. ' ' .. hold_id .. ' ' .. take, 'PX', RESERVED_MS)) then
		reply[6] = RESERVE_RETRY_MS
	end
end

local function busy_reply(index, name)
	local reply
	if name.waiter then
		reply = turn_reply(index)
	else
		reply = wait_reply(index, permits_ttl_ms(name), permit_holder(name))
		if may_wait then reserve_free_permits(name, reply) end
	end
	if name.has_ended then
		reply[6] = 0
	end
	reply[#reply + 1] = math.max(name.total, 0)
	return reply
end

-- Make the value of the field SLOTS from the records of the other holds. Delete each field OWNER:last whose hold has no permit any
-- more.
local function slots_in_records(name)
	local listed, held, marks = redis.call('HGETALL', name.holds), {}, {}
	for _, id in ipairs(redis.call('ZRANGE', name.permits, 0, -1)) do held[id] = true end
	for i = 1, #listed, 2 do
		local last_id = string.match(listed[i + 1], '^ (%x+)$')
		if last_id and not held[permit_id(last_id, 1)] then redis.call('HDEL', name.holds, listed[i]) end
		local _, of_hold = permits_of(listed[i + 1])
		for number, slot in ipairs(listed[i] ~= hold_id and of_hold or {}) do
			if held[permit_id(listed[i], number)] then
				for unused = #marks + 1, slot do marks[unused] = UNUSED end
				marks[slot] = USED
			end
		end
	end
	return table.concat(marks)
end

-- Choose the lowest free slots, one for each permit. Return them as text for the record, such as "1,4", and the new value of the
-- field SLOTS, which marks them as used.
local function choose_slots(name)
	local slots = {}
	local function choose(in_use)
		local slot = 0
		for i = 1, take do
			slot = string.find(in_use, UNUSED, slot + 1, true) or math.max(slot, #in_use) + 1
			slots[i] = slot
		end
		return (string.gsub(in_use .. string.rep(UNUSED, slot - #in_use), '%' .. UNUSED, USED, take))
	end
	local known = name.held == 0 and '' or not name.record and known_slots(name.holds)
	local in_use = known and choose(known)
	if not in_use or slots[take] > name.total then in_use = choose(slots_in_records(name)) end
	return table.concat(slots, ','), in_use
end

-- Acquire the permits of a new hold. Lower the counter last, so that no permit is lost if an earlier command is denied: the
-- rights of the default user have not been tried. Run INCRBY with 0 first: a server whose memory is full refuses it, so the
-- script fails before it has written anything.
local function acquire_new(name)
	redis.call('INCRBY', name.lock, 0)
	local slots, in_use = choose_slots(name)
	write_for(lease_ms, 'HSET', name.holds, hold_id, new_hold_record(name, digits(take) .. ':' .. slots), SLOTS, in_use,
		name.field .. LAST, ' ' .. hold_id)
	name.free = redis.call('INCRBY', name.lock, -set_permits(name, hold_id, take, now_ms() + lease_ms))
	return slots
end

local function extend_repeated(name)
	-- Run an HDEL first that deletes nothing, because no field is ''. A server whose memory is full allows HDEL, and after it
	-- every write of this script. Without the HDEL it would refuse a write that needs memory.
	redis.call('HDEL', name.holds, '')
	set_permits(name, hold_id, take, now_ms() + lease_ms, 'GT')
	hold_record_extend(name.holds, hold_id, name.record, lease_ms)
	extend(name.holds, lease_ms)
	local _, slots = permits_of(name.record)
	return table.concat(slots, ',')
end

local function acquire_permits(name)
	local slots = name.is_repeated and extend_repeated(name) or acquire_new(name)
	leave_with_lock(name)
	if waiter_in_turn(name) == hold_id then redis.pcall('DEL', name.turn) end
	-- If permits are still free, wake the next waiter. Other waiters may have left the free permits to this caller, or it was
	-- woken so that it wakes the next one (notify_permits.lua).
	if name.free > 0 then wake_next(name) end
	return 1, digits(name.total) .. ':' .. slots
end

local denied = acquire_right_error(PERMIT_RIGHTS)
if denied then return denied end
for index, name in ipairs(names) do
	local key_type, err = check_permits(name)
	if key_type or err then return replica_error(name) or err or { -1, index, key_type } end
	name.owner, name.field = fresh_owner, fresh_owner
end
local first_busy
for index, name in ipairs(names) do
	count_permits(name, total)
	name.is_repeated = name.held > 0 and is_repeated(name)
	if not name.is_repeated and not has_room(name) then
		first_busy = first_busy or index
	end
end
local reply
if first_busy then
	-- busy_reply joins the queue, so call it before replica_error. After the write of replica_error a server whose memory is
	-- full would let the queue grow.
	reply = busy_reply(first_busy, names[first_busy])
	reply = replica_error(names[1]) or reply
else
	reply = grant_all(acquire_permits)
end
for _, name in ipairs(names) do
	if name.more > 0 then notify_of_permits(name, name.free, name.more) end
end
return reply
