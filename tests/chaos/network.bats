#!/usr/bin/env bats
# A network that loses and spoils what passes, at each request of each thing that one does with a lock.
#
# Promised: a lost reply never counts a hold twice, and no leftover hold stays for longer than a lease. When a connection
# breaks after a request, the server is asked what became of that: by a call that acquires a lock, waiting or not, for a
# second at least, and by one that releases for 5 s. So of one fault that lasts no longer than a few hundred milliseconds
# nothing is seen but with `renew`, and with `unlock` of an --owner's lock or by --force, which do not retry: 69 then, in
# one line, and the same call again is well. The command runs once at most, and others keep their positions in the queue.

load chaos
load ../lib/proxying
load uses

USES=(free nested names fence at_least long busy no_wait gives_up force lock unlock renew owner owner_unlock owner_renew)
FAULTS=(drop-reply cut-before stall-reply end-reply garbage trickle)
# Of what a waiter could not take back: its sign of life lasts 5 s.
LEFT_WITHIN_S=15
NEXT_SWEEPS=yes

# disturb: the reply to the request with the number NTH, or that request, meets FAULT. Replies that trickle do so all the time.
disturb() {
	HAS_HAPPENED=
	((NTH == 1)) || proxy spare '*' $((NTH - 1))
	if [ "$FAULT" = trickle ]; then
		proxy trickle on
	else
		proxy "$FAULT" '*'
	fi
}

undisturb() {
	[[ $(proxy state) != *rules=0* ]] || HAS_HAPPENED=yes
	proxy pass
}

# disturbed NUMBER KIND: one use, again and again: one fault at each of its requests in turn, until there is none any more.
disturbed() {
	local use=${USES[($1 - 1) % ${#USES[@]}]} lock=$NAME cell=$WHERE asks_once=
	FAULT=${FAULTS[($1 - 1) / ${#USES[@]} % ${#FAULTS[@]}]}
	begin_uses "$2"
	start_proxy || return
	# A slow reply is as good as any.
	[[ $FAULT = trickle || $use != @(renew|owner_*|force) ]] || asks_once=69
	for ((NTH = 1; ; NTH++)); do
		NAME=$lock$NTH. WHERE="request $NTH: $FAULT, $cell"
		try "$use" $asks_once || return 0
		[ "$HAS_HAPPENED" ] || return 0
		injected
		[ "$FAULT" != trickle ] || return 0
	done
}

@test "network, a fault at each request" {
	scenario_of_kinds 'network' 'for a call' $((${#USES[@]} * ${#FAULTS[@]})) 6 disturbed
}
