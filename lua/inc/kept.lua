-- Owners of holds that --at-least keeps.

-- include: suffix
-- include: clock

-- The time until which an owner keeps its hold, in ms; nil if the hold is not kept.
local function kept_until(owner) return tonumber(string.match(owner, KEPT .. '(%d+)$')) end
local function kept_owner(owner, end_ms) return owner .. KEPT .. digits(end_ms) end

-- Call this if a release found the record of a hold, but the hold does not count any more (result 3 of results.lua). Return the
-- result to report. 0: an earlier request had kept the hold, and its time has ended since. 3: the hold was lost.
local function ended(hold) return kept_until(hold.field or '') and 0 or 3 end
