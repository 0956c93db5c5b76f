-- The arguments that every acquisition has.
-- ARGV[1]  lease in ms
-- ARGV[2]  owner to take it for, where none of the inherited ones holds it already
-- ARGV[3]  hold id: a request that comes a second time counts once
-- ARGV[4]  note, shown to those who wait
-- ARGV[5]  1 to draw a fencing token; a name that has a counter draws one all the same
-- ARGV[6]  1 when a busy lock will be waited for
-- ARGV[7]  since when it is waited for, as an earlier answer said; empty at the first try
-- ARGV[8]  how long the server must have been up, in ms, to count as one of several; 0 for one that is alone
-- ARGV[9]  1 when who asks listens to what wakes him
-- then     what belongs to each name, and the inherited owners: one that holds the lock at this moment
--          re-enters it, and none takes it
local FIXED_ARGS = 9
local lease_ms, fresh_owner, hold_id, note = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local want_token, may_wait, waits_since_us = ARGV[5] == '1', ARGV[6] == '1', tonumber(ARGV[7])
local least_uptime_ms, listens = tonumber(ARGV[8]), ARGV[9]
