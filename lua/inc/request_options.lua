-- What an acquisition asks for besides. The common one does without these, see acquire_absent.lua. Digits of the options:
-- the caller will wait for a busy lock; it listens to the channel that wakes it; the last reply said that it is another's
-- turn, and a message has come since.
-- include: request

local may, listens, has_passed = string.match(options, '^.(.)(.)(.)')
local may_wait, has_turn_passed, waits_since_us = may == '1', has_passed == '1', tonumber(since_us)
local user, uptime_ms = string.match(more, '^ (%d) (%d+)$')
local tries_rights, least_uptime_ms = user == '1', tonumber(uptime_ms) or 0
