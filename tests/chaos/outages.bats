#!/usr/bin/env bats
# A server that is started again while one holds a lock and others wait, with what it knew or without it, or whose replica
# takes over: waiters survive that, and so does the holder whose lock is still known. And one that does not come back: a waiter
# gives up after its wait time, or after a minute. A server that is not there at first is starts.bats'.

load chaos
load ../lib/replicas

WAITERS=20

# serve: a server of this cell alone, with what an earlier one has left on disk.
serve() {
	local options=()
	[ "$DATA" != log ] || options=(--appendonly yes --appendfsync always)
	BATS_FILE_TMPDIR=$CELL start_server "${options[@]}"
}

# begin_servers: the first, and its replica where there is one.
begin_servers() {
	if [ "$DATA" = replica ]; then
		replicated_servers || return
		choose_server one "$MASTER"
	else
		serve
	fi
}

# choose_server DIRECTORY PID: that one is asked from now on.
choose_server() {
	export SERVER_DIR=$CELL/$1 SERVER_SOCKET=$CELL/$1/redis.sock SERVER_PID=$2
}

# begin_again: the same server, with what it knows; or the replica takes over.
begin_again() {
	if [ "$DATA" = replica ]; then
		promote_replica || return
		choose_server two "$REPLICA"
	else
		serve
	fi
}

# Whatever the master has acknowledged. It waits for what came before on the same connection only.
is_copied() {
	[ "$(printf '%s\n' 'publish news 1' 'wait 1 1000' | redis | tail -n 1)" = 1 ]
}

crash() {
	if [ "$DATA" = replica ]; then
		wait_until 20 is_copied || return
	fi
	if [ "$DATA" = saved ]; then
		redis shutdown save >/dev/null || :
	else
		kill -KILL "$SERVER_PID"
	fi
	wait "$SERVER_PID" || :
	wait_until 20 is_gone "$SERVER_PID"
}

# What waits for a read lock: writers and readers.
kind_of_waiter() {
	if [ "$1" = read ] && (($2 % 2 == 0)); then
		echo write
	else
		echo "$1"
	fi
}

so_many_wait() {
	[ "$(redis client list type pubsub | wc -l)" = "$1" ]
}

# begin_queue KIND: they wait behind the holder. Sets QUEUE.
begin_queue() {
	local number
	QUEUE=()
	for ((number = 0; number < WAITERS; number++)); do
		visits "$number" "$(kind_of_waiter "$1" "$number")" turns '-f 2000' -t 3s -w 60s
		QUEUE+=("$PID")
		# A reader that comes before the first writer waits would be in at once.
		((number > 0)) || wait_until 20 so_many_wait 1 || return
	done
	wait_until 20 so_many_wait $WAITERS
}

# must_go_on WHERE LEDGER: the holder has noticed nothing, for longer than it takes to renew. It leaves then;
# sets SINCE_US.
must_go_on() {
	must "the holder lost the lock, $1" stays 1.3 has_one_inside "$2"
	must "the lock is not held, $1" is_held "$NAME"
	must "the holder said something, $1" cmp said-holder /dev/null
	SINCE_US=$(now_us)
	leaves holder
	must_end 0 holder "$HOLDER" "$1"
}

# must_be_stopped WHERE LEDGER: no later than with its next renewal.
must_be_stopped() {
	gone_us "$2" 8000 || violated "the holder of a lost lock runs on, $1"
	must_end 76 holder "$HOLDER" "$1"
	must "the holder did not report the loss, $1" grep -q "^rlock: $NAME: lock lost " said-holder
}

# with_own_server FUNCTION [ARG...]: one that calls `serve`. A server writes over its environment, by which a
# cell's processes are known otherwise.
with_own_server() {
	local status=0
	SERVER_PID='' REPLICA=''
	"$@" || status=$?
	stop_server
	[ -z "$REPLICA" ] || kill_server_process "$REPLICA" "$CELL/two"
	return $status
}

# restart NUMBER KIND: the server of a holder and of waiters. What it knew is in a log, or was saved, or
# is lost, or a replica has it, which takes over.
restart() {
	local all_data=(log saved lost replica) where turns=$WAITERS number last_us
	begin_chance
	DATA=${all_data[$1 % 4]}
	where="data $DATA, chance $CHANCE"
	begin_servers || return
	if [ "$DATA" = lost ]; then
		# It is beside the next one, until it finds out.
		holds holder "$2" lost -t 3s || return
	else
		visits holder "$2" turns until -t 3s
		wait_until 20 all_inside turns 1 || return
	fi
	HOLDER=$PID
	begin_queue "$2" || return
	crash || return
	draw 0 500
	let_pass_ms "$DRAWN"
	SINCE_US=$(now_us)
	begin_again || return
	injected
	repeated
	if [ "$DATA" = lost ]; then
		must_be_stopped "$where" lost
	else
		turns=$((turns + 1))
		must_go_on "$where" turns
	fi
	for ((number = 0; number < WAITERS; number++)); do
		must_end 0 $number "${QUEUE[number]}" "$where"
	done
	last_us=$(awk '$2 == "leave" { last = $1 } END { print last }' turns)
	((${last_us:-0} < SINCE_US)) || took $(((last_us - SINCE_US) / 1000))
	count_overlaps turns
	[ "$(grep -c ' leave ' turns)" = $turns ] ||
		violated "not each party had one turn, $where"
	must_leave_nothing 15
}

restart_own() {
	with_own_server restart "$@"
}

# How long a waiter that has no wait time of its own goes on without a server.
LOST_SERVER_MS=60000

# stay_away NUMBER: the server of the waiters does not come back. (None of them is late: a minute has room
# for all.)
stay_away() {
	local kind=${KINDS[$1 % 4]} patient brief since_us took_us
	DATA=lost
	serve || return
	visits holder "$(rival_kind "$kind")" "$LEDGER" until -t 60s
	HOLDER=$PID
	wait_until 20 all_inside "$LEDGER" 1 || return
	visits patient "$kind" "$LEDGER.patient" '-f 0'
	patient=$PID
	visits brief "$kind" "$LEDGER.brief" '-f 0' -w 3s
	brief=$PID
	wait_until 20 so_many_wait 2 || return
	since_us=$(now_us)
	crash || return
	injected
	repeated
	must_end 69 brief "$brief" "$kind"
	took_us=$(($(now_us) - since_us))
	((took_us < 10000000)) || violated "a wait time of 3 s took $((took_us / 1000)) ms, $kind"
	# It has a minute from its last renewal. Asked at once: bash drops the status of a child that ended when its number is another's.
	wait_until $((LOST_SERVER_MS / 1000 + 10)) is_gone "$HOLDER" >/dev/null 2>&1 || :
	must_end 76 holder "$HOLDER" "$kind"
	wait_until $((LOST_SERVER_MS / 1000 + 10)) is_gone "$patient" >/dev/null 2>&1 || :
	took_us=$(($(now_us) - since_us))
	took $((took_us / 1000))
	must_end 69 patient "$patient" "$kind"
	((took_us >= LOST_SERVER_MS * 1000 && took_us < (LOST_SERVER_MS + 15000) * 1000)) ||
		violated "a waiter without a wait time gave up after $((took_us / 1000)) ms, $kind"
	must "a waiter without a wait time acquired the lock, $kind" [ ! -e "$LEDGER.patient" ]
	must "a waiter with a wait time acquired the lock, $kind" [ ! -e "$LEDGER.brief" ]
	must "of rlock something runs, $kind" wait_until 10 nothing_runs
}

stay_away_own() {
	with_own_server stay_away "$@"
}

@test "server stays away" {
	begin_scenario 'server stays away'
	in_cells "$(scaled 8)" 16 stay_away_own
	end_scenario 'until a waiter without a wait time ends'
}

@test "server restarts" {
	local kind
	begin_scenario 'server restarts'
	for kind in "${KINDS[@]}"; do
		in_cells "$(scaled 8)" 4 restart_own "$kind"
	done
	end_scenario 'until all had their turns'
}
