-- The slots of a semaphore that are in use.

-- The slots of a hold: numbers from 1 on, one for each of its permits, which no two holds have at the same time. They stand in
-- its record behind how many permits it has, as in "2:1,4"; in one of an older version, "2", there are none. A field of the
-- holds hash says which are in use, as in "x--x", slots 1 and 4. It is no record, since it has no blank. When it is missing while
-- permits are held, or has a slot that no hold has, the next acquisition makes it anew of the records.
local SLOTS, USED, UNUSED = 'slots', 'x', '-'

-- The field; false where it is missing, or has another form: that of an older version begins with '0' to 'o'. By pcall: it must
-- not keep a hold from being released.
local function known_slots(holds)
	local in_use = redis.pcall('HGET', holds, SLOTS)
	return type(in_use) == 'string' and string.find(in_use, '^[x-]') and in_use
end

local function lowest_free_slot(in_use) return string.find(in_use, UNUSED, 1, true) or #in_use + 1 end

local function mark_slot(in_use, slot, mark)
	in_use = in_use .. string.rep(UNUSED, slot - #in_use)
	return string.sub(in_use, 1, slot - 1) .. mark .. string.sub(in_use, slot + 1)
end

-- false when no slot is left.
local function without_slot(in_use, slot)
	in_use = mark_slot(in_use, slot, UNUSED)
	return string.find(in_use, USED, 1, true) and in_use
end
