-- How many permits a semaphore has.

-- include: clock
-- include: denied
-- include: counter
-- include: semaphore_keys
-- include: reclaim

local REMEMBERED_MS = 24 * 3600 * 1000

-- Set name.free, the number of free permits (nil: there is no counter), and name.held, the number of held permits. Return two
-- results: the type of a key that is no semaphore, else nil; and the error if the keys cannot be read, else nil.
local function check_permits(name)
	local free, held = redis.pcall('GET', name.lock), redis.pcall('ZCARD', name.permits)
	if is_wrong_type(free) then return redis.call('TYPE', name.lock).ok end
	if is_error(free) then return nil, command_error('GET', free) end
	if free and not is_permits_counter(free) then return NOT_A_COUNTER end
	if is_error(held) and not is_wrong_type(held) then return nil, command_error('ZCARD', held) end
	name.free, name.held = free and tonumber(free), held
	return overwritten_kind(name)
end

-- Reclaim ended permits, and set name.total. If there is no counter, create it, for `wanted` permits in all. name.more: how many
-- permits have become free.
-- wire: a permit of RSemaphore shows only in a lower counter, so the total is remembered in a key of ours.
local function count_permits(name, wanted)
	name.more = reclaim(name)
	name.held = name.held - name.more
	if not name.free then
		name.free = wanted - name.held
		name.more = name.free
		redis.call('SET', name.lock, digits(name.free))
	elseif name.more > 0 then
		name.free = redis.call('INCRBY', name.lock, name.more)
	end
	local seen, known = name.free + name.held, remembered_total(name)
	name.total = math.max(seen, known or seen)
	if name.total == wanted and known ~= wanted then
		redis.call('SET', name.remembered, digits(wanted), 'PX', REMEMBERED_MS)
	end
end
