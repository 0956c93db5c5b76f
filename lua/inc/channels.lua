-- Messages to waiting clients.

-- include: error

-- wire: LockPubSub's messages. '0' lets each client of Redisson's wake one of its waiters, '1' all of them.
local WAKE_ONE, WAKE_ALL = '0', '1'

-- Whether the server is a node of a cluster. True once channel_of has found a '+' before a channel: the client puts it there for
-- such a server. Then send publishes each message in two ways.
local is_in_cluster = false

-- The channel that an argument of the script names. Remove the '+' before it, which the client adds in a cluster.
local function channel_of(arg)
	if string.sub(arg, 1, 1) ~= '+' then return arg end
	is_in_cluster = true
	return string.sub(arg, 2)
end

-- Publish a message. Return how many clients have received it, or the error. Use pcall, so that a release does not end half-way
-- if the user has no right to the channel.
-- wire: in a cluster new versions of Redisson subscribe by SSUBSCRIBE only, old ones by SUBSCRIBE.
local function send(channel, message)
	local heard_in_slot = is_in_cluster and redis.pcall('SPUBLISH', channel, message) or 0
	local heard = redis.pcall('PUBLISH', channel, message)
	return (is_error(heard) or is_error(heard_in_slot)) and heard or heard + heard_in_slot
end
