-- The ids of our permits. wire: those of Java are 16 bytes, or (3.13.6) 32 hex digits.

local function permit_id(hold_id, number)
	return hold_id .. ':' .. number
end
