#!/usr/bin/env bats
# What the scripts do in one piece for the common case, which is a lock of one name, against the long way, by which they do
# the same for several names: both leave the same on the server.

load ../lib/helpers

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { common_setup; }

teardown() { common_teardown; }

VERBS='lock fair rlock wlock'

# state_of NAME: all that is on the server of that lock, one key a line. What differs between two locks that are acquired
# one after the other is left out: times are told in units of 20 min from now.
state_of() {
	redis eval '
		local now = redis.call("TIME")
		local function units(ms) return string.format("%.0f", ms / 1200000) end
		local function units_from_now(ms) return units(ms - now[1] * 1000 - now[2] / 1000) end
		local function without_times(value)
			return (value:gsub("^(%S+) (%d+) (%d+) ", function(owner, since, ends)
				return owner .. " " .. units_from_now(since) .. " " .. units_from_now(ends) .. " "
			end))
		end
		local lines = {}
		for _, key in ipairs(redis.call("KEYS", "*")) do
			if key == ARGV[1] or key:find("{" .. ARGV[1] .. "}", 1, true) then
				local kind, values, parts = redis.call("TYPE", key).ok, {}, {}
				if kind == "hash" then
					values = redis.call("HGETALL", key)
				elseif kind == "zset" then
					values = redis.call("ZRANGE", key, 0, -1, "WITHSCORES")
				else
					values = { "", redis.call("GET", key) }
				end
				for i = 1, #values, 2 do
					local value = kind == "zset" and units_from_now(values[i + 1]) or without_times(values[i + 1])
					parts[#parts + 1] = (values[i]:gsub("^%x+$", "ID")) .. "=" .. value
				end
				table.sort(parts)
				lines[#lines + 1] = key .. " " .. kind .. " " .. units(redis.call("PTTL", key)) .. " " .. table.concat(parts, ", ")
			end
		end
		return table.concat(lines, "\n")' 0 "$1" | sed -E "s/pid [0-9]+/pid/g; s/[0-9a-f-]{36}:[0-9]+/OWNER/g; s/\b[0-9a-f]{32}\b/ID/g; s/\b$1\b/NAME/g" |
		sort
}

# both COMMAND...: for the lock "one", in one piece, and for "two" with "three", the long way.
both() {
	"$@" one >/dev/null && "$@" two three >/dev/null
}

# shorten NAME: lets what is on the server of that lock expire earlier.
shorten() {
	local key
	redis --scan | while read -r key; do
		[[ $key != "$1" && $key != *"{$1}"* ]] || redis pexpire "$key" 1200000
	done >/dev/null
}

# renew: the holds of this process in both locks, which are shortened before.
renew() {
	shorten one
	shorten two
	both rlock renew --pid $$
}

# count_of COMMAND ARG...: prints how often the server runs that command while rlock runs so.
count_of() {
	local command=$1
	shift
	redis config resetstat >/dev/null
	rlock "$@" >/dev/null || return
	redis info commandstats | sed -n "s/^cmdstat_$command:calls=\([0-9]*\),.*/\1/p" | grep . || echo 0
}

# same_state WHEN
same_state() {
	local expected
	expected=$(state_of two)
	assert_equal "$1: $(state_of one)" "$1: $expected"
}

@test "a lock of one name is on the server as one of several names is, of every kind" {
	local verb
	for verb in $VERBS 'lock --fence' 'fair --fence'; do
		# shellcheck disable=SC2086
		both rlock $verb --pid $$ --lease 1h
		[ -n "$(state_of one)" ]
		same_state "acquired by $verb"
		renew
		same_state "renewed by $verb"
		both rlock unlock --pid $$
		same_state "released by $verb"
	done
}

@test "a lock of one name is renewed and released without the commands that only the long way has, of every kind" {
	local verb
	for verb in $VERBS; do
		both rlock "$verb" --pid $$ --lease 1h
		# Which hold it is takes a look at the TTL of each name, as well.
		shorten one
		shorten two
		assert [ "$(count_of pttl renew --pid $$ two three)" -gt 2 ]
		# With Redis 6.2 renewals go the long way.
		if [ "$(redis eval 'return redis.REDIS_VERSION_NUM and 1 or 0' 0)" = 1 ]; then
			assert [ "$(count_of pttl renew --pid $$ one)" -le 1 ]
		fi
		assert [ "$(count_of hdel unlock --pid $$ two three)" -gt 0 ]
		assert_equal "$(count_of hdel unlock --pid $$ one)" 0
	done
}
