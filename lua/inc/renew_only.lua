-- The beginning of the common renewal, which comes before all that the others need: to define that takes longer than to do
-- this, and so do functions here. A hold of one name, whose lock would expire earlier without it. What is another case
-- is left to the long way, which may do again what was done here: both only extend. The end is in renew_only_record.lua.
-- What comes between them says by is_common whether it did what belongs to the kind of the lock.
-- Before it stands KEY_COUNT, how many keys a name has.
-- include: kept_suffix

local call, lock, holds = redis.pcall, KEYS[1], KEYS[2]

-- The record, as hold_record.lua parses it: what comes before its end, its owner, and where what comes after begins. Redis tells
-- scripts its version since 7.0, as it has GT, too.
local record = #KEYS == KEY_COUNT and redis.REDIS_VERSION_NUM and call('HGET', holds, hold_id)
local before, field, after_at, end_ms
if type(record) == 'string' then
	before, field, after_at = string.match(record, '^((%S+) %d+ )%d+() ')
end
local is_common = field and not string.find(field, KEPT, 1, true)
if is_common then
	local now = redis.call('TIME')
	-- As text, see acquire_absent.lua.
	end_ms = (now[1] .. string.sub('00000' .. now[2], -6, -4)) + lease_ms .. ''
end
