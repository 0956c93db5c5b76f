#!/usr/bin/env bats
# bats file_tags=long
# A user that lacks one of the rights that the manual lists: whatever it asks for is refused with that right
# named, or goes well without it; nothing stays locked, and no wait is longer than its limit.
# Each test tries some verbs without each right in turn, several rights at a time.

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

# make_users: for each of RIGHTS, "user-N" that has all but that one. N counts from 0.
make_users() {
	local row
	for row in "${!RIGHTS[@]}"; do
		echo "acl setuser user-$row on >$SECRET resetkeys resetchannels -@all ${RIGHTS[*]:0:row} ${RIGHTS[*]:row+1}"
	done | redis >replies
	run ! grep -vx OK replies
}

# They mostly wait for the server, or for a lease.
ROWS_AT_A_TIME=8
# Nothing here waits longer than 5 s, unless the machine is busy.
LIMIT_MS=$((10000 * SLOWNESS))

# without_each FUNCTION: calls it for each right, in a process of its own. Whatever it does not clear away has a
# lease of a second or two.
without_each() {
	local row rows=0
	: >complaints
	for row in "${!RIGHTS[@]}"; do
		# Without that one nothing goes as long as the server does not know the scripts: see password_rights.bats.
		[ "${RIGHTS[row]}" != +eval ] || continue
		((rows++ < ROWS_AT_A_TIME)) || wait -n || :
		in_row "$row" "$1" 3>&- &
	done
	wait
	run -0 cat complaints
	assert_output ''
	wait_until 30 no_keys_once_visited || fail "these keys are left: $(redis keys '*')"
	wait_until 5 nothing_runs
}

# A waiter that could not leave the queue stays in it until another one asks for the lock, seconds later.
no_keys_once_visited() {
	local key
	for key in $(redis keys 'redisson_lock_queue:*'); do
		key=${key#*\{}
		rlock fair -n "${key%\}}" -- true
	done
	no_keys
}

# in_row ROW FUNCTION: it finds RIGHT, the one that is missing; URL, of the user without it; and NAME, which the
# names of the row's locks begin with.
in_row() {
	local RIGHT=${RIGHTS[$1]} NAME=nightly-$1- URL
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

# try WHAT STATUS COMMAND [ARG...]: ends with that one, or with 77. That one is told in one line, which names the right, and so
# is a warning. Sets CODE.
try() {
	local what=$1 wanted=$2 began out took_ms tries=0
	shift 2
	until ((tries++ > 0)) && { ((tries > 5)) || ! is_too_busy "$CODE" "$wanted" "$out"; }; do
		CODE=0
		began=${EPOCHREALTIME/./}
		# What renew prints is no message.
		out=$(exec "$@" 2>&1 >/dev/null) || CODE=$?
		took_ms=$(((${EPOCHREALTIME/./} - began) / 1000))
	done
	((took_ms < LIMIT_MS)) || complain "$what took $took_ms ms"
	[[ $CODE = "$wanted" || $CODE = 77 ]] || complain "$what ended with $CODE: $out"
	[[ $out != *"$SECRET"* ]] || complain "$what shows the password"
	[[ -n $out || $CODE == 77 ]] && [[ $CODE != 75 ]] || return 0
	if [[ $out != *$'\n'* && $out == 'rlock: '* ]] && names_right "$out"; then
		echo "$RIGHT" >>"$BATS_FILE_TMPDIR/named"
	else
		complain "$what ended with $CODE and said: $out"
	fi
}

# is_too_busy CODE WANTED TEXT: what the machine has to do is more than a lease of 2 s bears. That passes.
is_too_busy() {
	[[ $3 != *' no answer '* && $3 != *' did not run:'* ]] || return 0
	[[ $1 == 7[56] && $1 != "$2" && $3 != *denied* ]]
}

free_locks() {
	local verb
	for verb in run fair rlock wlock; do
		try "$verb inside itself" 1 rlock "$verb" -n -t 3s -u "$URL" "$NAME" -- \
			rlock "$verb" -n -t 3s -u "$URL" "$NAME" -- false
	done
	try "fair of two, in a database, with a wait" 1 rlock fair -w 1s -t 3s -u "$URL/3" "$NAME" "$NAME{x" -- false
	try "rlock --at-least" 1 rlock rlock -n -t 3s --at-least 50ms -u "$URL" "$NAME-kept" -- false
	try "rlock inside wlock" 1 rlock wlock -n -t 3s -u "$URL" "$NAME" -- \
		rlock rlock -n -t 3s -u "$URL" "$NAME" -- false
	try "run --fence" 1 rlock run -n -t 3s --fence -u "$URL" "$NAME" -- false
	is_free "$NAME" || complain "a lock stays held"
	ask_server del "redisson_lock_token:{$NAME}"
	for verb in lock wlock; do
		try "$verb --owner" 0 rlock "$verb" -n --owner x --lease 20s -u "$URL" "$NAME$verb"
		[ "$CODE" = 0 ] || rlock "$verb" -n --owner x --lease 20s "$NAME$verb"
		try "renew of $verb" 0 rlock renew --owner x --lease 20s -u "$URL" "$NAME$verb"
		try "unlock of $verb" 0 rlock unlock --owner x -u "$URL" "$NAME$verb"
		# A refused one leaves it to the lease.
		[ "$CODE" = 0 ] || rlock unlock -q --force "$NAME$verb"
	done
}

@test "without any one right a lock that is free is acquired, renewed and released, or refused with that right named" {
	without_each free_locks
}

semaphores() {
	local held name
	try 'sem' 1 rlock sem -n -t 3s --permits 3 --take 2 -u "$URL" "$NAME" -- false
	try 'sem --at-least' 1 rlock sem -n -t 3s --permits 3 --at-least 50ms -u "$URL" "$NAME" -- false
	try 'sem --resize' 0 rlock sem --permits 4 --resize -u "$URL" "$NAME"
	rlock sem --permits 4 --take 4 --owner x --lease 1s "$NAME-held"
	try 'sem that waits' 1 rlock sem -w 7s -t 3s --permits 4 -u "$URL" "$NAME-held" -- false
	let_pass 0.1 # for --at-least
	# Such a user may have left the total as it was.
	held=$(rlock sem -q --permits 4 -n "$NAME" -- ask_redis "$SERVER_SOCKET" zcard "{$NAME}:timeout" 2>/dev/null)
	[ "$held" = 1 ] || complain "a permit stays held: $held"
	for name in "$NAME" "$NAME-held"; do
		ask_server del "$name" "rlock_total:{$name}" "{$name}:timeout"
	done
}

@test "without any one right permits are acquired and released, or it is refused with that right named" {
	without_each semaphores
}

held_by_others() {
	local pair
	for pair in lock:lock lock:fair fair:fair rlock:wlock wlock:rlock; do
		rlock "${pair%:*}" --owner x --lease 2s "$NAME$pair" || complain "${pair%:*} was not acquired"
		try "${pair#*:} behind ${pair%:*}" 1 rlock "${pair#*:}" -w 7s -t 3s -u "$URL" "$NAME$pair" -- false &
	done
}

@test "without any one right a lock that others have is waited for, or refused with that right named" {
	without_each held_by_others
}

# CLIENT SETNAME and PUBSUB are refused without harm; INFO is for several servers.
@test "each right is one that some call misses" {
	not_under_valgrind 'there a waiter that loses its position has it again before it is notified'
	[ "$BATS_TEST_NUMBER" = "${#BATS_TEST_NAMES[@]}" ] || skip 'tells something behind all the others only'
	printf '%s\n' "${RIGHTS[@]}" | grep -vxF -e '+client|setname' -e '+pubsub|numsub' -e +info -e +eval | sort >wanted
	run -0 diff wanted <(sort -u "$BATS_FILE_TMPDIR/named")
}
