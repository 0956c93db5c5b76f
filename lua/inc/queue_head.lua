-- The first waiter in the queue for a fair lock; false when there is none.
local function head_of(name)
	return redis.call('LINDEX', name.queue, 0)
end
