-- The names of a request.

-- include: channels

-- The keys and arguments of each name, as a table by the words of KEY_FIELDS and ARG_FIELDS. For each name, KEYS has one key for
-- each word of KEY_FIELDS. After the first FIXED_ARGS, ARGV has one value for each word of ARG_FIELDS. The script defines
-- KEY_FIELDS, ARG_FIELDS and FIXED_ARGS. lib/kinds.h says what each key is.
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
