# Helpers of every test file: a Redis server, locks held in the background, and waits that poll a fact. usual.bash loads this file.
# A test file with a setup and a teardown of its own may load helpers.bash itself.
#
# Server of the file:
#   start_server [OPTION...]           starts redis-server on a unix socket; sets SERVER_SOCKET, SERVER_PID, SERVER_DIR and RLOCK_URL
#   start_server_at_port [OPTION...]   as start_server, but the server also listens on 127.0.0.1:PORT
#   start_warm_server VERB...          as start_server, and loads the scripts of these verbs
#   stop_server                        kills that server
#   redis COMMAND...                   prints the server's reply, as redis-cli does
#   ask_server COMMAND...              sets ANSWER to the reply
#   redis_says TEXT COMMAND...         whether the reply is TEXT
#   server_commands, commands_in_scripts, calls_of COMMAND   count commands that the server has run
#   has_subscribed_again COUNT         whether clients have subscribed more than COUNT times
#   record_requests, last_request CONDITION   record requests; print the last one for which CONDITION is true
#   key_of_lock PREFIX NAME            prints the key or channel PREFIX:{NAME}
#   choose_port, on_free_port          pick a port for a server
# Setup and teardown of a test:
#   common_setup, directory_setup      a clean environment and an empty server; directory_setup also enters the test's directory
#   common_teardown                    kills what the test has started
#   use_long_connect_timeout           for the setup of files whose servers or programs a busy machine makes slower than the default
# Processes in the background:
#   in_background COMMAND...           starts a program; sets PID
#   hold_in_background NAME [OPTION...]   starts `rlock run`, which holds the lock until end_commands; sets PID
#   end_commands                       ends the commands of hold_in_background, so that their locks are released
#   stop_waiters, continue_waiters PID...   SIGSTOP or SIGCONT to waiting rlocks and their renewers
#   continue_with_signal SIGNAL PID    sends a signal to a stopped rlock, then continues rlock and its renewer
#   replace_renewer                    kills the renewer of the waiter PID; then the next one waits
#   kill_with_renewers PID...          SIGKILL to rlocks and their renewers
#   find_renewer PID                   waits until that rlock has a renewer; sets RENEWER, its pid
#   run_waiter_in_real_time PID        gives a waiting rlock and its renewer a real-time priority, if that is allowed; sets RENEWER
#   kill_whole PID                     SIGKILL to rlock, its renewer and its command
# Facts, which check once and do not wait:
#   is_held, is_free NAME              whether the lock's key exists; whether it does not
#   ttl_is_below, ttl_is_above NAME MS   compare the TTL of the lock's key
#   no_keys, no_subscribers            whether the server has no key; no channel with a subscriber
#   hold_count NAME                    prints the hold count of a plain lock
#   is_running, is_gone PID            whether the process runs; whether it does not
#   has_child, has_no_child PID NAME   whether a child of that rlock or of its renewer has this name
#   has_renewer PID, renewer_of PID    whether that rlock has a renewer; prints the renewer's pid
#   has_other_renewer PID RENEWER      whether that rlock has another renewer than RENEWER
#   file_exists FILE, file_contains FILE TEXT
#   as_mode_allows COMMAND             executes COMMAND so that the modes of files apply, also if this user is root
# Skips:
#   not_under_valgrind WHAT, needs_namespaces, needs_preload, needs_refuse, needs_own_command_line   skip a test where it cannot run
# Time:
#   wait_until SECONDS COMMAND...      polls until COMMAND succeeds; fails after SECONDS
#   pause_for SECONDS                  waits that long, without a process
#   now_ms                             prints the time in ms

bats_require_minimum_version 1.5.0
# Load the files of bats-support and bats-assert one by one: their load.bash starts a process per file, in each test.
for part in support/src/{output,error,lang} assert/src/{assert{,_equal,_not_equal,_failure,_output,_line,_regex},refute{,_output,_line}}; do
	bats_load_library "bats-$part.bash"
done
unset part
load ../lib/servers

# Descriptor 8 never becomes readable: `read -t SECONDS -u 8` waits without starting sleep(1).
exec 8<> <(:)

# bats_merge_stdout_and_stderr: replaces a function of bats, which `run` calls in a subshell. For the programs listed here, exec
# in this subshell saves one process.
bats_merge_stdout_and_stderr() {
	case $1 in
	rlock | sh | bash | env | timeout | cat | grep) [ -n "${keep_empty_lines-}" ] || exec "$@" 2>&1 ;;
	esac
	"$@" 2>&1
}

# ---- a server for each file ----

# run_in_real_time PID: gives the process a real-time priority, if that is allowed, so that a busy machine does not make it slow.
run_in_real_time() {
	chrt --rr --pid 1 "$1" 2>/dev/null || :
}

# start_server [OPTION...]: the socket is a private one, and nothing is stored on disk. The OPTIONs are further ones of
# redis-server.
# shellcheck disable=SC2120 # on_free_port passes some
start_server() {
	SERVER_DIR=$BATS_FILE_TMPDIR/server
	SERVER_SOCKET=$SERVER_DIR/redis.sock
	mkdir -p "$SERVER_DIR"
	redis-server --port 0 --unixsocket "$SERVER_SOCKET" --save '' --appendonly no --dir "$SERVER_DIR" \
		--daemonize no --logfile "$SERVER_DIR/log" "$@" 3>&- &
	SERVER_PID=$!
	run_in_real_time "$SERVER_PID"
	export SERVER_DIR SERVER_SOCKET SERVER_PID
	export RLOCK_URL=unix://$SERVER_SOCKET
	wait_until 10 eval 'server_answers || is_gone "$SERVER_PID"'
	# If its port was taken, the server has exited: print the reason.
	server_answers || {
		tail -n 5 "$SERVER_DIR/log" >&2
		return 1
	}
}

# choose_port [END]: sets PORT to a port without a listener, from 20000 to END (30000). No other test on this machine gets the same
# port while this run of tests lasts, even while nothing listens on it: the test's server may be down for some time.
choose_port() {
	export PORT
	while PORT=$((20000 + RANDOM % (${1:-30000} - 20000))) && is_listened_on "$PORT" || ! claim_port "$PORT"; do :; done
}

# claim_port PORT: all users' runs of tests share the claims. Each is a link to the pid of its run; that of a run that has ended is void.
claim_port() {
	local claims=/tmp/rlock-test-ports run
	[ -d "$claims" ] || mkdir -m 1777 "$claims" 2>/dev/null || :
	ln -sn "${TEST_RUN:-$BATS_ROOT_PID}" "$claims/$1" 2>/dev/null && return
	run=$(readlink "$claims/$1") && [ ! -d "/proc/$run" ] && rm -f "$claims/$1" 2>/dev/null
	return 1
}

# on_free_port CHOOSE COMMAND [ARG...]: calls CHOOSE, which sets PORT, and then COMMAND, which starts a server on PORT; @PORT@ in
# its arguments is replaced. If another program has taken the port in between, tries again with another port.
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

# start_server_at_port [OPTION...]: for tests whose URL needs a user or a port, which a URL of a unix socket cannot have.
start_server_at_port() {
	on_free_port choose_port start_server --port @PORT@ --bind 127.0.0.1 "$@"
}

# start_warm_server VERB...: loads each script of these verbs into the server. Otherwise a request whose reply is lost in a test
# might have been denied with NOSCRIPT, and not carried out.
start_warm_server() {
	local verb
	start_server
	for verb; do
		wait_until 10 rlock "$verb" -t 3s warm -- sleep 1.4
	done
}

# is_listened_on PORT: whether a server listens on 127.0.0.1:PORT.
is_listened_on() {
	(: <>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

stop_server() {
	[ -n "${SERVER_PID:-}" ] || return 0
	kill_server_process "$SERVER_PID" "$SERVER_DIR"
	wait "$SERVER_PID" 2>/dev/null || :
}

# kill_server_process PID DIR: kills the server that runs in DIR. Does nothing if the kernel has reused PID for another process.
kill_server_process() {
	[ "/proc/$1/cwd" -ef "$2" ] || return 0
	kill -CONT "$1" 2>/dev/null || :
	kill -KILL "$1" 2>/dev/null || :
}

server_answers() {
	redis_says PONG ping 2>/dev/null
}

# redis [COMMAND...]: prints what redis-cli would print. Options, and commands on standard input, are passed to redis-cli itself.
redis() {
	case ${1--} in
	-*) redis-cli -s "$SERVER_SOCKET" "$@" ;;
	*) ask_redis "$SERVER_SOCKET" "$@" ;;
	esac
}

# redis_says TEXT COMMAND [ARG...]: whether the server's reply is TEXT.
redis_says() {
	ask_server "${@:2}" && [ "$ANSWER" = "$1" ]
}

# ask_server COMMAND [ARG...]: sets ANSWER to the reply. Where bash can load builtins, this starts no process: tests call it
# thousands of times.
ask_server() {
	if [ -n "$CAN_LOAD_BUILTINS" ]; then
		ask_redis -v ANSWER "$SERVER_SOCKET" "$@"
	else
		ANSWER=$(exec ask_redis "$SERVER_SOCKET" "$@")
	fi
}
CAN_LOAD_BUILTINS=
! enable -f ask_redis.so ask_redis 2>/dev/null || CAN_LOAD_BUILTINS=yes

# server_commands: prints how many commands of clients the server has processed. To count the commands between two calls of this
# function, subtract one for the call itself.
server_commands() {
	ask_server info stats && [[ $ANSWER =~ total_commands_processed:([0-9]+) ]] && echo "${BASH_REMATCH[1]}"
}

# commands_in_scripts: prints how many commands scripts have run since the statistics were reset. Leaves out the commands that
# tests send themselves.
commands_in_scripts() {
	redis info commandstats | tr -d '\r' |
		awk -F '[:=,]' '/^cmdstat_/ && !/evalsha|client|info|config/ { sum += $3 } END { print sum + 0 }'
}

# calls_of COMMAND: prints how often clients and scripts have run COMMAND since the statistics were reset.
calls_of() {
	local statistics count=0
	statistics=$(redis info commandstats) || :
	[[ ! $statistics =~ "cmdstat_$1:calls="([0-9]+) ]] || count=${BASH_REMATCH[1]}
	echo "$count"
}

# has_subscribed_again COUNT: whether clients have sent the server more than COUNT subscriptions.
has_subscribed_again() {
	[ "$(calls_of subscribe)" -gt "$1" ]
}

# record_requests: lets the server record all requests, until last_request.
record_requests() {
	redis config set slowlog-log-slower-than 0 >/dev/null
}

# last_request CONDITION: prints the arguments of the last recorded EVALSHA for which CONDITION is true, one a line. CONDITION is an
# expression of Lua; `request` has the arguments.
last_request() {
	redis config set slowlog-log-slower-than -1 >/dev/null
	redis eval "for _, entry in ipairs(redis.call('slowlog', 'get', 100)) do
		local request = entry[4]
		if string.lower(request[1]) == 'evalsha' and ($1) then return request end end" 0
}

# is_redis_6: whether the server is of Redis 6, which lacks what some tests need.
is_redis_6() {
	[[ $(redis info server) =~ redis_version:6 ]]
}

# key_of_lock PREFIX NAME: prints the key or channel of a lock. A NAME with braces of its own is not put into braces.
key_of_lock() {
	[[ $2 = *'{'* ]] && echo "$1:$2" || echo "$1:{$2}"
}

# ---- for each test ----

# clean_environment: unsets what the caller's environment could change in rlock, and gives the test its own runtime and
# configuration directories.
clean_environment() {
	# Switch off the DEBUG trap of bats in functions, since it takes a sixth of the tests' time. Then a failed test shows
	# which of its own lines failed, but not the line of the helper; with TRACE=1 it shows both.
	[ -n "${TRACE-}" ] || set +T
	unset RLOCK_CONFIG RLOCK_HELD RLOCK_NAME RLOCK_OWNER RLOCK_MODE RLOCK_TOKEN REDISCLI_AUTH CI
	export XDG_CONFIG_HOME=$BATS_TEST_TMPDIR/config
	export RLOCK_RUNTIME_DIR=$BATS_TEST_TMPDIR/run
	PATH=$BATS_TEST_DIRNAME/../bin:$PATH
	BACKGROUND=()
}

common_setup() {
	clean_environment
	ask_server flushall
}

# directory_setup: common_setup, then changes to the test's own directory. Sets REDIS to "ask_redis SOCKET", for scripts that
# query the server.
directory_setup() {
	common_setup
	export REDIS="ask_redis $SERVER_SOCKET"
	cd "$BATS_TEST_TMPDIR" || return
}

# use_long_connect_timeout: writes a configuration file into the test's directory, which is then the one in use.
use_long_connect_timeout() {
	echo 'connect-timeout = 30s' >rlock.conf
	export RLOCK_CONFIG=$PWD/rlock.conf
}

# common_teardown: ends the processes that the test has left in the background, also after a failure.
common_teardown() {
	local pid
	kill -CONT "$SERVER_PID" 2>/dev/null || :
	# End the commands first: when rlock is killed, its renewer continues while the command runs, and would renew the lock in the
	# tests that follow.
	end_commands
	for pid in "${BACKGROUND[@]}"; do
		is_own_process "$pid" || continue
		continue_waiters "$pid" 2>/dev/null || :
		kill -KILL "$pid" 2>/dev/null || :
		wait "$pid" 2>/dev/null || :
	done
}

# is_own_process PID: whether the process belongs to this run of bats. The kernel reuses pids within a minute on a busy machine.
is_own_process() {
	find_children "$BASHPID"
	find_process_name "$1"
	# redis-server overwrites its environment with its title, so recognise a server by its name instead.
	[[ " ${CHILDREN[*]} " = *" $1 "* || $PROCESS_NAME = *-server ]] || grep -qsF "$BATS_RUN_TMPDIR" "/proc/$1/environ"
}

# in_background COMMAND [ARG...]: starts a program, not a shell function; sets PID. common_teardown ends it. A background job of a
# script ignores SIGINT and SIGQUIT, and rlock would keep ignoring them: `env --default-signal` resets both.
in_background() {
	env --default-signal=INT,QUIT "$@" 3>&- &
	PID=$!
	BACKGROUND+=("$PID")
}

# hold_in_background NAME [OPTION...]: `rlock run` holds the lock; sets PID (of rlock). Returns when the command runs, which is after
# the lock was acquired. The command ends when end_commands creates the file "end-commands".
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

# ttl_is_below NAME MS: whether the lock's key has a TTL of less than MS.
ttl_is_below() {
	ask_server pttl "$1" && [ "$ANSWER" -lt "$2" ]
}

# ttl_is_above NAME MS: whether the lock's key has a TTL of more than MS.
ttl_is_above() {
	ask_server pttl "$1" && [ "$ANSWER" -gt "$2" ]
}

is_free() {
	redis_says 0 exists "$1"
}

no_keys() {
	redis_says 0 dbsize
}

no_subscribers() {
	redis_says '' pubsub channels
}

# read_stat PID: sets STAT to the fields of /proc/PID/stat from the state on. False if there is no such process.
read_stat() {
	STAT=
	{ IFS= read -r -d '' STAT <"/proc/$1/stat" || [ -n "$STAT" ]; } 2>/dev/null || return 1
	# The process name in parentheses can itself contain blanks and parentheses.
	STAT=${STAT##*) }
}

is_running() {
	local STAT
	read_stat "$1" && [[ $STAT != [ZX]* ]]
}

# is_gone PID: whether the process does not run, or is a zombie. Fails with a message unless PID is one number: the file that PID
# was read from may have been empty.
is_gone() {
	[[ ${1-} =~ ^[0-9]+$ ]] || fail "is_gone takes one process number, not '${1-}'" || return
	! is_running "$1"
}

as_mode_allows() {
	[ "$(id -u)" != 0 ] || set -- setpriv --bounding-set=-dac_override,-dac_read_search "$@"
	exec "$@"
}

file_exists() {
	[ -e "$1" ]
}

# file_contains FILE TEXT: whether TEXT occurs anywhere in the file.
file_contains() {
	local text
	{ read -r -d '' text <"$1" || :; } 2>/dev/null
	[[ ${text-} = *"$2"* ]]
}

hold_count() {
	redis hvals "$1"
}

# find_children PID: sets CHILDREN to the children of the process's main thread, without starting a process.
find_children() {
	CHILDREN=()
	{ read -ra CHILDREN <"/proc/$1/task/$1/children"; } 2>/dev/null || :
}

# find_children_of_rlock PID: sets CHILDREN to the children of rlock and of its renewer, which is the parent of the command.
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

# has_no_child PID NAME: whether no child of that rlock or of its renewer has this name, not even a zombie.
has_no_child() {
	! has_child "$@"
}

# find_process_name PID: sets PROCESS_NAME; empty if the process has ended.
find_process_name() {
	PROCESS_NAME=
	{ read -r PROCESS_NAME <"/proc/$1/comm"; } 2>/dev/null || :
}

has_child() {
	local child
	find_children_of_rlock "$1"
	for child in "${CHILDREN[@]}"; do
		find_process_name "$child"
		[ "$PROCESS_NAME" != "$2" ] || return 0
	done
	return 1
}

renewer_of() {
	find_renewers "$1"
	printf '%s\n' "${RENEWERS[@]}"
}

has_renewer() {
	find_renewers "$1"
	[ ${#RENEWERS[@]} -gt 0 ]
}

# find_renewer PID: sets RENEWER. That rlock has none for a moment after it has ended one that got no processor for a second.
find_renewer() {
	wait_until 10 has_renewer "$1" || return
	RENEWER=${RENEWERS[0]}
}

# run_waiter_in_real_time: a busy machine may otherwise give the waiter no processor for a second or two. Then rlock kills the renewer, which
# sends nothing more, and other callers rightly overtake the waiter.
run_waiter_in_real_time() {
	find_renewer "$1"
	run_in_real_time "$1"
	run_in_real_time "$RENEWER"
}

# has_other_renewer PID RENEWER: whether that rlock has one renewer, which is not RENEWER.
has_other_renewer() {
	find_renewers "$1"
	[ ${#RENEWERS[@]} -eq 1 ] && [ "${RENEWERS[0]}" != "$2" ]
}

# replace_renewer: kills the renewer of the waiter PID, and returns when the next one waits: its subscription follows its first attempt.
# That one does not know which undos of the killed one are on their way, so it will acquire the lock twice, with two hold ids.
replace_renewer() {
	local count
	find_renewer "$PID"
	kill -KILL "$RENEWER"
	wait_until 10 has_other_renewer "$PID" "$RENEWER"
	count=$(calls_of subscribe)
	# It subscribes, makes another attempt, and then probes the subscription.
	wait_until 15 has_subscribed_again $((count + 1))
}

# find_renewers PID: sets RENEWERS to the renewers of that rlock, and CHILDREN to all its children. Leaves out zombies, which have
# no command line.
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

stop_waiters() {
	local pid
	for pid; do
		# Stop rlock first: on a busy machine it may otherwise replace the renewer before that is stopped.
		kill -STOP "$pid"
		find_renewers "$pid"
		[ ${#RENEWERS[@]} -eq 0 ] || kill -STOP "${RENEWERS[@]}"
	done
}

# kill_with_renewers PID...: stops all these processes first, so that a renewer or a front does not react to the death of the
# other one.
kill_with_renewers() {
	local pid
	local -a all=()
	for pid; do
		stop_waiters "$pid"
		all+=("${RENEWERS[@]}" "$pid")
	done
	kill -KILL "${all[@]}"
}

# kill_whole PID: kills rlock, its renewer and its command, as a power failure does. Stops them first, so that none reacts to the
# death of another one.
kill_whole() {
	kill -STOP "$1"
	find_children_of_rlock "$1"
	[ ${#CHILDREN[@]} -eq 0 ] || kill -STOP "${CHILDREN[@]}"
	kill -KILL "${CHILDREN[@]}" "$1"
	wait_until 5 is_gone "$1"
}

continue_waiters() {
	local pid
	for pid; do
		find_renewers "$pid"
		kill -CONT "$pid" "${RENEWERS[@]}"
	done
}

# continue_with_signal SIGNAL PID: call it while rlock and its renewer are stopped. rlock handles the signal before the renewer
# continues: otherwise the renewer could acquire the lock first.
continue_with_signal() {
	kill "-$1" "$2"
	kill -CONT "$2"
	wait_until 5 has_no_pending_signals "$2"
	find_renewers "$2"
	[ ${#RENEWERS[@]} -eq 0 ] || kill -CONT "${RENEWERS[@]}"
}

# has_no_pending_signals PID: also true if the process has ended.
has_no_pending_signals() {
	local status
	is_gone "$1" && return
	# Read the whole file: if the process ended after a shorter read, bash would return the rest to the next read, of another file.
	{ read -r -d '' status <"/proc/$1/status" || :; } 2>/dev/null
	[[ ${status-} =~ ShdPnd:[[:blank:]]0+[^0-9a-f] ]]
}

# not_under_valgrind WHAT: skips a test that valgrind makes fail; WHAT is what would happen.
not_under_valgrind() {
	[ "${TESTS_UNDER:-}" != valgrind ] || skip "valgrind: $1"
}

# needs_namespaces: skips a test where a PID namespace cannot have a /proc of its own, such as in a chroot that is no mount point.
# All helpers that skip must be called outside of `run`: its subshell would only skip itself.
needs_namespaces() {
	unshare --fork --pid --mount-proc --kill-child true 2>/dev/null || skip 'no PID namespace with its own /proc here'
}

# needs_preload FILE: compiles the C program on standard input into a library for LD_PRELOAD; skips a test where that cannot be.
needs_preload() {
	[ -z "${TESTS_UNDER:-}" ] || skip "no library can be loaded before that of $TESTS_UNDER"
	"${CC:-cc}" -shared -fPIC -x c -o "$1" - || skip 'there is no C compiler'
}

# needs_refuse: skips a test where tests/tools/refuse.c cannot intercept the system calls of rlock.
needs_refuse() {
	local why status=0
	not_under_valgrind 'its process has another name, and forks processes of its own'
	why=$(refuse "$BATS_TEST_TMPDIR/refused" true read EIO 1 true 2>&1) || status=$?
	[ "$status" != 73 ] || skip "no call can be watched here: $why"
	[ "$status" = 0 ] || fail "refuse ends with $status: $why"
}

# needs_own_command_line: skips a test that checks which command line other users see.
needs_own_command_line() {
	not_under_valgrind 'other users see the command line of valgrind'
}

# ---- waiting ----

# The factor of all time limits. It is 4 under valgrind, where rlock needs half a second to start.
[ "${TESTS_UNDER:-}" = valgrind ] && SLOWNESS=4 || SLOWNESS=1

# busy_factor: prints the factor by which a busy machine prolongs the limits of waits. It is 1 on a quiet machine, and one more
# for every four processes that each processor has to run.
busy_factor() {
	local load
	read -r load _ </proc/loadavg
	echo $((1 + ${load%.*} / (4 * $(nproc))))
}

# wait_until SECONDS COMMAND [ARG...]: the interval between two polls is 10 ms at first; later a sixteenth of the time waited, but
# at most 0.1 s. POLL_US sets a fixed interval. On a busy machine the limit is longer than SECONDS, unless BUSY_FACTOR is 1. Fails
# with a message that names COMMAND.
wait_until() {
	local limit=$1 factor=${BUSY_FACTOR-} start=${EPOCHREALTIME/./} waited_us pause
	[[ $limit =~ ^[0-9]+$ ]] || fail "wait_until takes whole seconds, not '$limit'"
	shift
	limit=$((limit * SLOWNESS))
	until "$@"; do
		waited_us=$((${EPOCHREALTIME/./} - start))
		if ((waited_us > limit * 1000000)) && [ -z "$factor" ]; then
			factor=$(busy_factor)
			limit=$((limit * factor))
		fi
		((waited_us <= limit * 1000000)) || {
			echo "not true within $limit s: $*" >&2
			return 1
		}
		to_seconds pause "${POLL_US:-$((waited_us < 160000 ? 10000 : waited_us < 1600000 ? waited_us / 16 : 100000))}"
		pause_for "$pause"
	done
}

# to_seconds VARIABLE US: sets the variable to this number of microseconds, written in seconds, such as "0.010000".
to_seconds() {
	printf -v "$1" '%d.%06d' $(($2 / 1000000)) $(($2 % 1000000))
}

# pause_for SECONDS: use this only where a state such as an outage must last, or a lease must expire. To wait for a fact use
# wait_until.
pause_for() {
	read -r -t "$1" -u 8 || :
}

now_ms() {
	echo $((${EPOCHREALTIME/./} / 1000))
}
