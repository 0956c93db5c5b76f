-- To publish what waiters listen for.
-- include: denied

-- wire: LockPubSub's messages. Redisson wakes one waiter of a client by the first, all by the second.
local WAKE_ONE, WAKE_ALL = '0', '1'

-- The first err to tell somebody, for who asked to know which right is missing.
local publish_error

-- Tell the waiters. By pcall: the lock is free by now, and must not stay held because a user
-- has no right to the channel.
local function publish(channel, message)
	local reply = redis.pcall('PUBLISH', channel, message)
	if is_error(reply) then
		publish_error = publish_error or denied_error('PUBLISH', reply)
	end
end
