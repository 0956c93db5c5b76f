-- To find out about holds that are kept until some time.
-- include: kept_suffix

-- Until when such an owner keeps its hold, in ms; nil for any other owner.
local function kept_until(owner)
	return tonumber(string.match(owner, KEPT .. '(%d+)$'))
end
