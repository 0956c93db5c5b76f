-- The ids of permits: which hold they belong to, and how they are printed.

-- The id of a permit as text that can be printed.
-- wire: the id of a permit of Redisson's has 16 bytes of any value.
local function printable_id(id)
	return #id == 16 and string.gsub(id, '.', function(byte)
		return string.format('%02x', string.byte(byte))
	end) or id
end

-- The form of the id of a permit of ours.
local OUR_ID = '^(' .. string.rep('%x', 32) .. '):%d+$'

-- The hold that a permit of ours belongs to; nil for a permit of Redisson's.
local function hold_of(id) return string.match(id, OUR_ID) end
