-- The ids of Java's permits, as they are printed. wire: 16 bytes, or (3.13.6) 32 hex digits.

local function printable_id(id)
	return #id == 16 and string.gsub(id, '.', function(byte)
		return string.format('%02x', string.byte(byte))
	end) or id
end

-- The hold that a permit of ours belongs to; nil for one of Java's.
local function hold_of(id)
	return string.match(id, '^(' .. string.rep('%x', 32) .. '):%d+$')
end
