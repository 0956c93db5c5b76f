-- The end of the fast path of a release (fast_release.lua). It runs only if other clients wait, or the message was denied.

-- include: denied
-- include: wake

-- Wake the next waiter. Return the result of the name: see results.lua.
local function after_free_lock(name, heard)
	if not is_error(heard) then give_redisson_turn(name, heard) end
	wake_next(name)
	return is_error(heard) and command_error('PUBLISH', heard) or 2
end
