-- The quick way to acquire a lock: one name, of which no key exists but maybe the fencing counter, and no right that has to be
-- tried. It stands before all that other cases need, and defines no function: to define one takes longer than some commands.
-- All other cases, and commands that were denied, are for the code after it, "the long way".
-- It reads of the script FIXED_ARGS; KEY_COUNT, how many keys a name has; may_be_fast, whether this may be such a case; field,
-- the owner's in the lock hash; counter, turn, and of a reader ends and its timeout key own_key, each nil where there is none.
local call, lock, holds = redis.pcall, KEYS[1], KEYS[2]
local is_candidate = may_be_fast and not asks_for_more and #KEYS == KEY_COUNT
-- A waiter that was woken is not in the wake queue; one that was not has more to do: wake_earlier.
local is_queued = is_candidate and has_waited and call('ZRANGE', ARGV[FIXED_ARGS + 1], since_us, since_us, 'BYSCORE')[1] == hold_id
local there = is_candidate and not is_queued and call('EXISTS', turn or lock, unpack(KEYS))
local is_fast, token = there == 0, nil
if counter and (there == 1 or is_fast and want_token) then
	is_fast = is_fast or call('EXISTS', counter) == 1
	-- As text: a number in a script has 53 bits only.
	token = is_fast and type(call('INCR', counter)) == 'number' and call('GET', counter)
	is_fast = type(token) == 'string'
end
local since_ms, end_ms
if is_fast then
	local now = redis.call('TIME')
	-- As text: for Redis to make text of a number takes longer than to look up a key. '..' writes 14 digits, enough until
	-- the year 5138.
	since_ms = now[1] .. string.sub('00000' .. now[2], -6, -4)
	end_ms = since_ms + lease_ms .. ''
end
