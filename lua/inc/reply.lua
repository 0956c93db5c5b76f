-- Replies of commands: errors, and keys that were overwritten.

local function is_error(reply) return type(reply) == 'table' and reply.err ~= nil end

local function has_text(reply, text) return string.find(reply.err, text, 1, true) ~= nil end

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

local function is_wrong_type(reply) return is_error(reply) and has_text(reply, 'WRONGTYPE') end

-- The error to give when this server is a replica, else nil: it knows what its master told it some time ago, so it can't grant a
-- lock, and what it lacks is not lost. A write that changes nothing finds it out, one that each holder has the right to; it
-- comes after all other commands, since a full server lets a script that has written go on.
local function replica_error(name)
	local reply = redis.pcall('HDEL', name.holds, '')
	return is_error(reply) and has_text(reply, 'READONLY') and reply or nil
end

-- The type of what a user wrote over a key; nil when nothing is there, or what ought to be, or the user may not ask: then the next
-- command fails.
local function other_type(key, sound_type)
	local key_type = redis.pcall('TYPE', key).ok
	return key_type ~= sound_type and key_type ~= 'none' and key_type or nil
end

-- The type of what was written over the lock, the counter of a semaphore, or the holds hash of a name: by that the lock is lost.
local function overwritten(name)
	return other_type(name.lock, name.permits and 'string' or 'hash') or other_type(name.holds, 'hash')
end

-- A field of the lock or the holds hash of a name; nil when there is none. Where that may be because one of them was
-- overwritten, sets name.overwritten to the type of what is there.
local function read_field(name, key, field)
	local value = redis.pcall('HGET', key, field)
	if value and not is_error(value) then return value end
	name.overwritten = overwritten(name)
	-- A missing right is an error: raised here.
	return not name.overwritten and redis.call('HGET', key, field) or nil
end
