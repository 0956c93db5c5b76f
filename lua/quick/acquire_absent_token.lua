-- The fencing token of the common acquisition, see quick/acquire_absent.lua. It needs the local `there`: how many keys of the
-- name exist, or false when it is no such case. Unless a token is wanted, the counter is one of these keys.

local is_common, is_counted, token = there == 0, want_token, nil
if there == 1 and not want_token and call('EXISTS', counter) == 1 then
	is_common, is_counted = true, true
end
if is_common and is_counted then
	-- As text: a number in a script has 53 bits only.
	token = type(call('INCR', counter)) == 'number' and call('GET', counter)
	is_common = type(token) == 'string'
end
