-- The names of a request.

-- include: channels

-- What belongs to each name. KEYS has as many keys for each as KEY_FIELDS, in that order. After the first FIXED_ARGS,
-- ARGV has as many values for each as ARG_FIELDS: channels, and what keys begin with.
local names = {}
for i = 1, #KEYS / #KEY_FIELDS do
	names[i] = {}
	for n, field in ipairs(KEY_FIELDS) do
		names[i][field] = KEYS[(i - 1) * #KEY_FIELDS + n]
	end
	for n, field in ipairs(ARG_FIELDS) do
		names[i][field] = ARGV[FIXED_ARGS + (i - 1) * #ARG_FIELDS + n]
	end
	names[i].channel = names[i].channel and channel_of(names[i].channel)
end
