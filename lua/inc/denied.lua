-- Errors that a script returns to its client.

-- include: error

-- The error of a command. Texts that do not name the command get its name in a form of ours: that of a missing right of Redis 6.2
-- and 7.0, whose scripts have no NOPERM, and that of a command which the server has renamed. Any other error passes through
-- unchanged: its cause is the server's state, not the user's rights.
local function command_error(command, reply)
	if has_text(reply, 'run this command or') then return redis.error_reply('NOPERM +' .. string.lower(command)) end
	if string.find(reply.err, 'Unknown .*command called') then return redis.error_reply('ERR unknown command ' .. command) end
	return reply
end

-- The error to give when the user lacks the right to a key that is not among KEYS, else nil. It says no script, by which it would
-- be taken for that of a key whose name a script makes, as of a reader's timeouts. The words of Redis 7, and of Redis 6.2.
local function key_error(reply)
	if not has_text(reply, 'permissions to access') and not has_text(reply, 'access at least one of the keys') then return nil end
	return redis.error_reply('NOPERM No permissions to access a key')
end

-- Of a key that is not among KEYS, while the slot of the lock is on its way to another node of a cluster: where it comes from, and
-- where it goes.
local function is_elsewhere(reply)
	return is_error(reply) and (has_text(reply, 'non local key') or has_text(reply, 'undeclared keys'))
end
