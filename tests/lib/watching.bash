# Durations, processes of a test, leases, and the messages of programs in the background. Sourced after helpers.bash and
# leftovers.bash.
#
#   stays_true_for SECONDS COMMAND...        repeats COMMAND for SECONDS; fails as soon as COMMAND fails
#   takes_less_than SECONDS COMMAND...       runs COMMAND; fails if it fails or takes longer
#   becomes_true_within SECONDS COMMAND...   as wait_until, but SECONDS can be a fraction, and a busy machine gets no more time
#   wait_until_each_ms SECONDS COMMAND...    as wait_until, but polls every millisecond
#   server_ms                                prints the time of the server's clock
#   processes_of_test                        prints "PID NAME" of each process that this test has started
#   command_of PID, has_command PID          print the pid of that rlock's command; whether it has one
#   is_stopped PID                           whether the process is stopped
#   file_has_line FILE LINE, has_line_count FILE COUNT   whether the file has this line; whether it has COUNT lines
#   has_entered NAME                         whether the command `inside NAME` has started
#   hold_with_family NAME [OPTION...]        starts `rlock run` with a command whose processes, the "family", are hard to stop
#   family_member, family_runs, family_is_gone, watch_family   print the pid of one of these processes; whether one, or none, runs; poll
#   ttl_between MIN KEY MAX                  asserts that the TTL of KEY is from MIN to MAX ms
#   is_renewed NAME LEASE_MS                 whether the lease was renewed a moment ago
#   await_renewal NAME LEASE_MS              waits for the next renewal
#   without_renewal PID COMMAND...           runs COMMAND while that rlock and its renewer are stopped
#   lease_end_ms NAME, with_lease_end COMMAND...   print when the lease ends; run COMMAND with that time of "a" in the variable end
#   record_stderr COMMAND...                 starts COMMAND as in_background does, with standard error in the file "stderr"
#   stderr_is_one_line REGEXP                asserts that the file "stderr" is one line, which matches
#   stderr_is_empty                          asserts that the file "stderr" is empty
#   was_woken FILE                           whether a waiter's -v messages say that a notification woke it

# ---- time ----

stays_true_for() {
	local us end
	to_microseconds us "$1"
	end=$((${EPOCHREALTIME/./} + us))
	while ((${EPOCHREALTIME/./} < end)); do
		"${@:2}" || fail "did not stay true for $1 s: ${*:2}" || return
		pause_for 0.05
	done
}

# to_microseconds VARIABLE SECONDS: sets the variable; "1.5" becomes 1500000.
to_microseconds() {
	local with_point
	printf -v with_point '%.6f' "$2"
	printf -v "$1" '%d' $((10#${with_point/./}))
}

takes_less_than() {
	local limit_us start=${EPOCHREALTIME/./} took_us
	to_microseconds limit_us "$1"
	"${@:2}" || return
	took_us=$((${EPOCHREALTIME/./} - start))
	((took_us < limit_us * SLOWNESS || took_us < limit_us * SLOWNESS * ${BUSY_FACTOR-$(busy_factor)})) || fail "took $((took_us / 1000)) ms, more than $1 s: ${*:2}"
}

becomes_true_within() {
	takes_less_than "$1" wait_until $((${1%.*} + 1)) "${@:2}"
}

# wait_until_each_ms: for facts that the test must notice within milliseconds.
wait_until_each_ms() {
	local POLL_US=1000
	wait_until "$@"
}

# was_woken FILE: whether the attempt that acquired the lock came after a "woken" message. If not, an attempt without a
# notification acquired it.
was_woken() {
	awk '/: asking to acquire/ { by_message = woken; woken = 0 }
		/: woken$/ { woken = 1 }
		/: acquired after / { exit }
		END { exit !by_message }' "$1"
}

server_ms() {
	redis eval 'local now = redis.call("time") return now[1] * 1000 + math.floor(now[2] / 1000)' 0
}

# ---- processes of this test ----

processes_of_test() {
	local pid
	for pid in $(pids_of_test); do
		find_process_name "$pid"
		! is_running "$pid" || echo "$pid $PROCESS_NAME"
	done
}

# command_of PID: prints the pid of the renewer's child, or of rlock's child once rlock has taken over.
command_of() {
	local child
	find_children_of_rlock "$1"
	for child in "${CHILDREN[@]}"; do
		find_process_name "$child"
		case $PROCESS_NAME in
		rlock-renewer | rlock-command | rlock-helper | rlock | '') ;;
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

file_has_line() {
	grep -qsxF -e "$2" "$1"
}

# has_line_count FILE COUNT: false while the file does not exist.
has_line_count() {
	[ -e "$1" ] && [ "$(wc -l <"$1")" = "$2" ]
}

# has_entered NAME: stays true after that command has ended.
has_entered() {
	[ -s "$BATS_TEST_TMPDIR/in-$1" ]
}

# ---- the processes of tests/bin/family ----

FAMILY_SIZE=4

# hold_with_family NAME [OPTION...]: the command is tests/bin/family; messages go to the file "stderr". Sets PID and FAMILY. Returns
# when all processes of the family run.
hold_with_family() {
	record_stderr rlock run "${@:2}" "$1" -- family
	wait_until 5 has_line_count "$BATS_TEST_TMPDIR/family" "$FAMILY_SIZE"
	mapfile -t FAMILY < <(cut -d ' ' -f 2 "$BATS_TEST_TMPDIR/family")
	BACKGROUND+=("${FAMILY[@]}")
}

# family_member NAME: prints the pid of this member: "leader", "stubborn", "session" or "orphan".
family_member() {
	sed -n "s/^$1 //p" "$BATS_TEST_TMPDIR/family"
}

# may_run PID: whether the process can still execute its program. A process that SIGKILL has reached cannot, although on a busy machine
# the kernel can need a second to end it. Sets SEEN to the fields of the process that read_stat reads.
may_run() {
	local STAT key pending
	# Read the pending signals before the flags. SIGKILL goes from the first to the second: in the other order a killed process would
	# seem to run.
	while read -r key pending && [ "$key" != SigPnd: ]; do :; done 2>/dev/null <"/proc/$1/status" || return 1
	read_stat "$1" || return
	read -ra SEEN <<<"$STAT"
	# 4: PF_EXITING. 0x400: PF_SIGNALED, since SIGKILL is not pending any more when the process begins to end. 0x100: SIGKILL.
	[[ ${SEEN[0]} != [ZX] ]] && ((!(SEEN[6] & 0x404) && !(0x$pending & 0x100)))
}

family_runs() {
	local pid
	for pid in "${FAMILY[@]}"; do
		may_run "$pid" && return 0
	done
	return 1
}

family_is_gone() {
	! family_runs
}

# watch_family SECONDS: polls until no process of the family runs, for SECONDS at most. Sets LAST_SEEN_MS to the last time at
# which one was seen running. Fails if one still runs.
watch_family() {
	local end=$((${EPOCHREALTIME/./} / 1000 + $1 * 1000)) at
	LAST_SEEN_MS=0
	while at=$((${EPOCHREALTIME/./} / 1000)) && family_runs; do
		LAST_SEEN_MS=$at
		((at < end)) || fail "still runs after $1 s: ${SEEN[*]:0:8}" || return
		pause_for 0.005
	done
}

# ---- leases ----

ttl_between() {
	ask_server pttl "$2"
	((ANSWER >= $1 && ANSWER <= $3)) || fail "$2 has $ANSWER ms to live, which is not $1 to $3"
}

# is_renewed NAME LEASE_MS: whether more than nine tenths of the lease are left. Then the next renewal is not due for more than a
# fifth of the lease.
is_renewed() {
	ask_server pttl "$1" && [ "$ANSWER" -gt $(($2 * 9 / 10)) ]
}

# await_renewal: the TTL must first fall, or a renewal that came before this call would count.
await_renewal() {
	wait_until 10 ttl_is_below "$1" $(($2 * 5 / 6))
	wait_until 10 is_renewed "$1" "$2"
}

# without_renewal: stops rlock as well. It would replace a renewer that stays stopped for a second, as happens on a busy machine, and then
# renew the lock itself.
without_renewal() {
	local renewer
	renewer=$(renewer_of "$1")
	kill -STOP "$1" ${renewer:+"$renewer"}
	"${@:2}"
	kill -CONT ${renewer:+"$renewer"} "$1"
}

# lease_end_ms NAME: prints when the lease ends, in ms of the server's clock, which is also this machine's. A slow reply does not
# make the printed time later.
lease_end_ms() {
	redis eval '
		local now = redis.call("time")
		return now[1] * 1000 + math.floor(now[2] / 1000) + redis.call("pttl", KEYS[1])' 1 "$1"
}

# with_lease_end COMMAND [ARG...]: sets end to the end of the lease of the lock "a", then runs COMMAND.
with_lease_end() {
	end=$(lease_end_ms a)
	"$@"
}

# ---- messages ----

record_stderr() {
	in_background sh -c 'exec "$@" 2>"$BATS_TEST_TMPDIR/stderr"' sh "$@"
}

stderr_is_one_line() {
	local stderr=$BATS_TEST_TMPDIR/stderr
	[ "$(wc -l <"$stderr"):$(grep -cE -e "$1" "$stderr")" = 1:1 ] || fail "not one line like '$1' but: $(cat "$stderr")"
}

# stderr_is_empty: also fails if the test has not used record_stderr.
stderr_is_empty() {
	local stderr=$BATS_TEST_TMPDIR/stderr
	[ -e "$stderr" ] || fail "no stderr was recorded: the file 'stderr' is missing" || return
	[ ! -s "$stderr" ] || fail "stderr: $(cat "$stderr")"
}
