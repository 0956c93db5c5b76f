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

# ---- a cell: one shell on one terminal ----

# choose NUMBER: the kind, its verb and mode, and the shell of this cell.
choose() {
	KIND=${KINDS[$1 % 4]}
	VERB=$(verb_of "$KIND")
	MODE=$(mode_of "$KIND")
	SHELL_NAME=${SHELLS[$1 / 4 % 2]}
	SEED=$RANDOM
	RANDOM=$SEED
	# shellcheck disable=SC2034
	WHERE="$SHELL_NAME, $KIND, seed $SEED"
}

# What has to wait for a lock of that kind, whatever its mode.
rival_verb() {
	case $KIND in
	read | write) echo wlock ;;
	*) echo run ;;
	esac
}

# in_terminal: standard input is what happens there, see ptyrun. What was shown is in the file "shown", the values of
# each "status" are the lines of "statuses".
in_terminal() {
	# With readline, as people have it: bash takes the terminal back at each prompt then. Without, it loses it to a
	# key now and then, whatever the job is, and ends.
	local command=("$SHELL_NAME" -i)
	[ "$SHELL_NAME" != bash ] || command=(bash --norc --noprofile -i)
	# A key that comes while the shell reads may look like an end of the file to it.
	if ! { echo 'send set -o ignoreeof' && cat; } | ptyrun "${command[@]}" >shown 2>&1; then
		violated "the terminal does not answer ($WHERE): $(tail -n 12 shown | tr '\n' ';')"
	fi
	sed -n 's/^status \([0-9]* [0-9]* [0-9]* .*\)/\1/p' shown >statuses
}

# The words of ptyrun for one job on the lock $1, its ledger of that name, and what is typed as well as what the
# command does being of random length. With a second argument another holder is inside already, or is about to be.
job_words() {
	local rival=
	[ -z "${2:-}" ] ||
		rival="rlock $(rival_verb) $1 -- overlap $CELL/$1 exclusive -f $((RANDOM % 10000)) & "
	echo ready
	echo "send ${rival}rlock $VERB $1 -- overlap $CELL/$1 $MODE -f $((RANDOM % 8000))"
	echo 'running rlock'
	echo "pause $((RANDOM % MOMENT_MAX_US))"
}

count_in() {
	grep -c " $1 " "$CELL/$2" 2>/dev/null || :
}

# all_left LEDGER: each that went in came out by itself.
all_left() {
	[ "$(count_in enter "$1")" = "$(count_in leave "$1")" ]
}

# at_once MS TRIES: the shell answered so long behind the key. One that was lost on it is no fault.
at_once() {
	[ "$2" = 1 ] || return 0
	injected
	took "$1"
}

# Nothing is inside, nothing of the cell's is on the server, nothing runs, and none met another.
nothing_is_left() {
	local ledger
	for ledger in "$CELL/$NAME".*[0-9]; do
		[ -e "$ledger" ] || continue
		must "a command runs on ($WHERE)" overlap -g "$ledger" 3000
		count_overlaps "$ledger"
	done
	must "keys are left ($WHERE)" wait_until 10 cell_has_no_keys
	must "processes are left ($WHERE)" wait_until 10 nothing_runs
}

exists_command() {
	echo "redis-cli -s $SERVER_SOCKET exists $1"
}

# ---- signals without a shell ----

# What a terminal sends to the group of a job, from the fork on: a shell disturbed there has moods of its own.
# struck_group NUMBER SIGNAL MOMENT
struck_group() {
	local how ms pattern="^(signal $2|exit 0) "
	choose "$1"
	[ "$2" != TSTP ] || pattern='^(stopped )?exit 0 '
	setsid -w sh -c 'struck "$@"; :' sh "$2" "$3" "$ROUNDS" \
		rlock "$VERB" "$NAME.0" -- overlap "$CELL/$NAME.0" "$MODE" -f 3000 >told
	while read -r how; do
		repeated
		[[ $how =~ ^exit ]] || injected
		[[ $how =~ $pattern ]] || violated "$how ($WHERE)"
		ms=${how##* }
		[ "$how" = nothing ] || took "${ms%.*}"
	done <told
	nothing_is_left
}

@test "terminal, signals of a group" {
	local row
	for row in 'INT 12000' 'TSTP 12000' 'TSTP fork'; do
		begin_scenario "terminal, a group's $row"
		# shellcheck disable=SC2086
		in_cells "$(scaled 24)" 3 struck_group $row
		end_scenario 'from the signal to the end or the stop'
	done
}

# ---- keys that end a job ----

# ending_key NUMBER C|Q STATUS
ending_key() {
	local key=${2/Q/\\} round rival name value ms tries exists
	choose "$1"
	{
		echo 'send ulimit -c 0'
		for ((round = 0; round < ROUNDS; round++)); do
			rival=$((round % 2))
			job_words "$NAME.$round" "${rival#0}"
			echo "key $key"
			echo "status $(exists_command "$NAME.$round")"
		done
		# Rivals that are inside yet, or wait. bash whose terminal is gone passes the hang-up on to them.
		printf '%s\n' 'send wait' 'expect ready> $'
	} | in_terminal
	round=0
	while read -r value ms tries exists; do
		name=$NAME.$round
		repeated
		at_once "$ms" "$tries"
		case $value in
		"$3") ;;
		0) must "status 0, and the command did not come to its end ($WHERE)" all_left "$name" ;;
		*) violated "status $value ($WHERE)" ;;
		esac
		[ $((round % 2)) = 1 ] || [ "$exists" = 0 ] || violated "a prompt, and the lock is not free ($value, exists '$exists', try $tries, $WHERE)"
		round=$((round + 1))
	done <statuses
	nothing_is_left
}

@test "terminal, keys that end a job" {
	begin_scenario 'terminal, Ctrl-C'
	in_cells "$(scaled 48)" 4 ending_key C 130
	end_scenario 'from the key to the prompt'
	# shellcheck disable=SC1003
	begin_scenario 'terminal, Ctrl-\'
	in_cells "$(scaled 24)" 4 ending_key Q 131
	end_scenario 'from the key to the prompt'
}

# ---- Ctrl-Z ----

# judge_stopped NAME STATUS MS TRIES EXISTS: of a job that was stopped, or had ended, and has ended by now.
judge_stopped() {
	case $2 in
	148)
		at_once "$3" "$4"
		must "the command did not come to its end ($WHERE)" all_left "$1"
		[ "$(count_in enter "$1")" = 1 ] || violated "the command did not run once ($WHERE)"
		;;
	0) ;;
	*) violated "status $2 ($WHERE)" ;;
	esac
	[ "$5" = 0 ] || violated "the job has ended, and the lock is not free ($WHERE)"
}

# Stopped for a moment, and continued: twice in a job that lives that long. A key makes the terminal drop what the shell has
# not read yet: the second one comes when the job is in front.
suspended() {
	local round value ms tries exists again last
	choose "$1"
	for ((round = 0; round < ROUNDS; round++)); do
		job_words "$NAME.$round"
		printf '%s\n' 'key Z' status 'send fg' 'running rlock' "pause $((RANDOM % 4000))" 'key Z' status 'send fg' \
			"status $(exists_command "$NAME.$round")"
	done | in_terminal
	round=0
	while read -r value ms tries exists && read -r again _ && read -r last _ _ exists; do
		repeated
		judge_stopped "$NAME.$round" "$value" "$ms" "$tries" "$exists"
		if [ "$value" = 148 ]; then
			[ "$again" = 148 ] || [ "$again" = 0 ] || violated "status $again of the second key ($WHERE)"
			[ "$again" = 0 ] || [ "$last" = 0 ] || violated "status $last of the last fg ($WHERE)"
		fi
		round=$((round + 1))
	done <statuses
	nothing_is_left
}

@test "terminal, Ctrl-Z and fg" {
	begin_scenario 'terminal, Ctrl-Z and fg'
	in_cells "$(scaled 48)" 4 suspended
	end_scenario 'from the key to the prompt'
}

# ---- full-screen programs ----

# The words for a program that is looked at, used, and left. Each draws the file's first line.
full_screen_words() {
	local name=$1 program=$2 way=$3
	echo 'send stty rows 24 cols 80; stty -g >before'
	echo "send TERM=vt100 rlock $VERB -t 1s $name -- $program file"
	echo 'expect lorem-ipsum'
	if [ "$way" != once ]; then
		printf '%s\n' "pause $((RANDOM * 2))" 'key Z' 'expect ready> ' status "check stays_held $name 1.2" \
			'send fg' 'expect lorem-ipsum'
	fi
	if [ "$way" = lost ]; then
		echo "pause $((RANDOM * 4))"
		echo "check redis-cli -s $SERVER_SOCKET del $name"
	elif [ "$program" = vi ]; then
		printf '%s\n' 'type Goappended' 'expect appended' 'key [' 'send :wq'
	else
		printf '%s\n' 'type G' 'expect the-end' 'type q'
	fi
	printf '%s\n' 'expect ready> $' status 'send stty -g >after; stty sane' status
}

# It is used once, or suspended and continued before that, or loses its lock behind that.
full_screen() {
	local ways=(once suspended lost) way program name=$NAME.0 value ms wanted=0
	choose "$1"
	way=${ways[RANDOM % 3]}
	program=$2
	WHERE="$WHERE, $way"
	{
		echo lorem-ipsum
		seq 100
		echo the-end
	} >file
	cp file as-it-was
	export HOME=$CELL LESS='' EXINIT=''
	full_screen_words "$name" "$program" "$way" | in_terminal
	repeated
	injected
	{
		if [ "$way" != once ]; then
			read -r value ms _
			# 147: the program stopped itself alone, and rlock followed it.
			[ "$value" = 147 ] || [ "$value" = 148 ] ||
				violated "status $value of what is suspended ($WHERE)"
			took "$ms"
		fi
		read -r value ms _
	} <statuses
	[ "$way" != lost ] || wanted=76
	[ "$value" = "$wanted" ] || violated "status $value ($WHERE)"
	[ "$program" = less ] || [ "$way" = lost ] || echo appended >>as-it-was
	must "the file is not as it was left ($WHERE)" cmp file as-it-was
	[ "$way" = lost ] || must "the terminal's modes are not as before ($WHERE)" cmp before after
	# A lock that was deleted leaves its holds.
	redis del "rlock_holds:{$name}" >/dev/null
	nothing_is_left
}

@test "terminal, full-screen programs" {
	local program
	for program in vi less; do
		begin_scenario "terminal, $program"
		in_cells "$(scaled 16)" 4 full_screen "$program"
		end_scenario 'from Ctrl-Z to the prompt'
	done
}
