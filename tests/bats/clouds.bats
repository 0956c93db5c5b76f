#!/usr/bin/env bats
# bats file_tags=long
# What the services of clouds have in common: commands that are unknown or refused, a cluster that is one node, and
# connections that are closed after a while. Locks of all kinds work, and -v says what is missed. Without any one right:
# acl.bats.

# shellcheck disable=SC2034

load ../lib/usual
load ../lib/clusters

# To the first server all are known, but not allowed to the user "denied", and to the second none. To the third only INFO is
# unknown, and the fourth is a cluster.
DENIED=(info config client wait select pubsub)
VERBS='run fair rlock wlock'

setup_file() {
	local command renamed=()
	choose_port
	export PORTS=$PORT
	start_server_number 1 --port "$PORT" --bind 127.0.0.1
	for command in "${DENIED[@]}"; do renamed+=(--rename-command "$command" ''); done
	start_server_number 2 "${renamed[@]}"
	start_server_number 3 --rename-command info ''
	start_node 4
	# shellcheck disable=SC2046
	on 4 redis cluster addslots $(seq 0 16383) >/dev/null
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
	use_first_server
	redis acl deluser denied >/dev/null
	redis config set timeout 0 >/dev/null
	watchful_teardown
}

# each_server COMMAND [ARG...]: with RLOCK_URL, and `redis`, of the server that knows none of the commands, and of the user
# that may run none.
each_server() {
	on 2 at_socket "$@"
	redis acl setuser denied on nopass allkeys allchannels +@all "${DENIED[@]/#/-}" >/dev/null
	RLOCK_URL=redis://denied@$USERS_PLACE "$@"
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

@test "locks of all kinds are acquired, re-entered, renewed and released without the commands that clouds refuse" {
	each_server locks_of_all_kinds
}

# The waiter says on its own that it waits: PUBSUB may be what is refused.
waits() {
	local verb=${1:-run} holder
	rm -f let-go said
	in_background sh -c 'exec rlock "$1" -t 1s a -- until_let_go 2>held' sh "$verb"
	holder=$PID
	wait_until 10 is_held a
	in_background sh -c 'exec rlock "$1" -v a -- true 2>said' sh "${verb/rlock/wlock}"
	wait_until 10 file_has said 'waiting for'
	# A lease and more: it is renewed.
	stays 1.2 is_held a
	let_go
	ended_with 0 "$holder"
	ended_with 0
	assert [ ! -s held ]
	no_keys
}

waiters_of_all_kinds() {
	local verb
	for verb in $VERBS; do waits "$verb"; done
	# The waiter had two connections, and -v.
	run -0 sed -n 's/.*: it denies/it denies/p' said
	assert_equal "$(sort <<<"$output")" "${1-}"
}

MISSED='it denies CLIENT SETNAME: its list of clients does not name rlock'

@test "locks of all kinds are held and waited for without the commands that clouds refuse, and -v says once what is missed" {
	VERBS='run rlock wlock fair' each_server waiters_of_all_kinds "$MISSED"
}

@test "what needs a command that is refused says which: a database, replicas, a quorum" {
	run -78 on 2 at_socket rlock run --db 1 a -- touch ran
	assert_one_line '^rlock: a: denied by the server: it has one database only: leave the number out: '
	run -78 on 2 at_socket rlock run --replicas 1 a -- touch ran
	assert_one_line "^rlock: a: denied by the server: it can't tell which replicas have a lock: leave --replicas out: "
	run -77 rlock run -t 1s --quorum 2 -u "$(urls_of 3) $(urls_of 3)?db=1 $(urls_of 1)" a -- touch ran
	assert_one_line '^rlock: a: .*+info.*$'
	refute file_exists ran
	# Where all must agree it does not matter how long they have run.
	run -0 rlock run -u "$(urls_of 1 2 3)" a -- true
}

# ---- a cluster that is one node ----

@test "a cluster of one node has locks of all kinds, and its password from a command" {
	export RLOCK_URL=redis+cluster://$NODE
	on 4 locks_of_all_kinds
	on 4 waiters_of_all_kinds
	on 4 redis acl setuser ci on '>t0ken' allkeys allchannels +@all >/dev/null
	run -0 rlock run -u "redis+cluster://ci@$NODE" --password-command 'echo t0ken' a -- true
	run -77 rlock run -u "redis+cluster://ci@$NODE" --password-command 'echo wrong' a -- true
	on 4 redis acl deluser ci >/dev/null
}

# ---- connections that are closed after a while ----

# A holder of a lock of each kind, and a waiter behind it.
hold_all() {
	local verb
	HOLDERS=()
	for verb in $VERBS; do
		in_background sh -c 'exec rlock "$1" -t 6s "$1" -- until_let_go 2>>said' sh "$verb"
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

# Renewed every 2 s: each time, and for the release, the connection has been closed.
@test "a server that closes idle connections is nothing to holders and waiters of any kind" {
	redis config set timeout 1 >/dev/null
	hold_all
	stays 5 all_are_held
	release_all
}
