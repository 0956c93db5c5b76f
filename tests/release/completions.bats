#!/usr/bin/env bats
# bats file_tags=computes
# The completions of bash, zsh and fish. Each shell runs on a terminal and inserts all completions into its line. The shell then
# reads that line, so that wrong quotes are noticed.

load ../lib/usual
load ../lib/documenting

setup_file() {
	local dir tools
	tools=$(type -P ask_redis)
	# Under valgrind or a sanitizer the programs are one directory further down.
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

# completions_of SHELL LINE: print the words that the shell offers for the last word of LINE, sorted, one a line. Fail if it
# changes the words before. Directories are printed without their slash.
completions_of() {
	local count
	# Count the words before the last one, since complete_line prints those first. The last word begins after the last blank
	# without a backslash.
	[[ $2 =~ ^(.*[^\\])' ' ]]
	eval "count=(${BASH_REMATCH[1]})"
	[ "$1" != fish ] || count=()
	complete_line "$1" "$COMPLETIONS/rlock.$1" "$2" | tail -n +$((${#count[@]} + 1)) | sed 's,/$,,' | LC_ALL=C sort
}

# completes LINE WORD...: check that each shell offers exactly these words. Retry, since on a busy machine the names can exceed
# their time limit.
completes() {
	local shell words
	words=$(printf '%s\n' "${@:2}" | LC_ALL=C sort)
	for shell in bash zsh fish; do
		wait_until 20 are_completions_of "$shell" "$1" "$words" || fail "$shell: $(completions_of "$shell" "$1")"
	done
}
are_completions_of() {
	[ "$(completions_of "$1" "$2")" = "$3" ]
}

# hold NAME...: lock each name for an owner of its own.
hold() {
	local name number=0
	not_under_valgrind 'rlock starts more slowly than a completion may take'
	for name; do
		rlock lock --owner "o$((number += 1))" --lease 10m --name "$name"
	done
}

@test "the shells complete verbs, and exactly the options that the help of a verb lists" {
	local verb options
	# shellcheck disable=SC2046
	completes 'rlock help ' flock help version $(verbs)
	completes 'rlock sta' status
	for verb in $(verbs); do
		mapfile -t options < <(rlock help "$verb" | sed -nE 's/^  (-.), (--[a-z-]+).*/\1\n\2/p; s/^      (--[a-z-]+).*/\1/p')
		[ "${#options[@]}" -gt 20 ]
		case $verb in
		unlock | renew | stop | status | list | check) ;;
		*) options+=(--) ;;
		esac
		completes "rlock $verb -" "${options[@]}"
	done
}

# complete: read lines "LINE|WORD|...", and check that each shell completes LINE by these words.
complete() {
	local words
	while IFS='|' read -ra words <&4; do
		completes "${words[0]}" "${words[@]:1}"
	done 4<&0
}

@test "the shells complete values of options, the command and its files, and offer nothing where no word is known" {
	local shell
	mkdir 'some dir'
	touch 'some file' other
	hold a
	complete <<-'END'
		rlock run --on-lost |ignore|kill|term
		rlock fair --on-lost=k|--on-lost=kill
		rlock run --config so|some dir|some file
		rlock run --config=oth|--config=other
		rlock run --cacertdir so|some dir
		rlock run --wait |
		rlock run -nw |
		rlock flock -n oth|other
		rlock run a -- cat oth|other
		rlock run -n --wait 5s a -- sha256su|sha256sum
	END
	# After COMMAND the shells do not offer rlock's options: words there belong to COMMAND.
	for shell in bash zsh fish; do
		assert_equal "$(completions_of "$shell" 'rlock run a -- cat --' | grep -c on-lost)" 0
	done
	# Simulate bash-completion: if its _command_offset exists, it completes the words of COMMAND.
	cat "$COMPLETIONS/rlock.bash" - >both.bash <<-'END'
		_command_offset() { COMPREPLY=("from:${COMP_WORDS[$1]}"); }
	END
	run -0 complete_line bash both.bash 'rlock run a:b -- git che'
	assert_line --index 5 from:git
}

@test "the shells complete and quote names of held locks, but not names that are unprintable or look like an option" {
	local other name='say "hi", it'\''s $HOME `id` \n * ; & | > #~!'
	hold x-plain "$name" nightly jobs:one jobs:two 'ümlaut' 'a:b c=d@e'
	for other in -x x$'\n'line x$'\e[31m' $'x\xff'; do
		redis hset "$other" 5e8b3cf0-8a4b-4d52-a7f9-3f0e6f0c7a11:1 1
		redis pexpire "$other" 60000
	done
	completes 'rlock unlock ' x-plain "$name" nightly jobs:one jobs:two 'ümlaut' 'a:b c=d@e'
	completes 'rlock status say' "$name"
	completes "rlock status 'say" "$name"
	complete <<-'END'
		rlock run --wait 5s --no-wait ni|nightly
		rlock renew --name=ni|--name=nightly
		rlock status --name x|x-plain
		rlock status nightly jobs:t|jobs:two
		rlock status ü|ümlaut
		rlock status a:b\ c=|a:b c=d@e
	END
}

@test "the shells complete names from the servers that a command line names, and run none of its words" {
	local shell
	hold a
	redis -n 3 hset other 5e8b3cf0-8a4b-4d52-a7f9-3f0e6f0c7a11:1 1
	redis -n 3 pexpire other 60000
	# The shell has not expanded $DB here, so no name must be offered.
	complete <<-END
		rlock status --db 3 |other
		rlock status -vu 'unix://$SERVER_SOCKET?db=3' |other
		rlock status --db \$DB |
	END
	for shell in bash zsh fish; do
		assert_equal "$(completions_of "$shell" 'rlock status --password-command "touch ran" ' | grep -c '^ran')" 0
	done
	refute file_exists ran
}

# ms_of SHELL LINE: print how many milliseconds the completion took.
ms_of() {
	local start=${EPOCHREALTIME/[.,]/}
	completions_of "$1" "$2" >/dev/null
	echo $(((${EPOCHREALTIME/[.,]/} - start) / 1000))
}

# is_quick SHELL: whether the search for names delays a completion by less than 500 ms. Compare with the completion of --mo, which
# needs no names.
is_quick() {
	[ -z "$(completions_of "$1" 'rlock status ')" ] || return
	(($(ms_of "$1" 'rlock status ') < $(ms_of "$1" 'rlock status --mo') + 500))
}

@test "a server that is down or does not reply delays a completion by less than half a second, without a message" {
	local shell line
	not_under_valgrind 'rlock starts more slowly than a completion may take'
	for line in "rlock status -u unix://$PWD/nothing " 'rlock status --db x ' "$PWD/no/rlock status " 'rlock nothing '; do
		run -0 timeout 10 bash -c 'source "$1"; COMP_LINE=$2 COMP_POINT=${#2} COMP_WORDBREAKS=" =:"; _rlock; echo "${COMPREPLY[*]}"' \
			bash "$COMPLETIONS/rlock.bash" "$line"
		assert_output ''
	done
	kill -STOP "$SERVER_PID"
	for shell in bash zsh fish; do
		wait_until 20 is_quick "$shell"
	done
}
