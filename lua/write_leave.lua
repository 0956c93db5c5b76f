-- Wait no longer for a read or write lock: release what the last try may have acquired, and let the readers in that wait for
-- the writer's turn.
-- Redisson none
-- KEYS     for each name: lock hash, holds hash, waiting writer, ends of our readers
-- ARGV[1]  hold id
-- ARGV[2]  owner
-- ARGV[3]  since when it waits; of no matter without the next one
-- ARGV[4]  for how long each name is kept for the caller, in ms: another server or slot did not grant it; 0: not at all
-- ARGV[5+] for each name: wake queue, turn, channel, what its timeout keys begin with
-- Returns  one number a name, see inc/names.lua

local FIXED_ARGS = 4
local KEY_FIELDS, ARG_FIELDS = { 'lock', 'holds', 'writer', 'ends' }, { 'wake_queue', 'turn', 'channel', 'timeouts' }
local hold_id, owner, since_us, kept_ms = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

for _, name in ipairs(names) do leave_wake_queue(name, hold_id) end
local results = release_all(hold_id, release_readwrite, look_at_readers)
for _, name in ipairs(names) do
	local turn = redis.pcall('GET', name.writer)
	if is_error(turn) and not is_wrong_type(turn) then return denied_error('GET', turn) end
	if type(turn) == 'string' and string.match(turn, '^%d+ (%S+) ') == owner then
		redis.call('DEL', name.writer)
		publish(name.channel, WAKE_ALL)
	end
end
keep_all(since_us, kept_ms)
return results
