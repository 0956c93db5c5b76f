-- Which waiters in the queue for a fair lock do not listen any more.
-- include: now
-- include: queue_read

-- A waiter of ours that listened here, on this run of the server, and does not any more: the kernel closed its
-- connection when its process ended.
local function is_silent(name, owner)
	local sign = sign_of_life(name, owner)
	if not sign or sign.listens_since_ms == 0 or sign.run ~= server_run() then
		return false
	end
	recall(name)
	return now_ms() >= name.return_until_ms and count_listeners(name, owner) == 0
end

-- A waiter that listens, and one of ours has done so for a while: after a network failure it may be back a moment
-- before those in front of it.
local function is_heard_all_along(name, owner)
	local sign = sign_of_life(name, owner)
	if sign and (sign.listens_since_ms == 0 or now_ms() - sign.listens_since_ms < LIFE_MS) then
		return false
	end
	return is_heard(name, owner)
end
