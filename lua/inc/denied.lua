-- The errors that a script returns because a command was denied. lib/net/server_error.c reads them.

-- include: error

-- The error to return when this command was denied. If the server's text does not name the command, return a text of ours that
-- does. Redis 6.2 and 7.0 do not name the command in scripts, where they also omit NOPERM. No server names an unknown command,
-- such as a renamed one. Return any other error unchanged: its cause is the state of the server, not the user's rights.
local function command_error(command, reply)
	if has_text(reply, 'run this command or') then return redis.error_reply('NOPERM +' .. string.lower(command)) end
	if string.find(reply.err, 'Unknown .*command called') then return redis.error_reply('ERR unknown command ' .. command) end
	return reply
end

-- The error to return if the user lacks the right to a key that is not in KEYS; else nil. This error does not mention the script.
-- From a text that mentions the script, the client would conclude that the script makes the name of the denied key, as it does
-- for a reader's timeout key. Redis 7 and Redis 6.2 word the server's error differently.
local function key_error(reply)
	if not has_text(reply, 'permissions to access') and not has_text(reply, 'access at least one of the keys') then return nil end
	return redis.error_reply('NOPERM No permissions to access a key')
end

-- Whether a command has failed because the slot of the lock moves, and a key that is not in KEYS may be on the other node. The
-- old and the new node word this error differently.
local function is_elsewhere(reply)
	return is_error(reply) and (has_text(reply, 'non local key') or has_text(reply, 'undeclared keys'))
end
