-- Readers of ours that have ended, though the lock has not.
-- include: now
-- include: hold_count
-- include: readers
-- include: readers_remove
-- include: reader_ends
-- include: reader_ends_record

local EXPIRED_MAX = 100 -- at once: a script must not hold up the server

-- A reader whose holds have all ended is none any more, though other readers keep his field alive.
local function remove_if_expired(name, owner)
	local count = hold_count(redis.call('HGET', name.lock, owner))
	if count and reader_ttl_ms(name, owner, count) == 0 then
		remove_readers(name, { [owner] = true })
	end
end

-- The same of all our readers. One that lasts longer than we wrote down was renewed by a Redisson before 4.4,
-- which renews the time-out keys of everybody.
local function remove_expired(name)
	local ended = {}
	delete_overwritten_ends(name)
	for _, owner in ipairs(redis.call('ZRANGE', name.ends, '-inf', digits(now_ms), 'BYSCORE',
		'LIMIT', 0, EXPIRED_MAX)) do
		local left_ms = our_reader_ttl_ms(name, owner)
		if left_ms > 0 then
			record_end(name, owner, left_ms)
		else
			ended[owner] = true
		end
	end
	remove_readers(name, ended)
end
