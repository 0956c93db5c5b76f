-- Messages of a script whose reply says whether a message was denied.

-- include: denied
-- include: channels

-- The first error of a PUBLISH, by which the caller learns which right is missing.
local publish_error

-- Returns how many clients hear it.
local function publish(channel, message)
	local heard = send(channel, message)
	if not is_error(heard) then return heard end
	publish_error = publish_error or command_error('PUBLISH', heard)
	return 0
end
