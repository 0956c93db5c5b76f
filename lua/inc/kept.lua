-- Owners of holds that --at-least keeps.

-- include: suffix
-- include: clock

-- The time until which an owner keeps its hold, in ms; nil if the hold is not kept.
local function kept_until(owner) return tonumber(string.match(owner, KEPT .. '(%d+)$')) end
local function kept_owner(owner, end_ms) return owner .. KEPT .. digits(end_ms) end

-- Call this if the owner of a released hold is not in the lock any more. Return the result of the release (results.lua). 3: the
-- hold was lost. 0: an earlier request kept the hold, and its time has ended since.
local function ended(hold) return kept_until(hold.field or '') and 0 or 3 end
