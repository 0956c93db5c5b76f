# The load under which servers fail over, and what came of it: shells take turns, a long holder and its contender change
# places whenever the lock is lost, and fair waiters queue up for each fault, one of which is killed. Sourced after
# chaos.bash by a scenario, which says what "server_of NAME" is, the number of the server that has this lock now.
#
# Promised: no waiter hangs, and none ends with another status than 0 or, when a lock was lost, 76; the fair order of live waiters
# is kept; and with --replicas 1 and min-replicas-to-write 1 no two are inside. (Without them Redis may lose locks that it granted.)
#
# On one machine replicas have everything at once: so a part of the servers crash right after a grant that none of their
# replicas has ("lose_grant").

# FAULT_MS is the scenario's, and SERVER_OPTIONS are for it.

WAITERS=10
SERVER_OPTIONS=(--min-replicas-to-write 1)

# need_replicas NUMBER...: on these servers.
need_replicas() {
	local number
	for number; do on "$number" redis config set min-replicas-to-write 1 >/dev/null; done
}

# Milliseconds on the clock of the ledgers.
boottime_ms() {
	echo $(($(now_us) / 1000))
}

# turn VERB NAMES COMMAND [ARG...]: one lock, and what came of it.
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

# enter_in_order NAMES...: again and again, until the file "done" is there. "a" is one of the names each time.
enter_in_order() {
	local -i next=1
	until [ -e 'done' ]; do
		turn run "${!next}" overlap ledger-a exclusive -f 20000
		next=$((next == $# ? 1 : next + 1))
	done
}

# hold_long: all of the time, with the contender that does the same, for which it waits as long as that has it.
hold_long() {
	until [ -e 'done' ]; do WAIT=1h turn run long overlap ledger-long exclusive -u "$PWD/done"; done
}

# start FUNCTION [ARG...]: sets STARTED.
start() {
	"$@" 3>&- &
	STARTED+=($!)
}

# must_all_end CONTENDER: those that were started.
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

# queue_up: there are a holder of f, and waiters, each of which is to write its number into "order"; then one of them
# is killed. Sets QUEUED, the live waiters in their order.
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
	# What no replica has heard of is lost with its server.
	wait_until 10 has_replicated
}

# serve_queue: the fair holder goes, and the live waiters have their turns, in their order.
serve_queue() {
	: >leave-f
	must_all_end 'a fair waiter'
	[ "$(paste -s -d ' ' order)" = "$QUEUED" ] || violated "order of fair waiters: $(paste -s -d ' ' order), queued: $QUEUED"
}

# lose_grant SERVER REPLICA...: SERVER crashes when it has granted the lock "late" to one shell, while another one waits
# for it; none of its replicas has heard of that, and they go on now.
lose_grant() {
	local number
	for number in "${@:2}"; do freeze_server "$number"; done
	# More than sockets hold: what is written after it stays in the memory of SERVER.
	on "$1" redis eval 'redis.call("set", KEYS[1], string.rep("x", ARGV[1]))' 1 'filler{late}' $((1 << 25)) >/dev/null
	rm -f leave-late
	IS_LATE=yes
	# Renewals are far between: a holder does not find out before the other one has the lock.
	LEASE=20s start turn run late overlap ledger-late exclusive -u "$PWD/leave-late"
	wait_until 10 on "$1" is_held late || return
	start turn run late overlap ledger-late exclusive -u "$PWD/leave-late"
	crash_server "$1"
	for number in "${@:2}"; do thaw_server "$number"; done
}

# find_grant: a shell whose grant was lost has the lock in the end.
find_grant() {
	[ "$IS_LATE" ] || return 0
	IS_LATE=
	wait_until 30 on "$(server_of late)" is_held late || broke 'no shell holds the lock whose grant was lost'
	: >leave-late
}

# suffer NUMBER COUNT FUNCTION NAMES...: so many times FUNCTION NUMBER, which makes a fault come about, and sets FAULT_MS, under
# load. NAMES are what the shells lock.
suffer() {
	local number STARTED=() load IS_LATE=
	: >lost
	for number in {1..6}; do start enter_in_order "${@:4}"; done
	for number in 1 2; do start hold_long; done
	load=("${STARTED[@]}") STARTED=()
	for ((number = 1; number <= $2; number++)); do
		WHERE="$3 $number, chance $CHANCE"
		queue_up && "$3" "$number" || return
		injected
		find_grant
		serve_queue
		# How long a holder that was to lose its lock went on.
		awk -v fault="$FAULT_MS" '$1 >= fault && $2 == "long" { print "time", $1 - fault }' lost >>"$RECORD"
	done
	: >'done'
	STARTED=("${load[@]}")
	must_all_end 'a shell'
	repeated "$(cat ledger-* | grep -c ' enter ')"
}

WHAT_FAILOVERS_TOOK='from the fault until a holder that lost its lock has ended'
