-- Suffixes of fields, owners and keys.

-- In the holds hash: HOLD_ID:stop is a request to stop this hold (stop.lua). Its value, " SINCE_MS USER@HOST", starts with a
-- blank, so it is not taken for a record. Whatever deletes the record of a hold must delete this field too.
local STOP = ':stop'

-- --at-least: a hold that is kept until END_MS, by the server's clock, has the owner "OWNER:lingering:END_MS". No process has
-- this owner, so no leftover process of the holder can re-enter the lock.
-- wire: the word must stay as it is; the source and the messages say "kept".
local KEPT = ':lingering:'

-- In the holds hash of a semaphore: OWNER:last names the owner's last hold. Its value, " HOLD_ID", starts with a blank, so it
-- is not taken for a record. find.lua finds the hold by it without reading all records; if the field is missing or names a
-- deleted hold, find.lua reads all records. Therefore the release of any hold of the owner deletes the field.
local LAST = ':last'

-- wire: the field of a writer in the lock hash is OWNER:write (RedissonWriteLock.getLockName).
local WRITE = ':write'

-- wire: the Nth hold of a reader has the timeout key "{NAME}:OWNER:rwlock_timeout:N" (RedissonReadLock).
local TIMEOUT = ':rwlock_timeout:'
