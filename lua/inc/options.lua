-- Read the options of an acquisition that the fast path does not need. request.lua explains them.

-- include: request
-- include: turn

local may, caller_subscribed, has_passed = string.match(options, '^.(.)(.)(.)')
local may_wait, has_turn_passed, waits_since_us = may == '1', has_passed == '1', tonumber(since_us)
local user, uptime_ms, several, probe = string.match(more, '^ (%d) (%d+) (%d) (%d)$')
local tries_rights, least_uptime_ms, is_of_several, is_probe = user == '1', tonumber(uptime_ms) or 0, several == '1', probe == '1'
local is_regain = waits_since_us == REGAIN_US
local undo_ms, kept_ms = string.match(more, '^ undo (%d+) (%d+)$')
local released_id = hold_id
if undo_ms then hold_id = string.match(released_id, '^%S+') end
