-- The last piece of the common acquisition, see acquire_absent.lua: the hold, or nothing of it. Before it stand field, the
-- owner's in the lock; is_added, whether it was added, and what else belongs to its kind; own_key and ends of a reader, or
-- nil.
-- include: acquire_absent

-- The record as hold_record_make.lua writes it. PEXPIREAT is what Redis makes of PEXPIRE, which takes time; users need no right
-- to it, since a lock whose rights are to be tried does not come here. The renewal needs PEXPIRE: one of the two tries it.
if is_added
	and call('HSET', holds, hold_id, field .. ' ' .. since_ms .. ' ' .. end_ms .. ' ' .. (token or '-') .. ' ' .. note) == 1
	and call('PEXPIRE', lock, lease_ms) == 1 and call('PEXPIREAT', holds, end_ms) == 1 then
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
