-- The last piece of the common acquisition, see quick/acquire_absent.lua: it writes the hold, or undoes all that was written.
-- It reads of the script field, the owner's in the lock; is_added, whether the field, and what else its kind has, was written;
-- own_key and ends of a reader, else nil.

-- The record as inc/hold.lua writes it. Not PEXPIREAT, which is faster: users have no right to it.
if is_added
	and call('HSET', holds, hold_id, field .. ' ' .. since_ms .. ' ' .. end_ms .. ' ' .. (token or '-') .. ' ' .. note) == 1
	and call('PEXPIRE', lock, lease_ms) == 1 and call('PEXPIRE', holds, lease_ms) == 1 then
	if has_waited then
		call('ZREM', ARGV[FIXED_ARGS + 1], hold_id)
	end
	-- Without a token a reply that takes no table.
	return token and { 1, fresh_owner, 1, token, 0 } or 1
end
-- Not where nothing was written: a full server lets a script go on that has deleted something.
if is_common and call('EXISTS', lock) == 1
	and type(call('DEL', lock, holds, own_key or holds, ends or holds)) ~= 'number' then
	call('HDEL', lock, field, 'mode')
	call('HDEL', holds, hold_id)
	if ends then
		call('ZREM', ends, field)
	end
end
