-- Rights are tried before anything that depends on them is written. A script that fails in the middle undoes nothing:
-- without one of the rights it would leave a lock that never expires or can't be released, or a waiter that can't
-- leave the queue, and it would not say which right is missing. So a list has the commands that are due now, and all
-- that renewal, release and leaving the queue will need; those that are due later have a form that changes nothing.
-- Each list stands beside the code that needs these rights. Where the login names no user (see inc/request.lua) only
-- what is due is run: the default user may mostly do everything, and the others cost more than the lock does.

-- Runs these commands. nil, or the error to give for the first that fails, once the commands of undo have run.
local function try_all(steps, undo)
	for _, step in ipairs(steps) do
		local reply = redis.pcall(unpack(step))
		if is_error(reply) then
			for _, command in ipairs(undo or {}) do
				redis.pcall(unpack(command))
			end
			if is_wrong_type(reply) then
				return reply
			end
			return denied_error(step[1], reply)
		end
	end
	return nil
end

-- To put lists together.

local function append(steps, more)
	for _, step in ipairs(more) do
		steps[#steps + 1] = step
	end
end
