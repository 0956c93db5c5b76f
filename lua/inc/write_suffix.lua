-- wire: what stands after the owner in the field of a writer, for RedissonWriteLock.getLockName.
local WRITE = ':write'
