#!/usr/bin/env bash
# What `make bench` runs: rlock beside what one would otherwise take, on servers of its own, in one
# table and one picture. It judges nothing: it fails only when something did not work.
#
#   RLOCK_BIN   the rlock to measure (build/rlock)
#   BENCH_DIR   the programs that measure (build/bench)
#   TOOLS_DIR   where ask_redis is (build/tools)
#   QUICK       1: a minute and a half instead of six, and coarser
#   RAW_DIR     keep there what was measured
# handover.svg is put into BENCH_DIR.
set -euo pipefail
cd "$(dirname "$0")/../.."

: "${RLOCK_BIN:=build/rlock}" "${BENCH_DIR:=build/bench}" "${TOOLS_DIR:=build/tools}"
: "${QUICK:=}" "${RAW_DIR:=}"
if [ -n "$QUICK" ] && [ "$QUICK" != 0 ]; then
	warm_ups=5 rounds=150 turns=100 idle_s=4 crowds=(1 10 50 100) crowd_turns=4
	others=(1 10) other_turns=3 far_rounds=6 far_turns=5
else
	warm_ups=20 rounds=500 turns=250 idle_s=10 crowds=(1 10 50 100 200 300) crowd_turns=8
	others=(1 3 10 30) other_turns=6 far_rounds=30 far_turns=25
fi

rlock=$(realpath "$RLOCK_BIN")
spawn=$(realpath "$BENCH_DIR")/spawn
turn=$(realpath "$BENCH_DIR")/turn
ask_redis=$(realpath "$TOOLS_DIR")/ask_redis
proxy=$PWD/tests/bin/faultproxy
here=$PWD/tests/bench
source tests/lib/certificates.bash
source tests/bench/servers.bash
unset "${!RLOCK_@}" REDISCLI_AUTH

# In memory: no disk is to be measured, and etcd waits for it at each step.
[ -w /dev/shm ] && base=/dev/shm || base=${TMPDIR:-/tmp}
work=$(mktemp -d "$base/rlock-bench.XXXXXX")
mkdir "$work/raw"
export XDG_CONFIG_HOME=$work/config RLOCK_RUNTIME_DIR=$work/runtime ETCDCTL_API=3 LC_ALL=C.UTF-8
# What is looked up by name is found where it stands on a bare system, after the same few misses.
PATH=${rlock%/*}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:$PATH

started=()
# shellcheck disable=SC2317,SC2329
finish() {
	local pid
	trap '' HUP INT TERM
	for pid in "${started[@]}"; do
		kill "$pid" 2>/dev/null || :
	done
	# One that still has a word for a server that is gone is not waited for.
	sleep 0.5
	for pid in "${started[@]}"; do
		kill -KILL "$pid" 2>/dev/null || :
	done
	wait
	[ -z "$RAW_DIR" ] || { mkdir -p "$RAW_DIR" && cp "$work"/raw/* "$RAW_DIR"; } || :
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

has() {
	command -v "$1" >/dev/null
}

# first_of PROGRAM...: the first that there is.
first_of() {
	local program
	for program; do
		! command -v "$program" || return 0
	done
	fail "none of these is there: $*"
}

# wait_until CLAIM COMMAND...: for 20 s at most.
wait_until() {
	local claim=$1 try
	shift
	for ((try = 0; try < 1000; try++)); do
		! "$@" >/dev/null 2>&1 || return 0
		sleep 0.02
	done
	fail "this did not come true: $claim"
}

# start COMMAND...: in the background until we end; sets PID.
start() {
	"$@" &
	PID=$!
	started+=("$PID")
}

step() {
	printf 'bench: %s\n' "$1" >&2
}

# fact NAME VALUE: for the report.
fact() {
	printf '%s %s\n' "$1" "$2" >>"$work/raw/facts"
}

free_ports() {
	python3 -c 'import socket, sys
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(int(sys.argv[1]))]
print(*(s.getsockname()[1] for s in sockets))' "$1"
}

# ---- what is measured ----

uncontended() {
	local -a tools=(
		bare true
		::: flock flock "$work/flock" true
		::: rlock "$rlock" run n -- true
		::: rlock-tcp "RLOCK_URL=$tcp_url" "$rlock" run n -- true
		::: rlock-tls "RLOCK_URL=$tls_url" "$rlock" run n -- true
		::: redis-cli "$here/redis_cli_lock.sh" "$redis_cli" "$socket" idiom true
	)
	! has setlock || tools+=(::: setlock setlock "$work/setlock" true)
	[ -z "$etcd_url" ] || tools+=(::: etcdctl etcdctl --endpoints "$etcd_url" lock n true)
	"$spawn" "$warm_ups" "$rounds" "${tools[@]}" >"$work/raw/uncontended"
}

# On the wire: what goes up in one piece is a round trip. The connection itself is not counted.
round_trips() {
	local url=redis://bench:secret@$proxy_address/3
	"$rlock" run -u "$url" wire -- true
	proxy redis reset-count >/dev/null
	"$rlock" run -u "$url" wire -- true
	fact round_trips "$(counted writes_up)"
	fact connections "$(counted connections)"
	fact requests "$(counted requests)"
}

handovers() {
	local -a tools=(
		flock 25 flock "$work/flock"
		::: rlock 25 "$rlock" run n --
		::: rlock-fair 25 "$rlock" fair n-fair --
		::: rlock-tcp 25 "$rlock" run -u "$tcp_url" n-tcp --
	)
	"$here/contend.py" "$turn" 1 "$turns" "${tools[@]}" >"$work/raw/handover"
	# Apart: these take long until they wait.
	tools=(redis-cli 200 "$here/redis_cli_lock.sh" "$redis_cli" "$socket" idiom)
	[ -z "$etcd_url" ] || tools+=(::: etcdctl 300 etcdctl --endpoints "$etcd_url" lock n)
	"$here/contend.py" "$turn" 1 $((turns / 10)) "${tools[@]}" >>"$work/raw/handover"
}

many_waiters() {
	local waiters
	for waiters in "${crowds[@]}"; do
		step "$waiters waiting"
		"$here/contend.py" --redis "$socket" "$turn" "$waiters" "$crowd_turns" \
			rlock 10 "$rlock" run n -- >"$work/raw/crowd.$waiters"
		"$here/contend.py" --redis "$socket" "$turn" "$waiters" "$crowd_turns" \
			rlock-fair 10 "$rlock" fair n-fair -- >>"$work/raw/crowd.$waiters"
		"$here/contend.py" --redis "$socket" "$turn" "$waiters" "$crowd_turns" \
			rlock-sem 10 "$rlock" sem --permits 1 n-sem -- >"$work/raw/permits.$waiters"
		redis del n-sem 'rlock_total:{n-sem}' >/dev/null
		"$here/contend.py" "$turn" "$waiters" "$crowd_turns" \
			flock $((30 + waiters * 2)) flock "$work/flock" >>"$work/raw/crowd.$waiters"
	done
}

# The server behind a round trip of so many ms. Each tool's waiters get time for all that they send before they wait.
far() {
	local ms
	local -a tools contenders
	for ms in 1 5 20; do
		step "$ms ms away"
		tools=(rlock "RLOCK_URL=redis://$proxy_address" "$rlock" run far -- true)
		contenders=(rlock $((25 + 6 * ms)) "$rlock" run -u "redis://$proxy_address" far --)
		proxy redis far "$ms" >/dev/null
		if [ -n "$far_etcd_url" ]; then
			tools+=(::: etcdctl etcdctl --endpoints "$far_etcd_url" lock far true)
			contenders+=(::: etcdctl $((300 + 12 * ms)) etcdctl --endpoints "$far_etcd_url" lock far)
			proxy etcd far "$ms" >/dev/null
		fi
		"$spawn" 2 "$far_rounds" "${tools[@]}" >"$work/raw/far-uncontended.$ms"
		"$here/contend.py" "$turn" 1 "$far_turns" "${contenders[@]}" >"$work/raw/far-handover.$ms"
	done
	proxy redis pass >/dev/null
}

# Fewer, as each of them costs much more to start or to have wait; one tool at a time, as the idiom's waiters keep the
# machine busy.
many_other_waiters() {
	local waiters
	for waiters in "${others[@]}"; do
		step "$waiters waiting otherwise"
		"$here/contend.py" "$turn" "$waiters" "$other_turns" redis-cli $((200 + waiters * 20)) \
			"$here/redis_cli_lock.sh" "$redis_cli" "$socket" idiom >"$work/raw/others.$waiters"
		[ -z "$etcd_url" ] || "$here/contend.py" "$turn" "$waiters" "$other_turns" \
			etcdctl $((300 + waiters * 40)) etcdctl --endpoints "$etcd_url" lock n >>"$work/raw/others.$waiters"
	done
	# A request of a waiter that was ended may have been on its way.
	redis del idiom >/dev/null
}

# client_requests: requests of clients so far, as contend.py counts them, that of our own left out.
client_requests() {
	redis info commandstats | sed -nE 's/^cmdstat_(eval|evalsha|subscribe|select|auth|client\|setname):calls=([0-9]*),.*/\2/p' |
		awk '{ sum += $1 } END { print sum + 0 }'
}

has_subscribers() {
	[ "$(redis pubsub numsub 'redisson_rwlock:{r}' | tail -n 1)" -ge "$1" ]
}

has_lines() {
	[ "$(wc -l <"$work/readers")" -ge "$1" ]
}

# Fifty readers after one writer: from the end of its command to the begin of theirs, all in.
readers() {
	local count=50 reader writer before end last
	: >"$work/readers"
	mkfifo "$work/writer.fifo"
	start "$rlock" wlock r -- sh -c 'read -r _ <"$1"; date +%s%N >"$2"' sh "$work/writer.fifo" "$work/writer"
	writer=$PID
	wait_until 'the writer has it' redis exists r
	for ((reader = 0; reader < count; reader++)); do
		start "$rlock" rlock r -- sh -c 'date +%s%N >>"$1"; sleep 1' sh "$work/readers"
	done
	wait_until 'all readers wait' has_subscribers "$count"
	sleep 1
	before=$(client_requests)
	echo >"$work/writer.fifo"
	wait "$writer"
	wait_until 'all readers are in' has_lines "$count"
	fact readers_requests $(($(client_requests) - before))
	end=$(cat "$work/writer") last=$(sort -n "$work/readers" | tail -n 1)
	fact readers "$count"
	fact readers_all_in_us $(((last - end) / 1000))
	wait_until 'nothing is left on the server' server_is_empty
	# What that many processes take to start here.
	: >"$work/readers"
	end=$(date +%s%N)
	for ((reader = 0; reader < count; reader++)); do
		sh -c 'date +%s%N >>"$1"; sleep 1' sh "$work/readers" &
	done
	wait_until 'all have begun' has_lines "$count"
	last=$(sort -n "$work/readers" | tail -n 1)
	fact readers_bare_us $(((last - end) / 1000))
}

children() {
	cat "/proc/$1/task/$1/children" 2>/dev/null || ps -o pid= --ppid "$1"
}

renewer_of() {
	local child
	for child in $(children "$1"); do
		[ "$(cat "/proc/$child/comm" 2>/dev/null)" != rlock-renewer ] || echo "$child"
	done
}

has_renewer() {
	[ -n "$(renewer_of "$1")" ]
}

# The command of an rlock.
renewers_children() {
	local renewer
	renewer=$(renewer_of "$1")
	[ -z "$renewer" ] || children "$renewer"
}

# pss PID...: kB, of all of them together.
pss() {
	local pid
	for pid; do
		cat "/proc/$pid/smaps_rollup"
	done | awk '/^Pss:/ { sum += $2 } END { print sum }'
}

# switches PID: how often its threads went to sleep, that is, had been woken.
switches() {
	cat "/proc/$1"/task/*/status | awk '/^voluntary_ctxt_switches:/ { sum += $2 } END { print sum }'
}

# hold NAME COMMAND...: a holder whose command sleeps; sets HOLDER. Killed ones leave their command
# running, so that one ends of its own accord, too.
hold() {
	local name=$1
	shift
	start "$@" sleep $((idle_s + 30))
	HOLDER=$PID
	holders[$name]=$HOLDER
}

let_go() {
	local child
	for child in $(children "$1") $(renewers_children "$1"); do
		[ "$(cat "/proc/$child/comm" 2>/dev/null)" != sleep ] || kill "$child"
	done
}

# A waiter, with the lock held by no process.
wait_idly() {
	"$rlock" lock --owner bench -l 60s waited
	start "$rlock" run -q waited -- true
	wait_until 'a waiter has its renewer' has_renewer "$PID"
	# As a holder does.
	sleep 1.5
	fact pss_rlock_waiter "$(pss "$PID" "$(renewer_of "$PID")")"
	kill "$PID"
	wait "$PID" || :
	"$rlock" unlock --owner bench waited
}

# The holders and the waiter are measured one by one, or they would share what each has to pay for alone.
idle() {
	local -A holders=() before=()
	local name renewer

	wait_idly
	hold rlock-30s "$rlock" run -t 30s idle --
	wait_until 'the lock is held' has_renewer "$HOLDER"
	# A holder shrinks after a second.
	sleep 1.5
	renewer=$(renewer_of "$HOLDER")
	fact pss_rlock "$(pss "$HOLDER" "$renewer")"
	fact pss_rlock_front "$(pss "$HOLDER")"
	fact pss_rlock_renewer "$(pss "$renewer")"
	hold flock flock "$work/flock"
	sleep 0.2
	fact pss_flock "$(pss "$HOLDER")"
	if [ -n "$etcd_url" ]; then
		hold etcdctl etcdctl --endpoints "$etcd_url" lock idle 2>/dev/null
		sleep 0.5
		fact pss_etcdctl "$(pss "$HOLDER")"
	fi
	hold rlock-3s "$rlock" run -t 3s idle-3s --
	wait_until 'the lock is held' has_renewer "$HOLDER"
	for name in rlock-30s rlock-3s; do
		holders[$name-renewer]=$(renewer_of "${holders[$name]}")
	done
	# The waiter, all of whose requests are counted.
	start "$rlock" run -q -u "redis://$proxy_address" idle -- true
	sleep 1.5
	proxy redis reset-count >/dev/null
	for name in "${!holders[@]}"; do
		before[$name]=$(switches "${holders[$name]}")
	done
	sleep "$idle_s"
	fact waiter_requests "$(counted requests)"
	kill -0 "$PID" "${holders[@]}" || fail 'a holder or the waiter has gone'
	for name in "${!holders[@]}"; do
		fact "switches_$name" $(($(switches "${holders[$name]}") - before[$name]))
	done
	fact idle_s "$idle_s"
	# The waiter goes first: it needs no turn.
	kill "$PID"
	for name in rlock-30s rlock-3s flock etcdctl; do
		[ -z "${holders[$name]-}" ] || let_go "${holders[$name]}"
	done
	wait_until 'nothing is left on the server' server_is_empty
}

fact load_before "$(cut -d ' ' -f 1 /proc/loadavg)"
fact version "$("$rlock" --version)"
fact flock "$(flock --version | head -n 1)"
fact date "$(date +%F)"
fact machine "$(uname -m)"
fact processors "$(nproc)"
fact rounds "$rounds"
read -r redis_port tls_port etcd_port etcd_peer_port < <(free_ports 4)
start_redis
start_tls
start_etcd
start_proxies
step "uncontended, $rounds rounds"
uncontended
round_trips
step "two contenders, $turns hand-overs"
handovers
many_waiters
many_other_waiters
far
step 'fifty readers behind a writer'
readers
step 'server time'
"$here/server_time.py" "$socket" "$rlock" 2000 >"$work/raw/server_time"
step "idle, for $idle_s s"
idle
fact load_after "$(cut -d ' ' -f 1 /proc/loadavg)"
"$here/report.py" "$work/raw"
"$here/picture.py" "$work/raw" "$BENCH_DIR/handover.svg"
