-- To break the holds of a semaphore.
-- include: hold_record
-- include: permit_java
-- include: permits_remembered
-- include: permits_notify

-- All permits that are held: for each {its id, its hold, its owner, the note}.
local function held_permits(name)
	local held = {}
	for i, id in ipairs(redis.call('ZRANGE', name.permits, 0, -1)) do
		local hold_id = hold_of(id)
		local owner, _, _, _, note = hold_record_parse(hold_id and redis.call('HGET', name.holds, hold_id) or '')
		held[i] = { id = id, hold_id = hold_id, owner = owner or printable_id(id), note = note or '' }
	end
	return held
end

-- Breaks the permits of the owner `expected`. When that is empty it breaks all, also those that have no holder, which
-- RSemaphore acquired. Returns the reply of break.lua.
local function break_permits(name, expected)
	local held, holder, owners, count = held_permits(name), nil, {}, 0
	local counter = redis.call('GET', name.lock)
	local total = math.max(remembered_total(name) or 0, (counter or 0) + #held)
	-- A counter that was deleted is made anew, as by an acquisition.
	local free = tonumber(counter or total - #held)
	for _, permit in ipairs(held) do
		holder = holder and owners[holder.owner] and holder or permit
		if expected == '' or permit.owner == expected then
			holder = permit
			count = count + (owners[permit.owner] and 0 or 1)
			owners[permit.owner] = true
		end
	end
	if total == free then
		return { 0 }
	elseif #held > 0 and count == 0 then
		return { 3, holder.owner, #held, holder.note }
	elseif #held == 0 and expected ~= '' then
		return { 0 }
	end
	local broken = 0
	for _, permit in ipairs(held) do
		if owners[permit.owner] then
			redis.call('ZREM', name.ends, permit.id)
			redis.call('HDEL', name.holds, permit.hold_id or '')
			broken = broken + redis.call('ZREM', name.permits, permit.id)
		end
	end
	if expected == '' then
		broken = total - free
		-- What is left of holds that were lost.
		redis.call('DEL', name.ends, name.holds)
	end
	if not counter then
		redis.call('SET', name.lock, digits(free))
	end
	notify_of_permits(name, redis.call('INCRBY', name.lock, broken), broken)
	holder = holder or { owner = 'a client without a record', note = '' }
	if publish_error then
		return { 2, holder.owner, math.max(count, 1), holder.note, publish_error }
	end
	return { 1, holder.owner, math.max(count, 1), holder.note }
end
