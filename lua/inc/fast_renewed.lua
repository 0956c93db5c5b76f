-- The end of the fast path: see fast_renew.lua. The script sets is_held: whether the lock has the owner's field, and the
-- keys that only this kind has were extended.

-- GT: only if the lock would expire earlier. No hold lasts longer than the lock, so END_MS of the record grows as well.
-- The record is written last: a server whose memory is full lets a script write it after PEXPIRE.
if is_held and call('PEXPIRE', lock, lease_ms, 'GT') == 1 and call('PEXPIRE', holds, lease_ms) == 1
	and call('HSET', holds, hold_id, before .. end_ms .. string.sub(record, after_at)) == 0 then
	return 0
end
