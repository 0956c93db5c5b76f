# Writes the body of a script as it is sent: a line "-- include: NAME" is replaced by inc/NAME.lua, the first time in a
# script only; blank lines, comments, and blanks around "," and "=" are left out. A file includes all that it uses, so
# an include comes after those that it needs. How a body becomes C is embed.sh's business.
#
#   awk -f expand.awk INC_FOLDER SCRIPT

function fail(file, number, text) {
	print file ":" number ": " text >"/dev/stderr"
	exit 1
}

# Two includes may define the same name without an error of Lua, and the second would hide the first from there on.
function check_names(line, file, number,    count, i, names) {
	sub(/^local +(function +)?/, "", line)
	sub(/[^A-Za-z0-9_, ].*/, "", line)
	count = split(line, names, /[ ,]+/)
	for (i = 1; i <= count; i++) {
		if (names[i] == "")
			continue
		if (names[i] in defined)
			fail(file, number, "'" names[i] "' is defined in " defined[names[i]] " already")
		defined[names[i]] = file ":" number
	}
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
		print squeezed(line)
	}
	close(file)
	return got
}

BEGIN {
	folder = ARGV[1]
	if (expand(ARGV[2], " ") < 0)
		fail(ARGV[2], 1, "cannot read it")
	exit
}
