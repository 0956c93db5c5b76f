-- The end of the fast path: see fast_acquire.lua. The script sets is_added: whether it has written all fields and keys of its
-- kind.

-- Set the TTLs, and write the record in the form of hold_record_make. PEXPIREAT would be faster, but users have no right to it.
if is_added and call('PEXPIRE', lock, lease_ms) == 1
	and call('HSET', holds, hold_id, field .. ' ' .. since_ms .. ' ' .. end_ms .. ' ' .. (token or '-') .. ' ' .. note) == 1
	and call('PEXPIRE', holds, lease_ms) == 1 then
	-- Without a token reply with a number: a table takes longer.
	return token and { 1, fresh_owner, 1, token, 0 } or 1
end
-- Undo the writes if a later command was denied. If nothing was written, run no DEL. A server whose memory is full must refuse
-- the slow path as well, but after a DEL it would allow every write of this script.
if is_fast and call('EXISTS', lock) == 1
	and type(call('DEL', lock, holds, own_key or holds, ends or holds)) ~= 'number' then
	call('HDEL', lock, field, 'mode')
	call('HDEL', holds, hold_id)
	if ends then call('ZREM', ends, field) end
end
