-- When our readers end: a sorted set of their owners, each with the time at which the last of its time-out keys
-- expires. Among many readers those that have ended, and the one that lasts longest, are found without a look at each.
-- Java's readers are not in it. Needs: now, fields, entry, extend, readers.
local ENDS_MS = 86400000    -- beside Java's readers, who may keep the lock so long, it outlasts ours by so much
local READERS_DROPPED = 100 -- at once: a script must not hold up the server

-- What somebody wrote over it goes. Readers are in it again from their next renewal on.
local function clear_ends_overwritten(name)
	local key_type = redis.pcall('TYPE', name.ends).ok
	if key_type and key_type ~= 'zset' and key_type ~= 'none' then
		redis.call('DEL', name.ends)
	end
end

-- The lock was deleted under our readers, or ran out, and Java's have it since: those that stand here would be taken
-- for them. The first of ours that comes finds none of them in the lock, so a look at one is enough. By pcall: what
-- the user has no right to is found out later, where it can be undone.
local function clear_ends_of_lost(name)
	local reader = redis.pcall('ZRANGE', name.ends, 0, 0)[1]
	if reader and redis.pcall('HEXISTS', name.lock, reader) == 0 then
		redis.pcall('DEL', name.ends)
	end
end

-- One command a line: of an older server's refusal the line alone tells which right is missing.
local function has_java_readers(name)
	local ours = redis.call('ZCARD', name.ends)
	return redis.call('HGET', name.lock, 'mode') == 'read'
		and redis.call('HLEN', name.lock) - 1 > ours
end

-- Those in it that have ended must be known for as long as others keep the lock.
local function keep_ends(name, left_ms)
	extend(name.ends, digits(left_ms + (has_java_readers(name) and ENDS_MS or 0)))
end

-- This reader has a hold that lasts so long.
local function note_end(name, owner, left_ms)
	clear_ends_overwritten(name)
	-- A full server allows this, and what stands behind a write.
	redis.call('ZREM', name.ends, '')
	redis.call('ZADD', name.ends, 'GT', digits(now_ms + left_ms), owner)
	keep_ends(name, left_ms)
end

-- How long that reader of ours lasts; 0 for one that is in the lock no more.
local function left_of(name, owner)
	local count = hold_count(redis.call('HGET', name.lock, owner))
	return count and reader_ms(name, owner, count) or 0
end

-- Takes these owners, which is a set, out of the lock, with all of their holds.
local function drop_readers(name, owners)
	if next(owners) == nil then
		return
	end
	for owner in pairs(owners) do
		redis.call('HDEL', name.lock, owner)
		redis.call('ZREM', name.ends, owner)
	end
	-- What overwrote the holds is no obstacle: it ends with them.
	local listed = redis.pcall('HGETALL', name.holds)
	for i = 1, #listed, 2 do
		if owners[entry_parse(listed[i + 1]) or ''] then
			redis.call('HDEL', name.holds, listed[i])
		end
	end
end

-- A reader whose holds have all ended is none any more, though other readers keep his field alive.
local function drop_if_ended(name, owner)
	local count = hold_count(redis.call('HGET', name.lock, owner))
	if count and reader_ms(name, owner, count) == 0 then
		drop_readers(name, { [owner] = true })
	end
end

-- The same of all our readers. One that lasts longer than we wrote down was renewed by a Redisson before 4.4,
-- which renews the time-out keys of everybody.
local function drop_ended(name)
	local ended = {}
	clear_ends_overwritten(name)
	for _, owner in ipairs(redis.call('ZRANGE', name.ends, '-inf', digits(now_ms), 'BYSCORE',
		'LIMIT', 0, READERS_DROPPED)) do
		local left_ms = left_of(name, owner)
		if left_ms > 0 then
			note_end(name, owner, left_ms)
		else
			ended[owner] = true
		end
	end
	drop_readers(name, ended)
end

-- How long the one of our readers lasts that lasts longest; 0 when none does. Those that should, and have ended
-- for all that, are dropped.
local function longest_reader_ms(name)
	local ended, place, left_ms = {}, 0, 0
	local owner
	repeat
		owner = redis.call('ZRANGE', name.ends, place, place, 'REV')[1]
		left_ms = owner and left_of(name, owner) or 0
		if owner and left_ms == 0 then
			ended[owner] = true
		end
		place = place + 1
	until not owner or left_ms > 0
	drop_readers(name, ended)
	return left_ms
end
