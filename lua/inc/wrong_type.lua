-- Whether a command failed since its key is of another type.
-- include: denied

local function is_wrong_type(reply)
	return is_error(reply) and has_text(reply, 'WRONGTYPE')
end
