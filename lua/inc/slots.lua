-- The slots of a semaphore: numbers from 1 on, one for each permit. No two holds have the same slot at the same time.

-- The field "slots" of the holds hash says which slots are in use: "x--x" means 1 and 4. The value has no blank, so it is not
-- taken for a record. The field may be missing while permits are held, or have a slot that no hold has. The next acquisition
-- then makes it anew from the records, each of which has the slots of its hold.
local SLOTS, USED, UNUSED = 'slots', 'x', '-'

-- The value of the field SLOTS; false if it is missing, or a user has overwritten it. Use pcall: an error must not keep a hold
-- from being released.
local function known_slots(holds)
	local in_use = redis.pcall('HGET', holds, SLOTS)
	return type(in_use) == 'string' and string.find(in_use, '^[x-]') and in_use
end

local function mark_slot(in_use, slot, mark)
	in_use = in_use .. string.rep(UNUSED, slot - #in_use)
	return string.sub(in_use, 1, slot - 1) .. mark .. string.sub(in_use, slot + 1)
end

-- The value of the field SLOTS after this slot was freed; false: no slot is in use.
local function without_slot(in_use, slot)
	in_use = mark_slot(in_use, slot, UNUSED)
	return string.find(in_use, USED, 1, true) and in_use
end
