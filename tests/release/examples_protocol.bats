#!/usr/bin/env bats
# bats file_tags=long
# The examples of rlock-protocol(7) do what the text says, without a change. Its table of keys lists exactly the keys that locks
# make.

load ../lib/usual
load ../lib/documenting
load ../lib/examples

# Give the server a port as well, since the examples show the URL of a port.
setup_file() { start_server_at_port; }

setup() {
	directory_setup
	# Replace redis-cli by a script that queries the file's server.
	mkdir bin
	stub bin/redis-cli "exec $(command -v redis-cli) -s \"\$SERVER_SOCKET\" \"\$@\""
	# Replace sleep: instead of sleeping for a second, wait until the waiter of the example is queued.
	stub bin/sleep "exec wait_until_true \"redis-cli --scan | grep -E '^rlock_(writer|waiters):'\""
	PATH=$PWD/bin:$PATH
}

UUID='[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}'

@test "rlock-protocol(7): a lock has the keys and fields of the example" {
	run_example man/rlock-protocol.7 look
	assert_equal "$status" 0
	assert_equal "${#lines[@]}" 5
	assert_regex "${lines[0]}" "^$UUID:[0-9]+$"
	assert_equal "${lines[1]}" 1
	assert_regex "${lines[2]}" '^(30000|2[0-9]{4})$'
	assert_regex "${lines[3]}" '^[0-9a-f]{32}$'
	assert_regex "${lines[4]}" "^${lines[0]} [0-9]{13} [0-9]{13} - command\\.plain\\.1\\.[0-9a-f]{16}(\\.[0-9]+){3}\\+ a look$"
	nothing_is_held
}

@test "rlock-protocol(7): a read lock with a waiting writer, and the queue of a fair lock, have the keys of the example" {
	not_under_valgrind 'its waiters do not join the queue in time'
	local example
	# example man/rlock-protocol.7 look-readwrite
	# example man/rlock-protocol.7 look-fair
	for example in look-readwrite look-fair; do
		run_example man/rlock-protocol.7 "$example"
		assert_equal "$status ${#lines[@]} $stderr" '0 6 '
		nothing_is_held
		printf '%s\n' "${lines[@]}" >"$example"
	done
	mapfile -t lines <look-readwrite
	assert_equal "${lines[0]} ${lines[1]} ${lines[3]}" 'mode read 1'
	assert_regex "${lines[2]}" "^$UUID:[0-9]+$"
	assert_equal "${lines[4]}" "{nightly}:${lines[2]}:rwlock_timeout:1"
	assert_regex "${lines[5]}" '^[0-9]{16} writer:0 .'
	mapfile -t lines <look-fair
	# The server returns the fields of a hash with a long value in any order: sort them.
	[ "${lines[2]}" = next:0 ] || lines=("${lines[@]:0:2}" "${lines[@]:4}" "${lines[@]:2:2}")
	assert_equal "${lines[0]} ${lines[1]} ${lines[2]} ${lines[4]}" 'next:0 next:0 next:0 seen'
	assert_regex "${lines[3]}" '^[0-9]{13} [0-9]{16} [0-9a-f]{40} [0-9]+ .'
	assert_regex "${lines[5]}" '^[0-9]{13} [0-9]{13} [0-9a-f]{40} 0$'
}

# table_of_keys: print the keys in rlock-protocol(7), each with its type and TTL.
table_of_keys() {
	sed -n '/^\.Sh KEYS/,/^\.Ed/p' "$TOP/man/rlock-protocol.7" | grep -E '^[^. ]' | grep -v '^key '
}

# ttl_fits TEXT MS: whether a TTL of MS fits TEXT of the table, for a lease of 30 s.
ttl_fits() {
	local -A most=([lease]=30000 ['as NAME']=30000 ['1 day']=86400000 ['1 min']=60000 ['5 s']=5000 ['3 s']=3000 ['2 s']=2000
		['1 s']=1000 ['as asked']=3600000)
	case $1 in
	none) [ "$2" -eq -1 ] ;;
	'1 day +') [ "$2" -gt 86000000 ] ;;
	'5 min +') [ "$2" -gt 300000 ] ;;
	*) [ "$2" -gt $((most[$1] > 5000 ? most[$1] / 3 : 0)) ] && [ "$2" -le "${most[$1]}" ] ;;
	esac
}

# write_keys: write "KEY TYPE TTL_MS" for each key of the server, in one request, since some keys live for a second only.
write_keys() {
	redis eval "local lines = {}
		for _, key in ipairs(redis.call('KEYS', '*')) do
			lines[#lines + 1] = key .. ' ' .. redis.call('TYPE', key).ok .. ' ' .. redis.call('PTTL', key)
		end
		return lines" 0 >keys
}

# compare_with_table: check that the table has each key of the file keys, with its type and TTL. Append its row to the file found.
compare_with_table() {
	local key type ttl_ms line
	while read -r key type ttl_ms; do
		sed -E 's/^permits$/SEMAPHORE/; s/^(rlock_total:)?\{permits\}(:timeout)?$/\1{SEMAPHORE}\2/; s/^[a-z]+$/NAME/; s/\{[a-z]+\}/{NAME}/; s/^(\{NAME\}):.*:rwlock_timeout:[0-9]+$/\1:OWNER:rwlock_timeout:N/' \
			<<<"$key" >name
		line=$(table_of_keys | awk -v name="$(<name)" '$1 == name')
		[ -n "$line" ] || fail "$key is not in the table"
		assert_equal "$key $type" "$key $(cut -c31-36 <<<"$line" | tr -d ' ')"
		ttl_fits "$(cut -c38-45 <<<"$line" | sed 's/ *$//')" "$ttl_ms" || fail "$ttl_ms: $line"
		cat name >>found
	done <keys
}

# shows KEY: write the keys, and check that KEY is among them.
shows() {
	write_keys
	grep -qF "$1 " keys
}

# gives_turn NAME: break the lock NAME, and check in the written keys that a waiter has the next turn.
gives_turn() {
	hold_by_foreign_client "$1"
	rlock unlock --force "$1"
	shows "rlock_turn:{$1}"
}

@test "rlock-protocol(7): the table of keys has each key that locks make, with its type and TTL" {
	not_under_valgrind 'its waiters do not join the queue in time'
	local waiter
	hold_in_background plain --fence
	in_background rlock fair plain -- true
	wait_until 5 is_held 'rlock_waiters:{plain}'
	in_background rlock read shared -- run_until_ended
	wait_until 5 is_held shared
	in_background rlock write shared -- true
	wait_until 5 is_held 'rlock_writer:{shared}'
	in_background rlock sem -t 15s --permits 2 permits -- run_until_ended
	wait_until 5 is_held permits
	# Poll: if these steps have taken long, the key of the writer has expired, and exists again after its next attempt.
	wait_until 10 shows 'rlock_writer:{shared}'
	compare_with_table
	end_commands
	all_ended_with 0
	# A waiter that has waited for 2.5 s gets the next turn. Stop the waiter, so that it does not use the turn.
	redis flushall >/dev/null
	hold_by_foreign_client broken
	in_background rlock run broken -- true
	waiter=$PID
	wait_until 10 has_waiters broken
	pause_for 2.5
	stop_waiters "$waiter"
	wait_until 20 gives_turn broken
	compare_with_table
	continue_waiters "$waiter"
	# Queue a thread of Java that is dead.
	redis rpush 'redisson_lock_queue:{fair}' 1b4e28ba-2fa1-41d2-883f-0016d3cca427:1 >/dev/null
	redis zadd 'redisson_lock_timeout:{fair}' 9999999999999 1b4e28ba-2fa1-41d2-883f-0016d3cca427:1 >/dev/null
	in_background rlock fair fair -- true
	wait_until 5 shows 'rlock_waiters:{fair}:foreign'
	compare_with_table
	ended_with 0
	rlock run --remember 1h last -- true
	write_keys
	compare_with_table
	assert_equal "$(sort -u found)" "$(table_of_keys | cut -d ' ' -f 1 | sort)"
}

@test "rlock-protocol(7): redis-cli acquires and releases a lock that rlock respects" {
	run_example man/rlock-protocol.7 by-hand
	assert_done $'1\n1\nstatus 3\n1\n0'
	nothing_is_held
}

@test "rlock-protocol(7): RLOCK_HELD has the form of the example" {
	run -0 rlock run -u "redis://127.0.0.1:$PORT" nightly -- printenv RLOCK_HELD
	assert_output --regexp "^redis:%2F%2F127\.0\.0\.1:$PORT%2F0/plain/nightly/$UUID:[0-9]+/[0-9a-f]{32}/30000/[0-9]+:[0-9]+$"
}
