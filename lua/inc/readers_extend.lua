-- To renew the holds of a reader.
-- include: readers

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
