-- Plain and fair locks.

-- include: first_hold

-- Plain and fair locks.
local READWRITE_LOCK = 'read/write lock'

-- wire: a plain and a fair lock have one field, the owner's, with the number of its holds. Redisson's read/write locks
-- keep their mode in another.
local function is_readwrite_lock(name) return redis.call('HEXISTS', name.lock, 'mode') == 1 end

local function mutex_acquire(name)
	if not name.is_free then return reenter(name) end
	return acquire_free(name, issue_token(name), name.field, 1)
end
