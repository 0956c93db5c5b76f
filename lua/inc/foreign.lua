-- Waiters of Redisson's in the queue of a fair lock that are dead.

-- include: queue

-- A waiter of Redisson's gives no sign of life, and its deadline may be minutes away. At the head of the queue for a free
-- lock it is dead when no client has listened to its channel for FOREIGN_MS: of ours, one looks every RETRY_AFTER_MS while
-- it waits. What a look finds is kept for the next one, in a string beside the signs of life, "SINCE_MS RUN" and a line
-- "OWNER DEADLINE" for each such waiter: one that has joined the queue anew has another deadline.
local FOREIGN_MS, LOOK_MS, FOREIGN_MAX = 6000, 3000, 100
local function is_silent_foreign(name, owner) return not sign_of_life(name, owner) and count_hearers(name, owner) == 0 end
local function foreign_line(name, owner) return owner .. ' ' .. (redis.call('ZSCORE', name.deadlines, owner) or '-') end

-- wire: Redisson may listen at a replica (subscriptionMode SLAVE), and in a cluster at another node.
local function may_listen_elsewhere()
	local info = redis.pcall('INFO', 'replication')
	return is_in_cluster or type(info) ~= 'string' or not string.find(info, 'connected_slaves:0', 1, true)
end

-- To be run by a waiter, after prune.
local function remove_silent_foreign(name, caller)
	local first = head_of(name)
	if not first or first == caller or name.has_dead or sign_of_life(name, first) then return end
	local key, owners, lines = foreign_key(name), waiters_in_front(name, caller, FOREIGN_MAX, is_silent_foreign), {}
	for i, owner in ipairs(owners) do lines[i] = foreign_line(name, owner) end
	if #lines == 0 or redis.call('EXISTS', name.lock) == 1 or redis.call('EXISTS', name.waiters) == 0 or may_listen_elsewhere() then
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
	if now_ms() - since_ms < FOREIGN_MS then
		redis.pcall('SET', key, since_ms .. ' ' .. server_run() .. '\n' .. table.concat(lines, '\n', 1, count), 'PX', LOOK_MS)
		return
	end
	redis.pcall('DEL', key)
	remove_waiters(name, { unpack(owners, 1, count) })
	prune(name, caller)
end
