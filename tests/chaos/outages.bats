#!/usr/bin/env bats
# What a holder and waiters live through: a network that swallows everything, processes that are
# suspended, a server that is started again, a clock that is set.
#
# Promised is: all of a command's processes are gone before the lease that protects it ends on the server; a
# lost lock ends with 76; of keeper and renewer each does the other one's part; what stood still together is
# stopped as soon as it goes on, and leaves the next holder alone; a waiter survives a restart of the server;
# the wall clock is of no account.

load chaos
load ../lib/proxying
load ../lib/clocks
load ../lib/replicas

setup_file() { start_server --notify-keyspace-events Exg; }
teardown_file() { stop_server; }

# ---- a black hole ----

# Whatever way a key takes from the server, it says so there.
listen_to_ends() {
	EVENTS=$BATS_TEST_TMPDIR/events
	# shellcheck disable=SC2016
	in_background sh -c 'exec redis-cli -s "$SERVER_SOCKET" --csv subscribe \
		__keyevent@0__:del __keyevent@0__:expired >"$0"' "$EVENTS"
	# in_cells waits for all that is its shell's.
	disown "$PID"
	wait_until 5 grep -qs ',2$' "$EVENTS"
}

# How the lock went: "del", it was released, or "expired".
end_of_lock() {
	sed -n "s/^\"message\",\"__keyevent@0__:\(.*\)\",\"$NAME\"\$/\1/p" "$EVENTS" | head -n 1
}

lock_has_ended() {
	[ -n "$(end_of_lock)" ]
}

# starved_ms PID: sets STARVED_MS, for how long it has been kept waiting for a processor.
starved_ms() {
	local fields=()
	{ read -r -a fields <"/proc/$1/schedstat"; } 2>/dev/null || :
	STARVED_MS=$((${fields[1]:-0} / 1000000))
}

# begin_starving: what HOLDER and RENEWER are kept waiting counts from here on.
begin_starving() {
	starved_ms "$HOLDER"
	STARVED=$STARVED_MS
	starved_ms "$RENEWER"
	STARVED+=" $STARVED_MS"
}

# That a violation can be judged.
starving() {
	local holder_ms=${STARVED% *} renewer_ms=${STARVED#* }
	starved_ms "$HOLDER"
	echo -n "of that rlock was kept waiting for a processor for $((STARVED_MS - holder_ms)) ms,"
	starved_ms "$RENEWER"
	echo " its renewer for $((STARVED_MS - renewer_ms)) ms"
}

# A command that is told to end writes it down with the next look, 5 ms later at most; the rest is for a machine that is busy.
NOTED_WITHIN_US=80000

# check_told LEASE_S END_US WHERE: the command was told to end early enough: SIGKILL is to come a tenth of the lease
# before its end, 200 ms at least, and SIGTERM a sixth of it before that.
check_told() {
	local told_us late_us margin_us=$(($1 * 100000))
	((margin_us >= 200000)) || margin_us=200000
	told_us=$(sed -n 's/ term .*//p' "$LEDGER" | head -n 1)
	if [ -z "$told_us" ]; then
		violated "killed, and not told before: $3"
		return
	fi
	late_us=$((told_us - ($2 - margin_us - $1 * 1000000 / 6)))
	((late_us < NOTED_WITHIN_US)) || violated "told to end $((late_us / 1000)) ms too late: $3"
}

# check_margin LEASE_S END_US WHERE: the lease was to end then, or later if it was renewed since; by how much
# sooner was a process seen inside for the last time?
check_margin() {
	local end_us=$2 later_us seen_us starving
	if ! seen_us=$(overlap -G "$LEDGER" 6000); then
		violated "still inside long behind the lease: $3"
		return
	fi
	starving=$(starving)
	later_us=$(lease_end_us)
	((later_us <= end_us)) || end_us=$later_us
	if ((seen_us >= end_us && later_us == 0)); then
		# Where only the replies were lost it was renewed all the time, and released.
		wait_until 3 lock_has_ended || return
		[ "$(end_of_lock)" != del ] || return 0
	fi
	took $(((end_us - seen_us) / 1000))
	((seen_us < end_us)) ||
		violated "inside $(((seen_us - end_us) / 1000)) ms behind the end of the lease, $starving: $3"
	check_told "$1" "$end_us" "$starving: $3"
}

# By half of what is left after SIGKILL.
LATE_ANSWERS_MS=100

# fall_silent NUMBER KIND: the holder falls into a black hole, at any moment of two cycles of renewals. Every other
# one had its answers late: a holder that counts from these takes its lease for longer than it is.
fall_silent() {
	local ways=(both up down) way lease_s=1 end_us where
	begin_chance
	way=${ways[$1 % 3]}
	(($1 % 10)) || lease_s=3
	start_proxy || return
	(($1 % 2)) || proxy delay $LATE_ANSWERS_MS >/dev/null || return
	holds holder "$2" "$LEDGER" -t ${lease_s}s || return
	HOLDER=$PID
	RENEWER=$(renewer_of "$HOLDER")
	draw 0 $((lease_s * 667))
	let_pass_ms "$DRAWN"
	begin_starving
	proxy blackhole on "$way" >/dev/null || return
	end_us=$(lease_end_us)
	((end_us > 0)) || return
	injected
	repeated
	where="$2, $way, a lease of $lease_s s, $DRAWN ms behind the start, cell $1, chance $CHANCE"
	check_margin "$lease_s" "$end_us" "$where" || return
	must_end 76 holder "$HOLDER" "$where"
	must "it was not said why: $where" grep -q "^rlock: $NAME: lock lost " said-holder
}

black_hole() {
	begin_scenario "black hole, $1"
	compare_clocks
	listen_to_ends
	in_cells "$(scaled 60)" 8 fall_silent "$1"
	end_scenario 'left of the lease' least
}

@test "black hole, plain" { black_hole plain; }
@test "black hole, fair" { black_hole fair; }
@test "black hole, read" { black_hole read; }
@test "black hole, write" { black_hole write; }

# ---- suspended ----

# hold_for_a_while KIND: with a short lease, until any moment of two cycles of renewals. Sets HOLDER, RENEWER.
hold_for_a_while() {
	begin_chance
	holds holder "$1" "$LEDGER" -t 1s || return
	HOLDER=$PID
	wait_until 5 has_renewer "$HOLDER" || return
	RENEWER=$(renewer_of "$HOLDER")
	draw 0 667
	let_pass_ms "$DRAWN"
}

# is_taken KIND: for a rival.
is_taken() {
	local status=0
	rlock "$(verb_of "$(rival_kind "$1")")" -n "$NAME" -- true || status=$?
	[ "$status" = 75 ]
}

all_run() {
	local pid
	for pid in $(pids_inside "$LEDGER"); do
		is_running "$pid" || return
	done
}

pids_inside() {
	sed -nE 's/^[0-9]+ (enter|child) [a-z]+ ([0-9]+)$/\2/p' "$1"
}

# suspend_keeper NUMBER KIND: the renewer sees to it.
suspend_keeper() {
	hold_for_a_while "$2" || return
	kill -STOP "$HOLDER"
	wait_until 2 is_stopped "$HOLDER" || return
	injected
	repeated
	draw 1200 2200
	let_pass_ms "$DRAWN"
	must "the lock was not kept, chance $CHANCE" is_taken "$2"
	must "the command did not go on, chance $CHANCE" all_run
	kill -CONT "$HOLDER"
	leaves holder
	must_end 0 holder "$HOLDER" "chance $CHANCE"
	must "it said something, chance $CHANCE" cmp said-holder /dev/null
	must_leave_nothing 3
}

# suspend_renewer NUMBER KIND: the keeper stops the command in time, and the renewer with it.
suspend_renewer() {
	local end_us
	hold_for_a_while "$2" || return
	kill -STOP "$RENEWER"
	wait_until 2 is_stopped "$RENEWER" || return
	begin_starving
	end_us=$(lease_end_us)
	((end_us > 0)) || return
	injected
	repeated
	check_margin 1 "$end_us" "chance $CHANCE" || return
	must_end 76 holder "$HOLDER" "chance $CHANCE"
	must_leave_nothing 3
}

# How soon a command must be gone when keeper and renewer go on: they find its processes and kill them.
KILLED_WITHIN_MS=1000

# suspend_all NUMBER KIND: keeper and renewer, and every other time the command as well, for longer than the
# lease. A rival has the lock then, and keeps it.
suspend_all() {
	local all rival pid went_on_us=0
	hold_for_a_while "$2" || return
	all=("$HOLDER" "$RENEWER")
	# shellcheck disable=SC2207
	(($1 % 2)) || all+=($(pids_inside "$LEDGER"))
	shuffle "${all[@]}"
	kill -STOP "${SHUFFLED[@]}"
	for pid in "${all[@]}"; do
		wait_until 2 is_stopped "$pid" || return
	done
	injected
	repeated
	visits rival "$(rival_kind "$2")" rivals until -t 1s -w 20s
	rival=$PID
	must "nobody else got the lock, chance $CHANCE" wait_until 8 all_inside rivals 1
	draw 0 700
	let_pass_ms "$DRAWN"
	shuffle "${all[@]}"
	# The time from when the first of the two can act.
	for pid in "${SHUFFLED[@]}"; do
		case $pid in
		"$HOLDER" | "$RENEWER") ((went_on_us)) || went_on_us=$(now_us) ;;
		esac
		kill -CONT "$pid" 2>/dev/null || :
	done
	if gone_us "$LEDGER" 5000; then
		took $(((GONE_US - went_on_us) / 1000))
		((GONE_US - went_on_us <= KILLED_WITHIN_MS * 1000)) ||
			violated "it ran on for $(((GONE_US - went_on_us) / 1000)) ms, chance $CHANCE"
	else
		violated "it runs on, chance $CHANCE"
	fi
	must_end 76 holder "$HOLDER" "chance $CHANCE"
	# For longer than its lease.
	must "the next one lost the lock, chance $CHANCE" stays 1.2 all_is_well_with rivals "$2"
	leaves rival
	must_end 0 rival "$rival" "chance $CHANCE"
	must "the next one said something, chance $CHANCE" cmp said-rival /dev/null
	must_leave_nothing 3
}

# all_is_well_with LEDGER KIND
all_is_well_with() {
	has_one_inside "$1" && is_held "$NAME"
}

one_suspended() {
	begin_scenario "rlock suspended, $1"
	in_cells "$(scaled 15)" 8 suspend_keeper "$1"
	end_scenario -
	begin_scenario "renewer suspended, $1"
	compare_clocks
	listen_to_ends
	in_cells "$(scaled 15)" 5 suspend_renewer "$1"
	end_scenario 'left of the lease' least
}

all_suspended() {
	begin_scenario "all suspended, $1"
	in_cells "$(scaled 30)" 10 suspend_all "$1"
	end_scenario 'until the command is gone'
}

@test "one of two suspended, plain" { one_suspended plain; }
@test "one of two suspended, fair" { one_suspended fair; }
@test "one of two suspended, read" { one_suspended read; }
@test "one of two suspended, write" { one_suspended write; }
@test "all suspended, plain" { all_suspended plain; }
@test "all suspended, fair" { all_suspended fair; }
@test "all suspended, read" { all_suspended read; }
@test "all suspended, write" { all_suspended write; }

# ---- a server that is started again ----

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
		wait_until 5 is_copied || return
	fi
	if [ "$DATA" = saved ]; then
		redis shutdown save >/dev/null || :
	else
		kill -KILL "$SERVER_PID"
	fi
	wait "$SERVER_PID" || :
	wait_until 5 is_gone "$SERVER_PID"
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

# begin_line KIND: they wait behind the holder. Sets LINE.
begin_line() {
	local number
	LINE=()
	for ((number = 0; number < WAITERS; number++)); do
		visits "$number" "$(kind_of_waiter "$1" "$number")" turns '-f 2000' -t 3s -w 60s
		LINE+=("$PID")
		# A reader that comes before the first writer waits would be in at once.
		((number > 0)) || wait_until 5 so_many_wait 1 || return
	done
	wait_until 20 so_many_wait $WAITERS
}

# must_go_on WHERE LEDGER: the holder has noticed nothing, for longer than it takes to renew. It leaves then;
# sets SINCE_US.
must_go_on() {
	must "the holder lost the lock, $1" stays 1.3 has_one_inside "$2"
	must "nobody holds the lock, $1" is_held "$NAME"
	must "the holder said something, $1" cmp said-holder /dev/null
	SINCE_US=$(now_us)
	leaves holder
	must_end 0 holder "$HOLDER" "$1"
}

# must_be_stopped WHERE LEDGER: no later than with its next renewal.
must_be_stopped() {
	gone_us "$2" 3000 || violated "the holder of a lost lock runs on, $1"
	must_end 76 holder "$HOLDER" "$1"
	must "the holder was not told, $1" grep -q "^rlock: $NAME: lock lost " said-holder
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
		wait_until 5 all_inside turns 1 || return
	fi
	HOLDER=$PID
	begin_line "$2" || return
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
		must_end 0 $number "${LINE[number]}" "$where"
	done
	last_us=$(awk '$2 == "leave" { last = $1 } END { print last }' turns)
	((${last_us:-0} < SINCE_US)) || took $(((last_us - SINCE_US) / 1000))
	count_overlaps turns
	[ "$(grep -c ' leave ' turns)" = $turns ] ||
		violated "not everybody had one turn, $where"
	must_leave_nothing 6
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
	wait_until 5 all_inside "$LEDGER" 1 || return
	visits patient "$kind" "$LEDGER.patient" '-f 0'
	patient=$PID
	visits brief "$kind" "$LEDGER.brief" '-f 0' -w 3s
	brief=$PID
	wait_until 5 so_many_wait 2 || return
	since_us=$(now_us)
	crash || return
	injected
	repeated
	must_end 69 brief "$brief" "$kind"
	took_us=$(($(now_us) - since_us))
	((took_us < 6000000)) || violated "a wait time of 3 s took $((took_us / 1000)) ms, $kind"
	# It has a minute from its last renewal. Asked at once: bash forgets a child that ended when its number is another's.
	wait_until $((LOST_SERVER_MS / 1000 + 10)) is_gone "$HOLDER" >/dev/null 2>&1 || :
	must_end 76 holder "$HOLDER" "$kind"
	wait_until $((LOST_SERVER_MS / 1000 + 10)) is_gone "$patient" >/dev/null 2>&1 || :
	took_us=$(($(now_us) - since_us))
	took $((took_us / 1000))
	must_end 69 patient "$patient" "$kind"
	((took_us >= LOST_SERVER_MS * 1000 && took_us < (LOST_SERVER_MS + 5000) * 1000)) ||
		violated "who has no wait time gave up after $((took_us / 1000)) ms, $kind"
	must "somebody got in, $kind" [ ! -e "$LEDGER.patient" ]
	must "somebody got in in time, $kind" [ ! -e "$LEDGER.brief" ]
	must "of rlock something runs, $kind" wait_until 3 nothing_runs
}

stay_away_own() {
	with_own_server stay_away "$@"
}

@test "server stays away" {
	begin_scenario 'server stays away'
	in_cells "$(scaled 8)" 16 stay_away_own
	end_scenario 'until who has no wait time gives up'
}

server_restarts() {
	begin_scenario "server restarts, $1"
	in_cells "$(scaled 8)" 4 restart_own "$1"
	end_scenario 'until all had their turns'
}

@test "server restarts, plain" { server_restarts plain; }
@test "server restarts, fair" { server_restarts fair; }
@test "server restarts, read" { server_restarts read; }
@test "server restarts, write" { server_restarts write; }

# ---- a clock that is set ----

# step_the_clock NUMBER KIND: by an hour, for a holder, for a waiter, and for one that waits a second and a
# half.
step_the_clock() {
	local waiter briefly steps=(3600 -3600) begun_us end_us entered_us
	begin_chance
	clock_follows "$CELL/clock"
	visits holder "$2" "$LEDGER" until -t 1s
	HOLDER=$PID
	wait_until 5 all_inside "$LEDGER" 1 || return
	visits waiter "$(rival_kind "$2")" "$LEDGER" '-f 0' -w 30s
	waiter=$PID
	wait_until 5 listen 1 || return
	begun_us=$(now_us)
	visits briefly "$(rival_kind "$2")" briefly '-f 0' -w 1500ms
	briefly=$PID
	draw 0 667
	let_pass_ms "$DRAWN"
	step_clock clock "${steps[$1 % 2]}"
	is_off_by "${steps[$1 % 2]}" || return
	injected
	repeated
	must_end 75 briefly "$briefly" "chance $CHANCE"
	end_us=$(now_us)
	((end_us - begun_us >= 1400000 && end_us - begun_us < 10000000)) ||
		violated "one waited $(((end_us - begun_us) / 1000)) ms for 1500 ms, chance $CHANCE"
	must "the holder lost the lock, chance $CHANCE" all_is_well_with "$LEDGER" "$2"
	# And back, or further.
	shuffle 0 7200
	step_clock clock "${SHUFFLED[0]}"
	must "the holder lost the lock, chance $CHANCE" stays 1.2 all_is_well_with "$LEDGER" "$2"
	must "the holder said something, chance $CHANCE" cmp said-holder /dev/null
	end_us=$(now_us)
	leaves holder
	must_end 0 holder "$HOLDER" "chance $CHANCE"
	must_end 0 waiter "$waiter" "chance $CHANCE"
	entered_us=$(awk '$2 == "enter" { last = $1 } END { print last }' "$LEDGER")
	took $(((entered_us - end_us) / 1000))
	((entered_us - end_us < 3000000)) || violated "the waiter found out too late, chance $CHANCE"
	count_overlaps "$LEDGER"
	must_leave_nothing 6
}

so_many_stand() {
	[ "$(redis llen "redisson_lock_queue:{$NAME}")" = "$1" ]
}

IN_QUEUE=6

# keep_positions NUMBER KIND: of the waiters in a queue each has another clock, and one is killed.
keep_positions() {
	local number dead waiters=() wanted=() got
	begin_chance
	visits holder "$2" turns.0 until -t 2s
	HOLDER=$PID
	wait_until 5 all_inside turns.0 1 || return
	for ((number = 1; number <= IN_QUEUE; number++)); do
		draw -1 1
		clock_is_off $((DRAWN * 3600))
		visits "$number" "$2" "turns.$number" '-f 0' -t 2s
		waiters+=("$PID")
		wait_until 5 so_many_stand "$number" || return
	done
	draw 1 $IN_QUEUE
	dead=$DRAWN
	kill -KILL "${waiters[dead - 1]}"
	injected
	repeated
	draw 0 3000
	let_pass_ms "$DRAWN"
	leaves holder
	must_end 0 holder "$HOLDER" "chance $CHANCE"
	for ((number = 1; number <= IN_QUEUE; number++)); do
		((number != dead)) || continue
		must_end 0 "$number" "${waiters[number - 1]}" "chance $CHANCE"
		wanted+=("turns.$number")
	done
	got=$(awk '$2 == "enter" { print $1, FILENAME }' turns.[1-9] | sort -n | cut -d ' ' -f 2 | paste -s -d ' ')
	[ "$got" = "${wanted[*]}" ] || violated "they got in as $got, chance $CHANCE"
	# One more, which finds what the dead one has left: the last of a queue that had not listened yet is not missed.
	visits next "$2" turns.next '-f 0' -t 2s
	must_end 0 next "$PID" "chance $CHANCE"
	must_leave_nothing 6
}

clock_is_set() {
	need_wrong_clocks
	begin_scenario "clock set, $1"
	in_cells "$(scaled 8)" 8 step_the_clock "$1"
	# The one kind that has a line.
	[ "$1" != fair ] || in_cells "$(scaled 8)" 8 keep_positions fair
	end_scenario 'until the waiter is in'
}

@test "clock set, plain" { clock_is_set plain; }
@test "clock set, fair" { clock_is_set fair; }
@test "clock set, read" { clock_is_set read; }
@test "clock set, write" { clock_is_set write; }
