-- What an acquisition asks for besides. The common one does without these, see acquire_absent.lua. Digits, 1 for yes:
-- the caller will wait for a busy lock; it listens to the channel that wakes it; the last reply said that it is another's
-- turn, and a message has come since. Then, unless both are 0: the login names a user, which may lack rights; and how long
-- the server must have been up, in ms, to count as one of several, 0 for a single one.
-- include: request

local waits_since_us = tonumber(ARGV[6])
local may_wait, listens, has_turn_passed = string.sub(ARGV[7], 1, 1) == '1', string.sub(ARGV[7], 2, 2), string.sub(ARGV[7], 3, 3) == '1'
local tries_rights, least_uptime_ms = string.sub(ARGV[7], 4, 4) == '1', tonumber(string.sub(ARGV[7], 5)) or 0
