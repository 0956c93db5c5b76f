#!/usr/bin/env bats
# bats file_tags=long
# Managed Redis services: unknown or denied commands, a cluster of one node, idle connections that are closed. All kinds of locks
# work there, and -v reports what is missing. acl.bats covers a user that lacks a single right.

load ../lib/usual
load ../lib/clusters

# Server 1 denies these commands to the user "denied"; server 2 does not know them; server 3 does not know INFO; server 4 is a
# cluster of one node.
DENIED=(info config client wait select pubsub)

setup_file() {
	local command renamed=()
	choose_port
	export PORTS=$PORT
	start_server_number 1 --port "$PORT" --bind 127.0.0.1
	for command in "${DENIED[@]}"; do renamed+=(--rename-command "$command" ''); done
	start_server_number 2 "${renamed[@]}"
	start_server_number 3 --rename-command info ''
	start_node 4
	on 4 redis cluster addslots {0..16383} >/dev/null
	use_first_server
	redis acl setuser denied on nopass allkeys allchannels +@all "${DENIED[@]/#/-}" >/dev/null
}

setup() {
	directory_setup
	export RLOCK_URL=unix://$SERVER_SOCKET
}

# contend VERB: a holder must keep its lock, and a waiter must acquire it afterwards. Recognise by the waiter's -v messages that
# it waits, since a server may deny PUBSUB here.
contend() {
	local holder
	rm -f end-commands stderr held
	in_background sh -c 'exec rlock "$1" -t 7s a -- run_until_ended 2>held' sh "$1"
	holder=$PID
	wait_until 10 is_held a
	record_stderr rlock "${1/rlock/wlock}" -v a -- true
	wait_until 10 file_contains stderr 'waiting for'
	await_renewal a 7000
	end_commands
	ended_with 0 "$holder"
	ended_with 0
	assert [ ! -s held ]
	no_keys
}

locks_of_all_kinds() {
	local verb
	for verb in rlock wlock run fair; do
		run -3 rlock "$verb" -n a -- rlock "$verb" -n -t 9s a -- sh -c 'exit 3'
		assert_output ''
		run -0 rlock "${verb/run/lock}" -n -t 30s --pid $$ a
		run -0 rlock renew --pid $$ a
		run -0 rlock unlock --pid $$ a
		assert_output ''
		no_keys
		contend "$verb"
	done
}

@test "locks of all kinds work where the commands that clouds refuse are unknown or denied, and -v says once what is missed" {
	local url
	for url in "unix://$(socket_of 2)" "redis://denied@127.0.0.1:$(port_of 1)"; do
		export RLOCK_URL=$url SERVER_SOCKET
		SERVER_SOCKET=$(socket_of 1)
		[[ $url = redis:* ]] || SERVER_SOCKET=$(socket_of 2)
		locks_of_all_kinds
		# -v must report each denied command only once, although the waiter had two connections. On a busy machine a
		# renewer or a subscription that is late is replaced, and the next one reports it again.
		run -0 sed -n 's/.*: it denies/it denies/p' stderr
		assert_equal "$(sort -u <<<"$output")" 'it denies CLIENT SETNAME: its list of clients does not name rlock'
		assert [ "${#lines[@]}" -le $((1 + $(grep -cE 'the renewer has ended|the subscription does not answer' stderr))) ]
	done
}

@test "a database, --replicas and a quorum name the denied command that they need" {
	export RLOCK_URL
	RLOCK_URL=unix://$(socket_of 2)
	run -78 rlock run --db 1 a -- touch ran
	assert_one_line '^rlock: a: denied by the server: it has one database only; leave the number out: '
	run -78 rlock run --replicas 1 a -- touch ran
	assert_one_line "^rlock: a: denied by the server: it can't tell which replicas have a lock; leave --replicas out: "
	run -78 rlock run -t 6s --quorum 2 -u "$(urls_of 3) $(urls_of 3)?db=1 $(urls_of 1)" a -- touch ran
	assert_one_line "^rlock: a: .*none of them renamed: ERR unknown command INFO\$"
	refute file_exists ran
	# If the quorum is all servers, rlock does not need INFO, by which it asks how long they have run.
	run -0 rlock run -u "$(urls_of 1 2 3)" a -- true
}

@test "locks are held and waited for on a cluster of one node" {
	export RLOCK_URL
	RLOCK_URL=redis+cluster://127.0.0.1:$(port_of 2)
	on 4 contend run
}

# Renewals are 3 s apart, which is longer than the server lets a connection be idle. So it has closed the connection before each
# renewal and before the release.
@test "holders and waiters of any kind survive a server that closes idle connections" {
	local verb
	redis config set timeout 1 >/dev/null
	for verb in run fair rlock wlock; do
		in_background sh -c 'exec rlock "$1" -t 9s "$1" -- run_until_ended 2>>stderr' sh "$verb"
		wait_until 10 is_held "$verb"
		in_background sh -c 'exec rlock "$1" "$2" -- true 2>>stderr' sh "${verb/rlock/wlock}" "$verb"
	done
	stays_true_for 7 redis_says 4 exists run fair rlock wlock
	end_commands
	all_ended_with 0
	no_keys
	stderr_is_empty
}
