-- The part that all acquisitions have in common: all names are acquired, or none.

-- include: suffix
-- include: value
-- include: clock
-- include: record
-- include: rights
-- include: options
-- include: names

-- In records and replies this replaces the token of a hold to which no fencing token was issued.
local NO_TOKEN = '-'

-- wire: the largest value of a fencing counter. INCR counts in 64 bits: it fails if the value is this number, or no 64-bit
-- number.
local MOST = '9223372036854775807'

local function can_count(value)
	local number = string.match(value, '^-?([1-9]%d*)$')
	return value == '0' or number and (#number < #MOST or #number == #MOST and number < MOST)
end

-- Set name.is_counted: whether to issue a token. Return the reply if INCR could not count the value of the fencing counter,
-- or the error if the user may not read it; else nil.
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

-- Return in how many ms this server counts for a majority, and its run id; 0 and nil if it is the only server. A server that was
-- started less than a lease ago may have lost a hold whose lease has not ended, so it must not count yet. Subtract one second
-- from uptime_in_seconds, which may be that much too large, because Redis subtracts rounded times. Return nil, nil and an error
-- if the user may not run INFO.
local function server_wait_ms()
	if not is_of_several then return 0 end
	local info = redis.pcall('INFO', 'server')
	-- least_uptime_ms is 0 if all servers must grant the lock. A server that was restarted may then count immediately: if it has
	-- lost a hold, the other servers still have that hold.
	if is_error(info) and least_uptime_ms == 0 then return 0 end
	if is_error(info) then return nil, nil, command_error('INFO', info) end
	local uptime_s, run_id = string.match(info, 'uptime_in_seconds:(%d+)'), string.match(info, 'run_id:(%w+)')
	if least_uptime_ms == 0 then return 0, run_id end
	return math.max(0, least_uptime_ms - ((tonumber(uptime_s) or 0) - 1) * 1000), run_id
end

-- Acquire all names, and return the reply; a probe acquires none. acquire_one(name) returns the number of the owner's holds, and
-- the token as text.
local function grant_all(acquire_one)
	if is_probe then return { 2 } end
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

-- The error if the user lacks one of the rights that this kind of lock needs; else nil.
local function acquire_right_error(rights)
	for _, name in ipairs(tries_rights and names or {}) do
		-- Try the rights on a timeout key with the number 0. Holds are numbered from 1 on, so the key does not
		-- exist.
		name.timeout = name.timeouts and name.timeouts .. ':' .. fresh_owner .. TIMEOUT .. '0'
		-- Call now_us first: it raises an error if the user may not run TIME.
		local err = now_us() and right_error(name, rights)
		if err then return err end
	end
	return nil
end

-- Acquire all names, or none. rights: see rights.lua. check(index, name) returns the reply if the name cannot be acquired;
-- else nil, and it sets name.is_busy if the caller has to wait for the name. busy_reply(index) returns the reply for the
-- first name that is busy.
local function acquire_all(rights, check, acquire_one, busy_reply)
	local denied, first_busy = acquire_right_error(rights), nil
	if denied then return denied end
	for index, name in ipairs(names) do
		local reply = check(index, name)
		if reply then return replica_error(name) or reply end
		if name.is_busy then first_busy = first_busy or index end
	end
	if first_busy then
		-- busy_reply joins the queue, so call it before replica_error. After the write of replica_error a server
		-- whose memory is full lets the script write more, and the queue would grow.
		local reply = busy_reply(first_busy)
		return replica_error(names[1]) or reply
	end
	return grant_all(acquire_one)
end
