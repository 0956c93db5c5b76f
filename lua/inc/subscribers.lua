-- Clients that subscribe to a channel, and the head of the wake queue.

-- include: error
-- include: clock
-- include: channels

local DEAD_MAX = 1000     -- are removed at once: a script must not keep the server from its other clients

-- Each waiter in it listens to a channel of its own. wire: and each in the queue of a fair lock, whose id is its owner.
local function waiter_channel(name, id) return name.channel .. ':' .. id end

-- How many clients listen to a channel; nil when the user may not ask. What PUBLISH returns would count those that listen to a
-- pattern, too, such as a monitor of all channels.
local function count_subscribers(channel)
	local reply = redis.pcall('PUBSUB', 'NUMSUB', channel)
	if is_error(reply) then return nil end
	-- wire: in a cluster new Redissons listen in the slot alone.
	local in_slot = is_in_cluster and redis.pcall('PUBSUB', 'SHARDNUMSUB', channel)
	return reply[2] + (in_slot and not is_error(in_slot) and in_slot[2] or 0)
end

-- The same of a waiter's own.
local function count_waiter_subscribers(name, id) return count_subscribers(waiter_channel(name, id)) end

-- In the place of an id: the channel to which each of ours listens that also listens to the channel of the lock.
local ALL_OURS = 'rlock'

-- How many others than ours listen to the channel of the lock; nil when the user may not ask.
local function count_redisson(name)
	local all = count_subscribers(name.channel)
	return all and math.max(all - (count_waiter_subscribers(name, ALL_OURS) or 0), 0)
end

-- The first waiter in it, of those that came after a time where one is given, and since when it waits; nil when there is
-- none.
local function next_waiter(name, after_us)
	local least = after_us and '(' .. digits(after_us) or '-inf'
	local first = redis.pcall('ZRANGE', name.wake_queue, least, '+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')
	return first[1], tonumber(first[2])
end
