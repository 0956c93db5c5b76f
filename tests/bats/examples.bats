#!/usr/bin/env bats
# bats file_tags=long
# The examples of the manual and of README.md do what is said of them, as they stand there, and leave nothing
# locked; and what the documents list is what there is.

load ../lib/helpers
load ../lib/leftovers
load ../lib/certificates
load ../lib/documenting

# Behind a port too, because a user can be named in the URL of a port alone.
setup_file() { start_server_at_port; }
teardown_file() { stop_server; }

setup() {
	common_setup
	TOP=$BATS_TEST_DIRNAME/../..
	cd "$BATS_TEST_TMPDIR" || return
}

teardown() {
	local server
	server=$(cat "$RLOCK_RUNTIME_DIR/local.pid" 2>/dev/null) && kill "$server" 2>/dev/null &&
		wait_until 10 is_gone "$server"
	watchful_teardown
}

# ---- examples ----

# example FILE NAME: what stands there, behind the mark of that name.
example() {
	case $1 in
	*.md)
		awk -v mark="<!-- example: $2 -->" '
			$0 == mark { is_near = 1; next }
			is_near && /^    / { print substr($0, 5); is_in = 1; next }
			is_near && /./ { exit }
			is_in' "$TOP/$1"
		;;
	*)
		sed -n '/^\.\\" example: '"$2"'$/,/^\.Ed/p' "$TOP/$1" |
			sed '/^\./d; s/\\&//g; s/\\-/-/g; s/\\e/\\/g'
		;;
	esac
}

# run_example FILE NAME: run has run it by sh, as a file.
run_example() {
	example "$1" "$2" >script
	assert [ -s script ]
	run --separate-stderr sh ./script
}

# assert_done OUTPUT [MESSAGE]: the example ended well, and said this and nothing else; MESSAGE is a regular
# expression.
assert_done() {
	assert_equal "$status" 0
	assert_output "$1"
	# shellcheck disable=SC2154
	output=$stderr
	if [ $# -gt 1 ]; then
		assert_output --regexp "$2"
	else
		assert_output ''
	fi
}

nothing_is_held() {
	no_keys
	no_state_files
}

nothing_is_held_locally() {
	assert_equal "$(redis-cli -s "$RLOCK_RUNTIME_DIR/local.sock" dbsize)" 0
}

@test "each example that is marked has a test here" {
	awk -v top="$TOP/" '
		sub(/^\.\\" example: /, "") || (sub(/^<!-- example: /, "") && sub(/ -->$/, "")) {
			print substr(FILENAME, length(top) + 1), $0
		}' "$TOP"/man/*.[1-9] "$TOP/README.md" | sort >marked
	grep -oE 'example (man/[a-z]+[-a-z]*\.[1-9]|README\.md) [-a-z]+' "$BATS_TEST_FILENAME" |
		cut -d ' ' -f 2- | sort -u >tested
	assert [ "$(wc -l <marked)" -gt 10 ]
	run -0 diff marked tested
}

# ---- rlock(1) ----

@test "rlock(1): the first lock" {
	run_example man/rlock.1 first
	assert_done 'the lock is held'
	nothing_is_held_locally
}

@test "rlock(7): two at a time, of which the second waits and says so" {
	run_example man/rlock.7 contend
	assert_done 'my turn' 'rlock: shared: waiting for [^ ]+ pid [0-9]+ sleep'
	nothing_is_held
}

# cron SHELL_LINE: as cron would have it run on one machine.
cron() {
	env -i HOME="$PWD" PATH="${RLOCK_BIN%/*}:/usr/bin:/bin" RLOCK_RUNTIME_DIR="$RLOCK_RUNTIME_DIR" /bin/sh -c "$1"
}

@test "rlock(1): of all machines that have the line in their crontab one does the work" {
	local line
	line=$(example man/rlock.1 crontab)
	assert_regex "$line" '^([0-9*]+ +){5}rlock '
	line=$(cut -d ' ' -f 6- <<<"$line")
	mkdir -p .config
	echo "url = $RLOCK_URL" >.config/rlock.conf
	run -0 --separate-stderr cron "$line"
	refute_output ''
	assert_equal "$stderr" ''
	run -0 cron "$line"
	assert_output ''
	# For a minute it has no owner, and then it is free.
	run redis hkeys report
	assert_output --regexp ':lingering:[0-9]+$'
	run redis pttl report
	assert [ "$output" -gt 50000 ]
	assert [ "$output" -le 60000 ]
}

@test "rlock(1): a step of a CI pipeline" {
	run_example man/rlock.1 ci
	assert_done $'build\ndeploy'
	nothing_is_held
}

@test "rlock(1): a script that says what went wrong" {
	run_example man/rlock.1 deploy
	assert_done $'migrate\ndone'
	nothing_is_held
}

@test "rlock(1): a script that acquires a lock for itself" {
	run_example man/rlock.1 script
	assert_done 'read, change, write'
	nothing_is_held
}

@test "rlock(1): a job whose steps are separate shells" {
	run_example man/rlock.1 owner
	# Redis 7.0 looks at its clock once more, for the time that is left.
	refute [ -z "$output" ]
	assert_done "$(grep -xE '30m|1799\.9[0-9]*s' <<<"$output")"
	nothing_is_held
}

@test "rlock(1): first come, first served" {
	run_example man/rlock.1 fair
	assert_done $'first\nsecond'
	nothing_is_held
}

@test "rlock(7): readers of a cache while a writer rebuilds it" {
	run_example man/rlock.7 cache
	assert_done $'rebuilding\nrebuilt\nread\nread'
	nothing_is_held
}

@test "rlock(7): readers share a lock, and a writer has it alone" {
	echo '{}' >catalog.json
	run_example man/rlock.7 ask-readers
	assert_done '{}'
	run -0 grep : catalog.json
	nothing_is_held
}

@test "rlock(1): tests and a deployment on the staging system" {
	run_example man/rlock.1 staging
	assert_done $'test\ndeploy'
	nothing_is_held
}

# only_the_counter_stays NAME TOKEN: of a lock with --fence, which was acquired so many times.
only_the_counter_stays() {
	assert_equal "$(redis getdel "redisson_lock_token:{$1}")" "$2"
	nothing_is_held
}

@test "rlock(7): one lock over several steps of CI" {
	CI_JOB_ID=4711 run_example man/rlock.7 ask-steps
	# Some servers let their clock run on within a script.
	output=${output/#3599.99[0-9]s/1h}
	assert_done 1h
	nothing_is_held
}

@test "rlock(7): a store that refuses a smaller token" {
	run_example man/rlock.7 fence
	assert_done "$(printf '%s\n' 'stored with token 1' 'stored with token 2' \
		'refused: token 1 is smaller than 2' 'a holder that lost its lock cannot store')"
	only_the_counter_stays report 2
}

# only_the_semaphore_stays NAME FREE
only_the_semaphore_stays() {
	assert_equal "$(redis --scan | sort)" "$(printf '%s\n' "$1" "rlock_total:{$1}")"
	assert_equal "$(redis get "$1")" "$2"
	no_state_files
}

@test "rlock(7): three imports at a time" {
	run_example man/rlock.7 imports
	assert_equal "$(sort <<<"$output")" $'part 1\npart 2\npart 3\npart 4\npart 5'
	only_the_semaphore_stays imports 3
}

@test "rlock(7): two jobs that name the same locks in different orders" {
	run_example man/rlock.7 names
	assert_done both
	nothing_is_held
}

@test "rlock(7): a status of one's own" {
	run_example man/rlock.7 conflict
	assert_done 'status 200'
	nothing_is_held
}

@test "rlock(7): a lock that is broken" {
	run_example man/rlock.7 force
	assert_done '' '^rlock: stuck: timed out after 100ms: held by .* \(gone:0\), for [0-9.]+s
rlock: stuck: lock broken: it was held by .+ \(gone:0\), which may still run$'
	nothing_is_held
}

@test "rlock(7): the state of a lock, for a script" {
	rlock fair --owner tonight --lease 1h --note 'nightly backup' nightly
	run_example man/rlock.7 status
	assert_done 'nightly backup 0'
	in_background rlock fair nightly -- true
	wait_until 5 is_queued nightly
	run_example man/rlock.7 status
	assert_done 'nightly backup 1'
}

@test "rlock(7): what happened to a lock" {
	run_example man/rlock.7 log
	assert_equal "$status" 0
	assert_line --index 1 --regexp '^ +1 event=acquired$'
	assert_line --index 2 --regexp '^ +1 event=released$'
	nothing_is_held
}

@test "rlock(7): which job holds a lock, since when, and which wait" {
	in_background rlock fair --note "nightly backup" nightly -- until_let_go
	wait_until 5 is_held nightly
	in_background rlock fair --note "nightly report" nightly -- true
	wait_until 5 is_queued nightly
	run_example man/rlock.7 ask-holder
	assert_equal "$status" 0
	assert_line --index 0 --regexp '^nightly: fair lock, held, [0-9]+s of its lease left$'
	assert_line --index 1 --regexp '^ +FOR +TTL '
	assert_line --index 2 --regexp '^  holder +[0-9.]+s .* nightly backup  '
	assert_line --index 3 --regexp '^  waiter 1 +[0-9.]+s +rlock +nightly report +[0-9a-f]'
}
is_queued() {
	redis_says 1 llen "redisson_lock_queue:{$1}"
}

@test "rlock(7): whether a lock is stuck" {
	hold_in_background nightly -t 6s
	# Only the interval is another, and the shell is replaced, so that it ends with its script.
	example man/rlock.7 ask-stuck | sed 's/^/exec /; s/5s/100ms/' >script
	in_background sh ./script >seen
	# What it shows of the TTL grows again at each renewal.
	wait_until 10 ttl_grew
	kill "$PID"
	run -0 cat seen
	assert_line --index 0 --regexp '^nightly: plain lock, held, [0-9.]+s of its lease left$'
}
ttl_grew() {
	sed -nE 's/.* held, ([0-9.]+)s .*/\1/p' seen | awk 'NR > 1 && $1 > last + 0.5 { grew = 1 } { last = $1 } END { exit !grew }'
}

@test "rlock(7): which lock may be broken, and that no other holder is hit" {
	rlock lock --owner ci-1234 --lease 1h nightly
	run -0 rlock status nightly
	assert_line --index 2 --regexp ' ci-1234:0$'
	run_example man/rlock.7 ask-break
	assert_done '' '^rlock: nightly: lock broken: it was held by .+ \(ci-1234:0\), which may still run$'
	nothing_is_held
	rlock lock --owner another --lease 1h nightly
	run_example man/rlock.7 ask-break
	assert_equal "$status" 1
	assert_equal "$(redis exists nightly)" 1
}

@test "rlock(7): which locks there are" {
	rlock lock --owner ci --lease 1h --note 'release 7' deploy-shop
	rlock lock --owner ci --lease 1h --note 'the backup' nightly
	run_example man/rlock.7 ask-list
	assert_equal "$status" 0
	# All of them, then those that fit the pattern.
	assert_equal "$(grep -cE '^deploy-shop +plain .* release 7$' <<<"$output")" 2
	assert_equal "$(grep -cE '^nightly +plain .* the backup$' <<<"$output")" 1
}

@test "rlock(7): whether a job of cron reaches the server" {
	mkdir -p .config
	echo "url = $RLOCK_URL" >.config/rlock.conf
	# The runtime directory is this machine's own here.
	HOME=$PWD run_example man/rlock.7 ask-cron
	assert_equal "$status" 0
	assert_line --regexp '^unix://.*: the server is from .*/\.config/rlock\.conf$'
	assert_line --regexp "^ok +url +unix://.*, from $PWD/\.config/rlock\.conf:1\$"
	echo 'url = redis://127.0.0.1:1' >.config/rlock.conf
	HOME=$PWD run_example man/rlock.7 ask-cron
	assert_equal "$status" 69
	assert_line --regexp '^BAD +server +cannot reach redis://127.0.0.1:1/0'
}

@test "rlock(7): whether a user has all rights" {
	run_example man/rlock.7 ask-rights
	assert_equal "$status" 0
	assert_line --regexp '^ok +rights +all$'
	redis acl setuser ci reset on '>pw' '~deploy-*' '&*' +@all -publish >/dev/null
	RLOCK_URL=redis://ci:pw@127.0.0.1:$PORT run_example man/rlock.7 ask-rights
	assert_equal "$status" 77
	assert_line --regexp '^BAD +rights +.*: try: ACL SETUSER ci .*\+publish'
}

@test "rlock(7): which option is from where" {
	run_example man/rlock.7 ask-options
	assert_equal "$status" 0
	assert_line --regexp '^ok +url +unix://.*, from RLOCK_URL in the environment$'
	assert_line --regexp '^ok +ttl +10s, from the command line$'
	assert_line --regexp '^ok +connect-timeout +5s, the default$'
}

@test "rlock(7): what happened last night" {
	echo "log = $PWD/rlock.log" >rlock.conf
	RLOCK_CONFIG=$PWD/rlock.conf run -3 rlock run nightly -- sh -c 'exit 3'
	RLOCK_CONFIG=$PWD/rlock.conf run -0 rlock run other -- true
	example man/rlock.7 ask-night | sed "s|/var/log|$PWD|" >script
	run -0 sh ./script
	assert_line --index 0 --regexp ' event=acquired name=nightly '
	assert_line --index 1 --regexp ' event=released name=nightly .* status=3( |$)'
	assert_equal "${#lines[@]}" 2
}

@test "rlock(1): the holder of a lock, all locks, and whether locks work here" {
	rlock lock --owner ci --lease 1h --note 'the backup' nightly
	run_example man/rlock.1 ask
	assert_equal "$status" 0
	assert_line --regexp '^  holder .* the backup '
	assert_line --regexp '^nightly +plain .* the backup$'
	assert_line --regexp '^ok +version '
	rlock unlock --owner ci nightly
	nothing_is_held
}

@test "rlock(1): a loop whose input is not eaten" {
	run_example man/rlock.1 loop
	assert_done $'upgrade web1\nupgrade web2'
	nothing_is_held
}

# ---- rlock-protocol(7) ----

# A redis-cli that asks the file's server without being told.
own_redis_cli() {
	mkdir bin
	# shellcheck disable=SC2016
	printf '#!/bin/sh\nexec %s -s "$SERVER_SOCKET" "$@"\n' "$(command -v redis-cli)" >bin/redis-cli
	chmod +x bin/redis-cli
	PATH=$PWD/bin:$PATH
}

UUID='[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}'

@test "rlock-protocol(7): what a lock looks like" {
	own_redis_cli
	run_example man/rlock-protocol.7 look
	assert_equal "$status" 0
	assert_equal "${#lines[@]}" 5
	assert_regex "${lines[0]}" "^$UUID:[0-9]+$"
	assert_equal "${lines[1]}" 1
	assert_regex "${lines[2]}" '^(30000|2[0-9]{4})$'
	assert_regex "${lines[3]}" '^[0-9a-f]{32}$'
	assert_regex "${lines[4]}" "^${lines[0]} [0-9]{13} [0-9]{13} - a look$"
	nothing_is_held
}

@test "rlock-protocol(7): a read lock while a writer waits" {
	not_under_valgrind 'its waiters do not stand in line in time'
	own_redis_cli
	run_example man/rlock-protocol.7 look-readwrite
	assert_equal "$status" 0
	assert_equal "${lines[0]} ${lines[1]}" 'mode read'
	assert_regex "${lines[2]}" "^$UUID:[0-9]+$"
	assert_equal "${lines[3]}" 1
	assert_equal "${lines[4]}" "{nightly}:${lines[2]}:rwlock_timeout:1"
	assert_regex "${lines[5]}" '^[0-9]{16} writer:0 .'
	assert_equal "${#lines[@]}" 6
	assert_regex "$stderr" '^rlock: nightly: timed out after 3s: held by '
	nothing_is_held
}

@test "rlock-protocol(7): the queue of a fair lock" {
	not_under_valgrind 'its waiters do not stand in line in time'
	own_redis_cli
	run_example man/rlock-protocol.7 look-fair
	assert_equal "$status" 0
	# A hash with a long value has no order.
	[ "${lines[2]}" = next:0 ] || lines=("${lines[@]:0:2}" "${lines[@]:4}" "${lines[@]:2:2}")
	assert_equal "${lines[0]} ${lines[1]} ${lines[2]}" 'next:0 next:0 next:0'
	assert_regex "${lines[3]}" '^[0-9]{13} [0-9]{16} [0-9a-f]{40} [0-9]+ .'
	assert_equal "${lines[4]}" seen
	assert_regex "${lines[5]}" '^[0-9]{13} [0-9]{13} [0-9a-f]{40} 0$'
	assert_equal "${#lines[@]}" 6
	assert_regex "$stderr" '^rlock: nightly: timed out after 3s: held by '
	nothing_is_held
}

# table_of_keys: prints the lines of rlock-protocol(7) that have a key, with its type and TTL.
table_of_keys() {
	sed -n '/^\.Sh KEYS/,/^\.Ed/p' "$TOP/man/rlock-protocol.7" | grep -E '^[^. ]' | grep -v '^key '
}

# has_waited_for MS ZSET: its first member has, by the server's clock.
has_waited_for() {
	local since now
	since=$(redis zrange "$2" 0 0 withscores | sed -n 2p)
	now=$(redis time | head -n 1)
	[ -n "$since" ] && [ "$((now * 1000 - since / 1000))" -gt "$1" ]
}

# ttl_fits TEXT MS: whether a TTL is what the table says, for a lease of 30 s.
ttl_fits() {
	case $1 in
	none) [ "$2" -eq -1 ] ;;
	lease | 'as NAME') [ "$2" -gt 10000 ] && [ "$2" -le 30000 ] ;;
	'1 day +') [ "$2" -gt 86000000 ] ;;
	'5 min +') [ "$2" -gt 300000 ] ;;
	'1 day') [ "$2" -gt 86300000 ] && [ "$2" -le 86400000 ] ;;
	'1 min') [ "$2" -gt 30000 ] && [ "$2" -le 60000 ] ;;
	'5 s') [ "$2" -gt 1000 ] && [ "$2" -le 5000 ] ;;
	'1 s') [ "$2" -gt 0 ] && [ "$2" -le 1000 ] ;;
	*) return 1 ;;
	esac
}

# write_keys: writes "KEY TYPE TTL_MS" of each key of the server, at one moment: some live for a second only.
write_keys() {
	redis eval "local lines = {}
		for _, key in ipairs(redis.call('KEYS', '*')) do
			lines[#lines + 1] = key .. ' ' .. redis.call('TYPE', key).ok .. ' ' .. redis.call('PTTL', key)
		end
		return lines" 0 >keys
}

# compare_with_table: each key in `keys` is in the table, with its type and TTL; appends what it is there to `found`.
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

# gives_turn NAME: a lock of that name is broken, and the keys that are written down show that a waiter has the next turn.
gives_turn() {
	redis hset "$1" 1b4e28ba-2fa1-41d2-883f-0016d3cca427:1 1 >/dev/null
	redis pexpire "$1" 30000 >/dev/null
	rlock unlock --force "$1"
	write_keys
	grep -q "^rlock_turn:{$1} " keys
}

@test "rlock-protocol(7): the table of keys has each key that locks make, with its type and TTL" {
	not_under_valgrind 'its waiters do not stand in line in time'
	local fair waiter semaphore
	hold_in_background plain --fence
	in_background rlock fair plain -- true
	fair=$PID
	wait_until 5 is_held 'rlock_waiters:{plain}'
	in_background rlock read shared -- until_let_go
	wait_until 5 is_held shared
	in_background rlock write shared -- true
	wait_until 5 is_held 'rlock_writer:{shared}'
	in_background rlock sem -t 15s --permits 2 permits -- until_let_go
	semaphore=$PID
	wait_until 5 is_held permits
	write_keys
	compare_with_table
	let_go
	ended_with 0
	ended_with 0 "$fair"
	ended_with 0 "$semaphore"
	# A waiter that has waited for so long has the next turn, and this one does not come.
	redis flushall >/dev/null
	redis hset broken 1b4e28ba-2fa1-41d2-883f-0016d3cca427:1 1 >/dev/null
	redis pexpire broken 30000 >/dev/null
	in_background rlock run broken -- true
	waiter=$PID
	wait_until 10 has_waited_for 2500 'rlock_queue:{broken}'
	kill -STOP "$waiter"
	wait_until 20 gives_turn broken
	compare_with_table
	kill -CONT "$waiter"
	assert_equal "$(sort -u found)" "$(table_of_keys | cut -d ' ' -f 1 | sort)"
}

@test "rlock-protocol(7): the table of keys fits into 80 columns" {
	sed -n '/^\.Sh KEYS/,/^\.Ed/p' "$TOP/man/rlock-protocol.7" | grep '^[^.]' >table
	assert [ "$(wc -l <table)" -gt 20 ]
	run -1 grep -E '^.{76}' table
	assert_output ''
}

@test "rlock-protocol(7): the same lock by hand" {
	own_redis_cli
	run_example man/rlock-protocol.7 by-hand
	assert_done $'1\n1\nstatus 3\n1\n0'
	nothing_is_held
}

@test "rlock-protocol(7): what stands in RLOCK_HELD" {
	run -0 rlock run -u "redis://127.0.0.1:$PORT" nightly -- printenv RLOCK_HELD
	assert_output --regexp "^redis:%2F%2F127\.0\.0\.1:$PORT%2F0/plain/nightly/$UUID:[0-9]+/[0-9a-f]{32}/30000$"
}

# ---- librlock(3) ----

# compile NAME [FILE.c...]: NAME.c is the program NAME, with these files in it.
compile() {
	local build=${RLOCK_BIN%/*}
	# What is watched stands one directory below.
	[ -z "${TESTS_UNDER-}" ] || build=${build%/*}
	[ -e "$build/librlock.so.0" ] || skip 'no library beside the program'
	"${CC:-cc}" -Wall -Wextra -Werror -I "$TOP/lib" "$1.c" "${@:2}" "$build/librlock.so.0" -Wl,-rpath,"$build" -o "$1"
}

@test "librlock(3): the program compiles, and has the lock for as long as it works" {
	# In the place of three seconds.
	cat >sleep.c <<-'EOS'
		#include <stdlib.h>
		#include <unistd.h>
		unsigned int sleep(unsigned int seconds)
		{
			return seconds == 3 && system("redis-cli -s \"$SERVER_SOCKET\" exists nightly >>held") == 0 ? 0 : 1;
		}
	EOS
	example man/librlock.3 program >program.c
	compile program sleep.c
	run -0 --separate-stderr ./program
	assert_done "$(printf 'step %d\n' {1..10})"
	assert_equal "$(sort held | uniq -c | tr -s ' ')" ' 10 1'
	nothing_is_held
}

@test "librlock(3): the program for TLS compiles, and tells whether its server can be used" {
	local url
	example man/librlock.3 tls >tls.c
	compile tls
	certificates certificates
	url=$(choose_port && echo "rediss://127.0.0.1:$PORT")
	in_background redis-server --port 0 --tls-port "${url##*:}" --tls-cert-file certificates/server.crt --save '' \
		--tls-key-file certificates/server.key --tls-ca-cert-file certificates/ca.crt --tls-auth-clients no
	cp certificates/ca.crt ca.pem
	wait_until 10 ./tls "$url" >/dev/null 2>&1
	run -0 ./tls "$url"
	assert_output "$url/0 can be used"
	cp certificates/stranger.crt ca.pem
	run -69 ./tls "$url"
	assert_output --regexp "^tls: cannot connect to $url/0: (the authority \(CA\) of its certificate is not trusted|its certificate)"
	run -64 ./tls redis://127.0.0.1
	assert_output 'tls: redis://127.0.0.1:6379/0: no TLS'
}

@test "librlock(3): the program for sentinels compiles, and logs in at them" {
	local sentinel master url
	example man/librlock.3 sentinels >sentinels.c
	compile sentinels
	choose_port && master=$PORT
	choose_port && sentinel=$PORT
	url=redis+sentinel://127.0.0.1:$sentinel/mymaster
	in_background redis-server --port "$master" --save ''
	printf '%s\n' "port $sentinel" "dir $PWD" 'requirepass SECRET' "sentinel monitor mymaster 127.0.0.1 $master 1" >sentinel.conf
	in_background redis-server "$PWD/sentinel.conf" --sentinel
	SENTINEL_PASSWORD=SECRET wait_until 10 ./sentinels "$url" >/dev/null 2>&1
	SENTINEL_PASSWORD=SECRET run -0 ./sentinels "$url"
	assert_output "the master of $url/0 can be used"
	run -69 ./sentinels "$url"
	assert_output --regexp "^sentinels: no sentinel names the master of mymaster: denied by redis://127.0.0.1:$sentinel/0: "
	run -64 ./sentinels redis://127.0.0.1
	assert_output 'sentinels: redis://127.0.0.1:6379/0: no sentinels'
}

@test "librlock(3): the calling sequence compiles, acquires the lock and releases it" {
	example man/librlock.3 sequence | sed "s/:6379/:$PORT/; /The work/c system(getenv(\"WORK\"));" >sequence.c
	compile sequence -include stdlib.h -Wno-unused-result
	WORK="redis-cli -s '$SERVER_SOCKET' exists nightly" run -0 ./sequence
	assert_output 1
	nothing_is_held
}

@test "rlock.h: the calling sequence at its beginning compiles" {
	{
		printf '#include <err.h>\n#include <rlock.h>\nint main(void)\n{\n'
		sed -n '/^ \*\tstruct rlock_url/,/rlock_url_free/s/^ \*\t*//p' "$TOP/lib/rlock.h" | grep -v '^\.\.\.'
		printf '}\n'
	} >header.c
	assert [ "$(wc -l <header.c)" -gt 20 ]
	compile header
}

@test "librlock(3) has every function and every status of the header, and no other" {
	sed -n '/^RLOCK_API/,/;/p' "$TOP/lib/rlock.h" | tr '\n' ' ' | grep -o 'rlock_[a-z_]*(' | tr -d '(' |
		sort -u >there
	assert [ "$(wc -l <there)" -gt 30 ]
	# In NAME, in SYNOPSIS and in DESCRIPTION.
	sed -nE 's/^\.Nm (rlock_[a-z_]+).*/\1/p' "$TOP/man/librlock.3" | sort >shown
	run -0 diff there shown
	sed -nE '/^\.Sh SYNOPSIS/,/^\.Sh DESC/s/^\.Fn (rlock_[a-z_]+).*/\1/p' "$TOP/man/librlock.3" | sort >shown
	run -0 diff there shown
	sed -n '/^\.Sh DESC/,/^\.Sh RETURN/p' "$TOP/man/librlock.3" | grep '^\.It Fn' | grep -o 'rlock_[a-z_]*' | sort >shown
	run -0 diff there shown
	sed -n '/^enum rlock_status {/,/^}/s/^\t\(RLOCK_[A-Z_]*\) = .*/\1/p' "$TOP/lib/rlock.h" >there
	sed -n '/^\.Sh RETURN/,/^\.Sh EX/s/^\.It Dv //p' "$TOP/man/librlock.3" >shown
	assert [ "$(wc -l <there)" -gt 10 ]
	run -0 diff there shown
}

# ---- README.md ----

@test "README: two that want one lock" {
	run_example README.md try
	assert_done 'my turn' 'rlock: shared: waiting for [^ ]+ pid [0-9]+ sleep'
	nothing_is_held_locally
}

@test "README: a CI step" {
	stub deploy.sh
	run_example README.md ci
	assert_done 'deploy.sh production'
	nothing_is_held
}

@test "README: a job of several steps" {
	CI_JOB_ID=4711 run_example README.md steps
	# Some servers let their clock run on within a script.
	output=${output/#3599.99[0-9]s/1h}
	assert_done 1h
	nothing_is_held
}

@test "README: several names" {
	stub migrate-and-restart
	run_example README.md names
	assert_done 'migrate-and-restart '
	nothing_is_held
}

@test "README: a command that fails passes its status on" {
	printf '#!/bin/sh\nexit 3\n' >migrate-and-restart
	chmod +x migrate-and-restart
	run_example README.md names
	assert_equal "$status" 3
	nothing_is_held
}

@test "README: a script that acquires a lock for itself" {
	stub read-change-write
	run_example README.md script
	assert_done 'read-change-write '
	nothing_is_held
}

@test "README: first come, first served" {
	stub deploy.sh
	run_example README.md fair
	assert_done 'deploy.sh production'
	nothing_is_held
}

@test "README: readers and writers" {
	stub report
	stub load
	run_example README.md warehouse
	assert_done $'report sales\nload '
	nothing_is_held
}

@test "README: three imports at a time" {
	stub import
	run_example README.md imports
	assert_done 'import '
	only_the_semaphore_stays imports 3
}

@test "README: a lock that no process releases" {
	held_by_stranger stuck
	run_example README.md stuck
	assert_equal "$status" 0
	assert_line --regexp '^  holder .* 5e8b3cf0-8a4b-4d52-a7f9-3f0e6f0c7a11:1$'
	assert_regex "$stderr" '^rlock: stuck: lock broken: it was held by .*5e8b3cf0-8a4b-4d52-a7f9-3f0e6f0c7a11:1, which may still run$'
	nothing_is_held
}

# ---- rights ----

# acl_lines FILE MARK: the lines for redis-cli that stand there.
acl_lines() {
	sed -n '/^\.\\" acl: '"$2"'$/,/^\.Ed/p' "$TOP/$1" | sed -n 's/\\&//g; /^ACL /p'
}

# rights: the commands that rlock(7) has for a user, one a line.
rights() {
	acl_lines man/rlock.7 'least rights' | grep -o '+[a-z|]*' | tr -d +
}

# be_user FILE MARK...: the user ci is made by these lines, and makes the calls from here on.
be_user() {
	redis acl deluser ci >/dev/null
	while [ $# -gt 0 ]; do
		acl_lines "$1" "$2"
		shift 2
	done >acl
	assert [ -s acl ]
	run -0 redis <acl
	refute_line --regexp '[^OK]'
	redis acl log reset >/dev/null
	export RLOCK_URL=redis://ci:SECRET@127.0.0.1:$PORT
}

# use_kind VERB LOCK_VERB NAME: whatever can be done with a lock of one kind, but waiting.
use_kind() {
	local verb=$1 lock=$2 name=$3
	run -0 rlock "$verb" -n "$name" -- rlock "$verb" -n "$name" -- true
	run -0 rlock "$verb" -n --db 3 "$name" -- true
	run -0 rlock "$verb" -t 3s "$name" -- sleep 1.2
	run -0 rlock "$verb" -n "$name" -- rlock "$verb" --at-least 10ms "$name" -- true
	run -0 rlock "$verb" -w 5s --at-least 10ms "$name" -- true
	run -0 rlock "$lock" -w 5s --owner x --lease 20s "$name"
	run -0 rlock renew --owner x --lease 20s "$name"
	run -0 rlock unlock --owner x "$name"
	run -0 rlock "$lock" --pid $$ "$name"
	run -0 rlock renew --pid $$ "$name"
	run -0 rlock unlock --pid $$ "$name"
	run -0 rlock "$lock" --owner x --lease 20s "$name"
	run -0 rlock unlock --force "$name"
	run -78 rlock "$verb" -n "$name-string" -- true
	assert_output --partial string
}

# use_wait HOLD WAIT NAME: waits by the verb WAIT for what HOLD has: in vain, and until it is released.
use_wait() {
	local hold=$1 wait=$2 name=$3
	run -0 rlock "$hold" --owner x --lease 20s "$name"
	run -75 rlock "$wait" -w 20ms "$name" -- true
	in_background rlock "$wait" -w 20s "$name" -- true
	wait_until 5 has_listener
	run -0 rlock unlock --owner x "$name"
	wait "$PID"
}
has_listener() {
	[ "$(redis pubsub channels)" != '' ]
}

# line_of NAME: the keys of the line, the one of the deadlines behind it.
line_of() {
	case $1 in
	*'{'*) printf '%s\n' "redisson_lock_queue:$1" "redisson_lock_timeout:$1" ;;
	*) printf '%s\n' "redisson_lock_queue:{$1}" "redisson_lock_timeout:{$1}" ;;
	esac
}

# A Java client takes the first position of NAME's queue from the waiter, and the waiter takes it back.
use_return() {
	local name=$1 line deadlines waiter
	{ read -r line; read -r deadlines; } < <(line_of "$name")
	run -0 rlock lock --owner x --lease 20s "$name"
	in_background rlock fair -w 20s "$name" -- true
	wait_until 5 has_queued_waiter "$line"
	waiter=$(redis lindex "$line" 0)
	redis zadd "$deadlines" 9999999999999 java:1 >/dev/null
	redis rpush "$line" java:1 >/dev/null
	redis lrem "$line" 1 "$waiter" >/dev/null
	wait_until 5 is_first "$line" "$waiter"
	run -0 rlock unlock --owner x "$name"
	wait "$PID"
	redis del "$line" "$deadlines" >/dev/null
}
has_queued_waiter() {
	[ "$(redis llen "$1")" -gt 0 ]
}
is_first() {
	redis_says "$2" lindex "$1" 0
}

use_plain() {
	use_kind run lock "$1"
	use_wait lock lock "$1"
	run -0 rlock run -n --fence "$1" -- true
}

use_fair() {
	use_kind fair fair "$1"
	use_wait fair fair "$1"
	use_return "$1"
	run -0 rlock fair -n --fence "$1" -- true
}

use_readwrite() {
	use_kind rlock rlock "$1"
	use_kind wlock wlock "$1"
	use_wait rlock wlock "$1"
	use_wait wlock rlock "$1"
	use_wait wlock wlock "$1"
	run -0 rlock wlock -n "$1" -- rlock rlock -n "$1" -- true
	run -64 rlock rlock -n "$1" -- rlock wlock -n "$1" -- true
	run -0 rlock rlock --owner x --lease 20s "$1"
	run -0 rlock rlock --owner y --lease 20s "$1"
	run -0 rlock unlock --force --holder x:0 "$1"
	run -0 rlock unlock --force "$1"
}

use_sem() {
	local name=$1-sem
	run -0 rlock sem -n --permits 2 "$name" -- true
	run -0 rlock sem --permits 2 --take 2 --owner x --lease 20s "$name"
	run -0 rlock renew --owner x --lease 30s "$name"
	run -75 rlock sem -w 1s --permits 2 "$name" -- true
	in_background rlock sem -w 20s --permits 2 "$name" -- true
	wait_until 5 is_held "$(case $1 in *'{'*) echo "rlock_queue:$name" ;; *) echo "rlock_queue:{$name}" ;; esac)"
	run -0 rlock unlock --owner x "$name"
	wait "$PID"
	run -0 rlock sem --permits 2 --at-least 1s "$name" -- true
	run -0 rlock sem --permits 3 --resize "$name"
	run -0 rlock status "$name"
	run -0 rlock unlock --force "$name"
}

# use_several NAME: on databases of this server, in the place of servers.
use_several() {
	run -0 rlock run -t 3s -w 10s -u "$RLOCK_URL/1 $RLOCK_URL/2 $RLOCK_URL/3" --quorum majority "$1" -- true
}

# use_everything NAME: whatever can be done with a lock.
use_everything() {
	redis script flush >/dev/null
	use_plain "$1"
	use_fair "$1"
	use_readwrite "$1"
	use_sem "$1"
	use_several "$1"
}

@test "each right that rlock(7) lists is used" {
	be_user man/rlock.7 'least rights'
	redis mset nightly-string x 'redisson_lock_token:{nightly}' 1 >/dev/null
	redis config resetstat >/dev/null
	use_everything nightly
	assert_equal "$(redis acl log)" ''
	# Redis 6 counts no subcommands.
	redis info commandstats | sed -nE 's/^cmdstat_([a-z]+).*/\1/p' | sort -u >used
	rights | cut -d '|' -f 1 | sort >listed
	assert [ "$(wc -l <listed)" -gt 30 ]
	run -0 comm -23 listed used
	assert_output ''
}

# without_lines WORD...: the user ci by the lines of rlock(7) without those that have one of these words.
without_lines() {
	redis acl deluser ci >/dev/null
	acl_lines man/rlock.7 'least rights' | grep -vF "$(printf '%s\n' "$@")" | redis >/dev/null
	redis acl log reset >/dev/null
	redis script flush >/dev/null
	export RLOCK_URL=redis://ci:SECRET@127.0.0.1:$PORT
}

@test "for plain locks the lines up to the one with +publish are enough" {
	redis set nightly-string x >/dev/null
	without_lines +lindex +zscore +zcard
	use_plain nightly
	assert_equal "$(redis acl log)" ''
	run -77 rlock fair -n nightly -- true
	run -77 rlock rlock -n nightly -- true
}

@test "for fair locks the lines behind that are enough" {
	redis set nightly-string x >/dev/null
	without_lines +zcard
	use_fair nightly
	assert_equal "$(redis acl log)" ''
}

@test "for read and write locks the lines of their own are enough" {
	redis set nightly-string x >/dev/null
	without_lines +lindex +zscore
	use_readwrite nightly
	assert_equal "$(redis acl log)" ''
}

@test "for semaphores the lines with +zcard, +zscore and +incrby are enough beside those of plain locks" {
	redis set nightly-string x >/dev/null
	without_lines +lindex
	use_sem nightly
	assert_equal "$(redis acl log)" ''
}

@test "rlock-protocol(7) lists the same rights" {
	rights | tr '|' '\n' | sort >listed
	sed -n '/^\.Sh ACCESS/,/^\.Pp/p' "$TOP/man/rlock-protocol.7" | grep '^\.Ic' | grep -oE '[A-Z]{2,}' |
		grep -vx AUTH | tr '[:upper:]' '[:lower:]' | sort >shown
	run -0 diff listed shown
}

@test "the keys and channels that rlock-protocol(7) has for groups of names are enough for these" {
	local name
	be_user man/rlock.7 'least rights' man/rlock-protocol.7 narrow
	redis acl setuser ci resetkeys resetchannels >/dev/null
	acl_lines man/rlock-protocol.7 narrow | redis >/dev/null
	for name in nightly-of-db1 '{app}:x'; do
		redis mset "$name-string" x >/dev/null
		use_everything "$name"
	done
	redis set 'redisson_lock_token:{nightly}' 1 >/dev/null
	run -0 rlock run -n nightly -- true
	assert_equal "$(redis acl log)" ''
}

@test "the keys and channels that rlock-protocol(7) has for groups of names are no others'" {
	local name verb
	be_user man/rlock.7 'least rights' man/rlock-protocol.7 narrow
	redis acl setuser ci resetkeys resetchannels >/dev/null
	acl_lines man/rlock-protocol.7 narrow | redis >/dev/null
	for name in daily '{nightly}' '{nightly}:x' app:x '{app}x' '{nightly'; do
		for verb in run fair rlock wlock; do
			run -77 rlock "$verb" -n "$name" -- true
		done
		run -77 rlock unlock --force "$name"
	done
	no_keys
}

# ---- lists ----

# listed_variables: what stands in rlock(1), ENVIRONMENT.
listed_variables() {
	sed -n '/^\.Sh ENVIRONMENT/,/^\.Sh FILES/s/^\.It Ev //p' "$TOP/man/rlock.1" | sed 's/ , /\n/g'
}

@test "rlock(1) lists each exit status" {
	local code
	sed -n '/^\.Sh EXIT STATUS/,/^\.Sh EXAMPLES/s/^\.It \([0-9]*\)$/\1/p' "$TOP/man/rlock.1" >listed
	for code in 0 1 64 69 70 71 75 76 77 78 124 126 127; do
		echo "$code"
	done >promised
	run -0 diff promised listed
}

@test "README: each exit code is listed" {
	local code
	sed -n '/^## Exit codes/,/^## /p' "$TOP/README.md" >listed
	exit_codes_of_program >codes
	assert [ -s codes ]
	while read -r code; do
		run -0 grep -w "$code" listed
	done <codes
}

@test "rlock(1) lists each environment variable" {
	local name
	listed_variables >listed
	for name in RLOCK_URL RLOCK_CONFIG RLOCK_RUNTIME_DIR REDISCLI_AUTH XDG_CONFIG_HOME HOME RLOCK_NAME \
		RLOCK_OWNER RLOCK_MODE RLOCK_TOKEN RLOCK_HELD; do
		run -0 grep -x "$name" listed
	done
}

@test "rlock(1) lists each environment variable that the program reads" {
	grep -ohE 'getenv\("[A-Z_]+"\)' "$TOP"/{cli,lib}/{,*/}*.c | cut -d '"' -f 2 | sort -u >asked
	listed_variables | sort -u >listed
	assert [ -s asked ]
	run -0 comm -23 asked listed
	assert_output ''
}

@test "each chaos scenario is described, with the guarantee of rlock(7) that it tests" {
	grep -ohE "begin_scenario ['\"][^,'\"]+" "$TOP"/tests/chaos/*.bats | cut -c 17- | sort -u >played
	sed -nE 's/^\| ([^|]+) \| [1-6, ]+ \| [^|]+ \|$/\1/p' "$TOP/tests/chaos/README.md" | sort >described
	assert [ -s described ]
	run -0 diff described played
}

@test "each guarantee of rlock(7) is tested by a chaos scenario" {
	sed -nE 's/^\.Ss ([0-9]+)\. .*/\1/p' "$TOP/man/rlock.7" >guaranteed
	sed -nE 's/^\| [^|]+ \| ([1-6, ]+) \| [^|]+ \|$/\1/p' "$TOP/tests/chaos/README.md" | tr -d ' ' | tr , '\n' | sort -u >tested
	assert [ -s guaranteed ]
	run -0 diff guaranteed tested
}
