-- The arguments that every acquisition has.

-- The arguments that every acquisition has.
-- ARGV[1]  lease in ms
-- ARGV[2]  owner that acquires the lock, unless a reentrant owner holds it
-- ARGV[3]  hold id: a request that comes a second time adds no second hold
-- ARGV[4]  note, which waiters are shown
-- ARGV[5]  what it asks for, in one, since each argument takes time. Four digits, 1 for yes: a fencing token is to be issued
--          (a name that has a fencing counter gets one in any case); the caller will wait for a busy lock; it listens to the
--          channel that wakes it; the last reply said that it is another's turn, and a message has come since. Then, unless
--          it is the first try, since when the caller waits, as an earlier reply said; REGAIN_US of inc/wake.lua for a hold that a
--          quorum of servers has, and this one has lost: it comes before all waiters. Then, unless all are 0, each after a
--          blank: 1 when the user's rights are to be tried; how long the server must have been up, in ms, to count for a
--          majority; and 1 for one of several servers.
--          " undo MS" after the time: acquire nothing, but undo what earlier requests with this hold id did. Each name is released
--          if one of them has acquired it, and its queue is left; so the script returns one number a name, see inc/names.lua. If
--          the caller waits on, by the second digit, it keeps its position in the queue of a fair lock, and any other lock is
--          reserved for it for MS, unless MS is 0.
-- of a semaphore  ARGV[6] how many permits it has in all, ARGV[7] how many of them to acquire
-- then     what belongs to each name, and the inherited owners: one that holds the lock now re-enters it, and none
--          of them acquires it anew
-- The script defines FIXED_ARGS, how many arguments come before those of the names.
local lease_ms, fresh_owner, hold_id, note, options = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

-- Whether the first digit is 1: to compare two texts takes less time than a match.
local want_token, since_us, more = options >= '1', '', ''
if #options > 4 then since_us, more = string.match(options, '^....(%d*)(.*)$') end

local has_waited, asks_for_more = since_us ~= '', more ~= ''
