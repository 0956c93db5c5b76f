#!/usr/bin/env bats
# bats file_tags=long
# One lock on several servers that all must agree: what stands on each of them, which owner is kept out, which waiter is woken, and where
# passwords and databases come from. What happens to servers and processes: servers_faults.bats; with a quorum smaller than all:
# quorum.bats; which servers may be named together: unit/test_usage.c.

# runs_once is agreeing.bash's, and VIA servers.bash's.
# shellcheck disable=SC2034,SC2154

load ../lib/usual
load ../lib/agreeing

setup_file() { start_warm_servers 6 --databases 40; }

# ---- what stands on the servers ----

# sorted LINE...: in the order of same_on_all.
sorted() {
	printf '%s\n' "$@" | LC_ALL=C sort
}

@test "a lock of each kind is the same hash on each server, of the same owner, and leaves no key" {
	local verb
	for verb in run fair rlock wlock; do
		rm -f owner let-go
		in_background rlock "$verb" a -- sh -c 'echo "$RLOCK_OWNER" >owner; exec until_let_go'
		wait_until 5 has_lines owner 1
		case $verb in
		run | fair) assert_equal "$(same_on_all hgetall a)" "$(sorted 1 "$(cat owner)")" ;;
		rlock) assert_equal "$(same_on_all hgetall a)" "$(sorted 1 "$(cat owner)" mode read)" ;;
		wlock) assert_equal "$(same_on_all hgetall a)" "$(sorted 1 "$(cat owner):write" mode write)" ;;
		esac
		assert_equal "$(same_on_all hkeys 'rlock_holds:{a}' | wc -l)" 1
		on_each ttl_between 15000 a 30000
		on_each ttl_between 15000 'rlock_holds:{a}' 30000
		let_go
		ended_with 0
		on_each no_keys
	done
}

# names_all_servers COMMAND...: it locks "a" on all servers.
names_all_servers() {
	run -0 "$@" a -- sh -c "${runs_once%exit 7}"
	assert_output $'1\n1\n1'
	on_each no_keys
}

@test "several servers can be named by several -u, by one, by RLOCK_URL and by the file" {
	local a b c
	a=$(urls_of 1) b=$(urls_of 2) c=$(urls_of 3)
	names_all_servers env -u RLOCK_URL rlock run "${U[@]}"
	names_all_servers env -u RLOCK_URL rlock run -u "$a $b" --url "$c"
	names_all_servers env RLOCK_URL="  $a   $b $c " rlock run
	printf 'url = %s\n' "$a" "$b" "$c" >lines
	names_all_servers env -u RLOCK_URL rlock run --config lines
	echo "url = $a $b $c" >line
	names_all_servers env -u RLOCK_URL rlock run --config line
}

# ---- without a command ----

@test "unlock with the servers in another order shows the line that does it" {
	run -0 bash -c '
		rlock lock --pid $$ a
		said=$(rlock unlock --pid $$ -u "$3" -u "$1" -u "$2" a 2>&1) && exit
		eval "${said##*: }"' bash "$(urls_of 1)" "$(urls_of 2)" "$(urls_of 3)"
	on_each no_keys
}

@test "unlock --force breaks a lock on all servers, also where only one of them has it, and its holder finds out" {
	hold_on_each a -t 1s
	run -0 rlock unlock --force a
	assert_output --partial 'broken'
	on_each is_free a
	ended_with 76
	wait_until 5 on_each no_keys
	on 2 held_by_stranger a
	run -0 rlock unlock --force a
	on_each no_keys
	run -1 rlock unlock --force a
	assert_one_line '^rlock: a: '
}

# ---- one at a time ----

@test "a caller that names the same servers in another order, or one of them, is kept out, and keeps out one that names all" {
	local order number
	hold_on_each a
	for order in '1 2 3' '3 1 2' '2 3 1' 1 2 3; do
		# shellcheck disable=SC2086
		RLOCK_URL=$(urls_of $order) run -75 rlock run -n a -- touch ran
		assert_output ''
	done
	let_go
	ended_with 0
	on_each no_keys
	# What Java holds.
	for number in 1 2 3; do
		on $number held_by_stranger a
		run -75 rlock run -w 200ms a -- touch ran
		assert_one_line '^rlock: a: .*held by 5e8b3cf0-8a4b-4d52-a7f9-3f0e6f0c7a11:1'
		on $number redis del a >/dev/null
		on_each no_keys
	done
	run -64 rlock run -u "$(urls_of 1)" a -- env -u RLOCK_HELD rlock run -n a -- touch ran
	[ ! -e ran ]
}

@test "a waiter is woken by the release, also of a holder on one of the servers only" {
	local holder
	# By itself it would look at the end of the lease.
	hold_on_each a
	holder=$PID
	wait_for a
	let_go
	wait_until 8 file_exists ran
	ended_with 0
	ended_with 0 "$holder"
	rm ran
	on 3 held_by_stranger a
	listen_to rlock run a -- touch ran
	wait_until 5 on 3 has_waiters a
	[ ! -e ran ]
	on 3 stranger_leaves a
	wait_until 8 file_exists ran
	ended_with 0
	on_each no_keys
}

@test "a fair lock is acquired in the order of the calls, on several servers" {
	local number pid pids=()
	hold_on_each f
	holder=$PID
	for number in 1 2 3; do
		in_background rlock fair f -- sh -c 'echo "$0" >>order' $number
		pids+=("$PID")
		wait_until 5 on_each has_in_queue f $number
	done
	let_go
	ended_with 0 "$holder"
	for pid in "${pids[@]}"; do
		ended_with 0 "$pid"
	done
	assert_equal "$(paste -s -d ' ' order)" '1 2 3'
	wait_until 5 on_each no_keys
}

@test "a signal, and the end of the wait time, leave nothing of a waiter on any server" {
	local holder
	hold_on_each a
	holder=$PID
	in_background rlock fair a b -- touch ran
	wait_until 5 on_each has_in_queue a 1
	kill -s TERM "$PID"
	ended_with 143
	run -75 rlock fair -w 300ms a b -- touch ran
	on_each is_free b
	let_go
	ended_with 0 "$holder"
	on_each no_keys
	[ ! -e ran ]
}

# ---- stop ----

@test "a holder is stopped by a request to all servers, and where one of them denies it, no other is asked" {
	in_background rlock run -t 10m a -- until_let_go
	wait_until 10 is_above "$PID" until_let_go
	on 3 redis acl setuser default -hset >/dev/null
	run rlock stop -w 1s a
	on 3 redis acl setuser default +hset >/dev/null
	assert_equal "$status" 77
	run -0 on 1 redis hkeys 'rlock_holds:{a}'
	refute_output --partial stop
	run -75 rlock stop -w 1s a
	let_go
	ended_with 0
	rm let-go
	hold_on_each b -t 2s
	run -0 rlock stop b
	ended_with 124
	on_each no_keys
}

# ---- passwords and databases ----

# hides_passwords PID: the command line of rlock, which is there, shows none.
hides_passwords() {
	local line
	line=$(tr '\0' ' ' <"/proc/$1/cmdline") && [[ $line = *rlock* && $line != *s3cr3t* && $line != *w0rd* ]]
}

@test "the passwords of all URLs are hidden in the list of processes, and in messages" {
	need_own_command_line
	VIA[1]=redis://:s3cr3t@127.0.0.1:1
	VIA[2]=redis://ci:w0rd@127.0.0.1:2
	in_background rlock run -w 20s -u "redis://127.0.0.1:3 $(urls_of 1)" --url="$(urls_of 2)" a -- true
	wait_until 5 hides_passwords "$PID"
	grep -qa 127.0.0.1:2 "/proc/$PID/cmdline"
	use_servers 1 2
	run -69 rlock run -v a -- true
	refute_output --regexp 's3cr3t|w0rd'
}

@test "the passwords of the URLs are not in RLOCK_HELD, nor in the file of a lock without a command" {
	start_proxy_to 2 tcp:127.0.0.1:0
	VIA[2]=redis://default:s3cr3t@$(sed -n 's/^listen tcp://p' proxy-said-2)
	on 2 redis config set requirepass s3cr3t
	use_servers 1 2 3
	run -0 rlock run a -- sh -c 'echo "$RLOCK_HELD"; printenv | grep -v ^RLOCK_URL='
	refute_output --partial s3cr3t
	run -0 rlock lock --pid $$ a
	run grep -r s3cr3t "$RLOCK_RUNTIME_DIR"
	assert_output ''
	run -0 rlock unlock --pid $$ a
	REDISCLI_AUTH=s3cr3t on 2 redis config set requirepass ''
	on_each no_keys
}

@test "a password file and REDISCLI_AUTH are for each server whose URL has none" {
	local address
	take_servers 3
	start_proxy_to "${SERVERS[1]}" tcp:127.0.0.1:0
	address=$(sed -n 's/^listen tcp://p' "proxy-said-${SERVERS[1]}")
	on "${SERVERS[0]}" redis config set requirepass s3cr3t
	on "${SERVERS[1]}" redis config set requirepass w0rd
	on "${SERVERS[2]}" redis config set requirepass s3cr3t
	VIA[SERVERS[1]]=redis://:w0rd@$address
	use_servers "${SERVERS[@]}"
	echo s3cr3t >file
	chmod 600 file
	run -0 rlock run --password-file file a -- true
	assert_output ''
	REDISCLI_AUTH=s3cr3t run -0 rlock run a -- true
	# shellcheck disable=SC2034 # urls_of uses it
	VIA[SERVERS[1]]=redis://$address
	use_servers "${SERVERS[@]}"
	run -77 rlock run --password-file file a -- true
	refute_output --partial s3cr3t
	REDISCLI_AUTH=s3cr3t on "${SERVERS[0]}" no_keys
	REDISCLI_AUTH=s3cr3t on "${SERVERS[2]}" no_keys
}

@test "--db is the database of each server, and databases of one server are told from each other" {
	run -0 rlock run --db 3 a -- sh -c '
		for number in 1 2 3; do
			redis-cli -s "$BATS_FILE_TMPDIR/$number/server/redis.sock" -n 3 exists a
			ask_redis "$BATS_FILE_TMPDIR/$number/server/redis.sock" exists a
		done'
	assert_output $'1\n0\n1\n0\n1\n0'
	run -0 rlock run -u "$(urls_of 1)?db=1" -u "$(urls_of 1)?db=2" a -- \
		sh -c 'for db in 1 2; do redis-cli -s "$SERVER_SOCKET" -n $db exists a; done'
	assert_output $'1\n1'
}

@test "a file that asks for a fencing token is ignored for several servers" {
	echo 'fence = yes' >conf
	run -0 rlock run --config conf a -- sh -c 'echo "${RLOCK_TOKEN-none}"'
	assert_output none
	on_each no_keys
}
