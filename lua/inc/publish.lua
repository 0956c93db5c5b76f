-- Publish messages. If one is denied, the script continues, and its reply reports the error.

-- include: denied
-- include: channels

-- The first error of PUBLISH: it tells the client which right is missing.
local publish_error

-- Publish a message. Return how many clients have received it.
local function publish(channel, message)
	local heard = send(channel, message)
	if not is_error(heard) then return heard end
	publish_error = publish_error or command_error('PUBLISH', heard)
	return 0
end
