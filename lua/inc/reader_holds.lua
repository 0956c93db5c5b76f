-- The keys and fields of the holders of a read/write lock.

-- include: suffix
-- include: clock

local function timeout_key(name, owner, number)
	return name.timeouts .. ':' .. owner .. TIMEOUT .. digits(number)
end

local function is_writer_field(field)
	return string.sub(field, -#WRITE) == WRITE or string.find(field, WRITE .. KEPT, 1, true) ~= nil
end

-- The holds hash has under the owner of a reader, too, the ids of its holds, each with a blank in front, by which they are no
-- record. So a script finds the holds of one among many readers without a look at all records. The reader that came first has
-- none, nor has one of an older version.

-- The ids and the records of the so many holds of a reader; nil where they are not found so.
local function reader_holds(name, owner, count)
	local ids, records = {}, {}
	local listed = redis.pcall('HGET', name.holds, owner)
	for id in string.gmatch(type(listed) == 'string' and listed or '', '%S+') do
		ids[#ids + 1] = id
		records[#ids] = redis.call('HGET', name.holds, id) or nil
	end
	if #ids ~= count or #records ~= count then return nil end
	return ids, records
end
