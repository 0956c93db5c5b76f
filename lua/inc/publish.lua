-- To publish what waiters listen for.
-- include: denied
-- include: send

-- The first error of a PUBLISH, by which the caller learns which right is missing.
local publish_error

-- Returns how many clients hear it.
local function publish(channel, message)
	local heard = send(channel, message)
	if is_error(heard) then
		publish_error = publish_error or denied_error('PUBLISH', heard)
		return 0
	end
	return heard
end
