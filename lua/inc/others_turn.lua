-- To leave a turn to Redisson's waiters.
-- include: now
-- include: denied
-- include: channel
-- include: turn
-- include: wake_queue

local OTHERS_TURN_MS = 50 -- what Redisson needs from a message to its next try on a busy machine
local OTHERS_TURNS_OF = 4 -- of so many releases one gives no turn: all compete, as after a release of Redisson's

-- Whether others than ours listen to the channel of the lock. wire: new Redissons in a cluster by SSUBSCRIBE alone.
local function do_others_listen(name)
	local ours = waiter_channel(name, OURS)
	for _, how in ipairs({ 'NUMSUB', is_in_cluster and 'SHARDNUMSUB' or nil }) do
		local reply = redis.pcall('PUBSUB', how, name.channel, ours)
		if not is_error(reply) and reply[2] > reply[4] then
			return true
		end
	end
	return false
end

-- Gives Redisson's waiters a turn after most releases: they are slower than ours, and would starve. heard: how many
-- clients heard of this release.
local function give_others_turn(name, heard)
	if heard > 0 and now_us() % OTHERS_TURNS_OF > 0 and do_others_listen(name) then
		redis.pcall('SET', name.turn, OTHERS, 'PX', OTHERS_TURN_MS)
	end
end
