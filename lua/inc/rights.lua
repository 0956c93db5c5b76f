-- Rights are tried out before what depends on them is written. A script that fails in the middle undoes nothing: where
-- the user lacks one right, it would leave a lock that never ends or can't be released, or a waiter that can't leave
-- the queue; and it would not say which right is missing. So the commands that come now, and all that renewal, release
-- and leaving the queue will need, are done in a list; those that come later in a form that does nothing. The lists
-- stand beside the code that needs these rights.
-- include: denied
-- include: wrong_type

-- Does these commands. nil, or the error to give for the first that is refused; then those of undo are done, if
-- there are any. right: of a command that is allowed by its subcommand.
local function try_all(steps, undo)
	for _, step in ipairs(steps) do
		local reply = redis.pcall(unpack(step))
		if is_error(reply) then
			for _, undo in ipairs(undo or {}) do
				redis.pcall(unpack(undo))
			end
			return is_wrong_type(reply) and reply or denied_error(step.right or step[1], reply)
		end
	end
	return nil
end
