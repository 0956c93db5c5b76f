-- The common acquisition: one name, of which no key exists but maybe the fencing counter, and no right that has to be tried.
-- It stands before all that other cases need, and defines no function: to define one takes longer than some commands. All
-- other cases, and commands that were denied, are for the code after it, "the long way".
-- This is the first of its pieces: the times of the hold. It reads of the script is_common, whether it is such a case, and
-- token, the text of a token that was issued, or nil. After it the script writes the field of the lock, and what else only this
-- kind has, and then includes quick/acquire_absent_hold.lua.

local since_ms, end_ms
if is_common then
	local now = redis.call('TIME')
	-- As text: for Redis to make text of a number takes longer than to look up a key. '..' writes 14 digits, enough until
	-- the year 5138.
	since_ms = now[1] .. string.sub('00000' .. now[2], -6, -4)
	end_ms = since_ms + lease_ms .. ''
end
