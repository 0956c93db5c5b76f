-- Give back one hold of a read or write lock: give_one. Needs: entry, publish, now, lingering, leases,
-- readers, ends.

-- How long a lock that many read is held yet; nil where that is not known without a look at each: there is a
-- writer, or there are Java's readers and one of them may be who lasts longest.
local function many_readers_ms(name)
	if redis.call('HLEN', name.lock) <= FIELDS_MAX or redis.call('HGET', name.lock, 'mode') ~= 'read' then
		return nil
	end
	local left_ms = longest_reader_ms(name)
	local ours = redis.call('ZCARD', name.ends)
	local are_all_ours = redis.call('HLEN', name.lock) - 1 == ours
	if are_all_ours or left_ms >= redis.call('PTTL', name.lock) then
		return left_ms
	end
	return nil
end

-- Who holds the lock yet, and for how long: the writer, if there is one, the time of the longest hold of a
-- reader, and that of a writer's that lingers.
local function holders_left(name)
	local many_ms = many_readers_ms(name)
	if many_ms then
		return nil, 0, many_ms
	end
	local listed = redis.call('HGETALL', name.lock)
	local writer, lingers_ms, reads_ms = nil, 0, 0
	for i = 1, #listed, 2 do
		local field, count = listed[i], hold_count(listed[i + 1])
		if field ~= 'mode' and is_of_writer(field) then
			local end_ms = lingering_end(field)
			writer = not end_ms and field or writer
			lingers_ms = math.max(lingers_ms, (end_ms or 0) - now_ms)
		elseif count then
			reads_ms = math.max(reads_ms, reader_ms(name, field, count))
		end
	end
	return writer, lingers_ms, reads_ms
end

local function set_all_ttls(name, ttl_ms)
	set_ttl(name, ttl_ms)
	if not has_java_readers(name) then
		redis.call('PEXPIRE', name.ends, digits(ttl_ms))
	end
end

-- The lock without the hold that went: free, a read lock, or a write lock yet. 1 or 2 as in inc/take_out.lua.
local function settle(name, was_write)
	local writer, lingers_ms, reads_ms = holders_left(name)
	if writer then
		-- The hold that is gone may have lasted longer than the writer's.
		local longest_ms = longest_hold_ms(name, { writer })
		local left_ms = math.max(longest_ms or 0, reads_ms, lingers_ms)
		local ttl_ms = redis.call('PTTL', name.lock)
		if longest_ms and longest_ms > 0 and ttl_ms > left_ms then
			set_all_ttls(name, left_ms)
			-- Earlier than those who wait were told.
			if ttl_ms > left_ms + LATE_MS then
				publish(name.channel, WAKE_ALL)
			end
		end
		return 1
	elseif lingers_ms > 0 then
		set_all_ttls(name, math.max(lingers_ms, reads_ms))
		-- Earlier than those who wait were told.
		publish(name.channel, WAKE_ALL)
		return 1
	elseif reads_ms > 0 then
		set_all_ttls(name, reads_ms)
		if redis.call('HGET', name.lock, 'mode') == 'write' then
			redis.call('HSET', name.lock, 'mode', 'read')
			-- Other readers may come in now. Redisson doesn't tell them.
			publish(name.channel, WAKE_ALL)
		end
		return 1
	end
	redis.call('DEL', name.lock, name.holds, name.ends)
	-- wire: all by a writer, one by the last reader
	publish(name.channel, was_write and WAKE_ALL or WAKE_ONE)
	return 2
end

-- The holds that a reader keeps last as long as the longest of them: which of his time-out keys is whose, nothing
-- tells.
local function release_read(name, owner, count)
	local left_ms = reader_ms(name, owner, count)
	if left_ms == 0 then
		drop_if_ended(name, owner)
		settle(name, false)
		return 3
	end
	-- wire: the last one's, whichever hold it is that ends
	redis.call('DEL', timeout_key(name, owner, count))
	if count == 1 then
		redis.call('HDEL', name.lock, owner)
		redis.call('ZREM', name.ends, owner)
		return settle(name, false)
	end
	redis.call('HINCRBY', name.lock, owner, -1)
	local longest_ms = longest_hold_ms(name, { owner })
	if longest_ms and longest_ms > 0 then
		left_ms = math.min(left_ms, longest_ms)
	end
	for number = 1, count - 1 do
		redis.call('SET', timeout_key(name, owner, number), 1, 'PX', digits(left_ms))
	end
	redis.call('ZADD', name.ends, 'XX', digits(now_ms + left_ms), owner)
	return settle(name, false)
end

local function release_write(name, field, count)
	if count == 1 then
		redis.call('HDEL', name.lock, field)
	else
		redis.call('HINCRBY', name.lock, field, -1)
	end
	return settle(name, true)
end

local function give_one(name, field, count)
	drop_ended(name)
	if is_of_writer(field) then
		return release_write(name, field, count)
	end
	return release_read(name, field, count)
end
