-- The common acquisition in pieces that have no function, before all that the others need: to define a function takes longer
-- than some commands. One name, of which nothing is there but a fence counter, and no right that has to be tried. What is
-- denied is told by the long way.
-- This is the first piece, what is written in a hold. Before it stand is_common, whether it is such a case, and token, the
-- text of a token that was issued for it, or nil. After it the script writes what belongs to the kind of the lock, and then
-- includes acquire_absent_hold.lua.
-- include: request

local since_ms, end_ms
if is_common then
	local now = redis.call('TIME')
	-- Text: Redis takes longer to make it of a number than to look up a key. '..' writes 14 digits, enough until the year 5138.
	since_ms = now[1] .. string.sub('00000' .. now[2], -6, -4)
	end_ms = since_ms + lease_ms .. ''
end
