#!/usr/bin/env bats
# A server that is full (maxmemory, noeviction). Promised: it grants no new locks, and none can be re-entered:
# 69, in one line that says so. What is held is renewed and released as ever. A waiter goes on waiting, for its
# own wait time, or for 60 s when it has none, and has its turn once there is room again.

# chaos.bash has the kinds.
# shellcheck disable=SC2153

load chaos

# Each cell has a server of its own, which knows no script yet.
setup() {
	PATH=$BATS_TEST_DIRNAME/../bin:$PATH
	export XDG_CONFIG_HOME=$BATS_TEST_TMPDIR/config RLOCK_RUNTIME_DIR=$BATS_TEST_TMPDIR/run
	cd "$BATS_TEST_TMPDIR" || return
}

WIDTH=10
LEASE_MS=3000
CALL_LIMIT_MS=8000

# wrong TEXT
wrong() {
	violated "$KIND, cell $NUMBER, SEED=$SEED: $1"
}

# calls STATUS SAID COMMAND [ARG...]: a call of rlock ends so, in time, with one line that is like SAID, or with none.
calls() {
	local status=0 start=${EPOCHREALTIME/./} ms
	timeout -k 1 20 "${@:3}" >answer 2>said || status=$?
	ms=$(((${EPOCHREALTIME/./} - start) / 1000))
	took "$ms"
	((ms <= CALL_LIMIT_MS)) || wrong "${*:3} took $ms ms"
	[ "$status" = "$1" ] || wrong "${*:3} ended with $status, not $1: $(tr '\n' ';' <said)"
	if [ -z "$2" ]; then
		[ ! -s said ] || wrong "${*:3} said: $(tr '\n' ';' <said)"
	else
		{ has_lines said 1 && grep -qE "^rlock: .*$2" said; } || wrong "${*:3} said: $(tr '\n' ';' <said)"
	fi
}

get_full() {
	redis config set maxmemory 1 >/dev/null
	injected
}

have_room() {
	redis config set maxmemory 0 >/dev/null
}

# The locks of a script, of two owners, and of a command that waits to be let go.
take_locks() {
	local lock=${VERB/#run/lock}
	calls 0 '' rlock "$lock" -t "${LEASE_MS}ms" --pid "$BASHPID" script
	calls 0 '' rlock "$lock" -l 60s --owner job owner
	calls 0 '' rlock "$lock" -l 60s --owner other forgotten
	in_background timeout 60 rlock "$VERB" -t "${LEASE_MS}ms" command -- overlap ledger "$MODE" -u "$CELL/go"
	HOLDER=$!
	wait_until 10 entered 1
}

# What waits for the command: one for as long as it takes, and one that has not so much time.
two_wait() {
	in_background timeout 60 rlock "$BEHIND" command -- overlap ledger "$BEHIND_MODE"
	WAITER=$!
	in_background timeout 60 rlock "$BEHIND" -w 1500ms command -- touch hasty-ran
	HASTY=$!
	wait_until 10 listen 2 command
}

# Of the only owner.
COUNT_HOLDS='
	for _, value in ipairs(redis.call("HVALS", KEYS[1])) do
		if tonumber(value) then return tonumber(value) end
	end'

# No new lock, waited for or not, alone or among others, for a command, a script or an owner; and nothing of it stays.
none_gets_in() {
	local lock=${VERB/#run/lock} key
	calls 69 memory rlock "$VERB" new -- touch ran
	calls 69 memory rlock "$VERB" -n new -- touch ran
	calls 69 memory rlock "$VERB" -w 300ms new -- touch ran
	calls 69 memory rlock "$VERB" new another -- touch ran
	calls 69 memory rlock "$lock" --pid "$BASHPID" new
	calls 69 memory rlock "$lock" -l 5s --owner job new
	calls 69 memory rlock "$lock" --pid "$BASHPID" script
	calls 69 memory rlock "$lock" -l 5s --owner job owner
	[ ! -e ran ] || wrong 'a command ran without its lock'
	for key in new another; do
		[ -z "$(redis --raw keys "*$key*")" ] || wrong "there is now on the server: $(redis --raw keys "*$key*")"
	done
	for key in script owner; do
		[ "$(redis eval "$COUNT_HOLDS" 1 "$key")" = 1 ] || wrong "the holds of $key are $(redis eval "$COUNT_HOLDS" 1 "$key")"
	done
}

# Over several renewals.
all_stay_held() {
	let_pass 3.3
	is_held script || wrong 'the lock of a script was not renewed'
	is_held command || wrong 'the lock of a command was not renewed'
	calls 0 '' rlock renew script
	calls 0 '' rlock renew --owner job -l 60s owner
}

# fill NUMBER KIND
fill() {
	NUMBER=$1 KIND=$2 VERB=$(verb_of "$2") MODE=$(mode_of "$2")
	RANDOM=$((SEED + NUMBER))
	BEHIND=$VERB BEHIND_MODE=$MODE
	[ "$KIND" != read ] || BEHIND=wlock BEHIND_MODE=exclusive
	[ "$KIND" != write ] || BEHIND=rlock BEHIND_MODE=shared
	export CELL
	BATS_FILE_TMPDIR=$CELL start_server
	take_locks
	two_wait
	let_pass "0.$((RANDOM % 10))"
	get_full
	none_gets_in
	all_stay_held
	calls 0 '' rlock unlock script
	calls 0 '' rlock unlock --owner job owner
	calls 0 broken rlock unlock --force forgotten
	hasty_is_told
	turn_comes
	nothing_stays
	repeated
	# It hides its environment, by which cells find what they have started.
	stop_server
}

# Its time is over: held by another owner, or no room for it in the queue. Not before that.
hasty_is_told() {
	local status=0
	wait "$HASTY" || status=$?
	[ "$status" = 75 ] || [ "$status" = 69 ] || wrong "the waiter whose time was over ended with $status"
	[ ! -e hasty-ran ] || wrong 'the waiter whose time was over acquired the lock'
}

# The command ends, and its lock is free, while none can acquire it; later the waiter can.
turn_comes() {
	local status=0 room_us entered_us
	touch go
	wait "$HOLDER" || status=$?
	[ "$status" = 0 ] || wrong "the command's rlock ended with $status"
	is_free command || wrong 'the lock of the command was not released'
	let_pass "0.$((RANDOM % 10))"
	is_running "$WAITER" || wrong 'the waiter did not go on waiting'
	room_us=$(($(boottime_ms) * 1000))
	have_room
	status=0
	wait "$WAITER" || status=$?
	[ "$status" = 0 ] || wrong "the waiter ended with $status"
	entered_us=$(awk '$2 == "enter" { at = $1 } END { print at }' ledger)
	echo "$(((entered_us - room_us) / 1000)) ms" >>"$LATE"
	count_overlaps ledger
}

nothing_stays() {
	must "$KIND: keys are left" wait_until 20 no_keys
	must "$KIND: something runs" wait_until 20 nothing_runs
	must "$KIND: files are left" no_hold_files
}

full_server() {
	SEED=${SEED:-$RANDOM}
	begin_scenario "a full server, $1"
	LATE=$PWD/late
	in_cells "$(scaled 20)" "$WIDTH" fill "$1"
	end_scenario "for a call; the waiter acquired the lock, once there was room, after $(sort -n late | tail -n 1) at most"
}

@test "a full server" {
	local kind
	for kind in "${KINDS[@]}"; do
		full_server "$kind"
	done
}
