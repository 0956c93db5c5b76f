-- Whether a field of a read/write lock is that of a writer.
-- include: write_suffix
-- include: kept_hold

local function is_writer_field(field)
	return string.sub(field, -#WRITE) == WRITE
		or string.find(field, WRITE .. KEPT, 1, true) ~= nil
end
