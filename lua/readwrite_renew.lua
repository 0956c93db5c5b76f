-- Push the lease of a hold of a read or write lock forward, for every name; of its owner's holds only, so
-- that those of a reader who died end (RedissonWriteLock.renewAsync, renewal.ReadLockTask).
-- KEYS     for each name: lock hash, holds hash, ends of our readers
-- ARGV[1]  lease in ms
-- ARGV[2]  hold id
-- ARGV[3+] for each name: what its time-out keys begin with
-- Returns  {0, ttl in ms}  all renewed; the smallest time to live among them
--          {index}  that name is not held any more; the others were renewed
--          {index, type}  the same, and why: its key was overwritten with a value of that type
local FIXED_ARGS = 2
local KEY_FIELDS, ARG_FIELDS = { 'lock', 'holds', 'ends' }, { 'timeouts' }
local lease_ms, hold_id = ARGV[1], ARGV[2]

-- include: names
-- include: ttl_extend
-- include: hold_count
-- include: readers
-- include: readers_extend
-- include: reader_ends_record
-- include: renewal
-- include: writer_field

return renew_all(function(name, field)
	local count = hold_count(redis.call('HGET', name.lock, field))
	if not count then
		return nil
	end
	local ttl_ms
	if not is_writer_field(field) then
		-- One whose holds have ended is as good as gone: whoever releases drops him.
		if reader_ttl_ms(name, field, count) == 0 then
			return nil
		end
		extend_reader(name, field, count, lease_ms)
		record_end(name, field, tonumber(lease_ms))
		ttl_ms = reader_ttl_ms(name, field, count)
	end
	extend(name.lock, lease_ms)
	return ttl_ms or redis.call('PTTL', name.lock)
end)
