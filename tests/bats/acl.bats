#!/usr/bin/env bats
# bats file_tags=long
# A user that lacks one of the rights that the manual lists: whatever it asks for is refused with that right
# named, or goes well without it, and nothing stays locked. Each right in turn, several at a time.

load ../lib/usual
load ../lib/rights

setup_file() { start_server_at_port; }

# without_each FUNCTION: calls it for each right, in a process of its own. It finds RIGHT, the one that is missing; URL, of
# the user without it; and NAME, which the names of its locks begin with.
without_each() {
	local row rows=0 RIGHT NAME URL
	all_rights
	for row in "${!RIGHTS[@]}"; do
		RIGHT=${RIGHTS[row]} NAME=nightly-$row- URL=$(url_of "user-$row")
		# Without that one nothing goes as long as the server does not know the scripts: see password_rights.bats.
		[ "$RIGHT" != +eval ] || continue
		# shellcheck disable=SC2068
		redis acl setuser "user-$row" on ">$SECRET" resetkeys resetchannels -@all ${RIGHTS[@]:0:row} ${RIGHTS[@]:row+1} >/dev/null
		((rows++ < 8)) || wait -n || :
		in_row "$1" 3>&- &
	done
	wait
	if [ -e complaints ]; then
		fail "$(cat complaints)"
	fi
	wait_until 30 no_keys_once_visited || fail "these keys are left: $(redis keys '*')"
}

in_row() {
	# Thousands of commands, none of which fails the test: bats need not write down where they stand.
	trap - DEBUG
	"$1"
	wait
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

# try STATUS COMMAND [ARG...]: ends with that one, or with 77. What is said is one line, which names the right. Sets CODE.
try() {
	local wanted=$1 out
	shift
	CODE=0
	# What renew prints is no message.
	out=$(exec timeout 60 "$@" 2>&1 >/dev/null) || CODE=$?
	if [ "$CODE$out" = "$wanted" ]; then
		return
	fi
	if [[ $CODE = 77 || $CODE = "$wanted" ]] && [[ $out = 'rlock: '* && $out != *$'\n'* && $out != *"$SECRET"* ]] &&
		names_right "$out"; then
		echo "$RIGHT" >>named
	else
		echo "without '$RIGHT': $* ended with $CODE: $out" >>complaints
	fi
}

free_locks() {
	local verb
	for verb in run fair rlock wlock; do
		try 1 rlock "$verb" -n -t 9s -u "$URL" "$NAME" -- rlock "$verb" -n -t 9s -u "$URL" "$NAME" -- false
	done
	try 1 rlock fair -w 9s -t 9s -u "$URL/3" "$NAME" "$NAME{x" -- false
	try 1 rlock rlock -n -t 9s --at-least 50ms -u "$URL" "$NAME-kept" -- false
	try 1 rlock wlock -n -t 9s -u "$URL" "$NAME" -- rlock rlock -n -t 9s -u "$URL" "$NAME" -- false
	try 1 rlock run -n -t 9s --fence -u "$URL" "$NAME" -- false
	is_free "$NAME" || echo "without '$RIGHT' a lock stays held" >>complaints
	ask_server del "redisson_lock_token:{$NAME}"
	for verb in lock wlock; do
		try 0 rlock "$verb" -n --owner x --lease 20s -u "$URL" "$NAME$verb"
		[ "$CODE" = 0 ] || rlock "$verb" -n --owner x --lease 20s "$NAME$verb"
		try 0 rlock renew --owner x --lease 20s -u "$URL" "$NAME$verb"
		try 0 rlock unlock --owner x -u "$URL" "$NAME$verb"
		# A refused one leaves it to the lease.
		[ "$CODE" = 0 ] || rlock unlock -q --force "$NAME$verb"
	done
}

semaphores() {
	try 1 rlock sem -n -t 9s --permits 3 --take 2 -u "$URL" "$NAME" -- false
	try 1 rlock sem -n -t 9s --permits 3 --at-least 50ms -u "$URL" "$NAME" -- false
	try 0 rlock sem --permits 4 --resize -u "$URL" "$NAME"
	rlock sem --permits 4 --take 4 --owner x --lease 1s "$NAME-held" >/dev/null
	try 1 rlock sem -w 30s -t 9s --permits 4 -u "$URL" "$NAME-held" -- false
	wait_until 5 eval '[ -z "$(rlock list -q "$NAME*")" ]' || echo "without '$RIGHT' a permit stays held" >>complaints
	rlock unlock -q --force "$NAME" "$NAME-held" || :
	ask_server del "$NAME" "$NAME-held" "rlock_total:{$NAME}" "rlock_total:{$NAME-held}"
}

held_by_others() {
	local pair
	for pair in lock:lock lock:fair fair:fair rlock:wlock wlock:rlock; do
		rlock "${pair%:*}" --owner x --lease 2s "$NAME$pair"
		try 1 rlock "${pair#*:}" -w 30s -t 9s -u "$URL" "$NAME$pair" -- false &
	done
}

@test "without any one right whatever is asked for goes well, or is refused with it named; each is one that some call misses" {
	not_under_valgrind 'there a waiter that loses its position has it again before it is notified'
	without_each free_locks
	without_each semaphores
	without_each held_by_others
	# CLIENT SETNAME and PUBSUB are refused without harm; INFO is for several servers.
	printf '%s\n' "${RIGHTS[@]}" | grep -vxF -e '+client|setname' -e '+pubsub|numsub' -e +info -e +eval | sort >wanted
	run -0 diff wanted <(sort -u named)
}
