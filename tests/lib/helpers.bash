# What the test files share: a server of their own, locks held in the background, and waiting for a
# fact instead of for a time. usual.bash loads it, or a file that needs no more than this.

bats_require_minimum_version 1.5.0
# Each of these files by itself: load.bash of a library would start a process for each, and that for each test anew.
for part in support/src/{output,error,lang} assert/src/{assert{,_equal,_not_equal,_failure,_output,_line,_regex},refute{,_output,_line}}; do
	bats_load_library "bats-$part.bash"
done
unset part
load ../lib/servers

# A stream on which nothing ever comes: reading it with a time limit waits without a process.
exec 8<> <(:)

# `run` of bats has a subshell of its own already.
bats_merge_stdout_and_stderr() {
	case $1 in
	rlock | sh | bash | env | timeout | cat | grep) [ -n "${keep_empty_lines-}" ] || exec "$@" 2>&1 ;;
	esac
	"$@" 2>&1
}

# ---- a server for each file ----

# A Redis server on a private unix socket, nothing on disk. Arguments are further options of it.
# shellcheck disable=SC2120 # on_free_port passes some
start_server() {
	SERVER_DIR=$BATS_FILE_TMPDIR/server
	SERVER_SOCKET=$SERVER_DIR/redis.sock
	mkdir -p "$SERVER_DIR"
	redis-server --port 0 --unixsocket "$SERVER_SOCKET" --save '' --appendonly no --dir "$SERVER_DIR" \
		--daemonize no --logfile "$SERVER_DIR/log" "$@" 3>&- &
	SERVER_PID=$!
	# It is to answer as one on a machine of its own does, however busy this one is, unless that is forbidden.
	chrt --rr --pid 1 "$SERVER_PID" 2>/dev/null || :
	export SERVER_DIR SERVER_SOCKET SERVER_PID
	export RLOCK_URL=unix://$SERVER_SOCKET
	wait_until 10 eval 'server_answers || is_gone "$SERVER_PID"'
	# It has ended when its port is taken.
	server_answers || {
		tail -n 5 "$SERVER_DIR/log" >&2
		return 1
	}
}

# choose_port [END]: sets PORT, below END, on which no server listens yet, and which no other test of this run chooses:
# its server may be down for a while. Another run of tests may choose the same: see on_free_port.
choose_port() {
	local claimed=${CLAIMED_PORTS:-$BATS_RUN_TMPDIR/ports}
	export PORT
	mkdir -p "$claimed"
	while PORT=$((20000 + RANDOM % (${1:-30000} - 20000))) && is_listened_on "$PORT" || ! mkdir "$claimed/$PORT" 2>/dev/null; do :; done
}

# on_free_port CHOOSE COMMAND [ARG...]: CHOOSE sets PORT, and COMMAND starts a server there, in its arguments as @PORT@; at
# another one when that server has ended, since another run's was faster.
on_free_port() {
	local try command=("${@:2}")
	for try in 1 2 3 4 5; do
		"$1"
		"${command[@]//@PORT@/$PORT}" && return
		grep -qs 'in use' "$BATS_FILE_TMPDIR"/{*/,*/server/}log || return
		echo "port $PORT was taken, try $try" >&2
	done
	return 1
}

# start_server_at_port [OPTION...]: behind PORT of 127.0.0.1, too, for what a socket's URL has no room for, such as a user.
start_server_at_port() {
	on_free_port choose_port start_server --port @PORT@ --bind 127.0.0.1 "$@"
}

# start_warm_server VERB...: as start_server. From here on it knows each script of these verbs: a request whose reply gets
# lost has been carried out.
start_warm_server() {
	local verb
	start_server
	for verb; do
		rlock "$verb" -t 3s warm -- sleep 1.4
	done
}

is_listened_on() {
	(: <>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

stop_server() {
	[ -n "${SERVER_PID:-}" ] || return 0
	kill_server_process "$SERVER_PID" "$SERVER_DIR"
	wait "$SERVER_PID" 2>/dev/null || :
}

# kill_server_process PID DIR: unless the pid is that of another process by now.
kill_server_process() {
	[ "/proc/$1/cwd" -ef "$2" ] || return 0
	kill -CONT "$1" 2>/dev/null || :
	kill -KILL "$1" 2>/dev/null || :
}

server_answers() {
	redis_says PONG ping 2>/dev/null
}

# redis [COMMAND...]: what redis-cli prints, on the file's server. Commands on standard input, and options, are redis-cli's.
redis() {
	case ${1--} in
	-*) redis-cli -s "$SERVER_SOCKET" "$@" ;;
	*) ask_redis "$SERVER_SOCKET" "$@" ;;
	esac
}

# redis_says TEXT COMMAND [ARG...]: the server's reply is TEXT.
redis_says() {
	ask_server "${@:2}" && [ "$ANSWER" = "$1" ]
}

# ask_server COMMAND [ARG...]: sets ANSWER to what redis prints, without a process where bash can load a builtin, since tests
# look at their servers thousands of times.
ask_server() {
	if [ -n "$CAN_LOAD_BUILTINS" ]; then
		ask_redis -v ANSWER "$SERVER_SOCKET" "$@"
	else
		ANSWER=$(exec ask_redis "$SERVER_SOCKET" "$@")
	fi
}
CAN_LOAD_BUILTINS=
! enable -f ask_redis.so ask_redis 2>/dev/null || CAN_LOAD_BUILTINS=yes

# How many commands the server has done for clients, this call's own left out of the difference by
# calling it twice: after - before - 1.
server_commands() {
	ask_server info stats && [[ $ANSWER =~ total_commands_processed:([0-9]+) ]] && echo "${BASH_REMATCH[1]}"
}

# commands_in_scripts: how many the server has run since its statistics began, but for those that clients send here.
commands_in_scripts() {
	redis info commandstats | tr -d '\r' |
		awk -F '[:=,]' '/^cmdstat_/ && !/evalsha|client|info|config/ { sum += $3 } END { print sum + 0 }'
}

# calls_of COMMAND: how often clients, and scripts, have run it since the statistics of the server began.
calls_of() {
	redis info commandstats | tr -d '\r' | awk -F '[:=,]' -v "command=cmdstat_$1" '$1 == command { n = $3 } END { print n + 0 }'
}

# key_of_lock KEY NAME: a key or channel that belongs to a lock, whose name keeps its braces in it.
key_of_lock() {
	[[ $2 = *'{'* ]] && echo "$1:$2" || echo "$1:{$2}"
}

# ---- for each test ----

# An environment that nothing of the caller's leaks into.
clean_environment() {
	# bats would write down each step of each function, which takes a sixth of the tests' time. Without this it tells
	# the line of the test that failed, and none of a helper's.
	[ -n "${TRACE-}" ] || set +T
	unset RLOCK_CONFIG RLOCK_HELD RLOCK_NAME RLOCK_OWNER RLOCK_MODE RLOCK_TOKEN REDISCLI_AUTH CI
	export XDG_CONFIG_HOME=$BATS_TEST_TMPDIR/config
	export RLOCK_RUNTIME_DIR=$BATS_TEST_TMPDIR/run
	PATH=$BATS_TEST_DIRNAME/../bin:$PATH
	BACKGROUND=()
}

# common_setup: a clean environment, and an empty server.
common_setup() {
	clean_environment
	ask_server flushall
}

# directory_setup: as common_setup, in the test's own directory, and REDIS is for scripts that ask the server.
directory_setup() {
	common_setup
	export REDIS="ask_redis $SERVER_SOCKET"
	cd "$BATS_TEST_TMPDIR" || return
}

# Ends what a test left running in the background, whatever happened in it.
common_teardown() {
	local pid
	kill -CONT "$SERVER_PID" 2>/dev/null || :
	# An rlock that is killed leaves its command to its renewer, which would speak to the server
	# through the tests that follow.
	end_commands
	for pid in "${BACKGROUND[@]}"; do
		is_own_process "$pid" || continue
		continue_waiters "$pid" 2>/dev/null || :
		kill -KILL "$pid" 2>/dev/null || :
		wait "$pid" 2>/dev/null || :
	done
}

# is_own_process PID: it is of this run of bats. One that ended may have left its number to another one, since numbers are
# used again within a minute on a machine that runs several suites.
is_own_process() {
	find_children "$BASHPID"
	find_process_name "$1"
	# A server writes its title over its environment.
	[[ " ${CHILDREN[*]} " = *" $1 "* || $PROCESS_NAME = *-server ]] || grep -qsF "$BATS_RUN_TMPDIR" "/proc/$1/environ"
}

# in_background COMMAND [ARG...]: a program, not a function; sets PID; ended by common_teardown. A job in
# the background of a script ignores SIGINT and SIGQUIT, and rlock leaves an ignored signal ignored: so these
# are set right first.
in_background() {
	env --default-signal=INT,QUIT "$@" 3>&- &
	PID=$!
	BACKGROUND+=("$PID")
}

# hold_in_background NAME [OPTION...]: holds a lock by `rlock run`; sets PID (of rlock). Returns when the command runs:
# the server has the lock before. The command ends when the file "$BATS_TEST_TMPDIR/end-commands" appears.
hold_in_background() {
	local name=$1
	shift
	in_background rlock run "$@" "$name" -- run_until_ended
	wait_until 5 has_child "$PID" run_until_ended
}

end_commands() {
	: >"$BATS_TEST_TMPDIR/end-commands"
}

# ---- facts ----

is_held() {
	redis_says 1 exists "$1"
}

# ttl_is_below NAME MS
ttl_is_below() {
	ask_server pttl "$1" && [ "$ANSWER" -lt "$2" ]
}

# ttl_is_above NAME MS
ttl_is_above() {
	ask_server pttl "$1" && [ "$ANSWER" -gt "$2" ]
}

is_free() {
	redis_says 0 exists "$1"
}

# Nothing of any lock is left on the server.
no_keys() {
	redis_says 0 dbsize
}

# No channel has a listener.
no_subscribers() {
	redis_says '' pubsub channels
}

is_running() {
	local stat
	# The name between parentheses may have blanks and parentheses in it.
	{ IFS= read -r -d '' stat <"/proc/$1/stat" || [ -n "$stat" ]; } 2>/dev/null || return 1
	[[ ${stat##*) } != [ZX]* ]]
}

# is_gone PID: fails with a message unless that is one number, such as the content of a file that is not written yet.
is_gone() {
	[[ ${1-} =~ ^[0-9]+$ ]] || fail "is_gone takes one process number, not '${1-}'" || return
	! is_running "$1"
}

file_exists() {
	[ -e "$1" ]
}

# file_contains FILE TEXT: anywhere in it.
file_contains() {
	local text
	{ read -r -d '' text <"$1" || :; } 2>/dev/null
	[[ ${text-} = *"$2"* ]]
}

# The hold count of the only owner in a plain lock's hash.
hold_count() {
	redis hvals "$1"
}

# find_children PID: sets CHILDREN to the pids of those that its main thread has, without a process of its own.
find_children() {
	CHILDREN=()
	{ read -ra CHILDREN <"/proc/$1/task/$1/children"; } 2>/dev/null || :
}

# find_children_of_rlock PID: sets CHILDREN to the pids of rlock's children and of those of its renewer, which is the command's parent.
find_children_of_rlock() {
	local renewer all
	find_renewers "$1"
	all=("${CHILDREN[@]}")
	for renewer in "${RENEWERS[@]}"; do
		find_children "$renewer"
		all+=("${CHILDREN[@]}")
	done
	CHILDREN=("${all[@]}")
}

# has_no_child PID NAME: nor a zombie.
has_no_child() {
	! has_child "$@"
}

# find_process_name PID: sets PROCESS_NAME; it is empty when the process has gone.
find_process_name() {
	PROCESS_NAME=
	{ read -r PROCESS_NAME <"/proc/$1/comm"; } 2>/dev/null || :
}

# has_child PID NAME: a child of that rlock, or of its renewer, has that name.
has_child() {
	local child
	find_children_of_rlock "$1"
	for child in "${CHILDREN[@]}"; do
		find_process_name "$child"
		[ "$PROCESS_NAME" != "$2" ] || return 0
	done
	return 1
}

# The pid of the renewer of rlock PID.
renewer_of() {
	find_renewers "$1"
	printf '%s\n' "${RENEWERS[@]}"
}

has_renewer() {
	find_renewers "$1"
	[ ${#RENEWERS[@]} -gt 0 ]
}

# find_renewers PID: sets RENEWERS to what renewer_of prints, and CHILDREN. A zombie is none: it has no command line.
find_renewers() {
	local child
	RENEWERS=()
	find_children "$1"
	for child in "${CHILDREN[@]}"; do
		find_process_name "$child"
		[ "$PROCESS_NAME" = rlock-renewer ] || continue
		{ read -r -d '' _ <"/proc/$child/cmdline"; } 2>/dev/null || continue
		RENEWERS+=("$child")
	done
}

# stop_waiters PID...: these rlocks, and their renewers, which wait.
stop_waiters() {
	local pid
	for pid; do
		find_renewers "$pid"
		kill -STOP "$pid" "${RENEWERS[@]}"
	done
}

# kill_with_renewers PID...: these rlocks, and their renewers, at once: none does the other one's part.
kill_with_renewers() {
	local pid
	local -a all=()
	for pid; do
		find_renewers "$pid"
		all+=("${RENEWERS[@]}" "$pid")
	done
	kill -STOP "${all[@]}"
	kill -KILL "${all[@]}"
}

# kill_whole PID: rlock, its renewer and its command, as when their machine dies. In the order of kill_with_renewers.
kill_whole() {
	find_children_of_rlock "$1"
	kill -STOP "$1" "${CHILDREN[@]}"
	kill -KILL "${CHILDREN[@]}" "$1"
	wait_until 5 is_gone "$1"
}

# continue_waiters PID...: the same processes go on.
continue_waiters() {
	local pid
	for pid; do
		find_renewers "$pid"
		kill -CONT "$pid" "${RENEWERS[@]}"
	done
}

# continue_with_signal SIGNAL PID: an rlock that is stopped with its renewer is sent that signal, and both go on. The renewer, which
# may acquire a lock at once, hears of the signal first.
continue_with_signal() {
	kill "-$1" "$2"
	kill -CONT "$2"
	wait_until 5 has_no_pending_signals "$2"
	find_renewers "$2"
	[ ${#RENEWERS[@]} -eq 0 ] || kill -CONT "${RENEWERS[@]}"
}

has_no_pending_signals() {
	grep -q '^ShdPnd:.0*$' "/proc/$1/status"
}

# For the first line of a test that valgrind falsifies: WHAT it would find there.
not_under_valgrind() {
	[ "${TESTS_UNDER:-}" != valgrind ] || skip "valgrind: $1"
}

# needs_namespaces: skips a test where there is no PID namespace with a /proc of its own, as below a root directory that is no
# mount point. Like all that skips a test, it has to be called outside of "run", which has a shell of its own.
needs_namespaces() {
	unshare --fork --pid --mount-proc --kill-child true 2>/dev/null || skip 'no PID namespace with its own /proc here'
}

# needs_refuse: skips a test where nothing can stand between rlock and its system calls.
needs_refuse() {
	local why status=0
	not_under_valgrind 'its process has another name, and forks for itself'
	why=$(refuse "$BATS_TEST_TMPDIR/refused" true read EIO 1 true 2>&1) || status=$?
	[ "$status" != 73 ] || skip "no call can be watched here: $why"
	[ "$status" = 0 ] || fail "refuse ends with $status: $why"
}

# For a test that looks at what others see of rlock's command line.
need_own_command_line() {
	not_under_valgrind 'what others see is its command line'
}

# ---- waiting ----

# Under valgrind rlock takes half a second to begin: waits may take this many times as long.
[ "${TESTS_UNDER:-}" = valgrind ] && SLOWNESS=4 || SLOWNESS=1

# wait_until SECONDS COMMAND [ARG...]: until the command succeeds; says what never became true. The longer that takes,
# the less often it looks: it is a sixteenth late at most, and never by more than 0.1 s; or it looks each POLL_US, if set.
wait_until() {
	local limit=$1 start=${EPOCHREALTIME/./} waited_us pause
	[[ $limit =~ ^[0-9]+$ ]] || fail "wait_until takes whole seconds, not '$limit'"
	shift
	limit=$((limit * SLOWNESS))
	until "$@"; do
		waited_us=$((${EPOCHREALTIME/./} - start))
		((waited_us <= limit * 1000000)) || {
			echo "not true within $limit s: $*" >&2
			return 1
		}
		to_seconds pause "${POLL_US:-$((waited_us < 160000 ? 10000 : waited_us < 1600000 ? waited_us / 16 : 100000))}"
		pause_for "$pause"
	done
}

# to_seconds VARIABLE US: sets the variable to so many microseconds as commands that take seconds want them.
to_seconds() {
	printf -v "$1" '%d.%06d' $(($2 / 1000000)) $(($2 % 1000000))
}

# pause_for SECONDS: for what has to last a while: an outage, or a lease that is to expire.
pause_for() {
	read -r -t "$1" -u 8 || :
}

now_ms() {
	echo $((${EPOCHREALTIME/./} / 1000))
}
