-- The arguments of every acquisition.

-- ARGV[1]  lease in ms
-- ARGV[2]  the owner that acquires the lock, unless a reentrant owner holds it
-- ARGV[3]  hold id. A request that is repeated with the same id adds no second hold. For an undo as ARGV[1] of plain_release.lua
-- ARGV[4]  the note of the hold, which waiters are shown
-- ARGV[5]  options, in one argument since each argument costs time:
--          four digits, 1 for yes:
--            first: issue a fencing token (a name that has a fencing counter always gets one)
--            second: the caller waits if the lock is busy
--            third: the caller is subscribed to the channel that wakes it
--            fourth: the last reply said that another waiter has the next turn, and the caller has received a message since
--          since when the caller waits, as an earlier reply said; empty at the first attempt. REGAIN_US (turn.lua): a quorum of servers
--            has this hold, and this server has lost it, so it comes before all waiters
--          then nothing, or " RIGHTS UPTIME SEVERAL PROBE": 1 to try the user's rights; how long the server must have been up, in ms,
--            to count for a majority; 1 if it is one of several servers; 1 to acquire nothing: the reply is {2} if an attempt would
--            not be busy
--          or " undo RESERVE_MS KEPT_MS": acquire nothing, but undo what earlier requests with this hold id have done. The lock of
--            each name is released if one of them has acquired it, or kept for KEPT_MS, unless that is 0; and every queue is left.
--            The reply is that of a release (results.lua). If the second digit says that the caller still waits, it keeps its
--            position in the queue of a fair lock; any other lock is reserved for it for RESERVE_MS, unless that is 0
-- ARGV[6], ARGV[7]  of a semaphore: the number of its permits, and how many of them to acquire
-- then     the arguments of each name, and after these the inherited owners: an owner that holds the lock re-enters it, but
--          none of them acquires it anew
-- The script sets FIXED_ARGS, the number of arguments before those of the names.
local lease_ms, fresh_owner, hold_id, note, options = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

-- want_token: whether the first digit is 1. Comparing texts takes less time than string.match.
local want_token, since_us, more = options >= '1', '', ''
if #options > 4 then since_us, more = string.match(options, '^....(%d*)(.*)$') end

local has_waited, asks_for_more = since_us ~= '', more ~= ''
