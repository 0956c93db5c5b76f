-- A replica knows what its master told it some time ago: it can't grant a lock, and what it lacks is not lost.
-- include: denied

-- The error to give when this server is a replica, else nil. A write that changes nothing finds it out, one that each
-- holder has the right to; it comes after all other commands, since a full server lets a script that has written go on.
local function replica_error(name)
	local reply = redis.pcall('HDEL', name.holds, '')
	if is_error(reply) and is_replica_error(reply) then
		return denied_error('HDEL', reply)
	end
	return nil
end
