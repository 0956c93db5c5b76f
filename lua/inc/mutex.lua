-- How plain and fair locks are acquired.

-- include: first_hold

-- How messages describe a read/write lock where a plain or fair lock was requested.
local READWRITE_LOCK = 'read/write lock'

-- wire: a plain or fair lock has one field: the owner, with the number of its holds. Redisson's read/write locks have a field
-- "mode" as well.
local function is_readwrite_lock(name) return redis.call('HEXISTS', name.lock, 'mode') == 1 end

local function mutex_acquire(name)
	if not name.is_free then return reenter(name) end
	return acquire_free(name, issue_token(name), name.field, 1)
end
