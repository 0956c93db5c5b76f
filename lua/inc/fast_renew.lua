-- The fast path of a renewal, for a hold of one name whose lock would expire before the new lease ends. As in fast_acquire.lua,
-- no function is defined. In all other cases the slow path runs. It may repeat what the fast path has done, which does no harm:
-- both only extend. The script sets KEY_COUNT, the number of keys of a name.
local call, lock, holds = redis.pcall, KEYS[1], KEYS[2]
-- The fast path needs PEXPIRE GT, which exists since Redis 7.0. Older servers have no redis.REDIS_VERSION_NUM either.
local record = #KEYS == KEY_COUNT and redis.REDIS_VERSION_NUM and call('HGET', holds, hold_id)
-- Parts of the record, as hold_record_parse reads it: the text before END_MS, the owner, and the position after END_MS.
local before, field, after_at, end_ms
if type(record) == 'string' then
	before, field, after_at = string.match(record, '^((%S+) %d+ )%d+() ')
end
local is_fast = field and not string.find(field, KEPT, 1, true) and not call('HGET', holds, hold_id .. STOP)
if is_fast then
	local now = redis.call('TIME')
	-- Keep the time as text: Redis would have to convert a number, which takes longer (see fast_acquire.lua).
	end_ms = (now[1] .. string.sub('00000' .. now[2], -6, -4)) + lease_ms .. ''
end
