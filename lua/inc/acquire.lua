-- The part that all acquisitions have in common.

-- include: suffix
-- include: value
-- include: clock
-- include: record
-- include: rights
-- include: options
-- include: names

-- To acquire one name or all: what the kinds share, fencing tokens, the reply.
local NO_TOKEN = '-'

-- wire: INCR counts in 64 bits, and denies any value that is no such number, or the most.
local MOST = '9223372036854775807'

local function can_count(value)
	local number = string.match(value, '^-?([1-9]%d*)$')
	return value == '0' or number and (#number < #MOST or #number == #MOST and number < MOST)
end

-- Sets name.is_counted, whether a token is issued. The reply to give, or the error, when the fencing counter of a name is
-- none; else nil.
local function check_counter(index, name)
	if not name.counter then return nil end
	local value = redis.pcall('GET', name.counter)
	if is_error(value) and not is_wrong_type(value) then return command_error('GET', value) end
	if is_error(value) or value and not can_count(value) then return { -3, index } end
	name.is_counted = want_token or value
	return nil
end

local function new_hold_record(name, token)
	return hold_record_make(name.field, digits(now_ms()), now_ms() + lease_ms, token, note)
end

-- Of one of several servers: how long it takes until it counts, in ms, and which run of a server it is, if it says so. One that was started less than a lease ago may
-- have lost a hold whose lease has not ended yet. It subtracts whole seconds of its clock from each other, so the uptime that it tells
-- may be a second too long. Or nil, and the error when the server does not tell it.
local function server_wait_ms()
	if not is_of_several then return 0 end
	local info = redis.pcall('INFO', 'server')
	-- Where all servers must agree, none of them needs to be old.
	if is_error(info) and least_uptime_ms == 0 then return 0 end
	if is_error(info) then return nil, nil, command_error('INFO', info) end
	local uptime_s, run_id = string.match(info, 'uptime_in_seconds:(%d+)'), string.match(info, 'run_id:(%w+)')
	if least_uptime_ms == 0 then return 0, run_id end
	return math.max(0, least_uptime_ms - ((tonumber(uptime_s) or 0) - 1) * 1000), run_id
end

-- Acquires all names: acquire_one(name) returns how many holds the owner has then, and the token as text. The reply to give.
local function grant_all(acquire_one)
	local reply = { 1 }
	local wait_ms, run_id, unknown = server_wait_ms()
	if unknown then return unknown end
	for index, name in ipairs(names) do
		local check = check_counter(index, name)
		if check then return check end
	end
	for _, name in ipairs(names) do
		local count, token = acquire_one(name)
		reply[#reply + 1], reply[#reply + 2], reply[#reply + 3] = name.owner, count, token
	end
	reply[#reply + 1], reply[#reply + 2] = wait_ms, run_id
	return reply
end

-- The same for all names of an acquisition, whose kind needs these rights.
local function acquire_right_error(rights)
	for _, name in ipairs(tries_rights and names or {}) do
		-- No hold has the number 0.
		name.timeout = name.timeouts and name.timeouts .. ':' .. fresh_owner .. TIMEOUT .. '0'
		-- The look at the clock raises an error without the right to it.
		local err = now_us() and right_error(name, rights)
		if err then return err end
	end
	return nil
end

-- The frame of every acquisition of locks: all names, or none. rights: see inc/rights.lua. obstacle(index, name): the reply to
-- give when the name can't be acquired; else nil, and name.is_busy, when it has to be waited for. busy_reply(index): the reply
-- then, about the first of those.
local function acquire_all(rights, check, acquire_one, busy_reply)
	local denied, first_busy = acquire_right_error(rights), nil
	if denied then return denied end
	for index, name in ipairs(names) do
		local reply = check(index, name)
		if reply then return replica_error(name) or reply end
		if name.is_busy then first_busy = first_busy or index end
	end
	if first_busy then
		-- The waiter joins a queue before the look at the server, which lets a full one go on.
		local reply = busy_reply(first_busy)
		return replica_error(names[1]) or reply
	end
	return grant_all(acquire_one)
end
