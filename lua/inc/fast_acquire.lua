-- The fast path of an acquisition, for the common case: a request with one name, and no rights to try. Neither the turn nor any
-- key of the name may exist, except for the fencing counter. This code comes before everything that other cases need, and defines
-- no function: a definition takes longer than some commands. In all other cases, and when a command is denied, the code after
-- fast_acquired.lua runs: the slow path.
-- The script sets FIXED_ARGS, may_be_fast, KEY_COUNT (the number of keys of a name), and field (the owner's field in the lock
-- hash). It also sets counter, turn, ends and own_key (a reader's timeout key); nil: the kind has no such key.
local call, lock, holds = redis.pcall, KEYS[1], KEYS[2]
-- Answer a probe if no key exists: the fast path would then acquire the lock.
if may_be_fast and asks_for_more and more == ' 0 0 0 1' and #KEYS == KEY_COUNT and call('EXISTS', turn or lock, unpack(KEYS)) == 0 then
	return { 2 }
end
local is_candidate = may_be_fast and not asks_for_more and #KEYS == KEY_COUNT
-- A waiter that is still in the wake queue was not woken, because the script that wakes a waiter removes it. Such a waiter takes
-- the slow path, which wakes the waiters before it (wake_earlier).
local is_queued = is_candidate and has_waited and call('ZRANGE', ARGV[FIXED_ARGS + 1], since_us, since_us, 'BYSCORE')[1] == hold_id
local there = is_candidate and not is_queued and call('EXISTS', turn or lock, unpack(KEYS))
local is_fast, token = there == 0, nil
if counter and (there == 1 or is_fast and want_token) then
	is_fast = is_fast or call('EXISTS', counter) == 1
	-- GET returns the token as text. The number that INCR returns is exact only up to 53 bits, as all of Lua's numbers.
	token = is_fast and type(call('INCR', counter)) == 'number' and call('GET', counter)
	is_fast = type(token) == 'string'
end
local since_ms, end_ms
if is_fast then
	local now = redis.call('TIME')
	-- Keep the times as text: Redis would have to convert numbers, which takes longer than a lookup of a key. '..' writes 14
	-- digits, enough until the year 5138.
	since_ms = now[1] .. string.sub('00000' .. now[2], -6, -4)
	end_ms = since_ms + lease_ms .. ''
end
