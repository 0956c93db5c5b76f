#!/usr/bin/env bats
# bats file_tags=computes
# lua/embed.sh: a script has the definitions that it uses, once each, behind those that they use, and no other; and what each of
# rlock's scripts has to keep to. A mistake in names or includes is an error with file and line, and no C file is made.

load ../lib/helpers

setup() {
	LUA=$(realpath "$BATS_TEST_DIRNAME/../../lua")
	cd "$BATS_TEST_TMPDIR" || return
	mkdir -p lua/inc lua/quick
	cp "$LUA/embed.sh" "$LUA/expand.awk" lua
	# So that what is compared can be read.
	echo '{ print }' >lua/shorten.awk
	printf '%s\n' '-- Why.' 'local function upper()' '	return lower()' 'end' '' 'local function nobody()' '	return 2' 'end' \
		'local function lower()' '	return "1"' 'end' >lua/inc/all.lua
	printf '%s\n' '-- Why.' 'if key then' '	return 2' 'end' >lua/quick/most.lua
}

@test "a definition is in a script once, in front of the statement that uses it, and an include stands for statements" {
	printf '%s\n' '-- What it does.' 'local key = KEYS[1]' '-- include: quick/most' '' 'return upper() + lower()' >lua/x.lua
	lua/embed.sh out.c
	run -0 grep '^		"' out.c
	assert_output '		"local key=KEYS[1]\n"
		"if key then\n"
		"return 2\n"
		"end\n"
		"local function lower()\n"
		"return \"1\"\n"
		"end\n"
		"local function upper()\n"
		"return lower()\n"
		"end\n"
		"return upper()+lower()",'
}

@test "a name that is defined twice, or by no line before it, is an error, and so is an include that is not there" {
	local line error
	while IFS='|' read -r error line; do
		printf '%b\n' "$line" >lua/x.lua
		run -1 lua/embed.sh out.c
		assert_output "lua/x.lua:$error"
		[ ! -e out.c ] && [ ! -e out.c.tmp ]
	done <<-'END'
		2: 'upper' is defined in lua/x.lua:1 already|local upper\nlocal upper\nreturn 1
		2: no line before it defines 'cuont'|local count = 1\nreturn cuont + 1
		1: no line before it defines 'count'|local count = count
		2: no line before it defines 'count'|local function f(count) return count end\nreturn f(1) + count
		1: cannot read include 'quick/nowhere'|-- include: quick/nowhere\nreturn 1
		1: '../x' is no name of an include|-- include: ../x\nreturn 1
	END
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

# whole SCRIPT: prints it with what it includes and uses.
whole() {
	awk -f "$LUA/expand.awk" "$1" "$LUA"/inc/*.lua
}

@test "each script has a head that says what it corresponds to, takes and returns, and carries no function that it does not call" {
	local script name
	for script in "$LUA"/*.lua; do
		assert_equal "$script: $(sed -n '/^--/!q; s/^-- \(Redisson\|KEYS\|ARGV\|Returns\)\(\[[0-9]*+*\]\)*  *[^ ].*/\1/p' "$script" | uniq | xargs)" \
			"$script: Redisson KEYS ARGV Returns"
		whole "$script" >text
		while read -r name; do
			[ "$(grep -ow "$name" text | wc -l)" -gt 1 ] || fail "$script: $name"
		done < <(sed -n 's/^local function \([a-z_]*\)(.*/\1/p' text)
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

# A server that had stalled reads the first 16 kB of a closed connection: the last try, and what undoes it.
@test "each script that leaves a queue leaves room for two requests in 16 kB" {
	local script body
	for script in "$LUA"/*_leave.lua; do
		body=$(whole "$script" | awk -f "$LUA/shorten.awk")
		assert [ "${#body}" -gt 5000 ]
		assert [ "${#body}" -lt 14500 ]
	done
}
