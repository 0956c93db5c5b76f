-- The owners that may re-enter the lock.

-- include: request
-- include: names

-- The caller's own owner, and the owners that it has inherited.
local reentrant_owners = { fresh_owner }
for i = FIXED_ARGS + #ARG_FIELDS * #names + 1, #ARGV do
	reentrant_owners[#reentrant_owners + 1] = ARGV[i]
end

-- The first reentrant owner that has a field in the lock hash, with this suffix after the owner; nil: none has.
local function holding_owner(lock, suffix)
	for _, owner in ipairs(reentrant_owners) do
		if redis.call('HEXISTS', lock, owner .. suffix) == 1 then return owner end
	end
	return nil
end
