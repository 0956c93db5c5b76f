-- A hold that lingers has its end in its owner, "OWNER:lingering:END_MS" by the server's clock: it is
-- nobody's, so that no process left behind by the holder can re-enter the lock.
local KEPT = ':lingering:'

local function kept_until(owner)
	return tonumber(string.match(owner, KEPT .. '(%d+)$'))
end
