-- Push the lease of a hold forward, for every name. Changes nothing for a name whose hold was
-- released or lingers, so a renewal that arrives late does no harm.
-- KEYS     for each name: lock hash, holds hash
-- ARGV[1]  lease in ms
-- ARGV[2]  hold id
-- Returns  {0, ttl in ms}  all renewed; the smallest time to live among them
--          {index}  that name is not held any more; the others were renewed
local KEYS_PER_NAME = 2
local lease_ms, hold_id = ARGV[1], ARGV[2]

-- include: entry
-- include: extend
-- include: lingering

local function renew(lock, holds)
	local entry = redis.call('HGET', holds, hold_id)
	local owner, since_ms, entry_lease_ms, token, note = entry_parse(entry or '')
	if not owner or lingering_end(owner) or redis.call('HEXISTS', lock, owner) == 0 then
		return nil
	end
	extend(lock, lease_ms)
	extend(holds, lease_ms)
	if tonumber(lease_ms) > tonumber(entry_lease_ms) then
		redis.call('HSET', holds, hold_id,
			entry_make(owner, since_ms, lease_ms, token, note))
	end
	return redis.call('PTTL', lock)
end

local lost_index, least_ttl_ms
for i = 1, #KEYS, KEYS_PER_NAME do
	local ttl_ms = renew(KEYS[i], KEYS[i + 1])
	if not ttl_ms then
		lost_index = lost_index or (i + KEYS_PER_NAME - 1) / KEYS_PER_NAME
	elseif not least_ttl_ms or ttl_ms < least_ttl_ms then
		least_ttl_ms = ttl_ms
	end
end
if lost_index then
	return { lost_index }
end
return { 0, least_ttl_ms }
