-- The name of the timeout key of one hold of a reader. wire: "{NAME}:OWNER:rwlock_timeout:N" (RedissonReadLock).
-- include: now

local function timeout_key(name, owner, number)
	return name.timeouts .. ':' .. owner .. ':rwlock_timeout:' .. digits(number)
end
