-- Count one hold more. name.owner is whose it is, name.field what stands for him in the lock hash.
-- include: request
-- include: names
-- include: now
-- include: denied
-- include: hold_record_make
-- include: wrong_type

-- wire: INCR counts in 64 bits, and refuses what is no such number.
local MOST, LEAST = '9223372036854775807', '9223372036854775808'
local function can_count(value)
	local sign, number = string.match(value, '^(-?)(%d+)$')
	if not number or #number > 1 and string.sub(number, 1, 1) == '0' or sign == '-' and number == '0' then
		return false
	end
	local bound = sign == '-' and LEAST or MOST
	-- Behind the most there is none.
	return #number < #bound or #number == #bound and (number < bound or sign == '-' and number == bound)
end

-- The reply to give, or the error, when the fencing counter of a name is none; else nil. Sets name.is_counted.
local function examine_counter(index, name)
	name.is_counted = name.counter and redis.call('EXISTS', name.counter) == 1
	if not name.is_counted then
		return nil
	end
	local value = redis.pcall('GET', name.counter)
	if is_error(value) and not is_wrong_type(value) then
		return denied_error('GET', value)
	end
	return (is_error(value) or not can_count(value)) and { -3, index } or nil
end

local function new_hold_record(name, token)
	return hold_record_make(name.field, digits(now_ms), now_ms + lease_ms, token, note)
end

-- How long it takes until this server counts: one that was started a while ago may have forgotten a holder
-- whose lease has not ended yet. It subtracts whole seconds of its clock from each other, and so may tell one
-- second more than it has run for.
local function young_ms()
	if least_uptime_ms == 0 then
		return 0
	end
	local uptime_s = string.match(redis.call('INFO', 'server'), 'uptime_in_seconds:(%d+)')
	return math.max(0, least_uptime_ms - ((tonumber(uptime_s) or 0) - 1) * 1000)
end

-- All of them by acquire_one(name), one after the other: the reply to give.
local function acquire_all(acquire_one)
	local reply, wait_ms = { 1 }, young_ms()
	for index, name in ipairs(names) do
		local obstacle = examine_counter(index, name)
		if obstacle then
			return obstacle
		end
	end
	for _, name in ipairs(names) do
		local taken = acquire_one(name)
		if is_error(taken) then
			return taken
		end
		reply[#reply + 1] = name.owner
		reply[#reply + 1] = taken[1]
		reply[#reply + 1] = taken[2]
	end
	reply[#reply + 1] = wait_ms
	return reply
end
