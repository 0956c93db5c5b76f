#!/usr/bin/env bash
# `make bench`: measures rlock and other programs for locks on private servers, and prints one table. It fails only if a measurement
# fails, whatever the results are.
#
#   RLOCK_BIN   the rlock to measure (build/rlock)
#   BENCH_DIR   the programs that measure (build/bench)
#   TOOLS_DIR   where ask_redis is (build/tools)
#   QUICK       1: a minute and a half instead of six, with fewer repetitions
set -euo pipefail
cd "$(dirname "$0")/../.."

: "${RLOCK_BIN:=build/rlock}" "${BENCH_DIR:=build/bench}" "${TOOLS_DIR:=build/tools}"
: "${QUICK:=}"
if [ -n "$QUICK" ] && [ "$QUICK" != 0 ]; then
	warm_ups=5 rounds=150 turns=100 crowds=(1 10 50 100) crowd_turns=4
	others=(1 10) other_turns=3 far_rounds=6 far_turns=5
else
	warm_ups=20 rounds=500 turns=250 crowds=(1 10 50 100 200 300) crowd_turns=8
	others=(1 3 10 30) other_turns=6 far_rounds=30 far_turns=25
fi

rlock=$(realpath "$RLOCK_BIN")
turn=$(realpath "$BENCH_DIR")/turn
ask_redis=$(realpath "$TOOLS_DIR")/ask_redis
proxy=$PWD/tests/bin/faultproxy
here=$PWD/tests/bench
source tests/lib/certificates.bash
source tests/bench/servers.bash
unset "${!RLOCK_@}" REDISCLI_AUTH

# Keep the files in memory: etcd waits for the disk at each step, and the disk must not be measured.
[ -w /dev/shm ] && base=/dev/shm || base=${TMPDIR:-/tmp}
work=$(mktemp -d "$base/rlock-bench.XXXXXX")
mkdir "$work/raw"
export XDG_CONFIG_HOME=$work/config RLOCK_RUNTIME_DIR=$work/runtime ETCDCTL_API=3 LC_ALL=C.UTF-8
# Begin PATH as on a bare system, so that looking up programs takes the same time everywhere.
PATH=${rlock%/*}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:$PATH

started=()
finish() {
	trap '' HUP INT TERM
	kill "${started[@]}" 2>/dev/null || :
	# Send SIGKILL, since some programs would otherwise wait for a server that has ended.
	sleep 0.5
	kill -KILL "${started[@]}" 2>/dev/null || :
	wait
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

fail() {
	printf 'bench: %s\n' "$1" >&2
	exit 1
}

# wait_until CLAIM COMMAND...: polls COMMAND for 20 s at most. CLAIM: what the error message says is not true.
wait_until() {
	local try
	for ((try = 0; try < 1000; try++)); do
		! "${@:2}" >/dev/null 2>&1 || return 0
		sleep 0.02
	done
	fail "this did not come true: $1"
}

# start COMMAND...: runs COMMAND in the background until this script ends; sets PID.
start() {
	"$@" &
	PID=$!
	started+=("$PID")
}

step() {
	printf 'bench: %s\n' "$1" >&2
}

# fact NAME VALUE: records a value for the report.
fact() {
	printf '%s %s\n' "$1" "$2" >>"$work/raw/facts"
}

# contend FILE ARGUMENT...: appends the output of contend.py to FILE.
contend() {
	"$here/contend.py" "${@:2}" >>"$work/raw/$1"
}

# ---- measurements ----

uncontended() {
	local -a tools=(
		bare true
		::: flock flock "$work/flock" true
		::: rlock "$rlock" run n -- true
		::: rlock-tcp "RLOCK_URL=$tcp_url" "$rlock" run n -- true
		::: rlock-tls "RLOCK_URL=$tls_url" "$rlock" run n -- true
		::: redis-cli "$here/redis_cli_lock.sh" "$redis_cli" "$socket" idiom true
	)
	[ -z "$etcd_url" ] || tools+=(::: etcdctl etcdctl --endpoints "$etcd_url" lock n true)
	"$here/spawn.py" "$warm_ups" "$rounds" "${tools[@]}" >"$work/raw/uncontended"
}

# busy: measures -n on a lock that another process holds. -E 0 makes the result no failure.
busy() {
	start flock "$work/busy" sleep 600
	"$rlock" lock --owner bench -l 10m busy
	"$rlock" lock --owner bench -l 10m busy -u "$tls_url"
	wait_until 'flock holds its lock' is_busy flock -n "$work/busy" true
	"$here/spawn.py" "$warm_ups" "$rounds" \
		flock flock -n -E 0 "$work/busy" false \
		::: rlock "$rlock" run -n -E 0 busy -- false \
		::: rlock-tcp "RLOCK_URL=$tcp_url" "$rlock" run -n -E 0 busy -- false \
		::: rlock-tls "RLOCK_URL=$tls_url" "$rlock" run -n -E 0 busy -- false >"$work/raw/busy"
	"$rlock" unlock --owner bench busy
}

# is_busy COMMAND...: whether COMMAND, a lock with -n, does not get the lock.
is_busy() {
	! "$@"
}

handovers() {
	contend handover "$turn" 1 "$turns" flock 25 flock "$work/flock" \
		::: rlock 25 "$rlock" run n -- ::: rlock-fair 25 "$rlock" fair n-fair -- \
		::: rlock-tcp 25 "$rlock" run -u "$tcp_url" n-tcp --
	# Measure these tools separately, since they need a long time until they wait.
	contend handover "$turn" 1 $((turns / 10)) redis-cli 200 "$here/redis_cli_lock.sh" "$redis_cli" "$socket" idiom
	[ -z "$etcd_url" ] || contend handover "$turn" 1 $((turns / 10)) etcdctl 300 etcdctl --endpoints "$etcd_url" lock n
}

many_waiters() {
	local waiters
	for waiters in "${crowds[@]}"; do
		step "$waiters waiting"
		contend "crowd.$waiters" --redis "$socket" "$turn" "$waiters" "$crowd_turns" rlock 10 "$rlock" run n --
		contend "crowd.$waiters" --redis "$socket" "$turn" "$waiters" "$crowd_turns" rlock-fair 10 "$rlock" fair n-fair --
		contend "permits.$waiters" --redis "$socket" "$turn" "$waiters" "$crowd_turns" \
			rlock-sem 10 "$rlock" sem --permits 1 n-sem --
		redis del n-sem 'rlock_total:{n-sem}' >/dev/null
		contend "crowd.$waiters" "$turn" "$waiters" "$crowd_turns" flock $((30 + waiters * 2)) flock "$work/flock"
	done
	# Start fewer waiters, since a waiter of these tools costs much more to start or to keep waiting. Measure one tool at a
	# time, since waiters of the redis-cli script keep the machine busy.
	for waiters in "${others[@]}"; do
		step "$waiters waiting otherwise"
		contend "others.$waiters" "$turn" "$waiters" "$other_turns" redis-cli $((200 + waiters * 20)) \
			"$here/redis_cli_lock.sh" "$redis_cli" "$socket" idiom
		[ -z "$etcd_url" ] || contend "others.$waiters" "$turn" "$waiters" "$other_turns" \
			etcdctl $((300 + waiters * 40)) etcdctl --endpoints "$etcd_url" lock n
	done
	# Delete the lock, since a late request of a killed waiter can have acquired it.
	redis del idiom >/dev/null
}

# far: measures with a proxy that adds a round trip time. Before each hand-over the waiters have time for all requests that they
# send until they wait.
far() {
	local ms
	for ms in 1 5 20; do
		step "$ms ms away"
		proxy far "$ms" >/dev/null
		"$here/spawn.py" 2 "$far_rounds" rlock "$rlock" run -u "redis://$proxy_address" far -- true >"$work/raw/far-uncontended.$ms"
		contend "far-handover.$ms" "$turn" 1 "$far_turns" rlock $((25 + 6 * ms)) "$rlock" run -u "redis://$proxy_address" far --
	done
	proxy pass >/dev/null
}

renewer_of() {
	pgrep -P "$1" -x rlock-renewer
}

# pss PID...: prints the sum of the proportional set sizes (PSS) of these processes, in kB.
pss() {
	local pid
	for pid; do
		cat "/proc/$pid/smaps_rollup"
	done | awk '/^Pss:/ { sum += $2 } END { print sum }'
}

# hold COMMAND...: starts a holder, whose command ends when the function idle ends. Sets PID.
hold() {
	start "$@" sh -c 'read -r _ <"$1"' sh "$work/idle.fifo"
	# Wait until the holder has released memory, which it does after a second.
	sleep 1.5
}

# idle: measures holders and a waiter one after the other. At the same time they would share pages, so each would seem smaller.
idle() {
	"$rlock" lock --owner bench -l 60s waited
	start "$rlock" run -q waited -- true
	sleep 1.5
	fact pss_rlock_waiter "$(pss "$PID" "$(renewer_of "$PID")")"
	kill "$PID"
	"$rlock" unlock --owner bench waited
	mkfifo "$work/idle.fifo"
	hold "$rlock" run -t 30s idle --
	fact pss_rlock "$(pss "$PID" "$(renewer_of "$PID")")"
	hold flock "$work/flock"
	fact pss_flock "$(pss "$PID")"
	if [ -n "$etcd_url" ]; then
		hold etcdctl --endpoints "$etcd_url" lock idle 2>/dev/null
		fact pss_etcdctl "$(pss "$PID")"
	fi
	: >"$work/idle.fifo"
	wait_until 'nothing is left on the server' redis_says 0 dbsize
}

fact load_before "$(cut -d ' ' -f 1 /proc/loadavg)"
fact version "$("$rlock" --version)"
fact flock "$(flock --version | head -n 1)"
fact date "$(date +%F)"
fact machine "$(uname -m)"
fact processors "$(nproc)"
start_servers
step "uncontended, $rounds rounds"
uncontended
step "a busy lock, $rounds rounds"
busy
step "two contenders, $turns hand-overs"
handovers
many_waiters
far
step 'server time'
"$here/server_time.py" "$socket" "$rlock" 400 >"$work/raw/server_time"
step idle
idle
fact load_after "$(cut -d ' ' -f 1 /proc/loadavg)"
"$here/report.py" "$work/raw"
