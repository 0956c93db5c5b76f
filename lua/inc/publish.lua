-- To publish what waiters listen for.
-- include: denied
-- include: channel

-- wire: LockPubSub's messages. By the first Redisson wakes one waiter of each client, by the second all of them.
local WAKE_ONE, WAKE_ALL = '0', '1'

-- The first error of a PUBLISH, by which the caller learns which right is missing.
local publish_error

-- wire: in a cluster new Redissons listen by SSUBSCRIBE alone, and old ones by SUBSCRIBE.
-- By pcall: the lock is free by now, and must not stay held since a user has no right to the channel.
local function publish(channel, message)
	if is_in_cluster then
		redis.pcall('SPUBLISH', channel, message)
	end
	local reply = redis.pcall('PUBLISH', channel, message)
	if is_error(reply) then
		publish_error = publish_error or denied_error('PUBLISH', reply)
	end
end
