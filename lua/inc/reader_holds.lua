-- The keys and fields of a read/write lock's holders.

-- include: suffix
-- include: clock

-- The timeout key of a reader's hold: see suffix.lua.
local function timeout_key(name, owner, number)
	return name.timeouts .. ':' .. owner .. TIMEOUT .. digits(number)
end

local function is_writer_field(field)
	return string.sub(field, -#WRITE) == WRITE or string.find(field, WRITE .. KEPT, 1, true) ~= nil
end

-- The ids and the records of the holds of a reader, which has `count` holds. The holds hash has a field for each reader, named by
-- its owner, with the ids of its holds. Each id has a blank before it, so the value is not taken for a record. A script thus
-- finds the holds of one of many readers without reading all records.
-- nil: the field of the reader does not have all its holds. The first reader of a lock has no such field.
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
