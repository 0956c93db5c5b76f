-- Take the plain lock of every name, or of none.
-- KEYS     for each name: lock hash, holds hash, fence counter
-- ARGV[1]  lease in ms
-- ARGV[2]  owner to take it for, where none of the inherited ones holds it already
-- ARGV[3]  hold id: a request that comes a second time counts once
-- ARGV[4]  note, shown to those who wait
-- ARGV[5]  1 to draw a fencing token; a name that has a counter draws one all the same
-- ARGV[6+] inherited owners: one that holds the lock at this moment re-enters it, and none takes it
-- Returns  {1, owner, hold count, token, ...}  acquired; three values a name, token 0 when none
--          {0, index, ttl in ms, holder, note}  busy: who holds that name; ttl -1 when it has none
--          {-1, index, type}  the key is something else; nothing was changed
local KEYS_PER_NAME = 3
local lease_ms, fresh_owner, hold_id, note = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local draw_token = ARGV[5] == '1'
local names = {}
for i = 1, #KEYS, KEYS_PER_NAME do
	names[#names + 1] = { lock = KEYS[i], holds = KEYS[i + 1], counter = KEYS[i + 2] }
end
local candidates = { fresh_owner }
for i = 6, #ARGV do
	candidates[#candidates + 1] = ARGV[i]
end

-- include: refused
-- include: entry
-- include: extend

local function holding_owner(lock)
	for _, owner in ipairs(candidates) do
		if redis.call('HEXISTS', lock, owner) == 1 then
			return owner
		end
	end
	return nil
end

local function note_of(holds, owner)
	for _, entry in ipairs(redis.call('HVALS', holds)) do
		local entry_owner, _, _, _, entry_note = entry_parse(entry)
		if entry_owner == owner then
			return entry_note
		end
	end
	return ''
end

-- What stands in the way of this name, as the reply to give; nil when nothing does.
local function obstacle(index, name)
	local fields = redis.pcall('HLEN', name.lock)
	if is_other_type(fields) then
		return { -1, index, redis.call('TYPE', name.lock).ok }
	elseif is_error(fields) then
		return refused('HLEN', fields)
	end
	name.is_free = fields == 0
	if name.is_free then
		name.owner = fresh_owner
		return nil
	end
	-- wire: Redisson's read/write locks keep their mode in this field
	if redis.call('HEXISTS', name.lock, 'mode') == 1 then
		return { -1, index, 'read/write lock' }
	end
	name.owner = holding_owner(name.lock)
	if name.owner then
		return nil
	end
	local holder = redis.call('HKEYS', name.lock)[1]
	return { 0, index, redis.call('PTTL', name.lock), holder, note_of(name.holds, holder) }
end

local function entry_of(name, since_ms, token)
	return entry_make(name.owner, since_ms, lease_ms, token, note)
end

-- What follows on the first write of a free lock, and all that its renewal and release will need: a user
-- who lacks one of these rights must not leave a lock behind that never ends, or that he can't release.
-- nil, or the error when one was refused.
local function secure(name, entry)
	local steps = {
		-- What an expired or broken hold left behind. Not before the lock's own write: a
		-- script that has deleted something may go on when the server is full.
		{ 'DEL', name.holds },
		{ 'HSET', name.holds, hold_id, entry },
		{ 'PEXPIRE', name.lock, lease_ms },
		{ 'PEXPIRE', name.holds, lease_ms },
		{ 'PTTL', name.lock },
		{ 'HEXISTS', name.lock, name.owner },
		{ 'HKEYS', name.lock },
		{ 'HGET', name.holds, hold_id },
		{ 'HDEL', name.holds, '' },
	}
	for _, step in ipairs(steps) do
		local reply = redis.pcall(unpack(step))
		if is_error(reply) then
			return refused(step[1], reply)
		end
	end
	return nil
end

-- The first hold of a free lock: {hold count, token}, or an error with nothing taken.
local function take_free(name, since_ms)
	local token = '-'
	if draw_token or redis.call('EXISTS', name.counter) == 1 then
		-- wire: RFencedLock draws at every acquisition, re-entries too
		token = redis.call('INCR', name.counter)
	end
	-- wire: same field and count as Redisson's
	redis.call('HINCRBY', name.lock, name.owner, 1)
	local refusal = secure(name, entry_of(name, since_ms, token))
	if refusal then
		redis.pcall('HDEL', name.lock, name.owner)
		redis.pcall('DEL', name.lock)
		redis.pcall('DEL', name.holds)
		return refusal
	end
	return { 1, tonumber(token) or 0 }
end

-- One more hold of an owner that has the lock; or the same request again, which counts nothing.
local function reenter(name, since_ms)
	local entry = redis.call('HGET', name.holds, hold_id)
	local token = '-'
	if entry then
		local _, _, _, drawn = entry_parse(entry)
		token = drawn
	else
		if draw_token or redis.call('EXISTS', name.counter) == 1 then
			token = redis.call('INCR', name.counter)
		end
		redis.call('HINCRBY', name.lock, name.owner, 1)
		redis.call('HSET', name.holds, hold_id, entry_of(name, since_ms, token))
	end
	extend(name.lock, lease_ms)
	extend(name.holds, lease_ms)
	return { tonumber(redis.call('HGET', name.lock, name.owner)), tonumber(token) or 0 }
end

for index, name in ipairs(names) do
	local reply = obstacle(index, name)
	if reply then
		return reply
	end
end

local now = redis.call('TIME')
local since_ms = now[1] .. string.format('%03d', math.floor(now[2] / 1000))
local reply = { 1 }
for _, name in ipairs(names) do
	local taken = (name.is_free and take_free or reenter)(name, since_ms)
	if is_error(taken) then
		return taken
	end
	reply[#reply + 1] = name.owner
	reply[#reply + 1] = taken[1]
	reply[#reply + 1] = taken[2]
end
return reply
