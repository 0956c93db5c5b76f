-- What is left of a read or write lock of which a hold has gone.
-- include: now
-- include: hold_count
-- include: publish
-- include: kept_hold
-- include: hold_ttl
-- include: readers
-- include: readers_remove
-- include: reader_ends
-- include: fields_max
-- include: writer_field

-- How long the one of our readers lasts that lasts longest; 0 when none does. Those that should, and have ended
-- for all that, are dropped.
local function longest_reader_ms(name)
	local ended, place, left_ms = {}, 0, 0
	local owner
	repeat
		owner = redis.call('ZRANGE', name.ends, place, place, 'REV')[1]
		left_ms = owner and our_reader_ttl_ms(name, owner) or 0
		if owner and left_ms == 0 then
			ended[owner] = true
		end
		place = place + 1
	until not owner or left_ms > 0
	remove_readers(name, ended)
	return left_ms
end

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
	local writer, kept_ms, reads_ms = nil, 0, 0
	for i = 1, #listed, 2 do
		local field, count = listed[i], hold_count(listed[i + 1])
		if field ~= 'mode' and is_writer_field(field) then
			local end_ms = kept_until(field)
			writer = not end_ms and field or writer
			kept_ms = math.max(kept_ms, (end_ms or 0) - now_ms)
		elseif count then
			reads_ms = math.max(reads_ms, reader_ttl_ms(name, field, count))
		end
	end
	return writer, kept_ms, reads_ms
end

local function set_all_ttls(name, ttl_ms)
	set_ttl(name, ttl_ms)
	if not has_java_readers(name) then
		redis.call('PEXPIRE', name.ends, digits(ttl_ms))
	end
end

-- The lock without the hold that went: free, a read lock, or a write lock yet. 1 or 2 as in inc/remove_hold.lua.
local function settle(name, was_write)
	local writer, kept_ms, reads_ms = holders_left(name)
	if writer then
		-- The hold that is gone may have lasted longer than the writer's.
		local longest_ms = longest_hold_ms(name, { writer })
		local left_ms = math.max(longest_ms or 0, reads_ms, kept_ms)
		local ttl_ms = redis.call('PTTL', name.lock)
		if longest_ms and longest_ms > 0 and ttl_ms > left_ms then
			set_all_ttls(name, left_ms)
			-- Earlier than those who wait were told.
			if ttl_ms > left_ms + LATE_MS then
				publish(name.channel, WAKE_ALL)
			end
		end
		return 1
	elseif kept_ms > 0 then
		set_all_ttls(name, math.max(kept_ms, reads_ms))
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
