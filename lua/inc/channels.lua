-- Messages to the clients that wait.

-- include: error

-- Messages to waiters, the wake queue of all but fair locks, and whose turn it is.

-- wire: LockPubSub's messages. By the first Redisson wakes one waiter of each client, by the second all of them.
local WAKE_ONE, WAKE_ALL = '0', '1'

-- The names of a request, and a release of all of them.

-- A channel among the arguments: with a '+' in front it is one of a cluster, where there are two ways to publish.
local is_in_cluster = false

-- The channel itself.
local function channel_of(arg)
	if string.sub(arg, 1, 1) ~= '+' then return arg end
	is_in_cluster = true
	return string.sub(arg, 2)
end

-- wire: in a cluster new Redissons listen by SSUBSCRIBE alone, and old ones by SUBSCRIBE.
-- By pcall: the lock is free by now, and must not stay held since a user has no right to the channel.
-- Returns how many clients hear it, or the error.
local function send(channel, message)
	local heard_in_slot = is_in_cluster and redis.pcall('SPUBLISH', channel, message) or 0
	local heard = redis.pcall('PUBLISH', channel, message)
	return (is_error(heard) or is_error(heard_in_slot)) and heard or heard + heard_in_slot
end
