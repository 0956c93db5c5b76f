-- Owners of holds that --at-least keeps.

-- include: suffix
-- include: clock

-- The time until which an owner keeps its hold, in ms; nil if the hold is not kept.
local function kept_until(owner) return tonumber(string.match(owner, KEPT .. '(%d+)$')) end
local function kept_owner(owner, end_ms) return owner .. KEPT .. digits(end_ms) end

-- The result of the release of a hold whose owner is not in the lock: see results.lua. The hold was lost (3). But if it was
-- kept, an earlier request like this one has kept it until its end (0).
local function ended(hold) return kept_until(hold.field or '') and 0 or 3 end
