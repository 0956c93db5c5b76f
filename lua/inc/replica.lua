-- A replica knows what its primary told it some time ago: it can grant no lock, and what it lacks is not lost. The
-- error to give when this server is one, else nil. Found out by a write that changes nothing and that every
-- holder may do; behind all others, since a server that is full lets a script go on that has written something.
-- include: denied

local function replica_error(name)
	local reply = redis.pcall('HDEL', name.holds, '')
	return is_error(reply) and is_replica_error(reply) and denied_error('HDEL', reply) or nil
end
