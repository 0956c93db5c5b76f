-- A hold that lingers has its end in its owner, "OWNER:lingering:END_MS" by the server's clock: it is
-- nobody's, so that no process left behind by the holder can re-enter the lock.
local LINGERING = ':lingering:'

local function lingering_end(owner)
	return tonumber(string.match(owner, LINGERING .. '(%d+)$'))
end
