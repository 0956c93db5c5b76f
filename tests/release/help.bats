#!/usr/bin/env bats
# The help: -h is short, --help has everything, what they say is what the program and the manual have, and their examples
# work.

# What run sets is read within each test.
# shellcheck disable=SC2154
load ../lib/usual
load ../lib/documenting

# ---- helpers ----

# The lines of standard input below the heading $1.
below_heading() {
	sed -n "/^$1/,/^\$/p" | sed 1d
}

# The options that the text on standard input describes, one a line: "-w, --wait".
options() {
	sed -nE 's/^  (    |-., )(--[a-z-]+).*/\1\2/p' | sed 's/^ *//'
}

# The commands of the examples in the text on standard input, one a line.
examples() {
	below_heading Examples: | sed -n 's/^  *\(rlock .*\)/\1/p'
}

# The exit codes in the text on standard input, one a line.
exit_codes() {
	below_heading 'Exit codes' | sed -nE 's/^  ([0-9]+) .*/\1/p'
}

# fits_screen: the output is 24 lines of 80 columns at most.
fits_screen() {
	assert [ "${#output}" -gt 0 ]
	assert [ "$(wc -l <<<"$output")" -le 24 ]
	fits_width
}
fits_width() {
	refute_output --regexp $'[^\n]{81}'
}

# ---- of rlock as a whole ----

@test "rlock -h has the verbs and two examples, on one screen" {
	local verb
	run -0 --separate-stderr rlock -h
	assert_equal "$stderr" ''
	fits_screen
	for verb in run lock fair read write sem unlock renew stop status list check help version; do
		assert_line --regexp "^  $verb "
	done
	assert_equal "$(examples <<<"$output" | wc -l)" 2
	assert_line --partial "'rlock --help'"
}

@test "rlock --help has every verb and the manual pages" {
	local verb
	run -0 --separate-stderr rlock --help
	assert_equal "$stderr" ''
	fits_width
	for verb in run lock fair read write rlock wlock unlock renew stop status list check help version; do
		assert_line --regexp "^  $verb "
	done
	assert_equal "$(examples <<<"$output" | wc -l)" 2
	assert_line "  rlock(1)           verbs, options, exit codes, messages and examples"
}

# ---- of a verb ----

@test "each verb has a short help on one screen, which says where all of it is" {
	local verb
	for verb in $(verbs); do
		run -0 --separate-stderr rlock "$verb" -h
		assert_equal "$stderr" ''
		assert_line --index 0 --regexp "^usage: rlock $verb "
		assert_line --regexp "^'rlock $verb --help' has all options"
		fits_screen
		run -0 diff <(rlock "$verb" -h) <(rlock -h "$verb")
	done
}

@test "the short help of a verb has some of its options, a line each" {
	local verb
	for verb in $(verbs); do
		rlock "$verb" -h | options | sort >short
		rlock "$verb" --help | options | sort >full
		assert [ "$(wc -l <short)" -ge 5 ]
		assert [ "$(wc -l <short)" -lt "$(wc -l <full)" ]
		run -0 comm -23 short full
		assert_output ''
		# The usage, the summary and where the rest is; and blank lines.
		assert_equal "$(rlock "$verb" -h | grep -c .)" $(($(wc -l <short) + 3))
	done
}

@test "rlock VERB --help is rlock help VERB, whose lines fit" {
	local verb
	for verb in $(verbs); do
		run -0 --separate-stderr rlock help "$verb"
		assert_line --index 0 --regexp "^usage: rlock $verb "
		assert_equal "$stderr" ''
		fits_width
		run -0 diff <(rlock help "$verb") <(rlock "$verb" --help)
		run -0 diff <(rlock help "$verb") <(rlock --help "$verb")
	done
}

# ---- exit codes ----

@test "help run has the exit codes that the program has, and no other" {
	{
		echo 0
		exit_codes_of_program
	} >codes
	assert [ "$(wc -l <codes)" -gt 10 ]
	run -0 diff codes <(rlock help run | exit_codes)
	run -0 diff codes <(rlock help | exit_codes)
}

# ---- the manual ----

@test "the exit codes of help run are those of rlock(1)" {
	sed -n '/^\.Sh EXIT STATUS/,/^\.Sh EXAMPLES/s/^\.It \([0-9]*\)$/\1/p' "$TOP/man/rlock.1" >listed
	assert [ "$(wc -l <listed)" -gt 10 ]
	run -0 diff listed <(rlock help run | exit_codes)
}

@test "help names each manual page that there is" {
	rlock help | below_heading 'Manual pages' | sed -nE 's/^  ([a-z.-]+)\(([0-9])\) .*/\1.\2/p' | sort >named
	run -0 diff named <(cd "$TOP/man" && printf '%s\n' ./*.[1-9] | sed 's,^\./,,' | sort)
}

# The options in help's words: "-u --url URL".
options_in_help() {
	rlock help "$1" | sed -nE 's/^  (    |(-.),( ))(--[a-z-]+(\[=[A-Z]+\])?)( [^ ]+)?(  .*)?$/\2\3\4\6/p'
}

# The same from the manual.
options_in_manual() {
	sed -nE '/^\.Sh OPTIONS/,/^\.Sh/s/^\.It (Fl .*)/\1/p' "$TOP/man/rlock.1" |
		sed -E 's/(^| , )Fl ([a-zA-Z]) , Fl Fl/\1Fl \2 Fl Fl/g; s/ , Fl/\nFl/g' |
		sed -E 's/ Ns Op = Ns Ar (.*)/[=\1]/; s/Fl Fl /--/; s/Fl ([a-zA-Z])/-\1/; s/ (Ar|Cm)//g; s/ \| /|/g'
}

# options_of VERB...: the long names of their options, without the dashes, one a line.
options_of() {
	local verb
	for verb; do
		rlock help "$verb" | grep -oE '^ +(-., )?--[a-z-]+' | sed 's/.*--//'
	done | sort -u
}

@test "the manual has every option that help has, and no other" {
	local verb
	for verb in $(verbs); do
		options_in_help "$verb"
	done | sort -u >help
	options_in_manual | sed '/^-V --version$/d' | sort >manual
	assert [ "$(wc -l <help)" -gt 20 ]
	run -0 diff help manual
}

@test "the manual shows every verb that help has, and no other" {
	verbs | sort >help
	sed -nE '/^\.Sh SYNOPSIS/,/^\.Sh D/s/^\.Cm ([a-z]+( \| [a-z]+)*)$/\1/p; /^\.Sh COM/,/^\.Sh OPT/s/^\.Cm ([rw]lock)$/\1/p' \
		"$TOP/man/rlock.1" | sed 's/ | /\n/g' | sort >manual
	run -0 diff help manual
}

@test "rlock.conf(5) lists the options that belong to a single call, and the fuzzer knows the others" {
	local option
	for option in $(options_of run sem unlock renew status list check); do
		echo "$option = x" >conf
		run rlock check --config conf
		if [[ "$output" = *'only for the command line'* ]]; then
			echo "$option"
		else
			grep -q "^\"$option = " "$TOP/tests/fuzz/config.dict"
		fi
	done >refused
	run -0 diff refused <(sed -n '/belong to a single call/,/^An option/s/^\.Cm //p' "$TOP/man/rlock.conf.5" |
		tr -d ' .' | tr ',' '\n' | sort)
}

@test "each message that rlock(1) explains is one of the program's" {
	local part
	sed -n '/^\.Sh DIAGNOSTICS/,/^\.Sh SEE/s/^\.It //p' "$TOP/man/rlock.1" |
		sed 's/Li //g; s/Pq Ar [A-Z]*/\n/g; s/Ar [A-Z]*/\n/g; s/ , /\n/g' |
		sed 's/^[ :]*//; s/[ :]*$//' | grep ' ' >parts
	assert [ "$(wc -l <parts)" -gt 15 ]
	"$TOP/tools/messages.py" >messages
	while read -r part; do
		run -0 grep -F -- "$part" messages
	done <parts
}

# ---- examples ----

# run_examples COMMAND...: of the help that it prints, each by sh; sets printed, what each of them printed.
run_examples() {
	local line
	printed=()
	"$@" | examples >lines
	assert [ -s lines ]
	for line in deploy backup migrate restart; do
		stub "./$line.sh"
	done
	while read -r line; do
		run -0 --separate-stderr sh -c "$line"
		assert_equal "$stderr" ''
		refute_output ''
		printed+=("$output")
	done <lines
}

@test "the two examples of rlock -h do what they say" {
	run_examples rlock -h
	assert_equal "${printed[*]}" './deploy.sh  ./backup.sh '
	no_keys
	run -0 diff <(rlock -h | examples) <(rlock --help | examples)
}

@test "the three examples of help run do what they say" {
	run_examples rlock help run
	assert_equal "${printed[*]}" $'./deploy.sh  ./backup.sh  ./migrate.sh \n./restart.sh '
	# By --at-least.
	assert [ "$(redis pttl nightly)" -gt 50000 ]
	run -0 redis keys '*'
	refute_output --regexp 'web|database|deploy'
}

# ---- words ----

@test "no help has a word that the project does not use" {
	local verb
	{
		rlock -h
		rlock --help
		for verb in $(verbs); do
			rlock "$verb" -h
			rlock "$verb" --help
		done
	} >help
	run -0 "$TOP/tools/words.py" --users "$BATS_TEST_TMPDIR/help"
	assert_output ''
	echo 'Stop whoever has the lock.' >help
	run -1 "$TOP/tools/words.py" --users "$BATS_TEST_TMPDIR/help"
}
