-- What comes of a release in one piece that is heard, see release_only.lua, or that could not be published.
-- include: denied
-- include: wake_all

-- The result for the name, as in remove_hold.lua.
local function freed(name, heard)
	if is_error(heard) then
		return denied_error('PUBLISH', heard)
	end
	give_others_turn(name, heard)
	return 2
end
