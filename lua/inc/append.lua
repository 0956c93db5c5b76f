-- To put lists together.

local function append(steps, more)
	for _, step in ipairs(more) do
		steps[#steps + 1] = step
	end
end
