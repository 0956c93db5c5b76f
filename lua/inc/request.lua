-- The arguments that every acquisition has.
-- ARGV[1]  lease in ms
-- ARGV[2]  owner that acquires the lock, unless a reentrant owner holds it
-- ARGV[3]  hold id: a request that comes a second time adds no second hold
-- ARGV[4]  note, which waiters are shown
-- ARGV[5]  1 to issue a fencing token; a name that has a fence counter gets one in any case
-- ARGV[6]  since when the caller waits, as an earlier reply said; empty at the first try
-- ARGV[7]  what else it asks for, in one, since each argument takes time: see inc/request_options.lua
-- of a semaphore  ARGV[8] how many permits it has in all, ARGV[9] how many of them to acquire
-- then     what belongs to each name, and the inherited owners: one that holds the lock now re-enters it, and none
--          of them acquires it anew
-- Before it stands FIXED_ARGS, how many there are before those of the names.
local lease_ms, fresh_owner, hold_id, note = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local want_token, has_waited = ARGV[5] == '1', ARGV[6] ~= ''
-- What else it asks for is read when it has to be.
local asks_for_more = #ARGV[7] > 3
