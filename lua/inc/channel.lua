-- A channel among the arguments: with a '+' in front it is one of a cluster, where there are two ways to publish.
local is_in_cluster = false

-- The channel itself.
local function channel_of(arg)
	if string.sub(arg, 1, 1) ~= '+' then
		return arg
	end
	is_in_cluster = true
	return string.sub(arg, 2)
end
