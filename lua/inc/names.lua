-- The names of a request, and a release of all of them.

-- A channel among the arguments: with a '+' in front it is one of a cluster, where there are two ways to publish.
local is_in_cluster = false

-- The channel itself.
local function channel_of(arg)
	if string.sub(arg, 1, 1) ~= '+' then return arg end
	is_in_cluster = true
	return string.sub(arg, 2)
end

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

-- The results of do_one(name) for every name:
-- 2 done, and of a release: the lock is free   1 released, the lock is held on
-- 0 no such hold                               3 the hold had a record, but its owner has the lock no longer
-- or the type of the value that overwrote the lock,
-- or the error that kept the script from notifying the waiters of what was done.
-- Instead of all of them, the error of a replica: what one lacks is not lost.
local function for_each_name(hold_id, do_one)
	local results, lacking = {}, nil
	for index, name in ipairs(names) do
		publish_error = nil
		local result = do_one(name)
		-- The lock may be overwritten, and its holds hash not: a hold is lost once.
		if name.overwritten then redis.pcall('HDEL', name.holds, hold_id, hold_id .. STOP) end
		if name.overwritten or result == 0 then lacking = name end
		results[index] = name.overwritten or publish_error and (result == 1 or result == 2) and publish_error or result
	end
	return lacking and replica_error(lacking) or results
end
