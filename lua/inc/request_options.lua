-- What an acquisition asks for besides. The common one does without these, see acquire_absent.lua.
-- include: request

local may_wait, waits_since_us = ARGV[6] == '1', tonumber(ARGV[7])
local least_uptime_ms, listens, tries_rights = tonumber(ARGV[8]), ARGV[9], ARGV[10] == '1'
local has_turn_passed = ARGV[11] == '1'
