#!/usr/bin/env bats
# bats file_tags=long
# A user that lacks one of the rights that the manual lists: whatever it asks for is refused with that right
# named, or goes well without it; nothing stays locked, nothing runs on, and no wait is longer than its limit.
# Each test tries some verbs without each right in turn, several rights at a time.

# Rules begin with a tilde.
# shellcheck disable=SC2088

load ../lib/usual
load ../lib/rights

setup_file() {
	start_server_at_port
	cd "$BATS_FILE_TMPDIR" || return
	all_rights
	make_users
}

setup() {
	directory_setup
	all_rights
}

# What acquires a lock of each kind and releases it when its command has ended.
KINDS='run fair rlock wlock'
# They mostly wait for the server, or for a lease.
ROWS_AT_A_TIME=8
# Nothing here waits longer than 5 s, unless the machine is busy.
LIMIT_MS=$((10000 * SLOWNESS))

# ---- rows and cells ----

# without_each FUNCTION: calls it for each right, in a process of its own. Whatever it does not clear away has a
# lease of a second or two.
without_each() {
	local row rows=0 eval_row
	: >complaints
	for row in "${!RIGHTS[@]}"; do
		[ "${RIGHTS[row]}" != +eval ] || {
			eval_row=$row
			continue
		}
		((rows++ < ROWS_AT_A_TIME)) || wait -n || :
		in_row "$row" "$1" 3>&- &
	done
	wait
	# By now the server knows the scripts. That one is missed where it does not is tried in password_rights.bats.
	in_row "$eval_row" "$1" 3>&-
	run -0 cat complaints
	assert_output ''
	wait_until 15 no_keys_once_visited || fail "these keys are left: $(redis keys '*')"
	wait_until 5 nothing_runs
}

# A waiter that could not leave the queue stays in it until another one asks for the lock, seconds later.
no_keys_once_visited() {
	local key
	for key in $(redis keys 'redisson_lock_queue:*'); do
		key=${key#*\{}
		unlimited fair -n "${key%\}}" -- true
	done
	no_keys
}

# in_row ROW FUNCTION: it finds RIGHT, the one that is missing; URL, of the user without it; and NAME, which the
# names of the row's locks begin with.
in_row() {
	local ROW=$1 RIGHT=${RIGHTS[$1]} NAME=nightly-$1- URL
	URL=$(url_of "user-$1")
	# Thousands of commands, none of which fails the test: bats need not write down where they stand.
	trap - DEBUG
	"$2"
	wait
}

complain() {
	echo "without '$RIGHT': $*" >>complaints
}

# names_right TEXT: of all rules it names the missing one alone. But for the keys of a script the server does not
# say which one was refused.
names_right() {
	local named=' ' rest=$1
	while [[ $rest =~ (^| )([+~\&][^ ,]*[^ ,:])(.*)$ ]]; do
		named+="${BASH_REMATCH[2]} " rest=${BASH_REMATCH[3]}
	done
	named=${named//'~NAME '/'~nightly* '}
	named=${named//'~{NAME}'/'~{nightly*}'}
	case $RIGHT in
	'~{'*':timeout') [[ $named == *" $RIGHT "* && $named != *[+\&]* ]] ;;
	'~{'* | [+\&]*) [ "$named" = " $RIGHT " ] ;;
	*) [[ $named == *" $RIGHT "* && $named != *[+\&]* ]] ;;
	esac
}

# try WHAT CODES COMMAND [ARG...]: ends with one of the codes, or with 77. That one, a lost lock and a warning
# are told in one line, which names the right. Sets CODE.
try() {
	local what=$1 codes=$2 began out took_ms tries=0
	shift 2
	until ((tries++ > 0)) && { ((tries > 5)) || ! is_too_busy "$CODE" "$codes" "$out"; }; do
		CODE=0
		began=${EPOCHREALTIME/./}
		if [ "$1" = rlock ]; then
			out=$(exec "$@" 2>&1) || CODE=$?
		else
			out=$("$@" 2>&1) || CODE=$?
		fi
		took_ms=$(((${EPOCHREALTIME/./} - began) / 1000))
	done
	((took_ms < LIMIT_MS)) || complain "$what took $took_ms ms"
	[[ " $codes 77 " == *" $CODE "* ]] || complain "$what ended with $CODE: $out"
	[[ $out != *"$SECRET"* ]] || complain "$what shows the password"
	[[ -n $out || $CODE == 77 ]] && [[ $CODE != 75 ]] || return 0
	if [[ $out != *$'\n'* && $out == 'rlock: '* ]] && names_right "$out"; then
		echo "$RIGHT" >>"$BATS_FILE_TMPDIR/named"
	else
		complain "$what ended with $CODE and said: $out"
	fi
}

# is_too_busy CODE CODES TEXT: what the machine has to do is more than a lease of 2 s bears. That passes.
is_too_busy() {
	[[ $3 != *' no answer '* && $3 != *' did not run:'* ]] || return 0
	[[ $1 == 7[56] && " $2 " != *" $1 "* && $3 != *denied* ]]
}

# rlock for a user that may do everything.
unlimited() {
	rlock "$@" -u "unix://$SERVER_SOCKET"
}

# ---- locks that are free ----

free_locks() {
	local verb
	for verb in $KINDS; do
		try "$verb inside itself" 1 rlock "$verb" -n -t 3s -u "$URL" "$NAME" -- \
			rlock "$verb" -n -t 3s -u "$URL" "$NAME" -- false
		is_free "$NAME" || complain "$verb inside itself leaves the lock held"
	done
	try "fair of two, in a database, with a wait" 1 rlock fair -w 1s -t 3s -u "$URL/3" "$NAME" "$NAME{x" -- false
	try "rlock --at-least" 1 rlock rlock -n -t 3s --at-least 50ms -u "$URL" "$NAME-kept" -- false
	try "rlock inside wlock" 1 rlock wlock -n -t 3s -u "$URL" "$NAME" -- \
		rlock rlock -n -t 3s -u "$URL" "$NAME" -- false
	try "run --fence" 1 rlock run -n -t 3s --fence -u "$URL" "$NAME" -- false
	is_free "$NAME" || complain "a lock stays held"
	ask_server del "redisson_lock_token:{$NAME}"
}

@test "without any one right a lock that is free is acquired, or refused with that right named" {
	without_each free_locks
}

semaphores() {
	local held name
	try 'sem' 1 rlock sem -n -t 3s --permits 3 --take 2 -u "$URL" "$NAME" -- false
	try 'sem --at-least' 1 rlock sem -n -t 3s --permits 3 --at-least 50ms -u "$URL" "$NAME" -- false
	try 'sem --resize' 0 rlock sem --permits 4 --resize -u "$URL" "$NAME"
	unlimited sem --permits 4 --take 4 --owner x --lease 1s "$NAME-held"
	try 'sem that waits' 1 rlock sem -w 7s -t 3s --permits 4 -u "$URL" "$NAME-held" -- false
	let_pass 0.1 # for --at-least
	# Such a user may have left the total as it was.
	held=$(rlock sem -q --permits 4 -n -u "unix://$SERVER_SOCKET" "$NAME" -- \
		ask_redis "$SERVER_SOCKET" zcard "{$NAME}:timeout" 2>/dev/null)
	[ "$held" = 1 ] || complain "a permit stays held: $held"
	for name in "$NAME" "$NAME-held"; do
		ask_server del "$name" "rlock_total:{$name}" "{$name}:timeout"
	done
}

@test "without any one right permits are acquired and released, or it is refused with that right named" {
	without_each semaphores
}

# ---- locks that another owner holds ----

# HOLD:WAIT.
PAIRS='lock:lock lock:fair fair:fair rlock:wlock wlock:rlock'

held_by_others() {
	local pair hold wait
	for pair in $PAIRS; do
		hold=${pair%:*} wait=${pair#*:}
		unlimited "$hold" --owner x --lease 2s "$NAME$pair" ||
			complain "$hold was not acquired for the test of $wait"
		try "$wait behind $hold" 1 rlock "$wait" -w 7s -t 3s -u "$URL" "$NAME$pair" -- false &
	done
}

@test "without any one right a lock that others have is waited for, or refused with that right named" {
	without_each held_by_others
}

# ---- locks without a command ----

of_owners() {
	local verb
	for verb in lock wlock; do
		try "$verb --owner" 0 rlock "$verb" -n --owner x --lease 20s -u "$URL" "$NAME$verb"
		[ "$CODE" = 0 ] || unlimited "$verb" -n --owner x --lease 20s "$NAME$verb"
		try "renew of $verb" 0 errors_of rlock renew --owner x --lease 20s -u "$URL" "$NAME$verb"
		try "unlock of $verb" 0 rlock unlock --owner x -u "$URL" "$NAME$verb"
		# A refused one leaves it to the lease.
		[ "$CODE" = 0 ] || unlimited unlock -q --force "$NAME$verb"
		is_free "$NAME$verb" || complain "unlock of $verb leaves the lock held"
	done
}

# Without what renew prints.
errors_of() {
	"$@" >/dev/null
}

@test "without any one right an owner's lock is acquired, renewed and released, or refused with that right named" {
	without_each of_owners
}

# ---- a right that is taken away meanwhile ----

taken_away() {
	local verb
	for verb in run rlock; do
		has_all_rights
		try "a release by $verb" 1 rlock "$verb" -n -t 3s -u "$URL" "$NAME$verb" -- \
			sh -c 'ask_redis "$SERVER_SOCKET" acl setuser "$@" >/dev/null; exit 1' -- "${RULES[@]}"
	done
	has_all_rights
	try "a renewal" '0 76' rlock rlock -n -t 2s -u "$URL" "$NAME-2" -- \
		sh -c 'ask_redis "$SERVER_SOCKET" acl setuser "$@" >/dev/null; exec sleep 2.1' -- "${RULES[@]}"
}

# The row's user, until it does what is in RULES.
has_all_rights() {
	local -a rights
	read -ra rights < <(rights_but "$ROW")
	RULES=("user-$ROW" resetkeys resetchannels -@all "${rights[@]}")
	ask_server acl setuser "user-$ROW" "$RIGHT"
}

@test "a right that is taken away meanwhile is named when it was needed, and nothing stays locked" {
	without_each taken_away
}

# ---- all together ----

# CLIENT SETNAME and PUBSUB are refused without harm; INFO is for several servers; of EVAL see above.
@test "each right is one that some call misses" {
	not_under_valgrind 'there a waiter that loses its position has it again before it is notified'
	[ "$BATS_TEST_NUMBER" = "${#BATS_TEST_NAMES[@]}" ] || skip 'tells something behind all the others only'
	printf '%s\n' "${RIGHTS[@]}" | grep -vxF -e '+client|setname' -e '+pubsub|numsub' -e +info -e +eval | sort >wanted
	sort -u "$BATS_FILE_TMPDIR/named" >named
	run diff wanted named
	assert_output ''
}
