-- Whether a command failed since its key is of another type.
-- include: denied

local function is_wrong_type(reply)
	return is_error(reply) and string.find(reply.err, 'WRONGTYPE', 1, true) ~= nil
end
