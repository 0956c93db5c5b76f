-- The readers of a read/write lock.

-- The name of the timeout key of one hold of a reader. wire: "{NAME}:OWNER:rwlock_timeout:N" (RedissonReadLock).
local TIMEOUT = ':rwlock_timeout:'
local function timeout_key(name, owner, number)
	return name.timeouts .. ':' .. owner .. TIMEOUT .. digits(number)
end

-- wire: what the field of a writer has after its owner (RedissonWriteLock.getLockName).
local WRITE = ':write'

local function is_writer_field(field)
	return string.sub(field, -#WRITE) == WRITE or string.find(field, WRITE .. KEPT, 1, true) ~= nil
end

-- The holds of a reader. wire: as many as its field in the lock hash says, each with a timeout key of its own, from 1 on
-- (RedissonReadLock).
-- How long the longest of the reader's holds lasts; 0 when none does. While the slot of the lock moves to another node of
-- a cluster, a timeout key that is not here may be there. That is an error, by which the request comes again.
local function reader_ttl_ms(name, owner, count)
	local longest_ms = 0
	for number = 1, count do
		local key = timeout_key(name, owner, number)
		local ttl_ms = redis.call('PTTL', key)
		if ttl_ms < 0 then
			-- wire: PTTL of one key is served at the new node; a command with two, of which one is missing, at neither.
			redis.call('EXISTS', name.lock, key)
		end
		longest_ms = math.max(longest_ms, ttl_ms)
	end
	return longest_ms
end

-- When our readers expire: a sorted set of their owners, each with the time at which the last of its timeout keys
-- does. So a script finds the expired ones of many readers, and the one that lasts longest, without a look at each.
-- Java's readers are not in it.
-- Deletes a value that a user wrote over the set. Readers are in it again from their next renewal on.
local function delete_overwritten_ends(name)
	if other_type(name.ends, 'zset') then redis.call('DEL', name.ends) end
end

-- One command a line: in an older server's error only the line shows which right is missing.
local function has_java_readers(name)
	if redis.call('HGET', name.lock, 'mode') ~= 'read' then return false end
	local ours = redis.call('ZCARD', name.ends)
	return redis.call('HLEN', name.lock) - 1 > ours
end

-- The set lasts so much longer than our readers when Java's are beside them, which may keep the lock: our expired readers
-- must be known for as long as the lock is held.
local ENDS_MS = 86400000

-- This reader has a hold that lasts for left_ms.
local function record_end(name, owner, left_ms)
	delete_overwritten_ends(name)
	-- A full server allows this, and what comes after a write.
	redis.call('ZREM', name.ends, '')
	-- As write_for does it, whose line would not show which right is missing.
	extend(name.ends, digits(left_ms))
	redis.call('ZADD', name.ends, 'GT', digits(now_ms() + left_ms), owner)
	extend(name.ends, digits(left_ms))
	if has_java_readers(name) then extend(name.ends, digits(left_ms + ENDS_MS)) end
end

-- All its holds then last for lease_ms at least; a hold whose timeout key has expired gets another.
local function extend_reader(name, owner, count, lease_ms)
	for number = 1, count do
		local key = timeout_key(name, owner, number)
		-- A full server lets a script extend a key, but make none.
		if redis.call('PTTL', key) < tonumber(lease_ms)
			and redis.call('PEXPIRE', key, lease_ms) == 0 then
			redis.call('SET', key, 1, 'PX', lease_ms)
		end
	end
end

-- The holds hash has under the owner of a reader, too, the ids of its holds, each with a blank in front, by which they are no
-- record. So a script finds the holds of one among many readers without a look at all records. The reader that came first has
-- none, nor has one of an older version.

-- The ids and the records of the so many holds of a reader; nil where they are not found so.
local function reader_holds(name, owner, count)
	local ids, records = {}, {}
	local listed = redis.pcall('HGET', name.holds, owner)
	for id in string.gmatch(type(listed) == 'string' and listed or '', '%S+') do
		ids[#ids + 1] = id
		records[#ids] = redis.call('HGET', name.holds, id) or nil
	end
	if #ids ~= count or #records ~= count then return nil end
	return ids, records
end

local function add_reader_hold(name, owner, record)
	local listed = redis.call('HGET', name.holds, owner) or ''
	write_for(lease_ms, 'HSET', name.holds, hold_id, record, owner, listed .. ' ' .. hold_id)
end

-- The record of the hold is removed already, so a full server lets the script write. The hash is never without a field in
-- between, which would cost it its TTL.
local function remove_reader_hold(name, owner)
	local listed = redis.call('HGET', name.holds, owner) or ''
	local rest = string.gsub(listed, ' ' .. hold_id, '')
	if rest == '' then
		redis.call('HDEL', name.holds, owner)
	else
		redis.call('HSET', name.holds, owner, rest)
	end
end

-- Of many readers one of the two that last longest: its field, its note, and for how long it has held the lock, in ms. Else
-- one of the holders, as holder_of.
local function lasting_holder_of(name)
	local is_one_of_many = redis.call('HLEN', name.lock) > FIELDS_MAX
	for _, owner in ipairs(is_one_of_many and redis.call('ZRANGE', name.ends, -2, -1) or {}) do
		local _, records = reader_holds(name, owner, hold_count(redis.call('HGET', name.lock, owner)))
		local owner_note, held_ms = told_by(records and records[1] or '')
		if owner_note then return owner, owner_note, held_ms end
	end
	return holder_of(name)
end

-- How long that reader lasts; 0 when it is in the lock no longer.
local function our_reader_ttl_ms(name, owner)
	return reader_ttl_ms(name, owner, hold_count(redis.call('HGET', name.lock, owner)) or 0)
end

-- owners is a set: each of them loses all its holds.
local function remove_readers(name, owners)
	local unknown = {}
	for owner in pairs(owners) do
		local ids = reader_holds(name, owner, hold_count(redis.call('HGET', name.lock, owner)))
		unknown[owner] = not ids or nil
		redis.call('HDEL', name.lock, owner)
		redis.call('ZREM', name.ends, owner)
		-- By pcall, as in remove_records.
		for _, id in ipairs(ids or {}) do
			redis.pcall('HDEL', name.holds, id, id .. STOP)
		end
		redis.pcall('HDEL', name.holds, owner)
	end
	remove_records(name, unknown)
end

local EXPIRED_MAX = 100 -- at once: a script must not keep the server from its other clients

local function remove_if_expired(name, owner)
	local count = hold_count(redis.call('HGET', name.lock, owner))
	if count and reader_ttl_ms(name, owner, count) == 0 then
		remove_readers(name, { [owner] = true })
	end
end

-- Removes readers whose recorded end is over, EXPIRED_MAX at most. One that lasts longer was renewed by a Redisson
-- before 4.4, which renews the timeout keys of all readers: its end is recorded anew.
local function remove_expired(name)
	local expired = {}
	delete_overwritten_ends(name)
	for _, owner in ipairs(redis.call('ZRANGE', name.ends, '-inf', digits(now_ms()), 'BYSCORE',
		'LIMIT', 0, EXPIRED_MAX)) do
		local left_ms = our_reader_ttl_ms(name, owner)
		if left_ms > 0 then record_end(name, owner, left_ms) else expired[owner] = true end
	end
	remove_readers(name, expired)
end
