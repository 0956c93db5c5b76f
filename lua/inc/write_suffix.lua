-- wire: what the field of a writer has after its owner (RedissonWriteLock.getLockName).
local WRITE = ':write'
