# What the files here share: servers on TCP ports, a Redisson client of the version under test that does as
# it is told, and rlock processes that come and go as they are told. Sourced by every tests/interop/*.bats.
#
#   REDISSON_DIR   where tests/interop/run.sh has built the Java side: classes/ and lib/

load ../lib/usual

# ---- servers ----

# shellcheck disable=SC2120 # servers.bats passes one
# start_tcp_server [DIR]: as start_server, and Java can reach it. Sets SERVER_URL.
start_tcp_server() {
	local port
	for _ in 1 2 3 4 5; do
		# The server tells us that it has the port by having its socket. Ports from 32768 on are given
		# to clients by the kernel.
		port=$((10000 + RANDOM % 20000))
		if BATS_FILE_TMPDIR=${1:-$BATS_FILE_TMPDIR} start_server --bind 127.0.0.1 --port "$port"; then
			export SERVER_URL=redis://127.0.0.1:$port
			return 0
		fi
		stop_server
	done
	return 1
}

# ---- Java ----

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
	printf '%s\n' "$@" >"$JAVA/arguments"
	# Both ends of each pipe stay open in it, whatever comes and goes.
	java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmx128m -cp "$REDISSON_DIR/classes:$REDISSON_DIR/lib/*" \
		interop.Peer "$@" <>"$JAVA/in" 1<>"$JAVA/out" 2>"$JAVA/errors" 3>&- &
	disown
	echo $! >"$JAVA/pid"
	assert_equal "$(answer 120)" ready
}

# A service on the file's server that tests may use one after the other.
start_common_java() {
	start_java java 30000 "$SERVER_URL"
}

# A service of the test's own that renews its locks for 3 s each time, and that may be killed.
start_mortal_java() {
	start_java mortal 3000 "$SERVER_URL"
}

stop_java() {
	local pid
	[ -e "${JAVA:-}/pid" ] || return 0
	pid=$(cat "$JAVA/pid")
	kill -KILL "$pid" 2>/dev/null || :
	wait_until 10 is_gone "$pid"
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
	local wanted=$1 got
	shift
	got=$(ask "$@")
	[ "$got" = "$wanted" ] || {
		echo "Java says '$got' and not '$wanted' to: $*" >&2
		return 1
	}
}

# java_locks THREAD KIND NAMES [LEASE_MS]
java_locks() { java_does ok "$1" lock "${@:2}"; }

# java_unlocks THREAD KIND NAMES
java_unlocks() { java_does ok "$1" unlock "${@:2}"; }

# java_begins THREAD VERB...: what may have to wait. What came of it is asked by java_enters, or by
# java_does ANSWER await THREAD MS.
java_begins() { java_does started start "$@"; }

# java_enters THREAD [SECONDS]: what was begun there is done now, or within so long.
java_enters() {
	local got
	got=$(ask await "$1" $((${2:-25} * 1000)))
	case $got in
	ok | true) ;;
	*)
		echo "Java's $1 has not got in: $got" >&2
		return 1
		;;
	esac
}

# java_waits THREAD: what was begun there is not over.
java_waits() { java_does pending await "$1" "${2:-0}"; }

java_pid() {
	cat "$JAVA/pid"
}

java_dies() {
	echo die >"$JAVA/in"
	wait_until 10 is_gone "$(java_pid)"
}

# ---- rlock ----

# What is said to rlock beside verb and names, by tests with several servers.
SERVERS=()

# words KIND NAMES: sets WORDS, the verb for a kind of Redisson's with its options, and WORDS_NAMES. NAMES are
# as for Java: with commas between them.
words() {
	case $1 in
	plain) WORDS=(run) ;;
	fair) WORDS=(fair) ;;
	read) WORDS=(rlock) ;;
	write) WORDS=(wlock) ;;
	fenced) WORDS=(run --fence) ;;
	majority) WORDS=(run --quorum majority) ;;
	*) fail "no such kind: $1" ;;
	esac
	WORDS+=("${SERVERS[@]}")
	IFS=, read -ra WORDS_NAMES <<<"$2"
}

# rlock_begins PARTY KIND NAMES [OPTION...]: an rlock with a command that stays until rlock_leaves PARTY. The pid
# is in PIDS[PARTY].
declare -gA PIDS=()
rlock_begins() {
	rm -f "$BATS_TEST_TMPDIR/$1.in" "$BATS_TEST_TMPDIR/$1.out"
	words "$2" "$3"
	in_background rlock "${WORDS[@]}" "${@:4}" "${WORDS_NAMES[@]}" -- stay "$1"
	PIDS[$1]=$PID
}

# rlock_enters PARTY [SECONDS]
rlock_enters() {
	wait_until "${2:-25}" file_exists "$BATS_TEST_TMPDIR/$1.in"
}

rlock_locks() {
	rlock_begins "$@"
	rlock_enters "$1"
}

# rlock_waits PARTY: it runs, and is not in.
rlock_waits() {
	is_running "${PIDS[$1]}" && [ ! -e "$BATS_TEST_TMPDIR/$1.in" ]
}

# rlock_leaves PARTY: its command ends, and then rlock, well.
rlock_leaves() {
	touch "$BATS_TEST_TMPDIR/$1.out"
	ended_with 0 "${PIDS[$1]}"
}

# rlock_dies PARTY: at once, with its renewer and its command.
rlock_dies() { kill_whole "${PIDS[$1]}"; }

# rlock_is_refused KIND NAMES [OPTION...]: with -n, unless told otherwise.
rlock_is_refused() {
	[ $# -gt 2 ] || set -- "$@" -n
	words "$1" "$2"
	run -75 rlock "${WORDS[@]}" "${@:3}" "${WORDS_NAMES[@]}" -- true
}

# The owner that PARTY's hold has on the server.
owner_of() {
	cat "$BATS_TEST_TMPDIR/$1.in"
}

# ---- several that wait ----

# The one that is in leaves: WENT has those that had the lock.
declare -gA WENT=()

# each_had_it COUNT PARTY:KIND:NAMES...: so many are all; T1, T2... are threads of Java.
each_had_it() {
	local row party kind names
	for row in "${@:2}"; do
		IFS=: read -r party kind names <<<"$row"
		[ -z "${WENT[$party]-}" ] || continue
		if [[ $party = T* ]] && [ "$(ask await "$party" 0)" = ok ]; then
			java_unlocks "$party" "$kind" "$names"
		elif [ -e "$BATS_TEST_TMPDIR/$party.in" ]; then
			rlock_leaves "$party"
		else
			continue
		fi
		WENT[$party]=yes
	done
	[ ${#WENT[@]} -eq "$1" ]
}

# ---- what is on the server ----

# channel KIND NAME: where waiters of such a lock listen.
channel() {
	case $1 in
	read | write) echo "redisson_rwlock:{$2}" ;;
	*) echo "redisson_lock__channel:{$2}" ;;
	esac
}

# listeners KIND NAME: how many connections wait. Each in the wake queue of rlock listens to a channel of its own; the
# first of them to that of the lock as well, as all others do.
listeners() {
	local channel own
	channel=$(channel "$1" "$2")
	own=$(redis pubsub channels "$channel:*" | grep -cE ':[0-9a-f]{32}$' || :)
	echo $(($(redis pubsub numsub "$channel" | tail -n 1) + own - (own > 0)))
}

# queue NAME: the owners in a fair lock's queue, the first one first.
queue() {
	redis lrange "redisson_lock_queue:{$1}" 0 -1
}

queue_length() {
	[ "$(redis llen "redisson_lock_queue:{$1}")" = "$2" ]
}

# has_waiter KIND NAME [COUNT]: so many are in the queue, or at least so many listen. All threads of one
# Java service listen by one connection.
has_waiter() {
	case $1 in
	fair) queue_length "$2" "${3:-1}" ;;
	*) [ "$(listeners "$1" "$2")" -ge "${3:-1}" ] ;;
	esac
}

# ---- for each file and test, unless it says more ----

setup_file() {
	# shellcheck disable=SC2119
	start_tcp_server
	start_common_java
}

teardown_file() {
	stop_java
	stop_server
}

setup() { interop_setup; }
teardown() { interop_teardown; }

interop_setup() {
	[ -n "${REDISSON_DIR:-}" ] || skip "REDISSON_DIR is not set: run 'make check-interop'"
	common_setup
	PATH=$BATS_TEST_DIRNAME/commands:$BATS_TEST_DIRNAME/../bin:$PATH
	export REDIS="redis-cli -s $SERVER_SOCKET"
	speak_to java
	# The leftovers of a test that failed are no matter of the next one.
	if [ "$(ask idle)" != idle ] || [ -e "$JAVA/unclean" ]; then
		stop_java
		start_common_java
	fi
	wait_until 20 none_listens
	cd "$BATS_TEST_TMPDIR" || return
}

# Redisson leaves a channel when its thread has the lock already. A thread that wants to listen there meanwhile may not be heard.
none_listens() {
	[ -z "$(redis pubsub channels 'redisson*')" ]
}

# Fails when something is left: of rlock, or on the server.
interop_teardown() {
	local party status=0
	for party in "${!PIDS[@]}"; do
		touch "$BATS_TEST_TMPDIR/$party.out"
	done
	speak_to mortal
	stop_java
	speak_to java
	watchful_teardown || status=$?
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

only_counters_are_left() {
	! redis keys '*' | grep -v '^redisson_lock_token:' | grep -q .
}
