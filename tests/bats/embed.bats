#!/usr/bin/env bats
# bats file_tags=computes
# lua/embed.sh: a script has each include once, after those that it needs, and no function that it does not call. A
# mistake in its includes or names is an error with file and line, and no C file is made.

load ../lib/helpers

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	mkdir -p lua/inc
	cp "$BATS_TEST_DIRNAME/../../lua/embed.sh" "$BATS_TEST_DIRNAME/../../lua/expand.awk" lua
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

@test "an include is in a script once, after those that it includes" {
	write_file x.lua '-- What it does.' '-- include: upper' '-- include: lower' '' 'return upper()'
	write_file y.lua '-- include: lower' 'return lower()'
	write_file inc/upper.lua '-- include: middle' '-- include: lower' 'local function upper()' '	return middle() + lower()' 'end'
	write_file inc/middle.lua '-- include: lower' 'local function middle()' '	-- Why.' '	return lower()' 'end'
	write_file inc/lower.lua 'local function lower()' '	return "1"' 'end'
	embed
	run -0 grep '^		"' out.c
	assert_output '		"local function lower()\n"
		"return \"1\"\n"
		"end\n"
		"local function middle()\n"
		"return lower()\n"
		"end\n"
		"local function upper()\n"
		"return middle() + lower()\n"
		"end\n"
		"return upper()",
		"local function lower()\n"
		"return \"1\"\n"
		"end\n"
		"return lower()",'
}

@test "an include that is missing is an error, in a script and in another include" {
	write_file x.lua '-- What it does.' '-- include: nowhere' 'return 1'
	embedding_fails "lua/x.lua:2: cannot read include 'nowhere'"
	write_file x.lua '-- include: upper' 'return 1'
	write_file inc/upper.lua '' '' '-- include: nowhere'
	embedding_fails "lua/inc/upper.lua:3: cannot read include 'nowhere'"
	write_file x.lua '-- include: ../x' 'return 1'
	embedding_fails "lua/x.lua:1: '../x' is no name of an include"
}

@test "includes that include each other are an error" {
	write_file x.lua '-- include: upper' 'return 1'
	write_file inc/upper.lua '-- include: lower'
	write_file inc/lower.lua '-- Why.' '-- include: upper'
	embedding_fails "lua/inc/lower.lua:2: circle of includes: upper lower upper"
	write_file inc/upper.lua '-- include: upper'
	embedding_fails "lua/inc/upper.lua:1: circle of includes: upper upper"
}

@test "a name that is defined twice in one script is an error" {
	write_file x.lua '-- include: upper' '-- include: lower' 'return 1'
	write_file inc/upper.lua 'local function acquire(name)' '	local lower = name' '	return lower' 'end'
	write_file inc/lower.lua 'local function acquire()' 'end'
	embedding_fails "lua/inc/lower.lua:1: 'acquire' is defined in lua/inc/upper.lua:1 already"
	write_file inc/lower.lua 'local first, acquire = 1, 2'
	embedding_fails "lua/inc/lower.lua:1: 'acquire' is defined in lua/inc/upper.lua:1 already"
	write_file inc/lower.lua '' 'local acquire -- Later.'
	embedding_fails "lua/inc/lower.lua:2: 'acquire' is defined in lua/inc/upper.lua:1 already"
	write_file inc/lower.lua 'local lower = acquire'
	write_file x.lua '-- include: upper' '-- include: lower' 'local lower' 'return 1'
	embedding_fails "lua/x.lua:3: 'lower' is defined in lua/inc/lower.lua:1 already"
}

@test "a name that no line before it defines is an error" {
	write_file x.lua 'local function acquire(name)' '	return release(name)' 'end' 'local function release() return 1 end' 'return acquire()'
	embedding_fails "lua/x.lua:2: no line before it defines 'release'"
	write_file x.lua 'local count = 1' 'return cuont + 1'
	embedding_fails "lua/x.lua:2: no line before it defines 'cuont'"
	write_file x.lua 'local count = count'
	embedding_fails "lua/x.lua:1: no line before it defines 'count'"
	write_file x.lua 'count = 1'
	embedding_fails "lua/x.lua:1: no line before it defines 'count'"
	write_file x.lua 'return "text" .. count'
	embedding_fails "lua/x.lua:1: no line before it defines 'count'"
	write_file x.lua '-- include: upper' 'local FIXED_ARGS = 2'
	write_file inc/upper.lua '' 'local first = ARGV[FIXED_ARGS + 1]'
	embedding_fails "lua/inc/upper.lua:2: no line before it defines 'FIXED_ARGS'"
}

@test "fields, keys of a table, parameters, names of a loop and words in quotes need no definition" {
	write_file x.lua 'local lock = { name = KEYS[1], holds = {' '	count = 1, note = "it is held" } }' \
		'local function each(first, second, ...)' '	for index, key in ipairs(first) do' '		second(index, key, ...)' '	end' 'end' \
		'for i = 1, 2 do' '	each({ i }, function(at, of) return at .. of end)' 'end' \
		'lock.expires, lock.holds.note = 0x1F, lock.name:upper()' "return redis.call('GET', lock.name)"
	embed
}

@test "two scripts may define the same name" {
	write_file x.lua '-- include: upper' 'return acquire()'
	write_file y.lua '-- include: lower' 'return acquire()'
	write_file inc/upper.lua 'local function acquire() return 1 end'
	write_file inc/lower.lua 'local function acquire() return 2 end'
	embed
	[ "$(grep -c 'local function acquire' out.c)" -eq 2 ]
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
	awk -f "$LUA/expand.awk" "$LUA/inc" "$1" | awk '
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
