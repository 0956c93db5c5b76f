-- The rights that a lock needs, and how they are tried. `rlock check` has the same lists: embed.sh makes a table of them.

-- include: denied

-- The rights to acquire, renew, keep, release and wait for a lock. If the login names a user, the first acquisition of a
-- connection tries them before it writes anything: if a script fails half-way, Redis undoes nothing.
-- "KEY:" names the key on which the commands after it are tried. The digit of a command is its number of empty arguments. With
-- these it changes nothing, whatever the key has: most commands fail, but only after Redis has checked the right. Commands that
-- need memory come first: after any write, a server whose memory is full lets the script write more.
local HASH_RIGHTS = 'lock: HSET3 HINCRBY2 HLEN0 HEXISTS1 HKEYS0 HGETALL0 PTTL0 EXISTS0 TYPE0 PEXPIRE1 holds: HGET1 HVALS0 HDEL1 DEL0 '
local QUEUE_RIGHTS = 'queue: LINDEX1 LREM2 deadlines: ZSCORE1 ZREM1 waiters: HGET1 HLEN0 HDEL1 '

-- RPUSH comes after LREM, which removes what RPUSH has added.
local JOIN_RIGHTS = 'deadlines: ZADD2 queue: LPOS1 LRANGE2 LINSERT3 RPUSH1 '
local READWRITE_RIGHTS = 'writer: SET2 GET0 timeout: SET2 PTTL0 PEXPIRE1 ends: ZADD2 ZREM1 ZRANGE2 ZCARD0 '

local PERMIT_RIGHTS = 'lock: INCRBY1 SET2 GET0 EXISTS0 TYPE0 holds: HSET3 HGET1 HGETALL0 PTTL0 PEXPIRE1 HDEL1 DEL0 '
	.. 'permits: ZADD2 ZREM1 ZRANGE2 ZCARD0 ZSCORE1 '

-- Return the error for the first of these rights that the user lacks (nil: none), and the error of a key with another type
-- (nil: none). Errors about arguments differ from those about rights: 'ERR syntax error', 'ERR The user executing ... can't'.
local function right_error(name, rights)
	local key, type_error
	for word, count, colon in string.gmatch(rights, '(%a+)(%d?)(:?)') do
		if colon == ':' then
			key = name[word]
		else
			-- DEL would delete the key with any arguments. Try it on a key that is no lock's: no name has a newline.
			local command = { word, word == 'DEL' and key .. '\n' or key }
			for i = 1, count do command[i + 2] = '' end
			local reply = redis.pcall(unpack(command))
			if is_wrong_type(reply) then
				type_error = reply
			elseif is_error(reply) then
				if not (string.find(reply.err, '^ERR %l') or word == 'DEL' and has_text(reply, ' key')) then
					return command_error(word, reply)
				end
			elseif word == 'RPUSH' then
				-- Remove the empty element that RPUSH has added.
				redis.call('LREM', key, -1, '')
			end
		end
	end
	return nil, type_error
end
