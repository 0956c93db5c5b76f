-- Whether a waiter in the wake queue is there to be woken.
-- include: denied
-- include: wake_queue

-- What PUBLISH returns would count those that listen to a pattern, such as a monitor of all channels.
local function is_listening(name, id)
	local reply = redis.pcall('PUBSUB', 'NUMSUB', waiter_channel(name, id))
	return is_error(reply) or reply[2] ~= 0
end
