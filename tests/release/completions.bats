#!/usr/bin/env bats
# bats file_tags=computes
# What the shells complete in a line of rlock: each of them on a terminal, with all completions put into the line. The line
# that results is read by the shell again, and so is what it quotes.

load ../lib/usual
load ../lib/documenting

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

# completes LINE WORD...: each shell has exactly these completions, once the machine was not too busy for the limit that names have.
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

# has LINE WORD, and has_not LINE WORD: it is one of the completions.
has() {
	local shell
	for shell in bash zsh fish; do
		completions_of "$shell" "$1" | grep -Fxe "$2"
	done
}
has_not() {
	local shell
	for shell in bash zsh fish; do
		! completions_of "$shell" "$1" | grep -Fxe "$2" || fail "$shell"
	done
}

# hold NAME...: they are held, each by an owner of its own.
hold() {
	local name number=0
	not_under_valgrind 'a start there takes longer than a completion may'
	for name; do
		rlock lock --owner "o$((number += 1))" --lease 10m --name "$name"
	done
}

# ---- words that rlock knows ----

@test "verbs are completed, each option that the help of a verb has, and no other" {
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

@test "values of options are completed: words of a list, files and directories, and nothing where nothing is known" {
	mkdir 'some dir'
	touch 'some file' other
	hold a
	completes 'rlock run --on-lost ' ignore kill term
	completes 'rlock fair --on-lost=k' --on-lost=kill
	completes 'rlock run --config so' 'some dir' 'some file'
	completes 'rlock run --config=oth' --config=other
	completes 'rlock run --cacertdir so' 'some dir'
	completes 'rlock run --wait ' ''
	completes 'rlock run -nw ' ''
	has 'rlock flock -n oth' other
}

# ---- the command ----

@test "commands and their files are completed after --, by bash-completion where it is there" {
	touch file
	has 'rlock run -n --wait 5s a -- sha256s' sha256sum
	completes 'rlock run a -- cat fi' file
	# There rlock's own words are the command's.
	has_not 'rlock run a -- cat --' --on-lost
	cat "$COMPLETIONS/rlock.bash" - >both.bash <<-'END'
		_command_offset() { COMPREPLY=("from:${COMP_WORDS[$1]}"); }
	END
	run -0 completed bash both.bash 'rlock run a:b -- git che'
	assert_line --index 5 from:git
}

# ---- names of locks ----

@test "names of locks that are held are completed, with any printable characters, and quoted" {
	local name='say "hi", it'\''s $HOME `id` \n * ; & | > #~!'
	hold "$name" nightly jobs:one jobs:two 'ümlaut' 'a:b c=d@e'
	completes 'rlock unlock ' "$name" nightly jobs:one jobs:two 'ümlaut' 'a:b c=d@e'
	completes 'rlock run --wait 5s --no-wait ni' nightly
	completes 'rlock renew --name=ni' --name=nightly
	completes 'rlock status nightly jobs:t' jobs:two
	completes 'rlock status say' "$name"
	completes "rlock status 'say" "$name"
	completes 'rlock status ü' 'ümlaut'
	completes 'rlock status a:b\ c=' 'a:b c=d@e'
}

@test "names that are not printable, or look like an option, are left out" {
	local name
	hold x-plain
	for name in -x x$'\n'line x$'\e[31m' $'x\xff'; do
		redis hset "$name" 5e8b3cf0-8a4b-4d52-a7f9-3f0e6f0c7a11:1 1
		redis pexpire "$name" 60000
	done
	completes 'rlock status ' x-plain
	completes 'rlock status --name ' x-plain
}

@test "names are those of the servers that the line says; of its words nothing is run" {
	hold a
	redis -n 3 hset other 5e8b3cf0-8a4b-4d52-a7f9-3f0e6f0c7a11:1 1
	redis -n 3 pexpire other 60000
	completes 'rlock status --db 3 ' other
	completes "rlock status -vu 'unix://$SERVER_SOCKET?db=3' " other
	# What that is only the shell knows.
	completes 'rlock status --db $DB ' ''
	has_not 'rlock status --password-command "touch ran" ' ran
	refute file_exists ran
}

# ms_of SHELL LINE: prints how long it took.
ms_of() {
	local start=${EPOCHREALTIME/[.,]/}
	completions_of "$1" "$2" >/dev/null
	echo $(((${EPOCHREALTIME/[.,]/} - start) / 1000))
}

# Start and end of the shell cost the same without names.
is_quick() {
	[ -z "$(completions_of "$1" 'rlock status ')" ] || return
	(($(ms_of "$1" 'rlock status ') < $(ms_of "$1" 'rlock status --mo') + 500))
}

@test "a server that cannot be reached, or does not reply, costs no message, and less than half a second" {
	local shell line
	not_under_valgrind 'a start there takes longer than a completion may'
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
