-- The queue for a fair lock. wire: Redisson's list of owners, and their deadlines (RedissonFairLock). Redisson's
-- deadlines can't tell a live waiter from a dead one, so each waiter of ours has a sign of life beside them: a hash
-- of OWNER to "ALIVE_UNTIL_MS SINCE_US RUN LISTENS_SINCE_MS NOTE", and under SEEN "LAST_MS GRACE_END_MS RUN
-- RETURN_END_MS": when a script last read the queue, and until when no waiter is taken for dead. RUN is the run id of
-- the server that wrote it. LISTENS_SINCE_MS is 0 where that server had no subscriber of the waiter's channel.
local LIFE_MS = 4000         -- a waiter without a sign of life for so long is dead
local GAP_MS = 3000          -- no waiter gave one for so long: the server had stalled, ...
local GRACE_MS = 2000        -- ... and all waiters get so long to give one again
local RETURN_MS = 10000      -- another server took over, or it was restarted: waiters have so long to come back
local SEEN = 'seen'          -- no owner: rlock_owner_check denies it
local UNKNOWN = '-'          -- the user may not ask for the run id

-- The sign of life of a waiter of ours; nil for one of Java's.
local function sign_of_life(name, owner)
	local sign = redis.call('HGET', name.waiters, owner)
	if not sign then return nil end
	local alive_until_ms, since_us, run, listens_since_ms, waiter_note =
		string.match(sign, '^(%d+) (%d+) (%S+) (%d+) (.*)$')
	return { alive_until_ms = tonumber(alive_until_ms), since_us = tonumber(since_us), run = run,
		listens_since_ms = tonumber(listens_since_ms), note = waiter_note }
end

local known_run

-- Which run of which server this is; asked once.
local function server_run()
	local info = not known_run and redis.pcall('INFO', 'server')
	known_run = known_run or type(info) == 'string' and string.match(info, 'run_id:(%w+)') or UNKNOWN
	return known_run
end

-- Sets once until when no waiter is taken for dead: name.grace_until_ms after the server had stalled, name.return_until_ms after
-- another run of it began, to which all waiters have to come back first.
local function recall(name)
	if name.run then return end
	local seen_ms, grace_ms, run, return_ms =
		string.match(redis.call('HGET', name.waiters, SEEN) or '', '^(%d+) (%d+) (%S+) (%d+)$')
	local is_gap = now_ms() - (tonumber(seen_ms) or 0) > GAP_MS
	if not name.grace_until_ms then
		name.grace_until_ms = is_gap and now_ms() + GRACE_MS or tonumber(grace_ms)
	end
	name.run = server_run()
	if name.run == UNKNOWN then name.run = run or UNKNOWN end
	name.return_until_ms = tonumber(return_ms) or 0
	if run and run ~= UNKNOWN and run ~= name.run then
		name.return_until_ms = now_ms() + RETURN_MS
	end
end

local function is_heard(name, owner) return (count_hearers(name, owner) or 0) > 0 end

-- When this waiter is to be taken for dead, unless it is Java's and listens; and whether it is ours. Java's without a
-- deadline would never leave.
local function death_ms(name, owner)
	local sign = sign_of_life(name, owner)
	if not sign then return tonumber(redis.call('ZSCORE', name.deadlines, owner) or 0), false end
	recall(name)
	-- Maybe it was written by another server's clock.
	local is_of_another = sign.run ~= name.run and sign.run ~= UNKNOWN and name.run ~= UNKNOWN
	return math.max(is_of_another and 0 or sign.alive_until_ms, name.grace_until_ms, name.return_until_ms), true
end

-- wire: deadlines follow the clocks of their clients, so a waiter that listens is alive, whatever its deadline is.
local function is_dead(name, owner)
	local end_ms, is_ours = death_ms(name, owner)
	return end_ms <= now_ms() and (is_ours or not is_heard(name, owner))
end

-- The first waiter in the queue for a fair lock; false when there is none.
local function head_of(name) return redis.call('LINDEX', name.queue, 0) end

-- A waiter of ours that listened here, on this run of the server, and does not any more: the kernel closed its
-- connection when its process ended.
local function is_silent(name, owner)
	local sign = sign_of_life(name, owner)
	if not sign or sign.listens_since_ms == 0 or sign.run ~= server_run() then return false end
	recall(name)
	return now_ms() >= name.return_until_ms and count_hearers(name, owner) == 0
end

-- A waiter that listens, and one of ours has done so for a while: after a network failure it may be back a moment
-- before those in front of it.
local function is_heard_all_along(name, owner)
	local sign = sign_of_life(name, owner)
	local is_new = sign and (sign.listens_since_ms == 0 or now_ms() - sign.listens_since_ms < LIFE_MS)
	return not is_new and is_heard(name, owner)
end

-- What is known of Redisson's waiters to which no client listens, see remove_silent_foreign. While one of ours waits.
local function foreign_key(name) return name.waiters .. ':foreign' end

local NEVER_MS = 100 * 365 * 86400000

-- A count of 1 stops at the first waiter that is found, and most that are removed stand at the head.
local function remove_waiter(name, owner)
	redis.call('LREM', name.queue, 1, owner)
	redis.call('ZREM', name.deadlines, owner)
	redis.call('HDEL', name.waiters, owner)
end

-- Deletes what no waiter needs any more, since some were removed.
local function tidy_queue(name)
	if not head_of(name) then
		redis.call('DEL', name.deadlines, name.waiters)
	elseif redis.call('HLEN', name.waiters) == 1 then
		redis.call('HDEL', name.waiters, SEEN)
		-- wire: only Redisson's waiters are left, whose keys have no TTL. Users have no right to PERSIST.
		for _, key in ipairs({ name.queue, name.deadlines }) do redis.pcall('PEXPIRE', key, digits(NEVER_MS)) end
	else
		return
	end
	redis.pcall('DEL', foreign_key(name))
end

local function dequeue(name, owner)
	remove_waiter(name, owner)
	tidy_queue(name)
end

-- The error when no waiter can leave this queue, or be removed from it; else nil.
local function leave_error(name)
	local denied, type_error = right_error(name, QUEUE_RIGHTS .. 'DEL0 ')
	return denied and key_error(denied) or denied or type_error
end

-- The waiters in front of the caller, an owner, of which that is true, from the head of the queue on, so many at most; and the one
-- behind them.
local function waiters_in_front(name, caller, most, is_so)
	local owners, owner = {}, head_of(name)
	while #owners < most and owner and owner ~= caller and is_so(name, owner) do
		owners[#owners + 1] = owner
		owner = redis.call('LINDEX', name.queue, #owners)
	end
	return owners, owner
end

local function remove_waiters(name, owners)
	for _, owner in ipairs(owners) do remove_waiter(name, owner) end
	if owners[1] then tidy_queue(name) end
end

-- Removes dead waiters from the head of the queue. Sets name.has_dead: there may be more of them than one script removes.
local function prune(name, caller)
	local dead = waiters_in_front(name, caller, DEAD_MAX, is_dead)
	remove_waiters(name, dead)
	name.has_dead = #dead == DEAD_MAX
end

-- No waiter in the queue listens: a network failure may have cut them all off, so they keep their positions for now. A
-- Java client that joins the queue sleeps until the last deadline in it; a waiter that comes back raises its own again.
-- By pcall: a deadline passes in any case, and is no reason to keep the lock.
local function lower_deadlines(name, silent)
	local deadline_ms = now_ms() + RETURN_MS
	for _, owner in ipairs(silent) do
		if tonumber(redis.call('ZSCORE', name.deadlines, owner) or 0) > deadline_ms then
			redis.pcall('ZADD', name.deadlines, digits(deadline_ms), owner)
		end
	end
end

-- Removes silent waiters from the head of the queue, when the one behind them, or the caller, has listened all along.
local function remove_silent(name, caller)
	local silent, owner = waiters_in_front(name, caller, DEAD_MAX, is_silent)
	if #silent > 0 and not owner then
		lower_deadlines(name, silent)
	elseif #silent > 0 and is_heard_all_along(name, owner) then
		remove_waiters(name, silent)
	end
end

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

-- To be run after prune. While dead waiters are left, the one that came last is woken, which goes on removing them.
local function wake_head(name, caller)
	if not name.has_dead then remove_silent(name, caller) end
	local owner = redis.call('LINDEX', name.queue, name.has_dead and -1 or 0)
	if owner and owner ~= caller then publish(waiter_channel(name, owner), WAKE_ONE) end
end

-- What follows is to join the queue. fair_leave.lua has nothing of it, and is short: it is sent without waiting for the reply,
-- and a server that had stalled reads only the first 16 kB of a closed connection.
local SKEW_MS = 20              -- by what the clocks of several servers may differ
local QUEUE_MS = 86400000       -- Redisson's keys last so long at least after one of ours wrote to them
local RETRY_AFTER_MS = 2000     -- so often each waiter gives a sign of life
local NEAR_POSITIONS = 3        -- so many waiters behind the head try again when it dies, ...
local STAGGER_MS = 10           -- ... one so long after the other
local REDISSON_WAIT_MS = 300000 -- what each Java acquisition takes off all deadlines
local SEARCHED_MAX = 100        -- so many positions are searched for a waiter at each of its tries
local FEW_POSITIONS = 16        -- a search by halves ends at so many

local function seen_now(name)
	recall(name)
	return table.concat({ digits(now_ms()), digits(name.grace_until_ms), name.run, digits(name.return_until_ms) }, ' ')
end

-- Whether a waiter was in the queue before the server had stalled, or was restarted without its data: then it lets
-- those come back that were in front of it.
local function is_early(name, since_us)
	recall(name)
	return since_us ~= nil and now_ms() < name.grace_until_ms
		and since_us / 1000 < name.grace_until_ms - GRACE_MS - SKEW_MS
end

-- Between which positions a waiter that came then belongs. Of a long queue this is found by halves: ours are in the order of
-- their times. One of Java's ends the search.
local function search_by_time(name, since_us)
	local low, high = 0, redis.call('HLEN', name.waiters)
	while high - low > FEW_POSITIONS do
		local middle = math.floor((low + high) / 2)
		local other = redis.call('LINDEX', name.queue, middle)
		local sign = other and sign_of_life(name, other)
		if other and not sign then
			return low, middle
		elseif sign and sign.since_us <= since_us then
			low = middle + 1
		else
			high = middle
		end
	end
	return low, high
end

-- Whether a waiter that is in the queue has listened here since before that: the queue was not lost, and no waiter in front.
local function has_kept_place(name, owner)
	recall(name)
	local sign = sign_of_life(name, owner)
	return sign and sign.run == name.run and sign.listens_since_ms > 0
		and sign.listens_since_ms < name.grace_until_ms - GRACE_MS
end

-- Joins the queue in front of those that came later, so a waiter that was taken for dead, by us or by a Java client
-- whose clock is wrong, has its position again. Of Java's waiters it is not known when they came: it stays behind
-- those that were in front of it just now, and goes in front of the others. Returns the position, from 0 on.
local function enqueue(name, owner, since_us, in_front)
	local low, high = search_by_time(name, since_us)
	for i, other in ipairs(redis.call('LRANGE', name.queue, low, in_front > high and -1 or high)) do
		local sign = sign_of_life(name, other)
		local came_later = low + i > in_front
		if sign then came_later = sign.since_us > since_us end
		if came_later then
			redis.call('LINSERT', name.queue, 'BEFORE', other, owner)
			return low + i - 1
		end
	end
	return write_for(QUEUE_MS, 'RPUSH', name.queue, owner) - 1
end

-- The position of a waiter, from 0 on; nil: it is not in the queue. A search takes as long as the waiter is far back: one
-- that is known to be behind the first SEARCHED_MAX is searched for the less often the more wait. At other times its
-- position is that number, the least that it can be, and true is returned, too.
local function position_of(name, owner, is_known)
	local position = redis.call('LPOS', name.queue, owner, 'MAXLEN', SEARCHED_MAX)
	if position then return position, false end
	local searches = math.ceil(redis.call('HLEN', name.waiters) / SEARCHED_MAX)
	if is_known and now_us() % searches > 0 then return SEARCHED_MAX, true end
	return redis.call('LPOS', name.queue, owner), false
end

-- Sets the deadline so far ahead that Java clients don't reach it while those in front have their turns.
local function keep_deadline_ahead(name, owner, position, deadline_ms)
	local lock_ms = math.max(redis.call('PTTL', name.lock), 0)
	local least_ms = now_ms() + lock_ms + (position + 1) * REDISSON_WAIT_MS
	if deadline_ms < least_ms then
		deadline_ms = least_ms + REDISSON_WAIT_MS
		write_for(QUEUE_MS, 'ZADD', name.deadlines, digits(deadline_ms), owner)
	end
	-- The sign of life must last for as long as the waiter is in the queue: without it a dead waiter is taken for
	-- one of Java's, and stays until its deadline.
	local sign_ms = deadline_ms - now_ms() + LIFE_MS
	extend(name.waiters, sign_ms)
	-- Redisson gives these no TTL, and those of killed waiters would stay for ever.
	local ttl_ms = digits(math.max(sign_ms, QUEUE_MS))
	for _, key in ipairs({ name.queue, name.deadlines }) do
		if extend(key, ttl_ms) > NEVER_MS / 2 then redis.call('PEXPIRE', key, ttl_ms) end
	end
end

-- Since when the waiter has listened to its channel on this run of the server; 0: it does not, or the user may not ask
-- which run it is.
local function listens_since(name, owner, sign, listens)
	if listens ~= '1' or server_run() == UNKNOWN or not is_heard(name, owner) then return 0 end
	local is_known = sign and sign.run == server_run() and sign.listens_since_ms > 0
	return is_known and sign.listens_since_ms or now_ms()
end

-- When the waiter has to try again at the latest, in ms from now.
local function retry_after(name, position, since_us)
	if position == 0 then
		local lock_ms = redis.call('PTTL', name.lock)
		return math.min(RETRY_AFTER_MS, lock_ms >= 0 and lock_ms + 1 or RETRY_AFTER_MS,
			is_early(name, since_us) and name.grace_until_ms - now_ms() + 1 or RETRY_AFTER_MS)
	elseif position <= NEAR_POSITIONS then
		-- A dead head must not stop the queue.
		local left_ms = death_ms(name, head_of(name)) - now_ms()
		if left_ms > 0 then return math.min(RETRY_AFTER_MS, left_ms + position * STAGGER_MS) end
	end
	return RETRY_AFTER_MS
end

-- Joins the queue, or gives a sign of life of a waiter that is in it. Returns since when it waits, and when it has to
-- try again at the latest. listens: '1' when the waiter listens to its own channel. Sets name.position, from 1 on; -1: it
-- was not looked for.
local function join_queue(name, owner, waiter_note, since_us, listens)
	-- A user may have overwritten one of these keys: then nothing is written to the others.
	local deadline_ms = tonumber(redis.call('ZSCORE', name.deadlines, owner) or 0)
	local sign = sign_of_life(name, owner)
	local known_since_us = sign and sign.since_us
	local is_moved = since_us and known_since_us ~= since_us
	local position, is_far = position_of(name, owner, sign and not is_moved and deadline_ms > 0)
	local in_front = position or 0
	if position and is_moved then
		-- The lock is on several servers, and all their queues have the order of one server's clock.
		redis.call('LREM', name.queue, 1, owner)
		position = nil
	end
	if not position and since_us then
		position = enqueue(name, owner, since_us, in_front)
	elseif not position then
		position = write_for(QUEUE_MS, 'RPUSH', name.queue, owner) - 1
	end
	name.position = is_far and -1 or position + 1
	-- The caller sends no time with its first try, nor when it lost the reply to that.
	since_us = since_us or known_since_us or now_us()
	write_for(LIFE_MS, 'HSET', name.waiters, SEEN, seen_now(name), owner, table.concat({ digits(now_ms() + LIFE_MS),
		digits(since_us), name.run, digits(listens_since(name, owner, sign, listens)), waiter_note }, ' '))
	keep_deadline_ahead(name, owner, position, deadline_ms)
	return since_us, retry_after(name, position, since_us)
end
