-- The rights that a lock needs.

-- include: denied

-- The rights that a lock needs in all its life: to acquire, renew, release and keep it, and to wait for it. Where the login
-- names a user, the first acquisition of a connection tries them before anything is written: a script that fails in the
-- middle undoes nothing. The commands stand behind the key that they are tried on, each with so many empty arguments that it
-- changes nothing, whatever is there: mostly it fails by these, but only once the right to it was looked at. What needs memory
-- stands first: a full server lets a script go on that has written. The table of `rlock check` is made of these lines.
local HASH_RIGHTS = 'lock: HSET3 HINCRBY2 HLEN0 HEXISTS1 HKEYS0 HGETALL0 PTTL0 EXISTS0 TYPE0 PEXPIRE1 holds: HGET1 HVALS0 HDEL1 DEL0 '
local QUEUE_RIGHTS = 'queue: LINDEX1 LREM2 deadlines: ZSCORE1 ZREM1 waiters: HGET1 HLEN0 HDEL1 '

-- RPUSH comes behind LREM, which takes away what it adds.
local JOIN_RIGHTS = 'deadlines: ZADD2 queue: LPOS1 LRANGE2 LINSERT3 RPUSH1 '
local READWRITE_RIGHTS = 'writer: SET2 GET0 timeout: SET2 PTTL0 PEXPIRE1 ends: ZADD2 ZREM1 ZRANGE2 ZCARD0 '

local PERMIT_RIGHTS = 'lock: INCRBY1 SET2 GET0 EXISTS0 TYPE0 holds: HSET3 HGET1 HGETALL0 PTTL0 PEXPIRE1 HDEL1 DEL0 '
	.. 'permits: ZADD2 ZREM1 ZRANGE2 ZCARD0 ZSCORE1 '

-- The error for the first of these rights that the user lacks; nil when there is none. And that of a key of another type. What is
-- wrong with the arguments is said in another form than what is denied: 'ERR syntax error', 'ERR The user executing ... can't'.
local function right_error(name, rights)
	local key, type_error
	for word, count, colon in string.gmatch(rights, '(%a+)(%d?)(:?)') do
		if colon == ':' then
			key = name[word]
		else
			-- No argument keeps DEL from deleting: a key beside, which belongs to no name, since none has a newline.
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
				-- Nor does one keep this from adding.
				redis.call('LREM', key, -1, '')
			end
		end
	end
	return nil, type_error
end
