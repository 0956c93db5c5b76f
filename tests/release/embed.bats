#!/usr/bin/env bats
# bats file_tags=computes
# lua/embed.sh, which puts the Lua scripts into the program; and the rules that each script must follow.

load ../lib/helpers

setup() {
	LUA=$(realpath "$BATS_TEST_DIRNAME/../../lua")
	cd "$BATS_TEST_TMPDIR" || return
}

# Copy the programs of lua/ without its scripts, so that tests can write scripts of their own there.
copy_build() {
	mkdir -p lua/inc
	cp "$LUA"/*.sh "$LUA"/*.awk lua
}

@test "a missing include is an error, and no C file is made" {
	copy_build
	printf 'local count = 1\n-- include: none\nreturn count\n' >lua/x.lua
	touch lua/inc/all.lua
	run -1 lua/embed.sh out.c
	assert_output "lua/x.lua:2: cannot read lua/inc/none.lua"
	assert [ ! -e out.c ]
}

@test "a script has each included file once, and once more after an indented block that has included it" {
	copy_build
	printf 'if x then\n\t-- include: b\nend\n-- include: b\n-- include: a\nreturn\n' >lua/x.lua
	echo 'local a' >lua/inc/a.lua
	printf -- '-- include: a\nlocal b\n' >lua/inc/b.lua
	run -0 awk -f lua/expand.awk lua/x.lua
	assert_output 'if x then
local a
local b
end
local a
local b
return'
}

@test "every awk produces the same scripts" {
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

@test "a server compiles each script: none has more than 200 local variables in one scope" {
	local script
	start_server
	for script in "$LUA"/*.lua; do
		run -0 redis-cli -s "$SERVER_SOCKET" -x script load < <(awk -f "$LUA/expand.awk" "$script")
		assert_output --regexp '^[0-9a-f]{40}$'
	done
}

# Older servers report only the line of a denied command, and rlock finds the command in that line.
@test "a line of a script that can raise an error has one command" {
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
