#!/usr/bin/env bats
# For each use of a lock (uses.bash), a network fault hits its first request, then in another repetition the second one, and so
# on.
#
# Promised: no hold counts twice, and no hold stays for longer than a lease. A call that acquires a lock repeats its request for
# at least a second, also with -n. A call that releases does so for 5 s. So the user does not notice a fault of a few hundred
# milliseconds. `renew`, `unlock --owner` and `unlock --force` do not retry: they may end with 69 and one line, and succeed when
# called again. The command runs once at most, and other waiters keep their positions in the queue.

load chaos
load ../lib/proxying
load uses

USES=(free nested names fence at_least long busy no_wait gives_up force lock unlock renew owner owner_unlock owner_renew)
FAULTS=(drop-reply cut-before stall-reply end-reply garbage trickle)
# Allow more time for keys to disappear: a waiter whose request to leave the queue was lost counts as alive for 5 s more.
LEFT_WITHIN_S=15
NEXT_SWEEPS=yes

# disturb: has the proxy apply FAULT to the request number NTH, or to its reply. The fault "trickle" applies to all replies.
disturb() {
	HAS_HAPPENED=
	((NTH == 1)) || proxy spare '*' $((NTH - 1))
	if [ "$FAULT" = trickle ]; then
		proxy trickle on
	else
		proxy "$FAULT" '*'
	fi
}

# undisturb: ends the fault. Sets HAS_HAPPENED if a request met it.
undisturb() {
	[[ $(proxy state) != *rules=0* ]] || HAS_HAPPENED=yes
	proxy pass
}

# disturbed NUMBER KIND: repeats one use with one fault, first at its first request, then at its second, until it has no request with that
# number.
disturbed() {
	local use=${USES[($1 - 1) % ${#USES[@]}]} lock=$NAME cell=$WHERE asks_once=
	FAULT=${FAULTS[($1 - 1) / ${#USES[@]} % ${#FAULTS[@]}]}
	begin_uses "$2"
	start_proxy || return
	# The calls that do not retry may end with 69. But if the reply is only slow (trickle), they must succeed.
	[[ $FAULT = trickle || $use != @(renew|owner_*|force) ]] || asks_once=69
	for ((NTH = 1; ; NTH++)); do
		NAME=$lock${NTH}x WHERE="request $NTH: $FAULT, $cell"
		try "$use" $asks_once || return 0
		[ "$HAS_HAPPENED" ] || return 0
		injected
		[ "$FAULT" != trickle ] || return 0
	done
}

@test "network: a fault at any request of a call makes no hold count twice, and the command runs once at most" {
	scenario_of_kinds 'network' 'for a call' $((${#USES[@]} * ${#FAULTS[@]})) 6 disturbed
}
