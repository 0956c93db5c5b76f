-- wire: what stands between the owner and the number in the name of a timeout key, see timeout_key.lua.
local TIMEOUT = ':rwlock_timeout:'
