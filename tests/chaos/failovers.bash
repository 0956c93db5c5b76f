# The load under which servers fail over, and checks of the result. Shells take turns with some locks. Two more shells compete for
# a lock that one of them holds for as long as it can: when it loses the lock, the other one acquires it. For each fault, fair
# waiters queue up, and one of them is killed. Sourced after chaos.bash by a scenario, which defines "server_of NAME": it prints
# the number of the server that has this lock now.
#
# Promised: no waiter hangs, and each exits with 0, or with 76 if its lock was lost. Live waiters for the fair lock acquire it in
# their order. With --replicas 1 and min-replicas-to-write 1 no two commands are inside at the same time. (Without them Redis may
# lose locks that it granted.)
#
# Replicas on the same machine receive each write immediately, so a crash alone loses no grant. Therefore lose_grant makes a
# server crash right after a grant that it could not send to its replicas.

# A scenario sets FAULT_MS, and starts its servers with SERVER_OPTIONS.

WAITERS=10
SERVER_OPTIONS=(--min-replicas-to-write 1)

# need_replicas NUMBER...: makes these servers refuse writes while no replica is connected.
need_replicas() {
	local number
	for number; do on "$number" redis config set min-replicas-to-write 1 >/dev/null; done
}

# boottime_ms: prints the time in milliseconds on the clock of the ledgers.
boottime_ms() {
	echo $(($(now_us) / 1000))
}

# turn VERB NAMES COMMAND [ARG...]: runs COMMAND once under the locks. Records a lost lock in the file "lost", and any other failure
# as a violation.
turn() {
	local status=0
	# shellcheck disable=SC2086
	rlock "$1" --replicas 1 -t "${LEASE:-5s}" -w "${WAIT:-90s}" $2 -- "${@:3}" 2>>stderr-turn || status=$?
	case $status in
	0) ;;
	76) echo "$(boottime_ms) $2" >>lost ;;
	*) violated "$1 $2 ended with $status: $(tail -n 1 stderr-turn)" ;;
	esac
}

# enter_in_order NAMES...: acquires the locks of the first NAMES, then of the second, and so on from the start, until the file
# "done" exists. Each NAMES is a list of locks, and must contain the lock "a", to which the ledger belongs.
enter_in_order() {
	local -i next=1
	until [ -e 'done' ]; do
		turn run "${!next}" overlap ledger-a exclusive -f 20000
		next=$((next == $# ? 1 : next + 1))
	done
}

# hold_long: holds the lock "long" until the file "done" exists. Two shells run this: one waits while the other one has the lock.
hold_long() {
	until [ -e 'done' ]; do WAIT=1h turn run long overlap ledger-long exclusive -u "$PWD/done"; done
}

# start FUNCTION [ARG...]: runs FUNCTION in the background, and adds its pid to STARTED.
start() {
	"$@" 3>&- &
	STARTED+=($!)
}

# must_all_end CONTENDER: each process in STARTED must end within 120 s. CONTENDER: what a violation calls such a process.
must_all_end() {
	local pid
	for pid in "${STARTED[@]}"; do
		wait_until 120 is_gone "$pid" || violated "$1 hangs"
	done
	STARTED=()
}

queue_has() {
	[ "$(on "$(server_of f)" redis llen 'redisson_lock_queue:{f}')" = "$1" ]
}

has_replicated() {
	[ "$(on "$(server_of f)" redis wait 1 500)" -ge 1 ]
}

# queue_up: starts a holder of the fair lock f, and waiters that write their numbers into "order" when they have the lock. Then one
# waiter is killed. Sets QUEUED to the numbers of the live waiters, in their order.
queue_up() {
	local number rlock
	rm -f leave-f
	: >order
	start turn fair f overlap ledger-f exclusive -u "$PWD/leave-f"
	wait_until 30 on "$(server_of f)" is_held f || return
	for ((number = 1; number <= WAITERS; number++)); do
		start turn fair f sh -c 'echo "$1" >>order; exec overlap ledger-f exclusive -f 10000' - "$number"
		wait_until 30 queue_has "$number" || return
	done
	draw 1 $WAITERS
	find_children "${STARTED[DRAWN]}"
	rlock=${CHILDREN[0]}
	kill -KILL "${STARTED[DRAWN]}" "$rlock"
	unset "STARTED[DRAWN]"
	QUEUED=$(seq $WAITERS | grep -vx "$DRAWN" | paste -s -d ' ')
	# Wait until a replica has received the queue: otherwise a server that crashes would lose it.
	wait_until 10 has_replicated
}

# serve_queue: lets the holder of f end. The live waiters must then get the lock, in their order.
serve_queue() {
	: >leave-f
	must_all_end 'a fair waiter'
	[ "$(paste -s -d ' ' order)" = "$QUEUED" ] || violated "order of fair waiters: $(paste -s -d ' ' order), queued: $QUEUED"
}

# lose_grant SERVER REPLICA...: SERVER grants the lock "late" to one shell, while another shell waits for it, and crashes. Its
# replicas, frozen until then, never receive the grant.
lose_grant() {
	local number
	for number in "${@:2}"; do freeze_server "$number"; done
	# Write more than the sockets to the frozen replicas can buffer, so that later writes stay in the memory of SERVER.
	on "$1" redis eval 'redis.call("set", KEYS[1], string.rep("x", ARGV[1]))' 1 'filler{late}' $((1 << 25)) >/dev/null
	rm -f leave-late
	IS_LATE=yes
	# Give the shell a long lease: otherwise a renewal could find the loss, and let the shell end, before the other one has
	# the lock.
	LEASE=20s start turn run late overlap ledger-late exclusive -u "$PWD/leave-late"
	wait_until 10 on "$1" is_held late || return
	start turn run late overlap ledger-late exclusive -u "$PWD/leave-late"
	crash_server "$1"
	for number in "${@:2}"; do thaw_server "$number"; done
}

# find_grant: after lose_grant, one of its two shells must acquire the lock within 30 s.
find_grant() {
	[ "$IS_LATE" ] || return 0
	IS_LATE=
	wait_until 30 on "$(server_of late)" is_held late || broke 'no shell holds the lock whose grant was lost'
	: >leave-late
}

# inject_faults NUMBER COUNT FUNCTION NAMES...: under load, calls FUNCTION 1 to FUNCTION COUNT. Each call must cause one fault,
# and set FAULT_MS to the time of it (boottime_ms). The shells take turns with the locks NAMES.
inject_faults() {
	local number STARTED=() load IS_LATE=
	: >lost
	for number in {1..6}; do start enter_in_order "${@:4}"; done
	for number in 1 2; do start hold_long; done
	load=("${STARTED[@]}") STARTED=()
	for ((number = 1; number <= $2; number++)); do
		WHERE="$3 $number, seed $SEED"
		queue_up && "$3" "$number" || return
		injected
		find_grant
		serve_queue
		# Record how long a holder continued after the fault by which it lost its lock.
		awk -v fault="$FAULT_MS" '$1 >= fault && $2 == "long" { print "time", $1 - fault }' lost >>"$RECORD"
	done
	: >'done'
	STARTED=("${load[@]}")
	must_all_end 'a shell'
	repeated "$(cat ledger-* | grep -c ' enter ')"
}

WHAT_FAILOVERS_TOOK='from the fault until a holder that lost its lock has ended'
