-- Take a plain or a fair lock.
-- include: acquire_exclusive

-- wire: a plain and a fair lock have one field, the owner's, with the number of his holds.
local function mutex_acquire(name)
	if not name.is_free then
		return reenter(name)
	end
	local token = issue_token(name)
	redis.call('HINCRBY', name.lock, name.field, 1)
	return acquire_free(name, token, { { 'HKEYS', name.lock }, { 'EXISTS', name.lock } })
end
