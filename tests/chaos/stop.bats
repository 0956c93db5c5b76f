#!/usr/bin/env bats
# rlock stop at a random moment, while the holder, its renewer, a waiter or the caller is killed, or the caller gets no reply. The
# holds that were asked end; the next holder comes in behind the last process of the one before it, and no holder ends that was
# not asked.

load chaos
load ../lib/proxying

STOPS=500
WIDTH=6
FAULTS=(none none caller renewer rlock next late reply reply)
# A stay of longer than two renewals, which would tell of a request.
STAY_US=900000

# begin_stop [OPTION...]: sets CALLER.
begin_stop() {
	in_background env RLOCK_URL="$OF_CALLER" sh -c 'exec rlock stop "$@" 2>said-caller' sh "$@" "$NAME"
	CALLER=$PID
}

# One of the caller's first requests gets no reply, and it notices late: by then the next one may hold the lock. Sets PROXY,
# OF_CALLER and OF_STOP.
begin_proxy() {
	local by
	by="$(id -un)@$(uname -n)"
	start_proxy_between "unix:$CELL/proxy.sock" "unix:$SERVER_SOCKET" || return
	PROXY=$PID OF_CALLER=unix://$CELL/proxy.sock OF_STOP+=(-w 20s)
	proxy stall 700 >/dev/null
	draw 0 3
	((DRAWN == 0)) || proxy spare "$by" "$DRAWN" >/dev/null
	proxy stall-reply "$by" >/dev/null
}

end_proxy() {
	[ -n "$PROXY" ] || return 0
	! faults_happened || injected
	kill -KILL "$PROXY"
}

# begin_holders FAULT: sets HOLDER, which is asked, and RENEWER; and what goes on beside or behind it: OTHER, which is not asked,
# or NEXT, which waits. Of a semaphore all take one of two permits, the next one both.
begin_holders() {
	local options=(-t 1s --grace 100ms) of_next=()
	NEXT='' OTHER='' PROXY='' OF_STOP=() OF_CALLER=$RLOCK_URL
	[ "$KIND" != sem ] || options+=(--permits 2) of_next=(--take 2)
	if [ "$1" = late ]; then
		# What a command leaves running when it ends by itself is not protected.
		visits holder "$KIND" "$LEDGER" until "${options[@]}"
		wait_until 10 all_inside "$LEDGER" 1
	else
		holds holder "$KIND" "$LEDGER" "${options[@]}"
	fi
	HOLDER=$PID
	RENEWER=$(renewer_of "$HOLDER")
	if [[ $KIND = read || $KIND = sem ]] && ((RANDOM % 2)); then
		visits other "$KIND" "$LEDGER.other" "-f $((3 * STAY_US))" "${options[@]}"
		OTHER=$PID
		wait_until 10 all_inside "$LEDGER.other" 1
	else
		visits next "$(rival_kind "$KIND")" "$LEDGER" "-f $STAY_US" "${options[@]}" "${of_next[@]}"
		NEXT=$PID
		wait_until 10 listen 1
	fi
	# The call, or the second of two, may come when the next one holds the lock.
	[[ -z $OTHER && $1 != caller && $1 != late ]] ||
		OF_STOP=(--holder "$(rlock status "$NAME" | grep -oE "[-0-9a-f]+:$HOLDER\$")")
}

# inflict FAULT: it may come too late, for a process that has ended.
inflict() {
	local victim
	case $1 in
	none | late | reply) return ;;
	caller) victim=$CALLER ;;
	renewer) victim=$RENEWER ;;
	rlock) victim=$HOLDER ;;
	next) victim=$NEXT ;;
	esac
	[ -n "$victim" ] && kill -KILL "$victim" 2>/dev/null || return 0
	injected
	case $1 in
	# Its request stands; another one waits for the same end.
	caller) begin_stop "${OF_STOP[@]}" ;;
	next) NEXT='' ;;
	esac
}

# The command ends by itself at about the same time.
end_by_itself() {
	leaves holder
	injected
}

# stop NUMBER
stop() {
	local kinds=("${KINDS[@]}" sem) fault status=0
	begin_chance
	KIND=${kinds[$1 % ${#kinds[@]}]}
	fault=${FAULTS[RANDOM % ${#FAULTS[@]}]}
	begin_holders "$fault" || return
	[ "$fault" != reply ] || begin_proxy || return
	draw 0 400
	let_pass_ms "$DRAWN"
	begin_stop "${OF_STOP[@]}"
	draw 0 400
	let_pass_ms "$DRAWN"
	[ "$fault" != late ] || end_by_itself
	inflict "$fault"
	WHERE="$KIND, $fault, chance $CHANCE"
	repeated
	wait_until 20 is_gone "$CALLER" 2>/dev/null || violated "the caller waits on, $WHERE"
	wait "$CALLER" || status=$?
	# Then the holder that is meant has none any more.
	[[ $status = 0 || $status = 1 && ($fault = caller || $fault = late) ]] ||
		violated "the caller ended with $status, $WHERE: $(paste -s -d ' ' said-caller)"
	end_proxy
	check_end "$fault"
}

# ended_as HOLDER STATUS...: one of these.
ended_as() {
	local status=0
	wait_until 20 is_gone "$1" 2>/dev/null || violated "the holder does not end, $WHERE"
	wait "$1" || status=$?
	[[ " ${*:2} " = *" $status "* ]] || violated "the holder ended with $status, $WHERE: $(said_by holder)"
}

check_end() {
	case $1 in
	rlock) ended_as "$HOLDER" 137 124 ;;
	late) ended_as "$HOLDER" 0 124 ;;
	*) ended_as "$HOLDER" 124 ;;
	esac
	[ -z "$NEXT" ] || must_end 0 next "$NEXT" "$WHERE"
	[ -z "$OTHER" ] || must_end 0 other "$OTHER" "$WHERE"
	must "a command runs on, $WHERE" overlap -g "$LEDGER" 10000
	count_overlaps "$LEDGER"
	if [ "$KIND" = sem ]; then
		wait_until 10 permits_are_back 2>/dev/null || violated "permits are missing, $WHERE"
		redis del "$NAME" "rlock_total:{$NAME}" >/dev/null
	fi
	must_leave_nothing 10
}

permits_are_back() {
	[ "$(redis get "$NAME")" = 2 ]
}

@test "stop" {
	begin_scenario 'stop'
	in_cells "$(scaled $STOPS)" "$WIDTH" stop
	end_scenario
}
