# The load under which servers fail over, and what came of it: shells take turns, a long holder and its rival change
# places whenever the lock is lost, and fair waiters queue up for each fault, one of which is killed. Sourced after
# chaos.bash by a scenario, which says what "server_of NAME" is, the number of the server that has this lock now; its
# "OPTIONS" are those of every lock.
#
# On one machine replicas have everything at once: so a part of the servers crash right after a grant that none of their
# replicas has ("lose_grant").

# OPTIONS and FAULT_MS are the scenario's.
# shellcheck disable=SC2154

SHELLS=6
WAITERS=10
LEASE=5s

# turn VERB NAMES LEDGER [OVERLAP OPTION...]: one lock, and what came of it.
turn() {
	local status=0
	# shellcheck disable=SC2086
	rlock "$1" "${OPTIONS[@]}" -t $LEASE -w "${WAIT:-90s}" $2 -- overlap "$3" exclusive "${@:4}" 2>>said || status=$?
	case $status in
	0) ;;
	76) echo "$(boottime_ms) $2" >>lost ;;
	*) violated "$1 $2 ended with $status: $(tail -n 1 said)" ;;
	esac
}

# take_turns_until FILE NAMES...: again and again, until the file is there. "a" is one of the names each time.
take_turns_until() {
	local -i next=2
	until [ -e "$1" ]; do
		turn run "${!next}" ledger.a -f 20000
		next=$((next == $# ? 2 : next + 1))
	done
}

# hold_until FILE: all of the time, with the rival that does the same.
hold_until() {
	# It waits for as long as the other one has it.
	until [ -e "$1" ]; do WAIT=1h turn run long ledger.long -u "$PWD/$1"; done
}

queue_has() {
	[ "$(on "$(server_of f)" redis llen 'redisson_lock_queue:{f}' 2>/dev/null)" = "$1" ]
}

# queue_up: there are a holder of f, and waiters, each of which is to write its number into "order"; then one of them
# is killed. Sets QUEUED, the live waiters in their order.
queue_up() {
	local number pids=()
	rm -f order leave-f
	: >order
	turn fair f ledger.f -u "$PWD/leave-f" 3>&- &
	FAIR=($!)
	wait_until 30 on "$(server_of f)" is_held f || return
	for ((number = 1; number <= WAITERS; number++)); do
		rlock fair "${OPTIONS[@]}" -t $LEASE -w 90s f -- \
			sh -c 'echo "$1" >>order; exec overlap ledger.f exclusive -f 10000' - "$number" 2>>said 3>&- &
		pids+=($!)
		wait_until 30 queue_has "$number" || return
	done
	draw 1 $WAITERS
	kill -KILL "${pids[DRAWN - 1]}"
	QUEUED=$(seq $WAITERS | grep -vx "$DRAWN" | paste -s -d ' ')
	unset "pids[DRAWN - 1]"
	FAIR+=("${pids[@]}")
	# What no replica has heard of is lost with its server.
	wait_until 10 has_replicated
}

has_replicated() {
	[ "$(on "$(server_of f)" redis wait 1 500)" -ge 1 ]
}

# serve_queue FAULT: the fair holder goes, and the live waiters have their turns, in their order.
serve_queue() {
	local pid status
	touch leave-f
	for pid in "${FAIR[@]}"; do
		wait_until 100 is_gone "$pid" || violated "a fair waiter hangs after $1"
		status=0
		wait "$pid" 2>/dev/null || status=$?
		[ "$status" = 0 ] || [ "$status" = 76 ] || violated "a fair waiter ended with $status: $(tail -n 1 said)"
	done
	[ "$(paste -s -d ' ' order)" = "$QUEUED" ] ||
		violated "order of fair waiters: $(paste -s -d ' ' order), queued: $QUEUED, $1"
}

# ---- a grant that is lost ----

# lose_grant SERVER REPLICA...: SERVER crashes when it has granted the lock "late" to one shell, while another one waits
# for it; none of its replicas has heard of that, and they go on now. Sets LATE, the shells.
lose_grant() {
	local number
	for number in "${@:2}"; do freeze_server "$number"; done
	# More than sockets hold: what is written behind it stays in the memory of SERVER.
	on "$1" redis eval 'redis.call("set", KEYS[1], string.rep("x", ARGV[1]))' 1 'filler{late}' $((1 << 25)) >/dev/null
	rm -f leave-late
	# Renewals are far between: a holder does not find out before the other one has the lock.
	LEASE=20s turn run late ledger.late -u "$PWD/leave-late" 3>&- &
	LATE=($!)
	wait_until 10 on "$1" is_held late || return
	turn run late ledger.late -u "$PWD/leave-late" 3>&- &
	LATE+=($!)
	crash_server "$1"
	for number in "${@:2}"; do thaw_server "$number"; done
}

# find_grant: both shells have had their turns.
find_grant() {
	local pid
	((${#LATE[@]})) || return 0
	wait_until 30 on "$(server_of late)" is_held late || broke "no shell holds the lock whose grant was lost"
	touch leave-late
	for pid in "${LATE[@]}"; do
		wait_until 100 is_gone "$pid" || violated 'a shell hangs whose grant was lost'
	done
	LATE=()
}

# suffer COUNT FUNCTION NAMES...: so many times FUNCTION NUMBER, which makes a fault come about, and sets FAULT_MS, under
# load. NAMES are what the shells lock.
suffer() {
	local number pids=() pid ledger LATE=()
	begin_chance
	: >lost
	for ((number = 0; number < SHELLS; number++)); do
		take_turns_until done.a "${@:3}" 3>&- &
		pids+=($!)
	done
	for number in 1 2; do
		hold_until done.long 3>&- &
		pids+=($!)
	done
	for ((number = 1; number <= $1; number++)); do
		if ! queue_up || ! "$2" "$number"; then
			broke "$2 $number, chance $CHANCE: $(tail -n 1 said)"
			break
		fi
		injected
		find_grant
		serve_queue "$2 $number"
		# How long a holder that was to lose its lock went on.
		awk -v fault="$FAULT_MS" '$1 >= fault && $2 == "long" { print "time", $1 - fault }' lost >>"$RECORD"
	done
	touch done.a done.long leave-f
	for pid in "${pids[@]}"; do
		wait_until 120 is_gone "$pid" || violated 'a shell hangs'
	done
	repeated "$(cat ledger.* | grep -c ' enter ')"
	for ledger in ledger.*; do count_overlaps "$ledger"; done
}

# shellcheck disable=SC2034
WHAT_FAILOVERS_TOOK='from the fault until a holder that lost its lock has ended'
