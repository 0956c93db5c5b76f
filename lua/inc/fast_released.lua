-- The end of a common release.

-- include: denied
-- include: wake

-- The end of a common release (inc/release.lua) for which other clients wait, or whose message was denied.
-- The result for the name, as in inc/names.lua.
local function after_free_lock(name, heard)
	if not is_error(heard) then give_redisson_turn(name, heard) end
	wake_next(name)
	return is_error(heard) and command_error('PUBLISH', heard) or 2
end
