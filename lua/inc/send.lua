-- To send a message to waiters.
-- include: denied
-- include: channel

-- wire: LockPubSub's messages. By the first Redisson wakes one waiter of each client, by the second all of them.
local WAKE_ONE, WAKE_ALL = '0', '1'

-- wire: in a cluster new Redissons listen by SSUBSCRIBE alone, and old ones by SUBSCRIBE.
-- By pcall: the lock is free by now, and must not stay held since a user has no right to the channel.
-- Returns how many clients hear it, or the error.
local function send(channel, message)
	local heard_in_slot = 0
	if is_in_cluster then
		heard_in_slot = redis.pcall('SPUBLISH', channel, message)
	end
	local heard = redis.pcall('PUBLISH', channel, message)
	if is_error(heard) or is_error(heard_in_slot) then
		return heard
	end
	return heard + heard_in_slot
end
