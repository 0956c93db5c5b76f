-- What became of a command that the server refused.

local function is_replica_error(reply)
	return string.find(reply.err, 'READONLY', 1, true) ~= nil
end

-- The error to give for a command that was refused. Redis does not always say which one it was, and
-- the user needs to know which right is missing.
local function denied_error(command, reply)
	if is_replica_error(reply) then
		-- In one form: Redis 6.2 puts the line of the script in front.
		return redis.error_reply("READONLY You can't write against a read only replica.")
	end
	if string.find(reply.err, ' key', 1, true) or string.find(reply.err, ' channel', 1, true) then
		return reply -- it may run that, but not on this key or channel
	end
	if string.find(reply.err, 'OOM ', 1, true) then
		return reply -- it may run that, but not while the server is full
	end
	return redis.error_reply(
		"NOPERM may not run the '" .. string.lower(command) .. "' command: " .. reply.err)
end

local function is_error(reply)
	return type(reply) == 'table' and reply.err ~= nil
end
