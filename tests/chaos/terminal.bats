#!/usr/bin/env bats
# Press a key at a random moment in the life of a job on a terminal: while it connects, waits, starts or runs its command, or releases.
# At any moment the shell must get the terminal back, and the exit status that this key gives to a job. Then the lock is free. A job that is
# only stopped keeps it.
#
# A full-screen program must work as without rlock, also after Ctrl-Z and fg. When its lock is lost, it gets SIGTERM and
# restores the terminal itself, as vi does. The shell must show its prompt in each case.

load chaos

SHELLS=(bash dash)
ROUNDS=8
# The longest pause before a key. It is longer than a job takes, so keys come at each moment of a job.
MOMENT_MAX_US=12000

# choose_cell NUMBER: sets KIND, VERB and SHELL_NAME for this cell.
choose_cell() {
	KIND=${KINDS[$1 % 4]}
	VERB=$(verb_of "$KIND")
	SHELL_NAME=${SHELLS[$1 / 4 % 2]}
	WHERE="$SHELL_NAME, $KIND, $WHERE"
}

# in_terminal: runs the script for ptyrun on standard input. Stores the output of the terminal in the file "shown", and the values
# of each "status" as a line of "statuses".
in_terminal() {
	# Let bash use readline, as for users: it then takes the terminal back at each prompt. Without readline, a key can make
	# bash lose the terminal and exit, even if rlock does everything right.
	local command=("$SHELL_NAME" -i)
	[ "$SHELL_NAME" != bash ] || command=(bash --norc --noprofile -i)
	# Set ignoreeof, or the shell could exit: Ctrl-C, Ctrl-\ or Ctrl-Z while it reads a line can look to it like the end of
	# its input.
	{ echo 'send set -o ignoreeof' && cat; } | ptyrun "${command[@]}" >shown 2>&1 ||
		violated "the terminal does not answer: $(tail -n 12 shown | tr '\n' ';')"
	sed -n 's/^status \([0-9]* [0-9]* [0-9]* .*\)/\1/p' shown >statuses
}

# job_words ROUND [CONTENDER]: prints the lines for ptyrun that start one job, whose command runs for a random time, and then pause for a
# random time. With CONTENDER another call is started before it, so the job may have to wait.
job_words() {
	local name=$NAME$1 contender='' contender_verb=run
	[[ $KIND != @(read|write) ]] || contender_verb=wlock
	[ -z "${2-}" ] || contender="rlock $contender_verb $name -- overlap ledger-$1 exclusive -f $((RANDOM % 10000)) & "
	printf '%s\n' ready "send ${contender}rlock $VERB $name -- overlap ledger-$1 $(mode_of "$KIND") -f $((RANDOM % 8000))" \
		'running rlock' "pause $((RANDOM % MOMENT_MAX_US))"
}

# status_words ROUND: prints the line for ptyrun that asks for the exit status, and whether the lock exists.
status_words() {
	echo "status redis-cli -s $SERVER_SOCKET exists $NAME$1"
}

# all_left ROUND: whether each command of this round that has gone in has also run to its end.
all_left() {
	[ "$(times enter "ledger-$1" | wc -l)" = "$(times leave "ledger-$1" | wc -l)" ]
}

# at_once MS TRIES: records a fault, and the time from the key to the answer. If the key had to be typed more than once, records
# nothing: the first one had no effect.
at_once() {
	[ "$2" = 1 ] || return 0
	injected
	took "$1"
}

# ---- signals without a shell ----

# struck_group NUMBER SIGNAL MOMENT: sends a signal to a job's process group, as the terminal does for a key, perhaps as early as
# the job's fork. No interactive shell starts the job, since such an early signal would disturb the shell as well.
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

@test "terminal: a signal to a job's process group ends or stops the job, even just after its fork" {
	local row
	for row in 'INT 12000' 'TSTP 12000' 'TSTP fork'; do
		# shellcheck disable=SC2086
		scenario "terminal, a group's $row" 'from the signal to the end or the stop' 24 3 struck_group $row
	done
}

# ---- keys that end a job ----

# ending_key NUMBER KEY STATUS: presses KEY in ROUNDS jobs, which must exit with STATUS, or with 0 if the command came to its end.
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
		# Let the shell wait for the contenders. Otherwise bash would send SIGHUP to those that still run when the
		# terminal is closed.
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

@test "terminal: Ctrl-C and Ctrl-\\ end a job at any moment, and its lock is free" {
	scenario 'terminal, Ctrl-C' 'from the key to the prompt' 48 4 ending_key C 130
	# shellcheck disable=SC1003
	scenario 'terminal, Ctrl-\' 'from the key to the prompt' 24 4 ending_key '\' 131
}

# ---- Ctrl-Z ----

# suspended NUMBER: stops a job with Ctrl-Z and continues it; if the job lives that long, twice. Wait until the job is in the
# foreground before the second key, since a key makes the terminal discard input that the shell has not read yet.
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
		# The status after the first key. 148: the key stopped the job, which has continued and ended since. 0: the job
		# had ended before the key.
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

@test "terminal: Ctrl-Z stops a job at any moment, and fg continues it" {
	scenario 'terminal, Ctrl-Z and fg' 'from the key to the prompt' 48 4 suspended
}

# ---- full-screen programs ----

# full_screen_words PROGRAM WAY: prints the lines for ptyrun that start PROGRAM and end it. WAY: once, suspended or lost, see
# full_screen. The program has started when it shows the first line of the file.
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

# full_screen NUMBER PROGRAM: chooses a way at random. once: uses PROGRAM. suspended: uses it after Ctrl-Z and fg. lost: deletes
# its lock after Ctrl-Z and fg.
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
			# 148: the key stopped the job. 147: the program stopped only itself, and rlock followed it.
			[ "$value" = 147 ] || [ "$value" = 148 ] || violated "status $value of what is suspended"
			took "$ms"
		fi
		read -r value ms _
	} <statuses
	if [ "$CHOSEN" = lost ]; then
		wanted=76
		# Only the lock's key was deleted, so allow that the key of its holds stays.
		KEPT="rlock_holds:{$NAME}"
	else
		must "the terminal's modes are not as before" cmp before after
		[ "$2" = less ] || echo appended >>as-it-was
	fi
	[ "$value" = $wanted ] || violated "status $value"
	must 'the file is not as it was left' cmp file as-it-was
}

@test "terminal: full-screen programs work as without rlock, also after Ctrl-Z, and restore the terminal when the lock is lost" {
	local program
	for program in vi less; do
		scenario "terminal, $program" 'from Ctrl-Z to the prompt' 16 4 full_screen "$program"
	done
}
