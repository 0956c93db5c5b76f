-- To publish what waiters listen for.
-- include: denied

-- wire: LockPubSub's messages. By the first Redisson wakes one waiter of each client, by the second all of them.
local WAKE_ONE, WAKE_ALL = '0', '1'

-- The first error of a PUBLISH, by which the caller learns which right is missing.
local publish_error

-- By pcall: the lock is free by now, and must not stay held since a user has no right to the channel.
local function publish(channel, message)
	local reply = redis.pcall('PUBLISH', channel, message)
	if is_error(reply) then
		publish_error = publish_error or denied_error('PUBLISH', reply)
	end
end
