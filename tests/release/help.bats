#!/usr/bin/env bats
# The help. -h is short and --help complete; both agree with the program and the manual, and their examples work.

load ../lib/usual
load ../lib/documenting

# ---- helpers ----

# below_heading HEADING: print the lines of standard input below this heading.
below_heading() {
	sed -n "/^$1/,/^\$/p" | sed 1d
}

# options: print the options that the text on standard input describes, one a line, such as "-w, --wait".
options() {
	sed -nE 's/^  (    |-., )(--[a-z-]+).*/\1\2/p' | sed 's/^ *//'
}

# examples: print the commands of the examples in the text on standard input, one a line.
examples() {
	below_heading Examples: | sed -n 's/^  *\(rlock .*\)/\1/p'
}

# fits_width: check that the output has lines of at most 80 columns, and no message.
fits_width() {
	assert_equal "$stderr" ''
	assert [ "${#output}" -gt 0 ]
	refute_output --regexp $'[^\n]{81}'
}

@test "rlock -h lists the verbs and two examples on one screen; rlock --help also lists the manual pages" {
	local verb
	run -0 --separate-stderr rlock -h
	fits_width
	assert [ "$(wc -l <<<"$output")" -le 24 ]
	for verb in run lock fair read write sem unlock renew stop status list check help version; do
		assert_line --regexp "^  $verb "
	done
	assert_line --partial "'rlock --help'"
	run -0 --separate-stderr rlock --help
	fits_width
	for verb in run lock fair read write rlock wlock sem unlock renew stop status list check help version; do
		assert_line --regexp "^  $verb "
	done
	below_heading 'Manual pages' <<<"$output" | sed -nE 's/^  ([a-z.-]+)\(([0-9])\) .*/\1.\2/p' | sort >named
	run -0 diff <(rlock run -h) <(rlock -h run)
	run -0 diff named <(cd "$TOP/man" && printf '%s\n' *.[1-9] | sort)
}

@test "each verb has a short help on one screen, with some of its options, and a full one" {
	local verb
	for verb in $(verbs); do
		run -0 --separate-stderr rlock help "$verb"
		assert_line --index 0 --regexp "^usage: rlock $verb "
		fits_width
		options <<<"$output" | sort >full
		run -0 diff <(echo "$output") <(rlock "$verb" --help)
		run -0 --separate-stderr rlock "$verb" -h
		assert_line --index 0 --regexp "^usage: rlock $verb "
		assert_line --regexp "^'rlock $verb --help' has all options"
		fits_width
		assert_between 9 "$(wc -l <<<"$output")" 24
		run -0 comm -13 full <(options <<<"$output" | sort)
		assert_output ''
	done
}

@test "help run, rlock help, rlock(1) and README.md list exactly the exit codes of the program" {
	local code
	{
		echo 0
		exit_codes_of_program
	} >codes
	assert [ "$(wc -l <codes)" -gt 10 ]
	run -0 diff codes <(rlock help run | below_heading 'Exit codes' | sed -nE 's/^  ([0-9]+) .*/\1/p')
	run -0 diff codes <(rlock help | below_heading 'Exit codes' | sed -nE 's/^  ([0-9]+) .*/\1/p')
	sed -n '/^\.Sh EXIT STATUS/,/^\.Sh EXAMPLES/s/^\.It \([0-9]*\)$/\1/p' "$TOP/man/rlock.1" >listed
	run -0 diff codes listed
	for code in $(exit_codes_of_program); do
		run -0 grep -w "$code" <(sed -n '/^## Exit codes/,/^## /p' "$TOP/README.md")
	done
}

# ---- the manual ----

# options_in_help: print the options of the help, such as "-u --url URL".
options_in_help() {
	rlock help "$1" | sed -nE 's/^  (    |(-.),( ))(--[a-z-]+(\[=[A-Z]+\])?)( [^ ]+)?(  .*)?$/\2\3\4\6/p'
}

# options_in_manual: print the options of the manual in the same form.
options_in_manual() {
	sed -nE '/^\.Sh OPTIONS/,/^\.Sh/s/^\.It (Fl .*)/\1/p' "$TOP/man/rlock.1" |
		sed -E 's/(^| , )Fl ([a-zA-Z]) , Fl Fl/\1Fl \2 Fl Fl/g; s/ , Fl/\nFl/g' |
		sed -E 's/ Ns Op = Ns Ar (.*)/[=\1]/; s/Fl Fl /--/; s/Fl ([a-zA-Z])/-\1/; s/ (Ar|Cm)//g; s/ \| /|/g'
}

@test "the manual has exactly the options and verbs of the help" {
	local verb
	for verb in $(verbs); do
		options_in_help "$verb"
	done | sort -u >help
	assert [ "$(wc -l <help)" -gt 20 ]
	run -0 diff help <(options_in_manual | sed '/^-V --version$/d' | sort)
	sed -nE '/^\.Sh SYNOPSIS/,/^\.Sh D/s/^\.Cm ([a-z]+( \| [a-z]+)*)$/\1/p; /^\.Sh COM/,/^\.Sh OPT/s/^\.Cm ([rw]lock)$/\1/p' \
		"$TOP/man/rlock.1" | sed 's/ | /\n/g' | sort >manual
	run -0 diff <(verbs | sort) manual
}

@test "rlock.conf(5) lists the options that belong to a single call" {
	local verb option
	for verb in run sem unlock renew status list check; do
		rlock help "$verb" | options | sed 's/.*--//'
	done | sort -u >all
	while read -r option; do
		echo "$option = x" >conf
		run rlock check --config conf
		[[ "$output" != *'only for the command line'* ]] || echo "$option"
	done <all >refused
	run -0 diff refused <(sed -n '/belong to a single call/,/^An option/s/^\.Cm //p' "$TOP/man/rlock.conf.5" |
		tr -d ' .' | tr ',' '\n' | sort)
}

@test "each message that rlock(1) explains is in the source" {
	local part
	sed -n '/^\.Sh DIAGNOSTICS/,/^\.Sh SEE/s/^\.It //p' "$TOP/man/rlock.1" |
		sed 's/Li //g; s/Pq Ar [A-Z]*/\n/g; s/Ar [A-Z]*/\n/g; s/ , /\n/g' |
		sed 's/^[ :;]*//; s/[ :;]*$//' | grep ' ' >parts
	assert [ "$(wc -l <parts)" -gt 15 ]
	"$TOP/tools/messages.py" >messages
	while read -r part; do
		run -0 grep -F -- "$part" messages
	done <parts
}

# ---- examples ----

# examples_do OUTPUT COMMAND...: run by sh each example of the help that COMMAND prints. It must print OUTPUT and no message.
examples_do() {
	local line
	"${@:2}" | examples >lines
	assert [ -s lines ]
	for line in deploy backup migrate restart; do
		stub "./$line.sh"
	done
	run -0 --separate-stderr sh -e ./lines
	assert_equal "$stderr" ''
	assert_output "$1"
}

@test "the examples of rlock -h and help run do what they say" {
	examples_do $'./deploy.sh \n./backup.sh ' rlock -h
	no_keys
	run -0 diff <(rlock -h | examples) <(rlock --help | examples)
	examples_do $'./deploy.sh \n./backup.sh \n./migrate.sh \n./restart.sh ' rlock help run
	# The example has --at-least, which must keep this lock.
	assert [ "$(redis pttl nightly)" -gt 50000 ]
	run -0 redis keys '*'
	refute_output --regexp 'web|database|deploy'
}
