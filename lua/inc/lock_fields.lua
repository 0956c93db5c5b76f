-- What the hash of a lock of any kind consists of: holders with the number of their holds, and a mode. A hash with anything else in
-- it is a user's own.

-- The number in a field of a lock hash: how many holds an owner has.
-- No owner has more: a number that a user wrote there must not keep the server from its other clients, by a loop over
-- it.
local HOLDS_MAX = 10000

-- nil for what is no such number.
local function hold_count(value)
	local count = tonumber(string.match(value or '', '^[1-9]%d*$'))
	return count and count <= HOLDS_MAX and count or nil
end

-- What the hash of a lock of any kind consists of: the numbers of inc/hold.lua, and a mode. A hash with anything else in it
-- is a user's own. And the first look of every acquisition.
local NOT_A_LOCK = 'hash that is no lock'

-- wire: Redisson's read/write locks keep their mode in this field.
local function is_mode(field, value)
	return field == 'mode' and (value == 'read' or value == 'write')
end

-- The mode, if there is one, the holds of each owner, and the owners in their order; nil when these fields are no lock's.
local function fields_of(listed)
	local mode, counts, fields = nil, {}, {}
	for i = 1, #listed, 2 do
		local field, value = listed[i], listed[i + 1]
		if is_mode(field, value) then
			mode = value
		elseif not hold_count(value) then
			return nil, nil, nil
		else
			counts[field], fields[#fields + 1] = hold_count(value), field
		end
	end
	return mode, counts, fields
end

-- A script looks at so many fields of a lock one by one. A lock may have many more, since each reader has one.
local FIELDS_MAX = 16
