# What the files here share: servers on TCP ports, a Redisson client of the version under test that does as
# it is told, and rlock processes that come and go as they are told. Loaded by every tests/interop/*.bats.
#
#   REDISSON_DIR   where tests/interop/run.sh has built the Java side: classes/ and lib/

load ../lib/usual
load ../lib/sentinels

# ---- Java: T1, T2... are its threads ----

# speak_to NAME: to that Java service from now on.
speak_to() {
	export JAVA=$BATS_FILE_TMPDIR/$1
}

# start_java NAME WATCHDOG_MS URL...: and speak to it.
start_java() {
	speak_to "$1"
	shift
	stop_java
	rm -rf "$JAVA"
	mkdir "$JAVA"
	mkfifo "$JAVA/in" "$JAVA/out"
	# Both ends of each pipe stay open in it, whatever comes and goes.
	java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmx128m -cp "$REDISSON_DIR/classes:$REDISSON_DIR/lib/*" \
		interop.Peer "$@" <>"$JAVA/in" 1<>"$JAVA/out" 2>"$JAVA/errors" 3>&- &
	disown
	echo $! >"$JAVA/pid"
	assert_equal "$(answer 120)" ready
}

# A service that tests may use one after the other; and one of the test's own, which renews its locks for 3 s each time, and may be
# killed. JAVA_URLS: of their servers, with blanks between.
# shellcheck disable=SC2086
start_common_java() { start_java java 30000 $JAVA_URLS; }
# shellcheck disable=SC2086
start_mortal_java() { start_java mortal 3000 $JAVA_URLS; }

stop_java() {
	[ -e "${JAVA:-}/pid" ] || return 0
	kill -KILL "$(java_pid)" 2>/dev/null || :
	wait_until 10 is_gone "$(java_pid)"
}

java_pid() { cat "$JAVA/pid"; }

java_dies() {
	echo die >"$JAVA/in"
	wait_until 10 is_gone "$(java_pid)"
}

answer() {
	local line
	read -r -t "$1" line <>"$JAVA/out" || line="no answer: $(cat "$JAVA/errors")"
	echo "$line"
}

# ask WORD...: one line to Java, its answer printed.
ask() {
	echo "$*" >"$JAVA/in"
	answer 60
}

# java_does ANSWER WORD...: Java gives that answer.
java_does() {
	local got
	got=$(ask "${@:2}")
	[ "$got" = "$1" ] || {
		echo "Java says '$got' and not '$1' to: ${*:2}" >&2
		return 1
	}
}

# java_locks THREAD KIND NAMES; and the same for java_unlocks.
java_locks() { java_does ok "$1" lock "${@:2}"; }
java_unlocks() { java_does ok "$1" unlock "${@:2}"; }

# java_begins THREAD VERB...: what may have to wait. What came of it is asked by java_enters, or by
# java_does ANSWER await THREAD MS.
java_begins() { java_does started start "$@"; }

# java_enters THREAD [SECONDS]: what was begun there is done now, or within so long.
java_enters() { java_does ok await "$1" $((${2:-25} * 1000)); }

# java_waits THREAD [MS]: what was begun there is not over.
java_waits() { java_does pending await "$1" "${2:-0}"; }

# is_asleep THREAD: what was begun there waits for a message. Of those that wake all none wakes what was only about to: Java
# counts its waiters then.
is_asleep() { [ "$(ask asleep "$1")" = true ]; }

# ---- rlock: its holders have names of their own, r mostly ----

# What is said to rlock beside verb and names, by tests with several servers.
SERVER_OPTIONS=()

# words KIND NAMES: sets WORDS, the verb for a kind of Redisson's with its options, and WORDS_NAMES. NAMES are
# as for Java: with commas between them.
words() {
	case $1 in
	plain) WORDS=(run) ;;
	read) WORDS=(rlock) ;;
	write) WORDS=(wlock) ;;
	fenced) WORDS=(run --fence) ;;
	majority) WORDS=(run --quorum majority) ;;
	*) WORDS=("$1") ;;
	esac
	WORDS+=("${SERVER_OPTIONS[@]}")
	IFS=, read -ra WORDS_NAMES <<<"$2"
}

# rlock_begins CONTENDER KIND NAMES [OPTION...]: an rlock with a command that stays until rlock_leaves CONTENDER. The pid
# is in PIDS[CONTENDER].
declare -gA PIDS=()
rlock_begins() {
	rm -f "$1.in" "$1.out"
	words "$2" "$3"
	in_background rlock "${WORDS[@]}" "${@:4}" "${WORDS_NAMES[@]}" -- stay "$1"
	PIDS[$1]=$PID
}

# rlock_enters CONTENDER
rlock_enters() { wait_until 25 file_exists "$1.in"; }

rlock_locks() {
	rlock_begins "$@"
	rlock_enters "$1"
}

# rlock_waits CONTENDER: it runs, and is not in.
rlock_waits() { is_running "${PIDS[$1]}" && [ ! -e "$1.in" ]; }

# rlock_leaves CONTENDER: its command ends, and then rlock, well.
rlock_leaves() {
	touch "$1.out"
	ended_with 0 "${PIDS[$1]}"
}

# rlock_is_refused KIND NAMES [OPTION...]: with -n, unless told otherwise.
rlock_is_refused() {
	[ $# -gt 2 ] || set -- "$@" -n
	words "$1" "$2"
	run -75 rlock "${WORDS[@]}" "${@:3}" "${WORDS_NAMES[@]}" -- true
}

# The owner that CONTENDER's hold has on the server.
owner_of() { cat "$1.in"; }

# ---- waiters ----

# listeners KIND NAME: how many connections wait. Each in the wake queue of rlock listens to a channel of its own; the
# first of them to that of the lock as well, as all others do.
listeners() {
	local channel own
	channel=$(channel "$1" "$2")
	own=$(redis pubsub channels "$channel:*" | grep -cE ':[0-9a-f]{32}$' || :)
	echo $(($(redis pubsub numsub "$channel" | tail -n 1) + own - (own > 0)))
}

# channel KIND NAME: where waiters of such a lock listen.
channel() {
	case $1 in
	read | write) echo "redisson_rwlock:{$2}" ;;
	*) echo "redisson_lock__channel:{$2}" ;;
	esac
}

# queue NAME: the owners in a fair lock's queue, the first one first.
queue() { redis lrange "redisson_lock_queue:{$1}" 0 -1; }

# has_waiter KIND NAMES [COUNT]: so many are in the queue, or at least so many listen, at the first of several names. All
# threads of one Java service listen by one connection.
has_waiter() {
	case $1 in
	fair) has_queue_length "${2%%,*}" "${3:-1}" ;;
	*) [ "$(listeners "$1" "${2%%,*}")" -ge "${3:-1}" ] ;;
	esac
}

# ---- what is true of each kind: HELD and WANTED are kinds that exclude each other ----

# rlock_queues HELD WANTED NAMES: r waits for T1.
rlock_queues() {
	java_locks T1 "$1" "$3"
	rlock_begins r "$2" "$3"
	wait_until 20 has_waiter "$2" "$3"
	rlock_waits r
}

# java_queues HELD WANTED NAMES [OPTION...]: T1 waits for r, which has these options.
java_queues() {
	rlock_locks r "$1" "$3" "${@:4}"
	java_begins T1 lock "$2" "$3"
	wait_until 20 has_waiter "$2" "$3"
	wait_until 20 is_asleep T1
}

rlock_has_its_turn() {
	takes_less_than 4 rlock_enters r
	rlock_leaves r
	nothing_is_left
}

# java_has_its_turn KIND NAMES
java_has_its_turn() {
	takes_less_than 4 java_enters T1
	java_unlocks T1 "$@"
	nothing_is_left
}

# It does not sleep out the lease of 30 s.
rlock_is_woken() {
	rlock_queues "$@"
	java_unlocks T1 "$1" "$3"
	rlock_has_its_turn
}

java_is_woken() {
	java_queues "$@"
	rlock_leaves r
	java_has_its_turn "$2" "$3"
}

# When its time is over, and not before.
each_gives_up() {
	java_locks T1 "$1" "$3"
	rlock_is_refused "$2" "$3"
	assert_output ''
	takes_a_second rlock_is_refused "$2" "$3" -w 1s
	java_unlocks T1 "$1" "$3"
	rlock_locks r "$1" "$3"
	java_does false T1 try "$2" "$3"
	takes_a_second java_does false T1 try "$2" "$3" 1000
	rlock_leaves r
	nothing_is_left
}

takes_a_second() {
	local start
	start=$(now_ms)
	"$@"
	(($(now_ms) - start >= 1000))
}

# The service ends as by kill -9; its locks last as long as Redisson's watchdog has said last.
rlock_outlives_java() {
	start_mortal_java
	rlock_queues "$@"
	java_dies
	rlock_enters r
	rlock_leaves r
	speak_to java
	nothing_is_left
}

java_outlives_rlock() {
	java_queues "$@" -t 3s
	kill_whole "${PIDS[r]}"
	java_enters T1
	java_unlocks T1 "$2" "$3"
	nothing_is_left
}

# No other gets in as long as the lease is renewed, which is shorter than the hold.
each_renews() {
	start_mortal_java
	rlock_queues "$@"
	stays_true_for 4 rlock_waits r
	java_does true T1 held "$1" "$3"
	java_unlocks T1 "$1" "$3"
	rlock_has_its_turn
	speak_to java
	java_queues "$@" -t 3s
	java_waits T1 4000
	rlock_leaves r
	java_has_its_turn "$2" "$3"
}

# both_have_turns NAMES: r and T1, which wait for a plain lock of each other's, in whatever order.
both_have_turns() {
	local java=pending end=$((SECONDS + 25))
	until [ -e r.in ] || [ "$java" != pending ] || ((SECONDS > end)); do
		java=$(ask await T1 50)
	done
	if [ "$java" = ok ]; then
		java_unlocks T1 plain "$1"
		rlock_enters r
		rlock_leaves r
	else
		file_exists r.in
		rlock_leaves r
		java_enters T1
		java_unlocks T1 plain "$1"
	fi
}

# ---- for each file and test, unless it says more ----

setup_file() {
	start_masters 1
	export JAVA_URLS=redis://127.0.0.1:$PORTS
	export RLOCK_URL=$JAVA_URLS
	start_common_java
}

teardown_file() {
	stop_java
	stop_servers
}

setup() { interop_setup; }
teardown() { interop_teardown; }

interop_setup() {
	[ -n "${REDISSON_DIR:-}" ] || skip "REDISSON_DIR is not set: run 'make check-interop'"
	directory_setup
	PATH=$BATS_TEST_DIRNAME/commands:$PATH
	speak_to java
	# The leftovers of a test that failed are no matter of the next one.
	if [ "$(ask idle)" != idle ] || [ -e "$JAVA/unclean" ]; then
		stop_java
		start_common_java
	fi
	wait_until 20 none_listens
}

# Redisson leaves a channel when its thread has the lock already. A thread that wants to listen there meanwhile may not be heard.
none_listens() { [ -z "$(redis pubsub channels 'redisson*')" ]; }

# Fails when something is left: of rlock, or on the server.
interop_teardown() {
	local contender status=0
	for contender in "${!PIDS[@]}"; do
		touch "$contender.out"
	done
	speak_to mortal
	stop_java
	speak_to java
	teardown_and_check_processes || status=$?
	if [ -z "${BATS_TEST_COMPLETED-}" ] || [ "$(ask idle)" != idle ]; then
		touch "$JAVA/unclean"
	fi
	return "$status"
}

# The counters of fencing tokens stay for ever.
nothing_is_left() {
	wait_until 10 only_counters_are_left
	wait_until 20 none_listens
}

only_counters_are_left() { ! redis keys '*' | grep -v '^redisson_lock_token:' | grep -q .; }
