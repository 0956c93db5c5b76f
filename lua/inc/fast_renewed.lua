-- The end of the fast path of a renewal: see fast_renew.lua. The script sets is_held: whether the lock has the owner's field, and
-- the keys that only this kind has were extended.

-- PEXPIRE GT sets nothing if the lock lasts longer than lease_ms: the slow path then renews. If it sets the TTL, the new END_MS
-- in the record is later than the old one, since no hold lasts longer than its lock.
-- Write the record last: a server whose memory is full allows PEXPIRE, and after it every write of this script.
if is_held and call('PEXPIRE', lock, lease_ms, 'GT') == 1 and call('PEXPIRE', holds, lease_ms) == 1
	and call('HSET', holds, hold_id, before .. end_ms .. string.sub(record, after_at)) == 0 then
	return 0
end
