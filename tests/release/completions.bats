#!/usr/bin/env bats
# bats file_tags=computes
# What the shells complete in a line of rlock: each of them on a terminal, with all completions put into the line. The line
# that results is read by the shell again, and so is what it quotes.

# shellcheck disable=SC2154
load ../lib/usual

setup_file() {
	local dir tools
	tools=$(type -P ask_redis)
	# The programs of other builds are one directory below.
	for dir in "${RLOCK_BIN%/*}" "${tools%/*}/.."; do
		[ ! -d "$dir/completions" ] || break
	done
	COMPLETIONS=$(realpath "$dir/completions")
	export COMPLETIONS
	start_server
}
teardown() {
	kill -CONT "$SERVER_PID"
	common_teardown
}

# ---- helpers ----

# The shells that complete, one a line.
shells() {
	printf '%s\n' bash zsh fish
}

# completions_of SHELL LINE: what the shell puts in place of the last word of LINE, one a line, sorted. The words before that
# stay as they were. A directory is without its slash.
completions_of() {
	local count
	# Up to the last blank that has no backslash.
	[[ $2 =~ ^(.*[^\\])' ' ]]
	eval "count=(${BASH_REMATCH[1]})"
	[ "$1" != fish ] || count=()
	completed "$1" "$COMPLETIONS/rlock.$1" "$2" | tail -n +$((${#count[@]} + 1)) | sed 's,/$,,' | LC_ALL=C sort
}

# completes LINE WORD...: each shell has exactly these completions.
completes() {
	local shell
	while read -r shell; do
		run -0 completions_of "$shell" "$1"
		assert_equal "$shell: $output" "$shell: $(printf '%s\n' "${@:2}" | LC_ALL=C sort)"
	done < <(shells)
}

# has LINE WORD and has_not LINE WORD: one of the completions.
has() {
	local shell
	while read -r shell; do
		run -0 completions_of "$shell" "$1"
		assert_line -- "$2"
	done < <(shells)
}
has_not() {
	local shell
	while read -r shell; do
		run -0 completions_of "$shell" "$1"
		run ! grep -Fxe "$2" <<<"$output"
	done < <(shells)
}

# completes_in_time LINE WORD...: the same once the machine was not too busy for the limit that names have.
completes_in_time() {
	local line=$1 words shell
	words=$(printf '%s\n' "${@:2}" | LC_ALL=C sort)
	while read -r shell; do
		wait_until 20 are_completions_of "$shell" "$line" "$words" || {
			completions_of "$shell" "$line"
			return 1
		}
	done < <(shells)
}
are_completions_of() {
	[ "$(completions_of "$1" "$2")" = "$3" ]
}

# hold NAME...: they are held, each by an owner of its own.
hold() {
	local name number=0
	for name; do
		rlock lock --owner "o$((number += 1))" --lease 10m --name "$name"
	done
}

verbs() {
	rlock help | sed -n '/^Verbs:/,/^$/s/^  \([a-z]*\) .*/\1/p'
}

options_in_help() {
	rlock help "$1" | sed -nE 's/^  (-.), (--[a-z-]+).*/\1\n\2/p; s/^      (--[a-z-]+).*/\1/p'
}

# ---- words that rlock knows ----

@test "verbs are completed, and those after help, too" {
	local verbs
	mapfile -t verbs < <(verbs)
	completes 'rlock ' "${verbs[@]}"
	completes 'rlock help ' "${verbs[@]}"
	completes 'rlock sta' status
	completes 'rlock w' wlock write
}

@test "each option that the help of a verb has is completed there, and no other" {
	local verb options
	while read -r verb; do
		mapfile -t options < <(options_in_help "$verb")
		[ "${#options[@]}" -gt 20 ]
		case $verb in
		unlock | renew | stop | status | list | check) ;;
		*) options+=(--) ;;
		esac
		completes "rlock $verb -" "${options[@]}"
	done < <(verbs | grep -vx -e flock -e help -e version)
}

@test "values that an option has a list of are completed" {
	completes 'rlock run --on-lost ' ignore kill term
	completes 'rlock fair --on-lost=k' --on-lost=kill
	completes 'rlock unlock --mode r' read
	completes 'rlock run --quorum ' all majority
}

@test "an option whose value is a file or a directory gets names of these" {
	mkdir 'some dir'
	touch 'some file' other
	completes 'rlock run --config so' 'some dir' 'some file'
	completes 'rlock run --config=oth' --config=other
	completes 'rlock run --cacertdir so' 'some dir'
}

@test "a value that nothing is known of gets no names" {
	hold a
	completes 'rlock run --wait ' ''
	completes 'rlock run -nw ' ''
}

# ---- the words of flock(1) ----

@test "after flock files are completed, as flock completes them itself" {
	touch lock-file
	has 'rlock flock lock-f' lock-file
	has 'rlock flock -n lock-f' lock-file
}

# ---- the command ----

@test "commands and their files are completed after --" {
	touch file
	has 'rlock run a -- sha256s' sha256sum
	has_not 'rlock run a -- sha256s' --
	completes 'rlock run a -- cat fi' file
	has 'rlock run -n --wait 5s a -- sha256s' sha256sum
	# There rlock's own words are the command's.
	has_not 'rlock run a -- cat --' --on-lost
}

@test "where bash-completion is there, it completes the command after --" {
	cat "$COMPLETIONS/rlock.bash" - >both.bash <<-'END'
		_command_offset() { COMPREPLY=("from:${COMP_WORDS[$1]}"); }
	END
	run -0 completed bash both.bash 'rlock run a:b -- git che'
	assert_line --index 5 from:git
}

# ---- names of locks ----

@test "names of locks that are held are completed" {
	not_under_valgrind 'a start there takes longer than a completion may'
	hold nightly jobs:one jobs:two
	completes_in_time 'rlock unlock ' jobs:one jobs:two nightly
	completes_in_time 'rlock status ni' nightly
	completes_in_time 'rlock run --wait 5s --no-wait ni' nightly
	completes_in_time 'rlock renew --name=ni' --name=nightly
	completes_in_time 'rlock status --name ni' nightly
	completes_in_time 'rlock status jobs:o' jobs:one
	completes_in_time 'rlock status nightly jobs:t' jobs:two
}

@test "names with any printable characters are completed and quoted" {
	local name='say "hi", it'\''s $HOME `id` \n * ; & | > #~!'
	not_under_valgrind 'a start there takes longer than a completion may'
	hold "$name" 'ümlaut' 'a:b c=d@e'
	completes_in_time 'rlock status say' "$name"
	completes_in_time "rlock status 'say" "$name"
	completes_in_time 'rlock status ü' 'ümlaut'
	completes_in_time 'rlock status a:b\ c=' 'a:b c=d@e'
}

@test "names that are not printable, or look like an option, are left out" {
	not_under_valgrind 'a start there takes longer than a completion may'
	local name
	hold x-plain
	for name in -x x$'\n'line x$'\e[31m' $'x\xff'; do
		redis hset "$name" 5e8b3cf0-8a4b-4d52-a7f9-3f0e6f0c7a11:1 1
		redis pexpire "$name" 60000
	done
	completes_in_time 'rlock status ' x-plain
	completes_in_time 'rlock status --name ' x-plain
}

@test "names are those of the servers that the line says" {
	not_under_valgrind 'a start there takes longer than a completion may'
	hold a
	redis -n 3 hset other 5e8b3cf0-8a4b-4d52-a7f9-3f0e6f0c7a11:1 1
	redis -n 3 pexpire other 60000
	completes_in_time 'rlock status --db 3 ' other
	completes_in_time "rlock status -vu 'unix://$SERVER_SOCKET?db=3' " other
	completes_in_time 'rlock status ' a
	# What that is only the shell knows.
	completes 'rlock status --db $DB ' ''
}

@test "a password command of the line is not run" {
	has_not 'rlock status --password-command "touch ran" ' ran
	refute file_exists ran
}

# in_function LINE: what the function of bash prints for it, on both streams.
in_function() {
	timeout 10 bash -c 'source "$1"; COMP_LINE=$2 COMP_POINT=${#2} COMP_WORDBREAKS=" =:"; _rlock; echo "${COMPREPLY[*]}"' \
		bash "$COMPLETIONS/rlock.bash" "$1" 2>&1
}

@test "nothing is printed when the server cannot be reached, or an option is wrong" {
	completes "rlock status -u unix://$PWD/nothing " ''
	completes 'rlock status --db x ' ''
	run -0 in_function "rlock status -u unix://$PWD/nothing "
	assert_output ''
	run -0 in_function 'rlock status --db x '
	assert_output ''
	run -0 in_function "$PWD/no/rlock status "
	assert_output ''
	run -0 in_function 'rlock nothing '
	assert_output ''
}

# ms_of COMMAND [ARG...]: prints how long it took.
ms_of() {
	local start=${EPOCHREALTIME/[.,]/}
	"$@" >/dev/null
	echo $(((${EPOCHREALTIME/[.,]/} - start) / 1000))
}

# Start and end of the shell cost the same without names.
is_quick() {
	[ -z "$(completions_of "$1" 'rlock status ')" ] || return
	(($(ms_of completions_of "$1" 'rlock status ') < $(ms_of completions_of "$1" 'rlock status --mo') + 500))
}

@test "a server that does not reply costs less than half a second" {
	local shell
	not_under_valgrind 'a start there takes longer than a completion may'
	kill -STOP "$SERVER_PID"
	while read -r shell; do
		wait_until 20 is_quick "$shell"
	done < <(shells)
}

# ---- where they are ----
