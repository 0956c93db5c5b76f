-- How readers whose leases have ended are removed.

-- include: lock_fields
-- include: readers
-- include: records

-- How long the holds of this reader last, in ms; 0: they have expired, or the reader is not in the lock.
local function our_reader_ttl_ms(name, owner)
	return reader_ttl_ms(name, owner, hold_count(redis.call('HGET', name.lock, owner)) or 0)
end

-- Remove all holds of the owners in this set.
local function remove_readers(name, owners)
	local unknown = {}
	for owner in pairs(owners) do
		local ids = reader_holds(name, owner, hold_count(redis.call('HGET', name.lock, owner)))
		unknown[owner] = not ids or nil
		redis.call('HDEL', name.lock, owner)
		redis.call('ZREM', name.ends, owner)
		-- Use pcall: if a user has overwritten the holds hash with another type, these commands fail, but there is no record to
		-- delete. The key is deleted when the lock is.
		for _, id in ipairs(ids or {}) do
			redis.pcall('HDEL', name.holds, id, id .. STOP)
		end
		redis.pcall('HDEL', name.holds, owner)
	end
	remove_records(name, unknown)
end

-- A script removes at most this many expired readers: it must not block the server for its other clients.
local EXPIRED_MAX = 100

local function remove_if_expired(name, owner)
	local count = hold_count(redis.call('HGET', name.lock, owner))
	if count and reader_ttl_ms(name, owner, count) == 0 then
		remove_readers(name, { [owner] = true })
	end
end

-- Remove expired readers, EXPIRED_MAX at most. A reader may last longer than name.ends says, because a Redisson before 4.4 renews
-- the timeout keys of all readers: then record the new end of this reader.
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
