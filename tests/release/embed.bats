#!/usr/bin/env bats
# bats file_tags=computes
# What lua/embed.sh makes of rlock's scripts; and what each of them has to keep to.

load ../lib/helpers

setup() {
	LUA=$(realpath "$BATS_TEST_DIRNAME/../../lua")
	cd "$BATS_TEST_TMPDIR" || return
}

@test "a name that no line before it defines is an error, and no C file is made" {
	mkdir -p lua/inc
	cp "$LUA"/*.sh "$LUA"/*.awk lua
	printf 'local count = 1\nreturn cuont + 1\n' >lua/x.lua
	touch lua/inc/all.lua
	run -1 lua/embed.sh out.c
	assert_output "lua/x.lua:2: no line before it defines 'cuont'"
	assert [ ! -e out.c ]
}

@test "all kinds of awk make the same of rlock's scripts" {
	local awk
	"$LUA/embed.sh" all.c
	for awk in mawk gawk original-awk busybox; do
		[ -n "$(type -P "$awk")" ] || continue
		mkdir "bin_$awk"
		ln -s "$(type -P "$awk")" "bin_$awk/awk"
		PATH=$PWD/bin_$awk:$PATH "$LUA/embed.sh" "$awk.c"
		cmp all.c "$awk.c"
	done
}

# Older servers name the line of a command that was denied, and not the command.
@test "a line that can raise an error has one command" {
	run -0 awk '/redis[.]call\(/ {
		line = $0
		split("", commands)
		count = 0
		while (match(line, /call\(.[A-Z]+/)) {
			count += !(substr(line, RSTART, RLENGTH) in commands)
			commands[substr(line, RSTART, RLENGTH)]
			line = substr(line, RSTART + RLENGTH)
		}
		if (count > 1)
			print FILENAME ":" FNR ": " $0
	}' "$LUA"/*.lua "$LUA"/*/*.lua
	assert_output ''
}

LEAVE_BYTES_MAX=14500

# A server that had stalled reads the first 16 kB of a closed connection: the last try, and what undoes it.
@test "each script that leaves a queue leaves room for two requests in 16 kB" {
	local script body
	for script in "$LUA"/*_leave.lua; do
		body=$(awk -f "$LUA/expand.awk" "$script" "$LUA"/inc/*.lua | awk -f "$LUA/shorten.awk")
		assert [ "${#body}" -gt 5000 ]
		[ "${#body}" -lt "$LEAVE_BYTES_MAX" ] ||
			fail "${script##*/} has ${#body} bytes, and $LEAVE_BYTES_MAX is the limit for a script that leaves a queue"
	done
}
