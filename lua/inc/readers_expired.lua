-- To remove readers of ours whose holds have all expired, while other readers keep the lock.
-- include: now
-- include: hold_count
-- include: readers
-- include: readers_remove
-- include: reader_ends
-- include: reader_ends_record

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
		if left_ms > 0 then
			record_end(name, owner, left_ms)
		else
			expired[owner] = true
		end
	end
	remove_readers(name, expired)
end
