-- Release the permits of a hold, for every name (RedissonPermitExpirableSemaphore.tryReleaseAsync). It works on a full
-- server: nothing needs memory before something was deleted.
-- KEYS     for each name: counter, holds hash, ends of our permits, permits
-- ARGV[1]  hold id
-- ARGV[2+] for each name: wake queue, turn, channel (not in KEYS: a user without the right to publish can still release)
-- Returns  2  one name was released
--          {number, ...}  one for each name, see inc/for_each_name.lua
local FIXED_ARGS = 1
local hold_id = ARGV[1]

-- include: permits_release_one

if heard == 0 then
	return 2
end

local KEY_FIELDS, ARG_FIELDS = { 'lock', 'holds', 'ends', 'permits' }, { 'wake_queue', 'turn', 'channel' }

-- include: names
-- include: now
-- include: denied
-- include: send
-- include: others_turn

if free then
	heard = heard or send(names[1].channel, digits(free))
	if not is_error(heard) then
		give_others_turn(names[1], heard)
	end
	return { is_error(heard) and denied_error('PUBLISH', heard) or 2 }
end

-- include: for_each_name
-- include: permits_release

return for_each_name(hold_id, function(name)
	return release_permits(name, hold_id)
end)
