# For the tests that watch processes: which run, which do not any more, and what was true meanwhile.
# Sourced after helpers.bash and leftovers.bash.

# ---- time ----

# stays_true_for SECONDS COMMAND [ARG...]: the command succeeds each time it is asked for so long; says what
# did not stay true.
stays_true_for() {
	local us end
	to_microseconds us "$1"
	end=$((${EPOCHREALTIME/./} + us))
	while ((${EPOCHREALTIME/./} < end)); do
		"${@:2}" || fail "did not stay true for $1 s: ${*:2}" || return
		pause_for 0.05
	done
}

# to_microseconds VARIABLE SECONDS: "1.5" is 1500000.
to_microseconds() {
	local with_point
	printf -v with_point '%.6f' "$2"
	printf -v "$1" '%d' $((10#${with_point/./}))
}

# takes_less_than SECONDS COMMAND [ARG...]: fails with the command, and when that takes too long.
takes_less_than() {
	local limit_us start=${EPOCHREALTIME/./} took_us
	to_microseconds limit_us "$1"
	"${@:2}" || return
	took_us=$((${EPOCHREALTIME/./} - start))
	((took_us < limit_us * SLOWNESS)) || fail "took $((took_us / 1000)) ms, more than $1 s: ${*:2}"
}

# becomes_true_within SECONDS COMMAND [ARG...]: as wait_until, for parts of a second, and sharp.
# What is promised in five seconds is looked for within eight: a busy machine has its part in it.
becomes_true_within() {
	takes_less_than "$1" wait_until $((${1%.*} + 1)) "${@:2}"
}

# wait_until_each_ms SECONDS COMMAND [ARG...]: as wait_until, and looks each millisecond: for what is not to be seen late.
wait_until_each_ms() {
	local POLL_US=1000
	wait_until "$@"
}

# was_woken SAID: the messages in that file are those of a waiter with -v that acquired its lock by a try that it was woken for,
# and not by one that was due anyway.
was_woken() {
	awk '/: asking to acquire/ { by_message = woken; woken = 0 }
		/: woken$/ { woken = 1 }
		/: acquired after / { exit }
		END { exit !by_message }' "$1"
}

# What the server's clock says.
server_ms() {
	redis eval 'local now = redis.call("time") return now[1] * 1000 + math.floor(now[2] / 1000)' 0
}

# ---- processes of this test ----

# processes_of_test: "PID NAME" of each program that this test started and that still runs, known as by find_test_processes.
processes_of_test() {
	local pid
	for pid in $(grep -lzsxF "RLOCK_RUNTIME_DIR=$RLOCK_RUNTIME_DIR" /proc/[0-9]*/environ | tr -dc '0-9\n'); do
		find_process_name "$pid"
		! is_running "$pid" || echo "$pid $PROCESS_NAME"
	done
}

# The command of rlock PID: the renewer's child; rlock's once it has taken over.
command_of() {
	local child
	find_children_of_rlock "$1"
	for child in "${CHILDREN[@]}"; do
		find_process_name "$child"
		case $PROCESS_NAME in
		rlock-renewer | rlock-helper | rlock | '') ;;
		*) echo "$child" ;;
		esac
	done
}

has_command() {
	[ -n "$(command_of "$1")" ]
}

is_stopped() {
	grep -qs '^State:.T' "/proc/$1/status"
}

# file_has_line FILE TEXT: the file has that text for a line.
file_has_line() {
	grep -qsxF -e "$2" "$1"
}

# has_line_count FILE COUNT: one that is being written is none yet.
has_line_count() {
	[ -e "$1" ] && [ "$(wc -l <"$1")" = "$2" ]
}

# has_entered NAME: a command that is tests/tools/inside with that name runs, or has run.
has_entered() {
	[ -s "$BATS_TEST_TMPDIR/in-$1" ]
}

# ---- the processes of tests/bin/family ----

FAMILY_SIZE=4

# hold_with_family NAME [OPTION...]: holds a lock by `rlock run` for a command with processes that are
# hard to stop, its messages in the file "stderr". Sets PID and FAMILY. Returns when all of them run.
hold_with_family() {
	record_stderr rlock run "${@:2}" "$1" -- family
	wait_until 5 has_line_count "$BATS_TEST_TMPDIR/family" "$FAMILY_SIZE"
	mapfile -t FAMILY < <(cut -d ' ' -f 2 "$BATS_TEST_TMPDIR/family")
	BACKGROUND+=("${FAMILY[@]}")
}

# family_member NAME: the pid of "leader", "stubborn", "session" or "orphan".
family_member() {
	sed -n "s/^$1 //p" "$BATS_TEST_TMPDIR/family"
}

family_runs() {
	local pid
	for pid in "${FAMILY[@]}"; do
		is_running "$pid" && return 0
	done
	return 1
}

family_is_gone() {
	! family_runs
}

# watch_family SECONDS: until none of the family runs, or for so long. Sets LAST_SEEN_MS, when one of
# them was seen running for the last time.
watch_family() {
	local end=$((${EPOCHREALTIME/./} / 1000 + $1 * 1000)) at
	LAST_SEEN_MS=0
	while at=$((${EPOCHREALTIME/./} / 1000)) && ((at < end)) && family_runs; do
		LAST_SEEN_MS=$at
		pause_for 0.005
	done
	family_is_gone
}

# ---- leases ----

# ttl_between LEAST KEY MOST: in ms.
ttl_between() {
	ask_server pttl "$2"
	((ANSWER >= $1 && ANSWER <= $3)) || fail "$2 has $ANSWER ms to live, which is not $1 to $3"
}

# is_renewed NAME LEASE_MS: the lease was renewed just now, so that no renewal is due for a while.
is_renewed() {
	ask_server pttl "$1" && [ "$ANSWER" -gt $(($2 * 9 / 10)) ]
}

# without_renewal PID COMMAND [ARG...]: no renewal of that rlock's lock comes meanwhile.
without_renewal() {
	local renewer
	renewer=$(renewer_of "$1")
	kill -STOP "$renewer"
	"${@:2}"
	kill -CONT "$renewer"
}

# When the lease of a lock ends, in milliseconds of the server's clock, which is this machine's: what is asked for late is
# told no later.
lease_end_ms() {
	redis eval '
		local now = redis.call("time")
		return now[1] * 1000 + math.floor(now[2] / 1000) + redis.call("pttl", KEYS[1])' 1 "$1"
}

# with_lease_end COMMAND [ARG...]: runs it, and sets end to what lease_end_ms said of the lock "a" just before.
with_lease_end() {
	end=$(lease_end_ms a)
	"$@"
}

# ---- messages ----

# record_stderr COMMAND [ARG...]: as in_background, messages in the file "stderr".
record_stderr() {
	in_background sh -c 'exec "$@" 2>"$BATS_TEST_TMPDIR/stderr"' sh "$@"
}

# stderr_is_one_line PATTERN: all that was said on standard error is one line, which matches.
stderr_is_one_line() {
	local stderr=$BATS_TEST_TMPDIR/stderr
	[ "$(wc -l <"$stderr"):$(grep -cE -e "$1" "$stderr")" = 1:1 ] || fail "not one line like '$1' but: $(cat "$stderr")"
}

# stderr_is_empty: on standard error; of what wrote no "stderr" nothing is known.
stderr_is_empty() {
	local stderr=$BATS_TEST_TMPDIR/stderr
	[ -e "$stderr" ] || fail "no stderr was recorded: the file 'stderr' is missing" || return
	[ ! -s "$stderr" ] || fail "stderr: $(cat "$stderr")"
}
