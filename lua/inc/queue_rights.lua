-- The rights to leave the queue of a fair lock.

-- include: denied
-- include: rights

-- The error if the user may not remove a waiter from this queue, or if its keys have another type; else nil.
local function leave_error(name)
	local denied, type_error = right_error(name, QUEUE_RIGHTS .. 'DEL0 ')
	return denied and key_error(denied) or denied or type_error
end
