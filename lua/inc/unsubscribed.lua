-- Dead waiters of Redisson's at the head of the queue of a fair lock.

-- include: queue

-- A waiter of Redisson's sends no heartbeat, and its deadline may be minutes away. At the head of the queue of a free lock it is
-- dead if its channel has had no subscriber for UNSUBSCRIBED_MS. Each attempt of a waiter of ours checks that, and stores the
-- result for the next check. The result is a string: "SINCE_MS RUN", and a line "OWNER DEADLINE" for each such waiter. A waiter
-- that has left and joined again has another deadline, so its old line does not match, and its time is counted anew. The string
-- expires after RECHECK_MS.
local UNSUBSCRIBED_MS, RECHECK_MS, UNSUBSCRIBED_MAX = 6000, 3000, 100
local function is_unsubscribed_redisson(name, owner) return not heartbeat_of(name, owner) and count_waiter_subscribers(name, owner) == 0 end
local function unsubscribed_line(name, owner) return owner .. ' ' .. (redis.call('ZSCORE', name.deadlines, owner) or '-') end

-- Whether Redisson may be subscribed where this script cannot see it.
-- wire: at a replica (subscriptionMode SLAVE), and in a cluster at another node.
local function may_subscribe_elsewhere()
	local info = redis.pcall('INFO', 'replication')
	return is_in_cluster or type(info) ~= 'string' or not string.find(info, 'connected_slaves:0', 1, true)
end

-- Remove the waiters of Redisson's at the head of the queue whose channels have had no subscriber for UNSUBSCRIBED_MS. Call prune
-- first. caller: the owner whose attempt this is.
local function remove_unsubscribed_redisson(name, caller)
	local first = head_of(name)
	if not first or first == caller or name.has_dead or heartbeat_of(name, first) then return end
	local key, owners, lines = unsubscribed_key(name), waiters_before(name, caller, UNSUBSCRIBED_MAX, is_unsubscribed_redisson), {}
	for i, owner in ipairs(owners) do lines[i] = unsubscribed_line(name, owner) end
	if #lines == 0 or redis.call('EXISTS', name.lock) == 1 or redis.call('EXISTS', name.waiters) == 0 or may_subscribe_elsewhere() then
		redis.pcall('DEL', key)
		return
	end
	local seen = redis.pcall('GET', key)
	local since_ms, run, known = string.match(type(seen) == 'string' and seen or '', '^(%d+) (%w+)\n(.*)$')
	local count = 0
	for line in string.gmatch(run == server_run() and known or '', '[^\n]+') do
		if line ~= lines[count + 1] then break end
		count = count + 1
	end
	if count == 0 then
		since_ms, count = digits(now_ms()), #lines
	end
	if now_ms() - since_ms < UNSUBSCRIBED_MS then
		redis.pcall('SET', key, since_ms .. ' ' .. server_run() .. '\n' .. table.concat(lines, '\n', 1, count), 'PX', RECHECK_MS)
		return
	end
	redis.pcall('DEL', key)
	remove_waiters(name, { unpack(owners, 1, count) })
	prune(name, caller)
end
