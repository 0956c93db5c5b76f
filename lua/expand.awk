# Writes the body of a script as it is sent: a line "-- include: NAME" is replaced by inc/NAME.lua, the first time in a
# script only; blank lines, comments, and blanks around "," and "=" are left out. A file includes all that it uses, so
# an include comes after those that it needs. How a body becomes C is embed.sh's business.
#
#   awk -f expand.awk INC_FOLDER SCRIPT

function fail(file, number, text) {
	print file ":" number ": " text >"/dev/stderr"
	exit 1
}

# Sets names to those that a line with "local" defines, and returns how many they are; one of them may be empty.
function split_local(line, names) {
	sub(/^local +(function +)?/, "", line)
	sub(/[^A-Za-z0-9_, ].*/, "", line)
	return split(line, names, /[ ,]+/)
}

# Two includes may define the same name without an error of Lua, and the second would hide the first from there on.
function check_names(line, file, number,    count, i, names) {
	count = split_local(line, names)
	for (i = 1; i <= count; i++) {
		if (names[i] == "")
			continue
		if (names[i] in defined)
			fail(file, number, "'" names[i] "' is defined in " defined[names[i]] " already")
		defined[names[i]] = file ":" number
	}
}

# Adds to known what the line defines, within a function or not: parameters, and the names of a loop.
function learn_parameters(line,    part, names, count, i) {
	while (match(line, /function *[A-Za-z0-9_]*\([^)]*\)|(^| )for [A-Za-z0-9_, ]+( in |=)/)) {
		part = substr(line, RSTART, RLENGTH)
		line = substr(line, RSTART + RLENGTH)
		sub(/ in $/, "", part)
		gsub(/[^A-Za-z0-9_]+/, " ", part)
		count = split(part, names, " ")
		for (i = 1; i <= count; i++)
			known[names[i]] = 1
	}
}

function without_strings(line) {
	gsub(/'[^']*'/, "''", line)
	gsub(/"(\\.|[^"\\])*"/, "\"\"", line)
	return line
}

# How many more braces it opens than it closes.
function opened(text) {
	return gsub(/[{]/, "", text) - gsub(/[}]/, "", text)
}

# A name that is not known would be nil when the script runs. No field of a table, after a dot, is looked up; nor is its
# key where a table is made, before a "=" between braces.
function check_uses(line, file, number,    before, name) {
	while (match(line, /[A-Za-z_][A-Za-z0-9_]*/)) {
		before = substr(line, 1, RSTART - 1)
		name = substr(line, RSTART, RLENGTH)
		line = substr(line, RSTART + RLENGTH)
		braces += opened(before)
		if (!(name in known) && before !~ /(^|[^.])[.]$|[:0-9]$/ && !(braces > 0 && line ~ /^ *=[^=]/))
			fail(file, number, "no line before it defines '" name "'")
	}
	braces += opened(line)
}

# In the order of Lua: what a local is set to is looked up before there is that local.
function check_line(line, file, number,    names, count, i) {
	line = without_strings(line)
	learn_parameters(line)
	count = line ~ /^local / ? split_local(line, names) : 0
	sub(/^local [A-Za-z0-9_, ]+/, "", line)
	check_uses(line, file, number)
	for (i = 1; i <= count; i++)
		known[names[i]] = 1
}

function include(line, file, number, parents,    name, path) {
	name = line
	sub(/^-- include: */, "", name)
	if (name !~ /^[a-z_]+$/)
		fail(file, number, "'" name "' is no name of an include")
	if (index(parents, " " name " "))
		fail(file, number, "circle of includes:" parents name)
	if (name in included)
		return
	included[name] = 1
	path = folder "/" name ".lua"
	if (expand(path, parents name " ") < 0)
		fail(file, number, "cannot read include '" name "'")
}

# A script that leaves a queue must not be long, see inc/queue_join.lua. Not within strings: every
# second part between quotes is one.
function squeezed(line,    parts, count, i, result) {
	if (line ~ /"/)
		return line
	count = split(line, parts, "'")
	for (i = 1; i <= count; i++) {
		if (i % 2) {
			gsub(/ = /, "=", parts[i])
			gsub(/, /, ",", parts[i])
		}
		result = result (i > 1 ? "'" : "") parts[i]
	}
	return result
}

# parents: the includes that this file is in, each between blanks. Below 0 when it can't be read.
function expand(file, parents,    line, number, got) {
	while ((got = (getline line < file)) > 0) {
		number++
		if (line ~ /^-- include:/)
			include(line, file, number, parents)
		if (line ~ /^local /)
			check_names(line, file, number)
		if (line ~ /^[ \t]*(--|$)/)
			continue
		sub(/[ \t]+-- .*$/, "", line)
		sub(/^[ \t]+/, "", line)
		line = squeezed(line)
		check_line(line, file, number)
		print line
	}
	close(file)
	return got
}

BEGIN {
	split("and break do else elseif end false for function if in local nil not or repeat return then true until while " \
		"ARGV KEYS redis ipairs math next pairs pcall string table tonumber tostring type unpack", words, " ")
	for (i in words)
		known[words[i]] = 1
	folder = ARGV[1]
	if (expand(ARGV[2], " ") < 0)
		fail(ARGV[2], 1, "cannot read it")
	exit
}
