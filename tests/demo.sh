#!/usr/bin/env bash
# `make demo`: two shells compete for one lock, on a private server. The demo checks everything that it prints, and exits with 0 only if
# all of it is true.
#
#   RLOCK_BIN   the rlock to run (build/rlock)
set -euo pipefail
cd "$(dirname "$0")/.."

rlock=$(realpath "${RLOCK_BIN:-build/rlock}")
unset "${!RLOCK_@}" REDISCLI_AUTH
work=$(mktemp -d)
export PATH=${rlock%/*}:$PATH XDG_CONFIG_HOME=$work/config
export RLOCK_URL=local: RLOCK_RUNTIME_DIR=$work/runtime

# Wait for the commands in the background, which take a few seconds, before killing the server.
finish() {
	trap '' HUP INT TERM
	wait
	kill "$(cat "$RLOCK_RUNTIME_DIR/local.pid")" 2>/dev/null || :
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' HUP INT TERM

# check CLAIM COMMAND...: prints CLAIM if COMMAND succeeds; else the demo fails.
check() {
	"${@:2}" || {
		printf '\ndemo: this is not so: %s\n' "$1" >&2
		exit 1
	}
	printf '     => %s\n' "$1"
}

# shell NAME COMMAND...: prints the command line, the output of COMMAND and its exit status, each line after the shell's name. The lines
# also go to the file NAME.
shell() {
	local line text="${*@Q}"
	printf '%s $ %s\n' "$1" "$(sed "s/'\([A-Za-z0-9_.\/:=-]*\)'/\1/g" <<<"${text#* }")"
	{
		# Suppress the message "Killed", which this shell itself prints for a command that was killed.
		{ "${@:2}" 2>&1 && echo "(exit status 0)" || echo "(exit status $?)"; } 2>/dev/null
	} | while IFS= read -r line; do
		printf '%s\n' "$line" >>"$work/$1"
		printf '%s | %s\n' "$1" "$line"
	done
}

# said NAME TEXT: waits up to 10 s until the shell NAME has printed a line that begins with TEXT.
said() {
	local try
	for ((try = 0; try < 500; try++)); do
		! grep -q "^$2" "$work/$1" 2>/dev/null || return 0
		sleep 0.02
	done
	echo "demo: $1 never says: $2" >&2
	return 1
}

# server COMMAND...: runs redis-cli, or valkey-cli, on the private server.
server() {
	"$(type -P redis-cli valkey-cli | head -n 1)" -s "$RLOCK_RUNTIME_DIR/local.sock" "$@"
}

# waits_for_turn: A does its work while B waits; by the times in their output B must acquire the lock within a second after A's end.
waits_for_turn() {
	local ended started gap
	shell B rlock run --no-wait nightly -- echo 'this is not printed'
	check 'B was turned away' said B '(exit status 75)'
	shell B rlock run --wait 10s nightly -- date '+my turn at %s.%3N'
	wait
	ended=$(sed -n 's/^done at //p' "$work/A")
	started=$(sed -n 's/^my turn at //p' "$work/B")
	gap=$((${started/./} - ${ended/./}))
	check "B has waited, and had its turn $gap ms after A's work had ended" test "$gap" -ge 0 -a "$gap" -lt 1000
}

printf '1. One at a time. Both shells name the same lock; A comes first.\n\n'
shell A rlock run nightly -- sh -c 'echo working; sleep 2; date "+done at %s.%3N"' &
said A working
printf '\nThe lock on the server, as a Java service with Redisson sees it:\n'
server hgetall nightly | tee "$work/hash"
check 'it has an owner, and a hold count of 1' grep -qx 1 "$work/hash"
echo
waits_for_turn
check "A's work was done" said A '(exit status 0)'

printf '\n2. Once more, but A is killed. Its work goes on, and so the lock stays.\n\n'
rm "$work/A" "$work/B"
shell A rlock run nightly -- sh -c 'echo "working for ${RLOCK_OWNER##*:}"; sleep 2; date "+done at %s.%3N"' &
said A 'working for '
shell C kill -9 "$(sed -n 's/^working for //p' "$work/A")"
said A '(exit status 137)'
waits_for_turn
check 'nothing is left on the server' test "$(server dbsize)" = 0
printf '\nThe demo went as told.\n'
