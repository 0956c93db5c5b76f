#!/usr/bin/env bats
# bats file_tags=long
# Several names in different slots of a cluster: each is locked at its own node, and all are locked or none.

# shellcheck disable=SC2086

load ../lib/usual
load ../lib/clusters
load ../lib/proxying

# The names a, b and c belong to three different nodes.
setup_file() { start_cluster 3 --cluster-node-timeout 15000; }

@test "every verb locks and re-enters names in different slots together, each at its node" {
	local verb name
	[ "$(node_of a)$(node_of b)" != "$(node_of b)$(node_of c)" ]
	for verb in run fair rlock wlock; do
		in_background rlock "$verb" c a b -- run_until_ended
		for name in a b c; do
			wait_until 5 at_node_of "$name" is_held "$name"
		done
		end_commands
		ended_with 0
		cluster_is_empty
		rm end-commands
	done
	run -5 rlock run a b -- rlock run -n c b a -- sh -c 'exit 5'
	cluster_is_empty
}

# times_out_at_b NAME...: whether a wait for these names ends, and the message names "b". False if a node did not answer in time.
times_out_at_b() {
	run rlock run -w 2s "$@" -- touch begun
	[ "$status:${#lines[@]}" = 75:1 ] && [[ $output = 'rlock: b: timed out after 2s: held by '* ]]
}

@test "when one of several names is busy, rlock exits with 75 and names it, earlier names are free again, and later slots are not touched" {
	local name
	hold_at_its_node run b
	for names in 'a b c' 'c b a' '{b}x a b'; do
		run -75 rlock run -n $names -- touch begun
		wait_until 10 times_out_at_b $names
		for name in a c '{b}x'; do
			at_node_of "$name" is_free "$name"
		done
	done
	at_node_of c redis config resetstat
	run -75 rlock run -n c b a -- touch begun
	run -0 at_node_of c redis info commandstats
	# The node of "c" must have run no script, since it does not serve the slots of the other names. Calls that it has denied
	# count only as rejected_calls.
	refute_output --regexp 'cmdstat_eval(sha)?:calls=[1-9]'
	assert [ ! -e begun ]
	end_commands
	ended_with 0
	cluster_is_empty
}

@test "a waiter for names in several slots holds none of them, and the release of the busy name wakes it" {
	local name other holder
	for name in a b c; do
		hold_at_its_node run "$name"
		holder=$PID
		in_background rlock run -w 25s a b c -- true
		wait_until 5 has_subscribed_waiter "$name"
		# Give these calls a wait time, since each attempt of the waiter holds the names in earlier slots for a moment.
		for other in a b c; do
			[ "$other" = "$name" ] || run -0 rlock run -w 20s "$other" -- true
		done
		end_commands
		takes_less_than 10 ended_with 0 "$PID"
		ended_with 0 "$holder"
		rm end-commands
		cluster_is_empty
	done
}

@test "fencing tokens of names in several slots come in the order of the names" {
	rlock run --fence c -- true
	rlock run --fence c -- true
	rlock run --fence a -- true
	run -0 rlock run --fence c b a -- sh -c 'echo $RLOCK_TOKEN'
	assert_output '3 1 2'
}

@test "names in several slots are renewed together; when one is lost, rlock exits with 76 and releases the others" {
	local name
	record_stderr rlock run -t 9s a b c -- run_until_ended
	wait_until 5 has_command "$PID"
	# Shorten the leases on the servers: a renewal restores them.
	for name in a b c; do at_node_of "$name" redis pexpire "$name" 7000 >/dev/null; done
	for name in a b c; do wait_until 10 at_node_of "$name" ttl_is_above "$name" 7000; done
	at_node_of b redis del b >/dev/null
	ended_with 76 "$PID"
	stderr_is_one_line '^rlock: b: lock lost at .*: it expired or was deleted on the server; terminating the command; '
	wait_until 5 cluster_is_empty
}

@test "one unlock, with the names in any order, releases what a script has locked in several slots, and names a lost one" {
	run -0 bash -c 'rlock lock --pid $$ a b c && rlock renew c a b && rlock unlock b a c; exit'
	wait_until 5 cluster_is_empty
	run -76 bash -c 'rlock lock --pid $$ a b c; redis-cli -s "$0" del b >/dev/null; rlock unlock a b c; exit' \
		"$(socket_of "$(node_of b)")"
	assert_one_line '^rlock: b: .*lost.*$'
	wait_until 5 cluster_is_empty
}

@test "shells that name locks in several slots in different orders exclude each other" {
	local verb names pid pids=()
	for verb in run fair; do
		echo 0 >number
		for names in 'a b c' 'c b a' 'b a' 'b c'; do
			in_background sh -c 'for i in 1 2 3 4 5; do
				rlock "$0" -w 120s "$@" -- sh -c "read -r n <number; echo \$((n + 1)) >number" || exit
			done' "$verb" $names
			pids+=("$PID")
		done
		for pid in "${pids[@]}"; do ended_with 0 "$pid"; done
		assert_equal "$(<number)" 20
		cluster_is_empty
	done
}

# is_kept_for_the_first: whether another call does not get "a", which is free. False while the waiter itself holds "a", for a moment at
# each of its attempts.
is_kept_for_the_first() {
	run rlock fair -w 2s a -- touch overtaken
	[ "$status:${#lines[@]}" = 75:1 ] && [[ $output = 'rlock: a: timed out after 2s: kept for the next waiter, the first ('* ]]
}

@test "a fair waiter keeps its position in the queues up to the busy one" {
	local holder first
	hold_at_its_node fair b
	holder=$PID
	in_background rlock fair -w 60s --note 'the first' a b -- sh -c 'echo first >>order'
	first=$PID
	wait_until 10 at_node_of b has_queue_length b 1
	# The waiter must have released "a" again: it cannot use that name before it has the busy one.
	wait_until 10 at_node_of a is_free a
	run_waiter_in_real_time "$first"
	wait_until 10 is_kept_for_the_first
	in_background rlock fair -w 60s b a -- sh -c 'echo second >>order'
	wait_until 10 at_node_of a has_queue_length a 2
	end_commands
	ended_with 0 "$holder"
	ended_with 0 "$first"
	ended_with 0
	assert_equal "$(paste -sd ' ' order)" 'first second'
	refute file_exists overtaken
	cluster_is_empty
}

@test "when a node does not answer, the message names its lock, and the names on other nodes are free again" {
	# Let RLOCK_URL name only the node of "a", which is not frozen: rlock learns the other nodes from it.
	RLOCK_URL=redis+cluster://127.0.0.1:$(port_of "$(node_of a)")
	freeze_server "$(node_of b)"
	run -69 rlock run -n a b c -- touch begun
	assert_one_line '^rlock: b: .*$'
	thaw_nodes
	wait_until 20 cluster_is_up
	assert [ ! -e begun ]
	wait_until 5 cluster_is_empty
}

# No reply about "b" arrives, so the waiter returns "a", and tries both again and again.
@test "a waiter releases a later slot whose reply was lost when an earlier slot becomes busy" {
	local first
	first=redis+cluster://127.0.0.1:$(port_of "$(node_of a)")
	# Let the node know the script: otherwise it would not carry out a request whose reply is lost.
	run -0 rlock run b -- true
	start_proxy_between tcp:127.0.0.1:0 "tcp:127.0.0.1:$(port_of "$(node_of b)")"
	proxy drop-reply 'redisson_lock_token:{b}' 1000
	in_background rlock run -t 10m -w 60s -u "$first" --cluster-map "127.0.0.1:$(port_of "$(node_of b)")=${LISTENED#tcp:}" a b -- touch begun
	wait_until 10 at_node_of b is_held b
	run -0 rlock lock --owner another --lease 5m -w 30s a
	wait_until 10 at_node_of b is_free b
	kill "$PID"
	ended_with 143
	assert [ ! -e begun ]
	rlock unlock --owner another a
	wait_until 5 cluster_is_empty
}

@test "a waiter that a signal ends while it repeats a grant that came too late releases what a later slot has granted" {
	run -0 rlock run b -- true
	start_proxy_between tcp:127.0.0.1:0 "tcp:127.0.0.1:$(port_of "$(node_of b)")"
	# A reply that takes more than a third of the lease is too late.
	proxy delay 3100
	record_stderr rlock run -v -t 9s -w 60s -u "redis+cluster://127.0.0.1:$(port_of "$(node_of a)")" \
		--cluster-map "127.0.0.1:$(port_of "$(node_of b)")=${LISTENED#tcp:}" a b -- touch begun
	wait_until 10 at_node_of b is_held b
	freeze_server "$(node_of a)"
	# The third request is the second one about "a".
	wait_until 10 eval '[ "$(grep -c "asking to acquire" stderr)" -ge 3 ]'
	kill "$PID"
	wait_until 2 at_node_of b is_free b
	ended_with 143
	thaw_nodes
	wait_until 5 cluster_is_empty
	refute file_exists begun
}

@test "names in more slots than can be locked together are refused before anything is sent" {
	run -78 rlock run $(seq -f n%g 33) -- touch begun
	assert_one_line '^rlock: n1: the names are in 33 slots of the cluster, and 32 is the most; give some the same part in braces, as \{app\}a and \{app\}b$'
	run -78 rlock run -u "$RLOCK_URL" -u "redis://127.0.0.1:1" a b -- touch begun
	assert_one_line '^rlock: a: a cluster that is one of several servers locks several names only if they have the same part in braces, as \{app\}a and \{app\}b$'
	assert [ ! -e begun ]
	run -0 rlock run $(seq -f n%g 32) -- true
	cluster_is_empty
}

# ---- status and list ----

@test "status and list query all masters; list prints each lock once, and names a node that does not answer" {
	local name node
	for name in a b c '{app}d'; do
		rlock lock --owner ci --lease 60s "$name"
	done
	run -0 rlock status a b c
	assert_equal "$(grep -c '^  holder .* ci:0$' <<<"$output")" 3
	run -0 rlock status --json c
	assert_output --partial "\"server\":\"redis://127.0.0.1:$(port_of "$(node_of c)")/0\""
	run -0 rlock list
	assert_equal "$(tail -n +2 <<<"$output" | cut -d ' ' -f 1 | sort | tr '\n' ' ')" 'a b c {app}d '
	node=$(node_of a)
	freeze_server "$node"
	run -69 --separate-stderr rlock list --connect-timeout 4s
	thaw_nodes
	assert_output --regexp $'\n''b +plain '
	assert_output --regexp $'\n''c +plain '
	assert_regex "$stderr" "^rlock: .*127.0.0.1:$(port_of "$node")"
}

@test "list finds a lock in a migrating slot" {
	local from to
	from=$(node_of a)
	to=$(node_of b)
	rlock lock --owner ci --lease 60s a
	begin_migration a "$from" "$to"
	run -0 rlock list
	assert_line --regexp '^a +plain '
	move_keys a "$from" "$to"
	run -0 rlock list
	assert_line --regexp '^a +plain '
	assert_equal "${#lines[@]}" 2
	run -69 rlock list -u "$RLOCK_URL" -u redis://127.0.0.1:1
	assert_line --regexp '^a +plain '
	run -0 rlock status a
	end_migration a "$from" "$to"
	begin_migration a "$to" "$from"
	move_keys a "$to" "$from"
	end_migration a "$to" "$from"
}

# list_in_pieces: starts a list whose output is in the file listed. Sets FIRST and SECOND, two nodes, and NAME, a name at node
# SECOND. The list has scanned node FIRST, and node SECOND gets no request before "proxy pass".
list_in_pieces() {
	local listed
	# The list asks node 1 for the masters, and scans them in the order of the reply.
	mapfile -t listed < <(on 1 redis cluster slots | grep -A 1 '^127\.0\.0\.1$' | grep -xE "${PORTS// /|}")
	FIRST=$(number_of_port "${listed[0]}")
	SECOND=$(number_of_port "${listed[1]}")
	for NAME in a b c; do [ "$(node_of "$NAME")" != "$SECOND" ] || break; done
	rlock lock --owner ci --lease 10m "$NAME"
	start_proxy_between tcp:127.0.0.1:0 "tcp:127.0.0.1:${listed[1]}"
	proxy blackhole on
	in_background sh -c 'exec rlock list --json --connect-timeout 60s -u "$0" --cluster-map "$1" >listed 2>&1' \
		"redis+cluster://127.0.0.1:$(port_of 1)" "127.0.0.1:${listed[1]}=127.0.0.1:${LISTENED##*:}"
	wait_until 20 is_connected_to_proxy
}

is_connected_to_proxy() {
	proxy state | grep -q 'open=[1-9]'
}

number_of_port() {
	tr ' ' '\n' <<<"$PORTS" | grep -nx "$1" | cut -d : -f 1
}

@test "list finds a lock whose slot moves, during the list, from a node that was not read yet to one that was" {
	local state
	for state in ended begun; do
		list_in_pieces
		begin_migration "$NAME" "$SECOND" "$FIRST"
		move_keys "$NAME" "$SECOND" "$FIRST"
		[ "$state" = begun ] || end_migration "$NAME" "$SECOND" "$FIRST"
		proxy pass
		ended_with 0
		run -0 python3 -IS -c 'import json; doc = json.load(open("listed")); print([lock["name"] for lock in doc["locks"]], doc["complete"])'
		assert_output "['$NAME'] True"
		[ "$state" = ended ] || end_migration "$NAME" "$SECOND" "$FIRST"
		begin_migration "$NAME" "$FIRST" "$SECOND"
		move_keys "$NAME" "$FIRST" "$SECOND"
		end_migration "$NAME" "$FIRST" "$SECOND"
		on "$SECOND" redis flushall
		kill "${BACKGROUND[-2]}"
	done
}

# list_at_restless_node HOW: lists the locks of a cluster of one node, whose reply to CLUSTER NODES is another one each time. HOW,
# an expression in Python: its slots in the n-th reply.
list_at_restless_node() {
	rm -f port
	in_background python3 -IS -c '
import os, re, socket, sys, threading
listener = socket.create_server(("127.0.0.1", 0))
port = listener.getsockname()[1]
with open("port.new", "w") as file:
    file.write(str(port))
os.rename("port.new", "port")
n = 0
def serve(stream):
    global n
    while part := stream.recv(65536):
        for command in re.findall(rb"\*\d+\r\n\$\d+\r\n(\w+)(?:\r\n\$\d+\r\n(SLOTS|NODES))?", part):
            reply = b"+OK\r\n"
            if command[1] == b"SLOTS":
                reply = b"*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:%d\r\n" % port
            elif command[1] == b"NODES":
                n += 1
                line = b"id 127.0.0.1:1@2 myself,master - 0 0 1 connected %s\n" % eval(sys.argv[1]).encode()
                reply = b"$%d\r\n%s\r\n" % (len(line), line)
            elif command[0] == b"SCAN":
                reply = b"*2\r\n$1\r\n0\r\n*0\r\n"
            stream.sendall(reply)
while True:
    threading.Thread(target=serve, args=[listener.accept()[0]], daemon=True).start()' "$1"
	wait_until 20 test -e port
	run --separate-stderr rlock list --json -u "redis+cluster://127.0.0.1:$(cat port)"
}

@test "list ends with 69, and says that it is not complete, when slots move during each attempt to read them" {
	list_at_restless_node '"0-8191" if n % 2 else "8192-16383"'
	assert_equal "$status" 69
	assert_output '{"locks":[],"complete":false}'
	assert_equal "$stderr" 'rlock: slots of the cluster keep moving from node to node, so locks may be missing; try again'
}

@test "list is not complete while a new node receives its first slot, since CLUSTER SLOTS does not name that node yet" {
	local slots
	for slots in '' ' 16383'; do
		list_at_restless_node "'0-16382 [5->-other]\\nother 127.0.0.1:3@4 master - 0 0 1 connected$slots'"
		[ -n "$slots" ] || assert_equal "$status $stderr" '69 rlock: a slot is on its way to a node that has no slots yet, so locks in it may be missing; try again'
	done
	assert_equal "$status" 0
	assert_output '{"locks":[],"complete":true}'
}

@test "list is complete while a node receives one slot after the other" {
	list_at_restless_node 'f"0-{n} [{n + 1}-<-other]"'
	assert_equal "$status" 0
	assert_output '{"locks":[],"complete":true}'
}

# release_during_migration KEY...: a fair lock "a", with a waiter, is released while these keys of it have moved to another node.
release_during_migration() {
	local from to key holder waiter
	from=$(node_of a)
	to=$((from % 3 + 1))
	rm -f end-commands entered
	record_stderr rlock fair -t 30s a -- run_until_ended
	holder=$PID
	wait_until 5 on "$from" is_held a
	in_background rlock fair -w 60s a -- touch entered
	waiter=$PID
	wait_until 5 on "$from" has_queue_length a 1
	begin_migration a "$from" "$to"
	for key; do move_key "$key" "$from" "$to"; done
	end_commands
	ended_with 0 "$holder"
	stderr_is_empty
	move_keys a "$from" "$to"
	end_migration a "$from" "$to"
	ended_with 0 "$waiter"
	assert [ -e entered ]
}

@test "a release warns of nothing while the waiters of a fair queue have moved without it, and the waiter acquires the lock afterwards" {
	release_during_migration 'redisson_lock_timeout:{a}' 'rlock_waiters:{a}'
}

@test "a release at the new node is reported as done while its queue has moved without the waiters, and the waiter acquires the lock" {
	release_during_migration a 'rlock_holds:{a}' 'redisson_lock_queue:{a}'
}
