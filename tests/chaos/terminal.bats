#!/usr/bin/env bats
# Keys at a random moment of the life of a job on a terminal: while it connects, waits, starts its command, runs
# it, releases the lock. Whatever the moment, the shell has its prompt and the terminal again, and the status that
# the key gives any job; the lock is free, or the job's for as long as that is stopped; nothing is left.
#
# A full-screen program paints, reads keys, is suspended and continued as without rlock. When its lock is lost it gets
# SIGTERM, and puts the terminal back in order itself, as vi does; the shell has its prompt in either case.

load chaos

SHELLS=(bash dash)
ROUNDS=8
# Longer than a job takes from its start to its end, so that each moment of it is met.
MOMENT_MAX_US=12000

# choose_cell NUMBER: the kind, its verb and mode, and the shell of this cell.
choose_cell() {
	KIND=${KINDS[$1 % 4]}
	VERB=$(verb_of "$KIND")
	SHELL_NAME=${SHELLS[$1 / 4 % 2]}
	WHERE="$SHELL_NAME, $KIND, $WHERE"
}

# in_terminal: standard input is what happens there, see ptyrun. What was shown is in the file "shown", the values of
# each "status" are the lines of "statuses".
in_terminal() {
	# With readline, as people have it: bash takes the terminal back at each prompt then. Without, it loses it to a
	# key now and then, whatever the job is, and ends.
	local command=("$SHELL_NAME" -i)
	[ "$SHELL_NAME" != bash ] || command=(bash --norc --noprofile -i)
	# A key that comes while the shell reads may look like an end of the file to it.
	{ echo 'send set -o ignoreeof' && cat; } | ptyrun "${command[@]}" >shown 2>&1 ||
		violated "the terminal does not answer: $(tail -n 12 shown | tr '\n' ';')"
	sed -n 's/^status \([0-9]* [0-9]* [0-9]* .*\)/\1/p' shown >statuses
}

# job_words ROUND [CONTENDER]: the words of ptyrun for one job, what is typed as well as what the command does being of random
# length. With CONTENDER another holder is inside already, or is about to be.
job_words() {
	local name=$NAME$1 contender='' contender_verb=run
	[[ $KIND != @(read|write) ]] || contender_verb=wlock
	[ -z "${2-}" ] || contender="rlock $contender_verb $name -- overlap ledger-$1 exclusive -f $((RANDOM % 10000)) & "
	printf '%s\n' ready "send ${contender}rlock $VERB $name -- overlap ledger-$1 $(mode_of "$KIND") -f $((RANDOM % 8000))" \
		'running rlock' "pause $((RANDOM % MOMENT_MAX_US))"
}

# status_words ROUND: the status, and whether the lock exists.
status_words() {
	echo "status redis-cli -s $SERVER_SOCKET exists $NAME$1"
}

# all_left ROUND: each that went in came out by itself.
all_left() {
	[ "$(times enter "ledger-$1" | wc -l)" = "$(times leave "ledger-$1" | wc -l)" ]
}

# at_once MS TRIES: the shell answered so long after the key. One that was lost on it is no fault.
at_once() {
	[ "$2" = 1 ] || return 0
	injected
	took "$1"
}

# ---- signals without a shell ----

# What a terminal sends to the group of a job, from the fork on: a shell disturbed there has moods of its own.
# struck_group NUMBER SIGNAL MOMENT
struck_group() {
	local how ms pattern="^(signal $2|exit 0) "
	choose_cell "$1"
	[ "$2" != TSTP ] || pattern='^(stopped )?exit 0 '
	setsid -w sh -c 'hit_with_signal "$@"; :' sh "$2" "$3" "$ROUNDS" \
		rlock "$VERB" "$NAME" -- overlap "$LEDGER" "$(mode_of "$KIND")" -f 3000 >told
	while read -r how; do
		repeated
		[[ $how =~ ^exit ]] || injected
		[[ $how =~ $pattern ]] || violated "$how"
		ms=${how##* }
		[ "$how" = nothing ] || took "${ms%.*}"
	done <told
}

@test "terminal, signals of a group" {
	local row
	for row in 'INT 12000' 'TSTP 12000' 'TSTP fork'; do
		# shellcheck disable=SC2086
		scenario "terminal, a group's $row" 'from the signal to the end or the stop' 24 3 struck_group $row
	done
}

# ---- keys that end a job ----

# ending_key NUMBER KEY STATUS
ending_key() {
	local round value ms tries exists
	choose_cell "$1"
	{
		echo 'send ulimit -c 0'
		for ((round = 0; round < ROUNDS; round++)); do
			job_words $round "$([ $((round % 2)) = 0 ] || echo contender)"
			echo "key $2"
			status_words $round
		done
		# Other contenders that are inside yet, or wait. bash whose terminal is gone passes the hang-up on to them.
		printf '%s\n' 'send wait' 'expect ready> $'
	} | in_terminal
	round=0
	while read -r value ms tries exists; do
		repeated
		at_once "$ms" "$tries"
		case $value in
		"$3") ;;
		0) must 'status 0, and the command did not come to its end' all_left $round ;;
		*) violated "status $value" ;;
		esac
		[ $((round % 2)) = 1 ] || [ "$exists" = 0 ] || violated "a prompt, and the lock is not free ($value, exists '$exists', try $tries)"
		round=$((round + 1))
	done <statuses
}

@test "terminal, keys that end a job" {
	scenario 'terminal, Ctrl-C' 'from the key to the prompt' 48 4 ending_key C 130
	# shellcheck disable=SC1003
	scenario 'terminal, Ctrl-\' 'from the key to the prompt' 24 4 ending_key '\' 131
}

# ---- Ctrl-Z ----

# suspended NUMBER: stopped for a moment, and continued: twice in a job that lives that long. A key makes the terminal drop what the
# shell has not read yet: the second one comes when the job is in front.
suspended() {
	local round value ms tries exists again last
	choose_cell "$1"
	for ((round = 0; round < ROUNDS; round++)); do
		job_words $round
		printf '%s\n' 'key Z' status 'send fg' 'running rlock' "pause $((RANDOM % 4000))" 'key Z' status 'send fg'
		status_words $round
	done | in_terminal
	round=0
	while read -r value ms tries _ && read -r again _ && read -r last _ _ exists; do
		repeated
		# Of a job that was stopped, or had ended, and has ended by now.
		case $value in
		148)
			at_once "$ms" "$tries"
			must 'the command did not come to its end' all_left $round
			entered 1 "ledger-$round" || violated 'the command did not run once'
			[ "$again" = 148 ] || [ "$again" = 0 ] || violated "status $again of the second key"
			[ "$again" = 0 ] || [ "$last" = 0 ] || violated "status $last of the last fg"
			;;
		0) ;;
		*) violated "status $value" ;;
		esac
		[ "$exists" = 0 ] || violated 'the job has ended, and the lock is not free'
		round=$((round + 1))
	done <statuses
}

@test "terminal, Ctrl-Z and fg" {
	scenario 'terminal, Ctrl-Z and fg' 'from the key to the prompt' 48 4 suspended
}

# ---- full-screen programs ----

# full_screen_words PROGRAM WAY: for a program that is looked at, used, and left. Each draws the file's first line.
full_screen_words() {
	echo 'send stty rows 24 cols 80; stty -g >before'
	echo "send TERM=vt100 rlock $VERB -t 3s $NAME -- $1 file"
	echo 'expect lorem-ipsum'
	[ "$2" = once ] || printf '%s\n' "pause $((RANDOM * 2))" 'key Z' 'expect ready> ' status "check stays_held $NAME 3.2" \
		'send fg' 'expect lorem-ipsum'
	case $2-$1 in
	lost-*) printf '%s\n' "pause $((RANDOM * 4))" "check redis-cli -s $SERVER_SOCKET del $NAME" ;;
	*-vi) printf '%s\n' 'type Goappended' 'expect appended' 'key [' 'send :wq' ;;
	*-less) printf '%s\n' 'type G' 'expect the-end' 'type q' ;;
	esac
	printf '%s\n' 'expect ready> $' status 'send stty -g >after; stty sane' status
}

# full_screen NUMBER PROGRAM: it is used once, or suspended and continued before that, or loses its lock after that.
full_screen() {
	local value ms wanted=0
	choose_cell "$1"
	choose once suspended lost
	WHERE="$CHOSEN, $WHERE"
	{ echo lorem-ipsum && seq 100 && echo the-end; } >file
	cp file as-it-was
	export HOME=$CELL LESS='' EXINIT=''
	full_screen_words "$2" "$CHOSEN" | in_terminal
	repeated
	injected
	{
		if [ "$CHOSEN" != once ]; then
			read -r value ms _
			# 147: the program stopped itself alone, and rlock followed it.
			[ "$value" = 147 ] || [ "$value" = 148 ] || violated "status $value of what is suspended"
			took "$ms"
		fi
		read -r value ms _
	} <statuses
	if [ "$CHOSEN" = lost ]; then
		wanted=76
		# A lock that was deleted leaves its holds.
		KEPT="rlock_holds:{$NAME}"
	else
		must "the terminal's modes are not as before" cmp before after
		[ "$2" = less ] || echo appended >>as-it-was
	fi
	[ "$value" = $wanted ] || violated "status $value"
	must 'the file is not as it was left' cmp file as-it-was
}

@test "terminal, full-screen programs" {
	local program
	for program in vi less; do
		scenario "terminal, $program" 'from Ctrl-Z to the prompt' 16 4 full_screen "$program"
	done
}
