#!/usr/bin/env bash
# What `make demo` plays: two shells that want one lock, on a private server. All that it tells it has
# checked: the exit status is 0 only when everything went as told.
#
#   RLOCK_BIN   the rlock to play with (build/rlock)
set -euo pipefail
cd "$(dirname "$0")/.."

rlock=$(realpath "${RLOCK_BIN:-build/rlock}")
unset "${!RLOCK_@}" REDISCLI_AUTH
work=$(mktemp -d)
export PATH=${rlock%/*}:$PATH XDG_CONFIG_HOME=$work/config
export RLOCK_URL=local: RLOCK_RUNTIME_DIR=$work/runtime

# The commands in the background take a few seconds at most: once they have ended, nothing needs the
# server any more.
# shellcheck disable=SC2317,SC2329
finish() {
	local server
	trap '' HUP INT TERM
	wait
	server=$(cat "$RLOCK_RUNTIME_DIR/local.pid" 2>/dev/null) && kill "$server" 2>/dev/null &&
		wait_until 'the private server has ended' not kill -0 "$server"
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

not() {
	! "$@" 2>/dev/null
}

fail() {
	printf '\ndemo: this is not so: %s\n' "$1" >&2
	exit 1
}

# wait_until CLAIM COMMAND...: for 10 s at most.
wait_until() {
	local claim=$1 try
	shift
	for ((try = 0; try < 500; try++)); do
		! "$@" || return 0
		sleep 0.02
	done
	fail "$claim"
}

# check CLAIM COMMAND...: print the claim, if it is true.
check() {
	local claim=$1
	shift
	"$@" || fail "$claim"
	printf '     => %s\n' "$claim"
}

# shell NAME COMMAND...: the command as it would be typed, then what it prints and its exit status, each
# line behind the shell's name. The lines are kept in a file of that name.
shell() {
	local name=$1 line
	shift
	printf '%s $ %s\n' "$name" "$(type_out "$@")"
	{
		# Not "Killed" by this shell's own account.
		{ "$@" 2>&1 && echo "(exit status 0)" || echo "(exit status $?)"; } 2>/dev/null
	} | while IFS= read -r line; do
		printf '%s\n' "$line" >>"$work/$name"
		printf '%s | %s\n' "$name" "$line"
	done
}

# The words of a command, in single quotes where a shell needs some.
type_out() {
	local word text=
	for word; do
		[[ $word =~ ^[A-Za-z0-9_./:=-]+$ ]] || word="'$word'"
		text+="${text:+ }$word"
	done
	printf '%s' "$text"
}

# said NAME TEXT: whether a line that TEXT begins was printed in that shell since clear_output.
said() {
	grep -q "^$2" "$work/$1" 2>/dev/null
}

clear_output() {
	rm -f "$work/A" "$work/B"
}

# since_end: milliseconds from the end of A's work to the start of B's, by their own account.
since_end() {
	local ended started
	ended=$(sed -n 's/^done at //p' "$work/A")
	started=$(sed -n 's/^my turn at //p' "$work/B")
	echo $((${started/./} - ${ended/./}))
}

asks_server() {
	local program
	for program in redis-cli valkey-cli; do
		command -v "$program" >/dev/null || continue
		"$program" -s "$RLOCK_RUNTIME_DIR/local.sock" "$@"
		return
	done
	return 1
}

printf '1. One at a time. Both shells name the same lock; A comes first.\n\n'
shell A rlock run nightly -- sh -c 'echo working; sleep 2; date "+done at %s.%3N"' &
wait_until 'A has the lock' said A working
if asks_server ping >/dev/null 2>&1; then
	printf '\nThe lock on the server, as a Java service with Redisson would see it:\n'
	asks_server hgetall nightly | tee "$work/hash"
	check 'it has an owner and a count' grep -qx 1 "$work/hash"
	echo
fi
shell B rlock run --no-wait nightly -- echo 'this is not printed'
check 'B was turned away' said B '(exit status 75)'
shell B rlock run --wait 10s nightly -- date '+my turn at %s.%3N'
wait
check "A's work was done" said A '(exit status 0)'
check 'B has waited, and then had its turn' said B '(exit status 0)'
gap=$(since_end)
check "B was in $gap ms after A's work had ended" test "$gap" -ge 0 -a "$gap" -lt 1000

printf '\n2. Once more, but A is killed. Its work goes on, and so the lock stays.\n\n'
clear_output
shell A rlock run nightly -- sh -c 'echo "working for ${RLOCK_OWNER##*:}"; sleep 2; date "+done at %s.%3N"' &
wait_until 'A has the lock' said A 'working for '
holder=$(sed -n 's/^working for //p' "$work/A")
shell C kill -9 "$holder"
wait_until 'A is gone' said A '(exit status 137)'
shell B rlock run --no-wait nightly -- echo 'this is not printed'
check 'B was turned away: the work of A is still protected' said B '(exit status 75)'
shell B rlock run --wait 10s nightly -- date '+my turn at %s.%3N'
wait
gap=$(since_end)
check "the lock was free $gap ms after the work had ended" test "$gap" -ge 0 -a "$gap" -lt 1000

echo
if asks_server ping >/dev/null 2>&1; then
	check 'nothing is left on the server' test "$(asks_server dbsize)" = 0
fi
printf 'The demo went as told.\n'
