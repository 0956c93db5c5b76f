#!/usr/bin/env bats
# bats file_tags=computes
# lua/embed.sh: a script has the definitions that it uses, once each, behind those that they use, and no other. A mistake in
# names or includes is an error with file and line, and no C file is made.

load ../lib/helpers

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	mkdir -p lua/inc lua/quick
	echo '-- Nothing.' >lua/inc/nothing.lua
	cp "$BATS_TEST_DIRNAME/../../lua/embed.sh" "$BATS_TEST_DIRNAME/../../lua/expand.awk" lua
	# So that what is compared can be read.
	echo '{ print }' >lua/shorten.awk
}

# write_file FILE LINE...
write_file() {
	printf '%s\n' "${@:2}" >"lua/$1"
}

embed() { lua/embed.sh out.c; }

# embedding_fails TEXT: with that as the only line that is printed.
embedding_fails() {
	run -1 embed
	assert_output "$1"
	[ ! -e out.c ] && [ ! -e out.c.tmp ]
}

@test "a definition is in a script once, in front of the statement that uses it first, behind those that it uses" {
	write_file x.lua '-- What it does.' 'if #KEYS == 1 then' '	return lower()' 'end' '' 'local unused = 1' 'return upper()'
	write_file y.lua 'return lower()'
	write_file inc/all.lua '-- Why.' 'local function upper()' '	return middle() + lower()' 'end' '' 'local function nobody()' '	return 2' 'end' \
		'local function lower()' '	return "1"' 'end'
	write_file inc/more.lua 'local function middle()' '	-- Why.' '	return lower()' 'end'
	embed
	run -0 grep '^		"' out.c
	assert_output '		"local function lower()\n"
		"return \"1\"\n"
		"end\n"
		"if #KEYS==1 then\n"
		"return lower()\n"
		"end\n"
		"local unused=1\n"
		"local function middle()\n"
		"return lower()\n"
		"end\n"
		"local function upper()\n"
		"return middle()+lower()\n"
		"end\n"
		"return upper()",
		"local function lower()\n"
		"return \"1\"\n"
		"end\n"
		"return lower()",'
}

@test "an include stands for the statements of a file, up to where the script goes on, and one that is missing is an error" {
	write_file x.lua '-- What it does.' 'local key = KEYS[1]' '-- include: quick/most' 'return 1'
	write_file quick/most.lua '-- Why.' 'if key then' '	return 2' 'end'
	write_file y.lua '-- include: quick/frame' 'local second = 2' '-- include: quick/frame' 'return first'
	write_file quick/frame.lua 'local first = 1' '-- here: second' 'first = second'
	embed
	run -0 grep '^		"' out.c
	assert_output '		"local key=KEYS[1]\n"
		"if key then\n"
		"return 2\n"
		"end\n"
		"return 1",
		"local first=1\n"
		"local second=2\n"
		"first=second\n"
		"return first",'
	rm out.c lua/y.lua
	write_file x.lua '-- What it does.' '-- include: quick/nowhere' 'return 1'
	embedding_fails "lua/x.lua:2: cannot read include 'quick/nowhere'"
	write_file x.lua '-- include: ../x' 'return 1'
	embedding_fails "lua/x.lua:1: '../x' is no name of an include"
	write_file x.lua '-- include: quick/most' '-- include: quick/most' 'return 1'
	embedding_fails 'lua/x.lua:2: nothing to include here'
	write_file x.lua 'return 1'
	write_file inc/upper.lua '-- include: quick/most'
	embedding_fails 'lua/inc/upper.lua:1: nothing to include here'
}

# script_fails TEXT LINE...: of the script x.lua with these lines.
script_fails() {
	write_file x.lua "${@:2}"
	embedding_fails "lua/$1"
}

@test "a name that is defined twice, or by no line before it, is an error, and so is a statement among definitions" {
	write_file inc/upper.lua 'local function acquire(name)' '	local lower = name' '	return lower' 'end'
	write_file inc/zlower.lua '' 'local acquire -- Later.'
	script_fails "inc/zlower.lua:2: 'acquire' is defined in lua/inc/upper.lua:1 already" 'return 1'
	write_file inc/zlower.lua 'local lower = 1' '' 'redis.call("PING")'
	script_fails 'inc/zlower.lua:3: no definition' 'return 1'
	rm lua/inc/zlower.lua
	script_fails "x.lua:2: 'upper' is defined in lua/x.lua:1 already" 'local upper' 'local upper' 'return 1'
	script_fails "x.lua:2: no line before it defines 'cuont'" 'local count = 1' 'return cuont + 1'
	script_fails "x.lua:1: no line before it defines 'count'" 'local count = count'
	script_fails "x.lua:1: no line before it defines 'count'" 'count = 1'
	script_fails "x.lua:2: no line before it defines 'count'" 'local function f(count) return count end' 'return f(1) + count'
}

@test "all kinds of awk make the same of rlock's scripts" {
	local awk kinds=0 here=$BATS_TEST_DIRNAME/../../lua
	"$here/embed.sh" all.c
	for awk in mawk gawk original-awk busybox; do
		[ -n "$(type -P "$awk")" ] || continue
		mkdir "bin_$awk"
		ln -s "$(type -P "$awk")" "bin_$awk/awk"
		PATH=$PWD/bin_$awk:$PATH "$here/embed.sh" "$awk.c"
		cmp all.c "$awk.c"
		kinds=$((kinds + 1))
	done
	((kinds)) || skip 'awk is of none of these kinds'
}

# uncalled SCRIPT: prints the functions of its body that it names once only, where it defines them.
uncalled() {
	awk -f "$LUA/expand.awk" "$1" "$LUA"/inc/*.lua | awk '
		/^local function / {
			line = $0
			sub(/^local function /, "", line)
			sub(/\(.*/, "", line)
			functions[line]
		}
		{
			gsub(/[^A-Za-z0-9_]+/, " ")
			for (i = 1; i <= NF; i++)
				count[$i]++
		}
		END {
			for (name in functions)
				if (count[name] == 1)
					print name
		}'
}

@test "no script carries a function that it does not call" {
	LUA=$BATS_TEST_DIRNAME/../../lua
	write_file x.lua 'local function used() return 1 end' 'local function unused() return 1 end' 'return used()'
	run -0 uncalled lua/x.lua
	assert_output unused
	for script in "$LUA"/*.lua; do
		run -0 uncalled "$script"
		assert_output ''
	done
}

# head_of SCRIPT: what its head has, in order.
head_of() {
	sed -n '/^--/!q; s/^-- \(Redisson\|KEYS\|ARGV\|Returns\)\(\[[0-9]*+*\]\)*  *[^ ].*/\1/p' "$1" | uniq | xargs
}

@test "the head of each script says what corresponds to it in Redisson, its keys, arguments and replies" {
	local script
	for script in "$BATS_TEST_DIRNAME"/../../lua/*.lua; do
		assert_equal "$script: $(head_of "$script")" "$script: Redisson KEYS ARGV Returns"
	done
}

# Older servers name the line of a command that was denied, and not the command.
@test "a line that can raise an error has one command" {
	local script
	for script in "$BATS_TEST_DIRNAME"/../../lua/*.lua "$BATS_TEST_DIRNAME"/../../lua/*/*.lua; do
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
		}' "$script"
		assert_output ''
	done
}

@test "a script that is shortened has short names for its functions and constants, but in strings, for fields and for keys" {
	cat >long <<-'END'
		local function reply(key)
		return redis.call('reply',key,t.reply)
		end
		local function kept() return 1 end
		local function quoted() return 1 end
		local t={kept=1}
		local LEAST_MS='LEAST_MS'
		local MOST=1
		return reply(t.kept)..kept()..LEAST_MS..t.LEAST_MS
		return "it's"..quoted()..MOST
	END
	cat >expected <<-'END'
		local rcall,rpcall=redis.call,redis.pcall
		local function _1(key)
		return rcall('reply',key,t.reply)
		end
		local function kept() return 1 end
		local function quoted() return 1 end
		local t={kept=1}
		local _4='LEAST_MS'
		local MOST=1
		return _1(t.kept)..kept().._4..t.LEAST_MS
		return "it's"..quoted()..MOST
	END
	awk -f "$BATS_TEST_DIRNAME/../../lua/shorten.awk" long >short
	run -0 diff expected short
}

# A server that had stalled reads the first 16 kB of a closed connection: the last try, and what undoes it.
@test "each script that leaves a queue leaves room for two requests in 16 kB" {
	local script body
	for script in "$BATS_TEST_DIRNAME"/../../lua/*_leave.lua; do
		body=$(awk -f "${script%/*}/expand.awk" "$script" "${script%/*}"/inc/*.lua | awk -f "${script%/*}/shorten.awk")
		assert [ "${#body}" -gt 5000 ]
		assert [ "${#body}" -lt 14500 ]
	done
}
