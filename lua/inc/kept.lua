-- Holds that are kept until some time.

-- include: suffix
-- include: clock

-- Until when such an owner keeps its hold, in ms; nil for any other owner.
local function kept_until(owner) return tonumber(string.match(owner, KEPT .. '(%d+)$')) end
local function kept_owner(owner, end_ms) return owner .. KEPT .. digits(end_ms) end

-- The result of a release for a hold that has ended, as in inc/names.lua: it was lost, but not where the same request has come
-- before, and kept it until its end.
local function ended(hold) return kept_until(hold.field or '') and 0 or 3 end
