#!/usr/bin/env bats
# While a lock is held and others wait for it, the server restarts with or without its data, or its replica takes over. All waiters must
# acquire the lock, and a holder must keep a lock that the server still knows. If the server does not come back, a waiter gives up after its
# wait time, or after a minute.

load chaos
load ../lib/replicas

# Each cell has servers of its own.
setup_file() { :; }
teardown_file() { :; }
setup() {
	clean_environment
	cd "$BATS_TEST_TMPDIR" || return
}

WAITERS=20
# A waiter without a wait time gives up when it has been without a server for this long.
LOST_SERVER_US=60000000

# choose_server DIRECTORY PID: from now on the cell uses this server.
choose_server() {
	export SERVER_DIR=$CELL/$1 SERVER_SOCKET=$CELL/$1/redis.sock SERVER_PID=$2
}

# serve: starts a server, with the data that an earlier one has stored on disk. With DATA=replica the first call starts a master and its
# replica, and the second one makes the replica the master.
serve() {
	local options=()
	if [ "$DATA" != replica ]; then
		[ "$DATA" != log ] || options=(--appendonly yes --appendfsync always)
		BATS_FILE_TMPDIR=$CELL start_server "${options[@]}"
	elif [ ! -d one ]; then
		start_replicated_servers && choose_server one "$MASTER"
	else
		promote_replica && choose_server two "$REPLICA"
	fi
}

# is_copied: whether the replica has all writes that the master has carried out. WAIT covers only the writes of its own
# connection, so PUBLISH over it first: the replica acknowledges that after all earlier writes.
is_copied() {
	[ "$(printf '%s\n' 'publish news 1' 'wait 1 1000' | redis - | tail -n 1)" = 1 ]
}

crash() {
	[ "$DATA" != replica ] || wait_until 20 is_copied || return
	if [ "$DATA" = saved ]; then
		redis shutdown save
	else
		kill -KILL "$SERVER_PID"
	fi
	wait "$SERVER_PID"
	wait_until 20 is_gone "$SERVER_PID"
}

# are_subscribed COUNT: whether COUNT calls are subscribed.
are_subscribed() {
	[ "$(redis client list type pubsub | wc -l)" = "$1" ]
}

# begin_queue KIND: starts WAITERS calls that wait for the holder's lock. KIND: the holder's kind, and that of the waiters; but if
# it is read, writers and readers wait in turn. Sets QUEUE to their pids.
begin_queue() {
	local number kind=$1
	QUEUE=()
	for ((number = 0; number < WAITERS; number++)); do
		[ "$1" != read ] || kind=$( ((number % 2)) && echo read || echo write)
		start_contender "$number" "$kind" "$LEDGER" '-f 2000' -t 3s -w 60s
		QUEUE+=("$PID")
		# Wait until the first call is in the queue. If the holder reads, that call is a writer, and a reader that came
		# before it would acquire the lock immediately.
		((number > 0)) || wait_until 20 are_subscribed 1 || return
	done
	wait_until 20 are_subscribed $WAITERS
}

# restart NUMBER KIND: the server of a holder and of waiters crashes and comes back. Its data was in a log, saved, lost, or on a replica.
restart() {
	local all_data=(log saved lost replica) turns=$WAITERS number back_us last_us
	DATA=${all_data[$1 % 4]}
	WHERE="data $DATA, $WHERE"
	serve || return
	if [ "$DATA" = lost ]; then
		# Give this holder a ledger of its own: until it finds that the lock is lost, its command may run at the same time
		# as that of the next holder.
		start_holder_family holder "$2" ledger-lost -t 3s || return
	else
		# The lease must be longer than the time for which the server is away, even if a busy machine starts the server
		# late.
		start_contender holder "$2" "$LEDGER" until -t 9s
		HOLDER=$PID turns=$((turns + 1))
		wait_until 20 entered 1 || return
	fi
	begin_queue "$2" && crash || return
	let_some_pass 500
	back_us=$(now_us)
	serve || return
	injected
	repeated
	if [ "$DATA" = lost ]; then
		# The next renewal, which comes after a third of the lease, must find the loss.
		must 'the holder of a lost lock runs on' overlap -g ledger-lost 8000
		must_end 76 "$HOLDER" holder
		must_say holder "$NAME: lock lost "
	else
		# Check for longer than a third of the lease of 9 s: a renewal must have succeeded meanwhile.
		must 'the holder lost the lock' stays_true_for 3.3 is_well "$LEDGER"
		must_say holder
		back_us=$(now_us)
		finish_contender holder
		must_end 0 "$HOLDER" holder
	fi
	for number in "${!QUEUE[@]}"; do
		must_end 0 "${QUEUE[number]}" "$number"
	done
	last_us=$(times leave | tail -n 1)
	((${last_us:-0} < back_us)) || took $(((last_us - back_us) / 1000))
	[ "$(times leave | wc -l)" = $turns ] || violated 'not each contender had one turn'
}

# stay_away NUMBER: the server of a holder and two waiters crashes and does not come back.
stay_away() {
	local kind=${KINDS[$1 % 4]} patient brief since_us took_us
	WHERE="$kind, $WHERE"
	DATA=lost
	serve || return
	start_contender holder "$(excluded_kind "$kind")" "$LEDGER" until -t 60s
	HOLDER=$PID
	wait_until 20 entered 1 || return
	start_contender patient "$kind" ledger-patient '-f 0'
	patient=$PID
	start_contender brief "$kind" ledger-brief '-f 0' -w 3s
	brief=$PID
	wait_until 20 are_subscribed 2 || return
	# Read the clock before the crash: the waiters count their time from when they notice it, so this time is never too short.
	since_us=$(now_us)
	crash || return
	injected
	repeated
	must_end 69 "$brief" brief
	took_us=$(($(now_us) - since_us))
	((took_us < 10000000)) || violated "a wait time of 3 s took $((took_us / 1000)) ms"
	# The holder ends when its lease of 60 s, which counts from its last renewal, is about to end.
	wait_until 70 is_gone "$HOLDER"
	must_end 76 "$HOLDER" holder
	wait_until 70 is_gone "$patient"
	took_us=$(($(now_us) - since_us))
	took $((took_us / 1000))
	must_end 69 "$patient" patient
	((took_us >= LOST_SERVER_US && took_us < LOST_SERVER_US + 15000000)) ||
		violated "a waiter without a wait time gave up after $((took_us / 1000)) ms"
	! compgen -G 'ledger-*' || violated 'a waiter acquired the lock'
}

@test "server stays away: waiters end with 69 after their wait time, or after a minute without one" {
	scenario 'server stays away' 'until a waiter without a wait time ends' 8 16 stay_away
}

@test "server restarts: all waiters acquire the lock, and a holder keeps a lock that the server still knows" {
	scenario_of_kinds 'server restarts' 'until all had their turns' 8 4 restart
}
