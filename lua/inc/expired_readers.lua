-- Readers whose lease has ended.

-- include: lock_fields
-- include: readers
-- include: records

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
