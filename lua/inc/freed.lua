-- The end of a common release (release_only.lua) for which other clients wait, or whose message was denied.
-- include: denied
-- include: others_turn
-- include: wake_queue_wake

-- The result for the name, as in for_each_name.lua.
local function freed(name, heard)
	if not is_error(heard) then
		give_others_turn(name, heard)
	end
	wake_next(name)
	return is_error(heard) and denied_error('PUBLISH', heard) or 2
end
