-- To write the sign of life of a waiter, as queue_read.lua parses it.
-- include: now

local function sign_of_life_make(sign)
	return table.concat({ digits(sign.alive_until_ms), digits(sign.since_us), sign.run, digits(sign.listens_since_ms),
		sign.note }, ' ')
end
