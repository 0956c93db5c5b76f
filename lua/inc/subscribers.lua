-- The subscribers of a channel. A waiter whose channel has no subscriber is dead, or has lost its connection.

-- include: error
-- include: clock
-- include: channels

-- A script removes at most this many dead waiters: it must not block the server for its other clients.
local DEAD_MAX = 1000

-- Each waiter subscribes to a channel of its own. id: the hold id of the waiter; in the queue of a fair lock its owner.
-- wire: in the queue of a fair lock, Redisson's waiters do the same.
local function waiter_channel(name, id) return name.channel .. ':' .. id end

-- The number of subscribers of a channel; nil if the user may not run PUBSUB. Do not use the reply of PUBLISH instead: it also
-- counts clients that subscribe to a pattern, such as a monitor of all channels.
local function count_subscribers(channel)
	local reply = redis.pcall('PUBSUB', 'NUMSUB', channel)
	if is_error(reply) then return nil end
	-- wire: in a cluster new Redissons use SSUBSCRIBE only.
	local in_slot = is_in_cluster and redis.pcall('PUBSUB', 'SHARDNUMSUB', channel)
	return reply[2] + (in_slot and not is_error(in_slot) and in_slot[2] or 0)
end

local function count_waiter_subscribers(name, id) return count_subscribers(waiter_channel(name, id)) end

-- The last part of the name of one more channel of each lock. A client of ours that subscribes to the channel of the lock also
-- subscribes to this one. So scripts can tell how many of the subscribers are not ours.
local ALL_OURS = 'rlock'

-- The number of Redisson's subscribers of the lock's channel; nil if the user may not run PUBSUB.
local function count_redisson(name)
	local all = count_subscribers(name.channel)
	return all and math.max(all - (count_waiter_subscribers(name, ALL_OURS) or 0), 0)
end

-- The first waiter in the wake queue, and since when it waits; nil if there is none. after_us: skip waiters that came at this
-- time or before.
local function next_waiter(name, after_us)
	local least = after_us and '(' .. digits(after_us) or '-inf'
	local first = redis.pcall('ZRANGE', name.wake_queue, least, '+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')
	return first[1], tonumber(first[2])
end
