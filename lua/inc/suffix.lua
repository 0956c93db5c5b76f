-- What a field, an owner or a key has after the name that it belongs to.

-- What the field of a request to stop has behind the hold id (stop.lua), beside that of the record. The value, " SINCE_MS USER@HOST",
-- begins with a blank, by which it is no record. Whatever removes the record of a hold removes it, too.
local STOP = ':stop'

-- A hold that is kept until some time (--at-least) has that time in its owner, "OWNER:lingering:END_MS" by the server's
-- clock. So it belongs to no process, and no leftover process of the holder can re-enter the lock.
-- wire: that word stays; the source says "keep until" and "kept".
local KEPT = ':lingering:'

-- What the field that names the last hold of an owner has behind the owner. Its value, " HOLD_ID", begins with a blank, by which
-- it is no record. By that find.lua finds a hold among many without a look at all records, as it has to where the field is missing,
-- or names a hold that is gone. So the release of any hold of the owner removes it.
local LAST = ':last'

-- wire: what the field of a writer has after its owner (RedissonWriteLock.getLockName).
local WRITE = ':write'

-- The readers of a read/write lock.

-- The name of the timeout key of one hold of a reader. wire: "{NAME}:OWNER:rwlock_timeout:N" (RedissonReadLock).
local TIMEOUT = ':rwlock_timeout:'
