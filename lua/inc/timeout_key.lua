-- The name of the timeout key of one hold of a reader. wire: "{NAME}:OWNER:rwlock_timeout:N" (RedissonReadLock).
-- include: now
-- include: timeout_word

local function timeout_key(name, owner, number)
	return name.timeouts .. ':' .. owner .. TIMEOUT .. digits(number)
end
