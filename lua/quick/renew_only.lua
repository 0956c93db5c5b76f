-- The first piece of the common renewal: a hold of one name, whose lock would expire earlier without it. As in
-- quick/acquire_absent.lua it stands before all that other cases need, and defines no function. Other cases go the long way,
-- which may repeat what was done here: both only extend. After it the script does what only its kind needs, sets is_common
-- to whether that succeeded, and includes quick/renew_only_record.lua. It reads KEY_COUNT of the script, how many keys a name has.

local call, lock, holds = redis.pcall, KEYS[1], KEYS[2]

-- The record, as inc/hold.lua parses it: before, the text in front of its end; field, its owner; after_at, the position
-- behind its end. A server that tells scripts its version, from 7.0 on, also has GT.
local record = #KEYS == KEY_COUNT and redis.REDIS_VERSION_NUM and call('HGET', holds, hold_id)
local before, field, after_at, end_ms
if type(record) == 'string' then
	before, field, after_at = string.match(record, '^((%S+) %d+ )%d+() ')
end
local is_common = field and not string.find(field, KEPT, 1, true)
if is_common then
	local now = redis.call('TIME')
	-- As text, see quick/acquire_absent.lua.
	end_ms = (now[1] .. string.sub('00000' .. now[2], -6, -4)) + lease_ms .. ''
end
