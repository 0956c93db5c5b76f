-- The end of the common acquisition: see quick_acquire.lua. is_added of the script: whether all that only its kind has was written.

-- The record as hold_record_make writes it. Not PEXPIREAT, which is faster: users have no right to it.
if is_added and call('PEXPIRE', lock, lease_ms) == 1
	and call('HSET', holds, hold_id, field .. ' ' .. since_ms .. ' ' .. end_ms .. ' ' .. (token or '-') .. ' ' .. note) == 1
	and call('PEXPIRE', holds, lease_ms) == 1 then
	-- Without a token a reply that takes no table.
	return token and { 1, fresh_owner, 1, token, 0 } or 1
end
-- Not where nothing was written: a full server lets a script go on that has deleted something.
if is_fast and call('EXISTS', lock) == 1
	and type(call('DEL', lock, holds, own_key or holds, ends or holds)) ~= 'number' then
	call('HDEL', lock, field, 'mode')
	call('HDEL', holds, hold_id)
	if ends then call('ZREM', ends, field) end
end
