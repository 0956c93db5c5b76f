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
-- of a semaphore  ARGV[6] how many permits it has in all, ARGV[7] how many of them to acquire
-- then     what belongs to each name, and the inherited owners: one that holds the lock now re-enters it, and none
--          of them acquires it anew
-- The script defines FIXED_ARGS, how many arguments come before those of the names.
local lease_ms, fresh_owner, hold_id, note, options = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
-- Whether the first digit is 1: to compare two texts takes less time than a match.
local want_token, since_us, more = options >= '1', '', ''
if #options > 4 then since_us, more = string.match(options, '^....(%d*)(.*)$') end
local has_waited, asks_for_more = since_us ~= '', more ~= ''

-- The quick way does without these.
local may, listens, has_passed = string.match(options, '^.(.)(.)(.)')
local may_wait, has_turn_passed, waits_since_us = may == '1', has_passed == '1', tonumber(since_us)
local user, uptime_ms, several = string.match(more, '^ (%d) (%d+) (%d)$')
local tries_rights, least_uptime_ms, is_of_several = user == '1', tonumber(uptime_ms) or 0, several == '1'
local is_regain = waits_since_us == REGAIN_US

-- The owners that may re-enter the lock: the caller's own, and those that it inherited.
local reentrant_owners = { fresh_owner }
for i = FIXED_ARGS + #ARG_FIELDS * #names + 1, #ARGV do
	reentrant_owners[#reentrant_owners + 1] = ARGV[i]
end

-- The first of them that has a field in the lock hash, its name being the owner and suffix; nil when none has.
local function holding_owner(lock, suffix)
	for _, owner in ipairs(reentrant_owners) do
		if redis.call('HEXISTS', lock, owner .. suffix) == 1 then return owner end
	end
	return nil
end
