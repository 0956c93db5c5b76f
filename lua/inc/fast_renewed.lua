-- The end of the common renewal: see quick_renew.lua. is_held of the script: whether the lock has the field, and what only its kind
-- has was extended.

-- GT: only where the lock would expire earlier. No hold lasts longer than the lock, so its record has an earlier end, too.
-- The record is written last: on a full server a script may write it when it has written before.
if is_held and call('PEXPIRE', lock, lease_ms, 'GT') == 1 and call('PEXPIRE', holds, lease_ms) == 1
	and call('HSET', holds, hold_id, before .. end_ms .. string.sub(record, after_at)) == 0 then
	return 0
end
