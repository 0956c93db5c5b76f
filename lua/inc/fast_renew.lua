-- The quick way to renew, as quick/acquire.lua is that to acquire: a hold of one name, whose lock would expire earlier without
-- it. Other cases go the long way, which may repeat what was done here: both only extend. It reads KEY_COUNT of the script, how
-- many keys a name has.
local call, lock, holds = redis.pcall, KEYS[1], KEYS[2]
-- The record, as hold_record_parse reads it: before, the text in front of its end; field, its owner; after_at, the position
-- behind its end. A server that tells scripts its version, from 7.0 on, also has GT.
local record = #KEYS == KEY_COUNT and redis.REDIS_VERSION_NUM and call('HGET', holds, hold_id)
local before, field, after_at, end_ms
if type(record) == 'string' then
	before, field, after_at = string.match(record, '^((%S+) %d+ )%d+() ')
end
local is_fast = field and not string.find(field, KEPT, 1, true) and not call('HGET', holds, hold_id .. STOP)
if is_fast then
	local now = redis.call('TIME')
	-- As text, see quick/acquire.lua.
	end_ms = (now[1] .. string.sub('00000' .. now[2], -6, -4)) + lease_ms .. ''
end
