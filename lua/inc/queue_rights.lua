-- Whether waiters can leave the queue of a fair lock.

-- include: denied
-- include: rights

-- The error when no waiter can leave this queue, or be removed from it; else nil.
local function leave_error(name)
	local denied, type_error = right_error(name, QUEUE_RIGHTS .. 'DEL0 ')
	return denied and key_error(denied) or denied or type_error
end
