-- The arguments that every acquisition has.
-- ARGV[1]  lease in ms
-- ARGV[2]  owner that acquires the lock, unless a reentrant owner holds it
-- ARGV[3]  hold id: a request that comes a second time adds no second hold
-- ARGV[4]  note, which waiters are shown
-- ARGV[5]  1 to issue a fencing token; a name that has a fence counter gets one in any case
-- ARGV[6]  1 when the caller will wait for a busy lock
-- ARGV[7]  since when it waits, as an earlier reply said; empty at the first try
-- ARGV[8]  how long the server must have been up, in ms, to count as one of several; 0 for a single one
-- ARGV[9]  1 when the caller listens to the channel that wakes it
-- ARGV[10] 1 when the login names a user, which may lack rights
-- ARGV[11] 1 when the last reply said that it is another's turn, and a message has come since
-- ARGV[12] how many permits the semaphore has in all, ARGV[13] how many of them to acquire; 0 for a lock
-- then     what belongs to each name, and the inherited owners: one that holds the lock now re-enters it, and none
--          of them acquires it anew
local FIXED_ARGS = 13
local lease_ms, fresh_owner, hold_id, note = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local want_token, has_waited = ARGV[5] == '1', ARGV[7] ~= ''
-- What else it asks for is read when it has to be: see request_options.lua.
local asks_for_more = ARGV[8] ~= '0' or ARGV[10] == '1'
