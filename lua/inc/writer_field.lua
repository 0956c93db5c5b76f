-- Whether a field of a read/write lock is that of a writer.
-- include: write_suffix
-- include: lingering

local function is_of_writer(field)
	return string.sub(field, -#WRITE) == WRITE
		or string.find(field, WRITE .. LINGERING, 1, true) ~= nil
end
