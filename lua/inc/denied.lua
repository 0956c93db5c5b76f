-- The error to give for a command that the server denied.

local function is_error(reply)
	return type(reply) == 'table' and reply.err ~= nil
end

local function has_text(reply, text)
	return string.find(reply.err, text, 1, true) ~= nil
end

local function is_replica_error(reply)
	return has_text(reply, 'READONLY')
end

-- Redis does not always name the command, and the user needs to know which right is missing.
local function denied_error(command, reply)
	if is_replica_error(reply) then
		-- In one form: Redis 6.2 puts the line of the script in front.
		return redis.error_reply("READONLY You can't write against a read only replica.")
	end
	-- The user may run the command, but not on this key or channel, or not while the server is full.
	if has_text(reply, ' key') or has_text(reply, ' channel') or has_text(reply, 'OOM ') then
		return reply
	end
	return redis.error_reply(
		"NOPERM may not run the '" .. string.lower(command) .. "' command: " .. reply.err)
end
