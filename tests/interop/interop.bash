# Helpers of tests/interop/*.bats: servers on TCP ports, a Java service with the Redisson version under test that obeys commands, and
# rlock processes.
#
#   REDISSON_DIR   where tests/interop/run.sh has built the Java side: classes/ and lib/

load ../lib/usual
load ../lib/sentinels

# ---- Java, with threads T1, T2... ----

# speak_to NAME: make this Java service the one to which commands are sent from now on.
speak_to() {
	export JAVA=$BATS_FILE_TMPDIR/$1
}

# start_java NAME WATCHDOG_MS URL...: start a Java service with this name, and speak_to it.
start_java() {
	speak_to "$1"
	shift
	stop_java
	rm -rf "$JAVA"
	mkdir "$JAVA"
	mkfifo "$JAVA/in" "$JAVA/out"
	# This shell keeps both ends of each pipe open, so that no process sees an end of file.
	java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmx128m -cp "$REDISSON_DIR/classes:$REDISSON_DIR/lib/*" \
		interop.Peer "$@" <>"$JAVA/in" 1<>"$JAVA/out" 2>"$JAVA/errors" 3>&- &
	disown
	echo $! >"$JAVA/pid"
	assert_equal "$(answer 120)" ready
}

# start_common_java: start the service for all tests of a file. start_mortal_java: start a service for one test, which may be
# killed; its locks have a lease of 3 s. JAVA_URLS: the URLs of their servers, separated by blanks.
# shellcheck disable=SC2086
start_common_java() { start_java java 30000 $JAVA_URLS; }
# shellcheck disable=SC2086
start_mortal_java() { start_java mortal 3000 $JAVA_URLS; }

stop_java() {
	[ -e "${JAVA:-}/pid" ] || return 0
	kill -KILL "$(java_pid)" 2>/dev/null || :
	await_java_end
}

java_pid() { cat "$JAVA/pid"; }

# await_java_end: forgets the pid as well, because a later teardown would kill the process that has got it since.
await_java_end() {
	wait_until 10 is_gone "$(java_pid)"
	rm "$JAVA/pid"
}

java_dies() {
	echo die >"$JAVA/in"
	await_java_end
}

answer() {
	local line
	read -r -t "$1" line <>"$JAVA/out" || line="no answer: $(cat "$JAVA/errors")"
	echo "$line"
}

# ask WORD...: send these words to Java as one line, and print its answer.
ask() {
	echo "$*" >"$JAVA/in"
	answer 60
}

# java_does ANSWER WORD...: send these words to Java, which must answer ANSWER.
java_does() {
	local got
	got=$(ask "${@:2}")
	[ "$got" = "$1" ] || {
		echo "Java says '$got' and not '$1' to: ${*:2}" >&2
		return 1
	}
}

# java_locks THREAD KIND NAMES: the thread acquires the lock. java_unlocks: it releases the lock.
java_locks() { java_does ok "$1" lock "${@:2}"; }
java_unlocks() { java_does ok "$1" unlock "${@:2}"; }

# java_begins THREAD VERB...: begin a call that may wait. `java_enters` or `java_does ANSWER await THREAD MS` then checks its
# result.
java_begins() { java_does started start "$@"; }

# java_enters THREAD [SECONDS]: the call that this thread has begun must succeed within this time (25 s).
java_enters() { java_does ok await "$1" $((${2:-25} * 1000)); }

# java_waits THREAD [MS]: the call that this thread has begun must still wait after this time (0 ms).
java_waits() { java_does pending await "$1" "${2:-0}"; }

# is_asleep THREAD: whether the call of this thread sleeps until a message comes. Wait for this before a release: a message wakes
# only the threads that already sleep when it comes.
is_asleep() { [ "$(ask asleep "$1")" = true ]; }

# ---- rlock, with contenders named "r" or similar ----

# Options that each rlock gets, for tests with several servers.
SERVER_OPTIONS=()

# words KIND NAMES: set WORDS to rlock's verb and options for this kind of Redisson's, and WORDS_NAMES to the names. NAMES are
# separated by commas, as for Java.
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

# rlock_begins CONTENDER KIND NAMES [OPTION...]: start an rlock whose command stays until rlock_leaves CONTENDER. Set
# PIDS[CONTENDER] to its pid.
declare -gA PIDS=()
rlock_begins() {
	rm -f "$1.in" "$1.out"
	words "$2" "$3"
	in_background rlock "${WORDS[@]}" "${@:4}" "${WORDS_NAMES[@]}" -- stay "$1"
	PIDS[$1]=$PID
}

# rlock_enters CONTENDER: its command must start within 25 s.
rlock_enters() { wait_until 25 file_exists "$1.in"; }

rlock_locks() {
	rlock_begins "$@"
	rlock_enters "$1"
}

# rlock_waits CONTENDER: whether this rlock runs, and has not started its command.
rlock_waits() { is_running "${PIDS[$1]}" && [ ! -e "$1.in" ]; }

# rlock_leaves CONTENDER: end its command. This rlock must then exit with 0.
rlock_leaves() {
	touch "$1.out"
	ended_with 0 "${PIDS[$1]}"
}

# rlock_is_refused KIND NAMES [OPTION...]: an rlock with these options (-n) must exit with 75, without the lock.
rlock_is_refused() {
	[ $# -gt 2 ] || set -- "$@" -n
	words "$1" "$2"
	run -75 rlock "${WORDS[@]}" "${@:3}" "${WORDS_NAMES[@]}" -- true
}

# owner_of CONTENDER: print the owner that its hold has on the server.
owner_of() { cat "$1.in"; }

# ---- waiters ----

# listeners KIND NAME: prints how many waiters are subscribed. Each waiter in rlock's wake queue is subscribed to a channel of its
# own. The first of them is also subscribed to the lock's channel, as all other waiters are: count it only once.
listeners() {
	local channel own
	channel=$(channel "$1" "$2")
	own=$(redis pubsub channels "$channel:*" | grep -cE ':[0-9a-f]{32}$' || :)
	echo $(($(redis pubsub numsub "$channel" | tail -n 1) + own - (own > 0)))
}

# channel KIND NAME: prints the channel on which the release of such a lock is published.
channel() {
	case $1 in
	read | write) echo "redisson_rwlock:{$2}" ;;
	*) echo "redisson_lock__channel:{$2}" ;;
	esac
}

# queue NAME: prints the owners in the queue of a fair lock, in their order.
queue() { redis lrange "redisson_lock_queue:{$1}" 0 -1; }

# has_waiter KIND NAMES [COUNT]: for a fair lock, whether its queue has exactly COUNT waiters (1); else whether the lock's channel
# has at least COUNT subscribers. Checks the first name only. All threads of one Java service count as one subscriber.
has_waiter() {
	case $1 in
	fair) has_queue_length "${2%%,*}" "${3:-1}" ;;
	*) [ "$(listeners "$1" "${2%%,*}")" -ge "${3:-1}" ] ;;
	esac
}

# ---- scenarios: one side holds a lock of the kind HELD, the other side waits for WANTED, which excludes it ----

# rlock_queues HELD WANTED NAMES: Java's thread T1 acquires the lock, and rlock's contender r waits for it.
rlock_queues() {
	java_locks T1 "$1" "$3"
	rlock_begins r "$2" "$3"
	wait_until 20 has_waiter "$2" "$3"
	rlock_waits r
}

# java_queues HELD WANTED NAMES [OPTION...]: rlock's contender r acquires the lock with these options, and Java's thread T1 waits
# for it.
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

# java_has_its_turn KIND NAMES: T1, which waits, must acquire the lock within 4 s. Then T1 releases it.
java_has_its_turn() {
	takes_less_than 4 java_enters T1
	java_unlocks T1 "$@"
	nothing_is_left
}

# rlock_is_woken, java_is_woken HELD WANTED NAMES: the holder's release must wake the waiter, which would otherwise sleep until
# the lease of 30 s ends.
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

# each_gives_up HELD WANTED NAMES: an rlock, then a Java thread, must not acquire the lock that the other side holds. With a wait
# time of 1 s each must wait for that long.
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

# rlock_outlives_java, java_outlives_rlock HELD WANTED NAMES: the holder is killed, or ends as if by kill -9. The waiter must
# acquire the lock when the lease of the last renewal has ended.
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

# each_renews HELD WANTED NAMES: first Java, then rlock keeps the lock for longer than its lease. The other side waits, and must
# not acquire the lock before it is released.
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

# both_have_turns NAMES: both r and T1, which wait for the plain locks, must acquire them, in any order.
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

# ---- setup and teardown, unless a file has its own ----

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
	# If a test has failed, start a new service, so that this test is not disturbed by what the failed one has left.
	if [ "$(ask idle)" != idle ] || [ -e "$JAVA/unclean" ]; then
		stop_java
		start_common_java
	fi
	wait_until 20 none_listens
}

# none_listens: whether no client is subscribed. Wait for this between two scenarios: Redisson unsubscribes some time after its
# thread has acquired a lock, and a thread that subscribes at that moment may miss messages.
none_listens() { [ -z "$(redis pubsub channels 'redisson*')" ]; }

# Fail if an rlock still runs. If the test has failed, or a Java thread still has work, mark the service as unclean: the next test
# starts another one.
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

# nothing_is_left: no key may be left, except the counters of fencing tokens, which never expire; and no subscriber.
nothing_is_left() {
	wait_until 10 only_counters_are_left
	wait_until 20 none_listens
}

only_counters_are_left() { ! redis keys '*' | grep -v '^redisson_lock_token:' | grep -q .; }
