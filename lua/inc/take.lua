-- Count one hold more. name.owner is whose it is, name.field what stands for him in the lock hash.
-- Needs: request, now, entry, extend, refused.

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
local function look_at_counter(index, name)
	name.is_counted = name.counter and redis.call('EXISTS', name.counter) == 1
	if not name.is_counted then
		return nil
	end
	local value = redis.pcall('GET', name.counter)
	if is_error(value) and not is_other_type(value) then
		return refused('GET', value)
	end
	return (is_error(value) or not can_count(value)) and { -3, index } or nil
end

local function draw(name)
	if name.counter and (draw_token or name.is_counted) then
		-- wire: RFencedLock draws at every acquisition, re-entries too
		redis.call('INCR', name.counter)
		-- As text: a number in a script has 53 bits only.
		return redis.call('GET', name.counter)
	end
	return '-'
end

local function entry_of(name, token)
	return entry_make(name.field, digits(now_ms), now_ms + lease_ms, token, note)
end

-- What follows on the first write, and all that renewal and release will need: a user who lacks one of these
-- rights must not leave a lock behind that never ends, or that he can't release. nil, or the error when
-- one was refused and all was undone.
local function do_or_undo(steps, undoing)
	local refusal = do_all(steps)
	if refusal then
		for _, undo in ipairs(undoing) do
			redis.pcall(unpack(undo))
		end
	end
	return refusal
end

-- The first hold of a lock that has only one owner: {hold count, token}, or an error with nothing taken.
-- The lock hash has been written to, but for its time to live.
-- needed: commands that its renewal and release need besides, in a form that does nothing.
local function take_free(name, token, needed)
	local steps = {
		-- What an expired or broken hold left behind. Not before the lock's own write: a
		-- script that has deleted something may go on when the server is full.
		{ 'DEL', name.holds, name.ends },
		{ 'HSET', name.holds, hold_id, entry_of(name, token) },
		{ 'PEXPIRE', name.lock, lease_ms },
		{ 'PEXPIRE', name.holds, lease_ms },
		{ 'PTTL', name.lock },
		{ 'HEXISTS', name.lock, name.field },
		{ 'HVALS', name.holds },
		{ 'HGET', name.holds, hold_id },
		{ 'HDEL', name.holds, '' },
	}
	for _, step in ipairs(needed) do
		steps[#steps + 1] = step
	end
	local refusal = do_or_undo(steps, {
		{ 'HDEL', name.lock, name.field, 'mode' },
		{ 'DEL', name.lock },
		{ 'DEL', name.holds },
	})
	return refusal or { 1, token }
end

-- One more hold of an owner that has the lock; or the same request again, which counts nothing.
local function reenter(name)
	local entry = redis.call('HGET', name.holds, hold_id)
	local token
	if entry then
		local _, _, _, drawn = entry_parse(entry)
		token = drawn
		entry_extend(name.holds, hold_id, entry, lease_ms)
	else
		token = draw(name)
		redis.call('HINCRBY', name.lock, name.field, 1)
		redis.call('HSET', name.holds, hold_id, entry_of(name, token))
	end
	extend(name.lock, lease_ms)
	extend(name.holds, lease_ms)
	return { tonumber(redis.call('HGET', name.lock, name.field)), token }
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

-- All of them by take(name), one after the other: the reply to give.
local function take_all(take)
	local reply, wait_ms = { 1 }, young_ms()
	for index, name in ipairs(names) do
		local obstacle = look_at_counter(index, name)
		if obstacle then
			return obstacle
		end
	end
	for _, name in ipairs(names) do
		local taken = take(name)
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
