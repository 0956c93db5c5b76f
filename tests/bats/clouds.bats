#!/usr/bin/env bats
# bats file_tags=long
# What the services of clouds have in common: commands that are unknown or refused, a cluster that is one node, and
# connections that are closed after a while. Locks of all kinds work, and -v says what is missed.

# In single quotes stand whole scripts; each test is a subshell, and knows that.
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2153

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/clusters
load ../lib/proxying

# The command of DENIED[N] is unknown to server N + 2; to the first one all are known.
DENIED=(info config client wait select pubsub)
VERBS='run fair rlock wlock'

setup_file() {
	local index
	choose_port
	export PORTS=$PORT
	start_server_number 1 --port "$PORT" --bind 127.0.0.1
	for index in "${!DENIED[@]}"; do
		start_server_number $((index + 2)) --rename-command "${DENIED[index]}" ''
	done
	start_node 8
	# shellcheck disable=SC2046
	on 8 redis cluster addslots $(seq 0 16383) >/dev/null
	use_first_server
}
teardown_file() { stop_servers; }

setup() {
	use_first_server
	directory_setup
	RLOCK_URL=unix://$SERVER_SOCKET
	export RLOCK_URL
	USERS_PLACE=127.0.0.1:$(port_of 1) NODE=127.0.0.1:$(port_of 2)
}
teardown() {
	local user
	use_first_server
	for user in "${DENIED[@]}"; do redis acl deluser "no-$user" >/dev/null; done
	redis config set timeout 0 >/dev/null
	watchful_teardown
}

# each_server COMMAND [ARG...]: with RLOCK_URL, and `redis`, of each server that does not know one of the commands; and of
# a user for each that may not run it. DENIED_NOW is the command.
each_server() {
	local index
	for index in "${!DENIED[@]}"; do without_command "$index" "$@"; done
	without_rights "$@"
}

# each_server_at_once COMMAND [ARG...]: the same, for what mostly waits. Each server has a directory of its own, and the
# users, which share one, another.
each_server_at_once() {
	local index pid pids=() status=0
	for index in "${!DENIED[@]}"; do
		in_own_directory "$index" without_command "$index" "$@" &
		pids+=($!)
	done
	in_own_directory users without_rights "$@" &
	pids+=($!)
	for pid in "${pids[@]}"; do wait "$pid" || status=$?; done
	return "$status"
}

in_own_directory() {
	export BATS_TEST_TMPDIR=$BATS_TEST_TMPDIR/$1
	mkdir "$BATS_TEST_TMPDIR"
	cd "$BATS_TEST_TMPDIR" || return
	"${@:2}"
}

without_command() {
	local DENIED_NOW=${DENIED[$1]}
	echo "without $DENIED_NOW:"
	on $(($1 + 2)) at_socket "${@:2}"
}

without_rights() {
	local DENIED_NOW
	for DENIED_NOW in "${DENIED[@]}"; do
		echo "without the right to $DENIED_NOW:"
		redis acl setuser "no-$DENIED_NOW" on nopass allkeys allchannels +@all "-$DENIED_NOW" >/dev/null
		RLOCK_URL=redis://no-$DENIED_NOW@$USERS_PLACE "$@"
	done
}

at_socket() {
	RLOCK_URL=unix://$SERVER_SOCKET "$@"
}

# ---- commands ----

locks_of_all_kinds() {
	local verb
	for verb in $VERBS; do
		run -3 rlock "$verb" -n a -- sh -c 'exit 3'
		assert_output ''
		run -0 rlock "$verb" -n -t 3s a -- rlock "$verb" -n -t 3s a -- true
		assert_output ''
		run -0 rlock "${verb/run/lock}" -n -t 30s --pid $$ a
		run -0 rlock renew --pid $$ a
		run -0 rlock unlock --pid $$ a
		assert_output ''
		no_keys
	done
}

@test "locks of all kinds are acquired, re-entered, renewed and released without any one of the commands that clouds refuse" {
	each_server locks_of_all_kinds
}

renewals() {
	rm -f let-go
	in_background sh -c 'exec rlock run -t 3s a -- until_let_go 2>said' sh
	wait_until 5 is_held a
	# Of a whole lease and more.
	stays 3.5 is_held a
	let_go
	ended_with 0
	assert [ ! -s said ]
}

@test "a lock is renewed without any one of the commands that clouds refuse" {
	each_server_at_once renewals
}

# The waiter says on its own that it waits: PUBSUB may be what is refused.
waits() {
	local verb=${1:-run} holder
	rm -f let-go said
	in_background rlock "$verb" a -- until_let_go
	holder=$PID
	wait_until 10 is_held a
	in_background sh -c 'exec rlock "$1" -v a -- true 2>said' sh "${verb/rlock/wlock}"
	wait_until 10 file_has said 'waiting for'
	let_go
	ended_with 0 "$holder"
	ended_with 0
	no_keys
}

waiters_of_all_kinds() {
	local verb
	for verb in $VERBS; do waits "$verb"; done
}

@test "locks of all kinds are waited for without any one of the commands that clouds refuse" {
	each_server_at_once waiters_of_all_kinds
}

# A waiter is killed in front of another one: that one has its turn, if only when the first gives no sign of life.
turn_after_a_dead_one() {
	local holder dead
	rm -f let-go
	in_background rlock fair a -- until_let_go
	holder=$PID
	wait_until 10 is_held a
	in_background rlock fair a -- true
	dead=$PID
	wait_until 10 has_in_queue a 1
	in_background rlock fair a -- true
	wait_until 10 has_in_queue a 2
	kill_with_renewers "$dead"
	let_go
	ended_with 0 "$holder"
	ended_with 0
	no_keys
}

@test "a dead waiter of a fair lock keeps no other out for long without INFO or PUBSUB" {
	each_server_at_once only_of 'info pubsub' turn_after_a_dead_one
}

only_of() {
	[[ " $1 " != *" $DENIED_NOW "* ]] || "${@:2}"
}

says_what_is_missed() {
	waits fair
	case $DENIED_NOW in
	info) assert_says_once 'it denies INFO: a waiter that comes back late after a failover loses its position in the queue for a turn' ;;
	pubsub) assert_says_once 'it denies PUBSUB: a dead waiter leaves the queue some seconds after its death' ;;
	client) assert_says_once 'it denies CLIENT SETNAME: its list of clients does not name rlock' ;;
	*) run -1 grep 'it denies' said ;;
	esac
}

# The waiter had two connections, and -v.
assert_says_once() {
	run -0 grep 'it denies' said
	assert_equal "${#lines[@]}" 1
	assert_output --partial ": $1"
}

@test "with -v a waiter says once what it misses" {
	each_server_at_once says_what_is_missed
}

@test "what needs a command that is refused says which: a database, replicas, a quorum" {
	local info=2 wait=5 select=6
	run -78 on $select at_socket rlock run --db 1 a -- touch ran
	assert_one_line '^rlock: a: denied by the server: it has one database only: leave the number out: '
	run -78 on $wait at_socket rlock run --replicas 1 a -- touch ran
	assert_one_line "^rlock: a: denied by the server: it can't tell which replicas have a lock: leave --replicas out: "
	run -77 rlock run -t 1s --quorum 2 -u "$(urls_of $info) $(urls_of $info)?db=1 $(urls_of $wait)" \
		a -- touch ran
	assert_one_line '^rlock: a: .*+info.*$'
	refute file_exists ran
	# Where all must agree it does not matter how long they have run.
	run -0 rlock run -u "$(urls_of $info $wait $select)" a -- true
}

# ---- a cluster that is one node ----

@test "a cluster of one node has locks of all kinds" {
	export RLOCK_URL=redis+cluster://$NODE
	on 8 locks_of_all_kinds
	on 8 waiters_of_all_kinds
}

@test "a cluster of one node has its password from a command" {
	on 8 redis acl setuser ci on '>t0ken' allkeys allchannels +@all >/dev/null
	run -0 rlock run -u "redis+cluster://ci@$NODE" --password-command 'echo t0ken' a -- true
	run -77 rlock run -u "redis+cluster://ci@$NODE" --password-command 'echo wrong' a -- true
	on 8 redis acl deluser ci >/dev/null
}

# ---- connections that are closed after a while ----

@test "a server that closes idle connections is nothing to a holder, which renews and releases" {
	redis config set timeout 1 >/dev/null
	in_background sh -c 'exec rlock run -t 9s a -- until_let_go 2>said' sh
	wait_until 5 is_held a
	# Renewed every 3 s: each time, and for the release, the connection has been closed.
	stays 10 is_held a
	let_go
	ended_with 0
	no_keys
	assert [ ! -s said ]
}

@test "a server that closes idle connections is nothing to a lock without a command" {
	redis config set timeout 1 >/dev/null
	in_background sleep 60
	run -0 rlock lock -t 9s --pid "$PID" a
	stays 10 is_held a
	kill "$PID"
	wait_until 10 is_free a
}

# A holder of a lock of each kind, and a waiter behind it.
hold_all() {
	local verb
	HOLDERS=()
	for verb in $VERBS; do
		in_background sh -c 'exec rlock "$1" -t 9s "$1" -- until_let_go 2>>said' sh "$verb"
		HOLDERS+=("$PID")
		wait_until 10 is_held "$verb"
		in_background sh -c 'exec rlock "$1" "$2" -- true 2>>said' sh "${verb/rlock/wlock}" "$verb"
		HOLDERS+=("$PID")
	done
}

# They end well, and have said nothing.
release_all() {
	local pid
	let_go
	for pid in "${HOLDERS[@]}"; do ended_with 0 "$pid"; done
	no_keys
	run -0 cat said
	assert_output ''
}

all_are_held() {
	local verb
	for verb in $VERBS; do is_held "$verb" || return; done
}

@test "a server that closes idle connections is nothing to holders and waiters of any kind" {
	redis config set timeout 1 >/dev/null
	hold_all
	stays 8 all_are_held
	release_all
}

@test "connections that are closed again and again are nothing to holders and waiters of any kind" {
	start_proxy
	hold_all
	for _ in 1 2 3 4 5 6 7 8; do
		proxy cut
		stays 1 all_are_held
	done
	release_all
}
