# Writes the body of a script as it is sent: a definition of inc/ that the script uses stands in front of the first of its
# statements that does, those that it uses itself before it, and no other is sent. So the common case of a script, which
# stands first, needs no more than it uses. A line "-- include: NAME" is replaced by the statements of NAME.lua. Blank
# lines, comments and most other blanks are left out. How a body becomes C is embed.sh's business.
#
#   awk -f expand.awk SCRIPT INC_FILE...
#
# A definition begins with "local" in the first column, and goes on to the next one or to a blank line: statements that
# complete it may follow. In a script, each statement that begins in the first column is a piece of its own. Where a
# script defines a name that inc/ has, too, it is the script's that is meant.

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

function without_strings(line) {
	gsub(/'[^']*'/, "''", line)
	gsub(/"(\\.|[^"\\])*"/, "\"\"", line)
	return line
}

# Without the blanks around operators; "1 .. x" and "x - -1" need them.
function tight(text, operators,    result, around) {
	while (match(text, " (" operators ") ")) {
		around = substr(result substr(text, 1, RSTART - 1), length(result) + RSTART - 1, 1) substr(text, RSTART + RLENGTH, 1)
		if (around ~ /^[0-9]|-$/)
			result = result substr(text, 1, RSTART + RLENGTH - 1)
		else
			result = result substr(text, 1, RSTART - 1) substr(text, RSTART + 1, RLENGTH - 2)
		text = substr(text, RSTART + RLENGTH)
	}
	return result text
}

# A script that leaves a queue must not be long, see inc/queue.lua. Not within strings: every second part between quotes
# is one.
function squeezed(line,    parts, count, i, result) {
	if (line ~ /"/)
		return line
	count = split(line, parts, "'")
	for (i = 1; i <= count; i++) {
		if (i % 2) {
			parts[i] = tight(parts[i], "[=~<>]?=|[<>+*/]|[.][.]|-")
			gsub(/, /, ",", parts[i])
			gsub(/[{] /, "{", parts[i])
			gsub(/ [}]/, "}", parts[i])
			gsub(/[)] /, ")", parts[i])
		}
		result = result (i > 1 ? "'" : "") parts[i]
	}
	return result
}

# ---- pieces ----

# Two definitions of one name would hide each other without an error of Lua.
function define(piece, line, number, is_of_script,    count, i, names, name) {
	count = split_local(line, names)
	for (i = 1; i <= count; i++) {
		name = names[i]
		if (name == "")
			continue
		if (is_of_script ? name in own : name in shared)
			fail(file_of[piece], number, "'" name "' is defined in " (is_of_script ? own_at[name] : shared_at[name]) " already")
		if (is_of_script) {
			own[name] = piece
			own_at[name] = file_of[piece] ":" number
		} else {
			shared[name] = piece
			shared_at[name] = file_of[piece] ":" number
		}
		defines[piece, name] = 1
	}
}

# A frame has a line "-- here" for statements of the script: the first include of it ends there, and the second one goes on.
function include(line, file, number, is_of_script,    name, path) {
	name = line
	sub(/^-- include: */, "", name)
	if (name !~ /^[a-z_]+(\/[a-z_]+)?$/)
		fail(file, number, "'" name "' is no name of an include")
	path = file
	sub(/[^\/]*$/, name ".lua", path)
	if (!is_of_script || is_over[path])
		fail(file, number, "nothing to include here")
	if (read(path, 1) < 0)
		fail(file, number, "cannot read include '" name "'")
}

# Adds the pieces of a file, up to a line "-- here". Below 0 when it can't be read.
function read(file, is_of_script,    line, got, piece, is_first) {
	while ((got = (getline line < file)) > 0) {
		number_in[file]++
		if (line ~ /^-- include:/)
			include(line, file, number_in[file], is_of_script)
		if (line ~ /^-- here/)
			return 0
		if (line ~ /^$/ && !is_of_script)
			piece = 0
		if (line ~ /^[ \t]*(--|$)/)
			continue
		is_first = is_of_script ? line !~ /^([ \t})]|(end|else|elseif|until)($|[^A-Za-z0-9_]))/ : line ~ /^local /
		if (is_first) {
			piece = ++piece_count
			file_of[piece] = file
			if (is_of_script)
				script[++script_count] = piece
			if (line ~ /^local /)
				define(piece, line, number_in[file], is_of_script)
		} else if (!piece) {
			fail(file, number_in[file], "no definition")
		}
		sub(/[ \t]+-- .*$/, "", line)
		sub(/^[ \t]+/, "", line)
		lines[piece, ++line_count[piece]] = squeezed(line)
		number_of[piece, line_count[piece]] = number_in[file]
	}
	close(file)
	is_over[file] = 1
	return got
}

# ---- what a piece uses ----

# Parameters, names of a loop, and those that "local" defines within the piece are its own.
function learn(piece, line, is_first,    part, names, count, i) {
	if (!is_first && line ~ /^local /) {
		count = split_local(line, names)
		for (i = 1; i <= count; i++)
			within[piece, names[i]] = 1
	}
	while (match(line, /function *[A-Za-z0-9_]*\([^)]*\)|(^| )for [A-Za-z0-9_, ]+( in |=)/)) {
		part = substr(line, RSTART, RLENGTH)
		line = substr(line, RSTART + RLENGTH)
		sub(/^ *for /, "", part)
		sub(/^function *[A-Za-z0-9_]*/, "", part)
		sub(/ in $/, "", part)
		gsub(/[^A-Za-z0-9_]+/, " ", part)
		count = split(part, names, " ")
		for (i = 1; i <= count; i++)
			within[piece, names[i]] = 1
	}
}

# How many more braces it opens than it closes.
function opened(text) {
	return gsub(/[{]/, "", text) - gsub(/[}]/, "", text)
}

# Adds the names that a line uses to uses: no field of a table, after a dot, nor its key where a table is made, before a
# "=" between braces.
function list_uses(piece, line, i,    before, name) {
	while (match(line, /[A-Za-z_][A-Za-z0-9_]*/)) {
		before = substr(line, 1, RSTART - 1)
		name = substr(line, RSTART, RLENGTH)
		line = substr(line, RSTART + RLENGTH)
		braces += opened(before)
		if ((name in builtin) || (piece, name) in within)
			continue
		if (before ~ /(^|[^.])[.]$|[:0-9]$/ || braces > 0 && line ~ /^ *=[^=]/)
			continue
		uses[piece] = uses[piece] name ":" i " "
	}
	braces += opened(line)
}

# What a local is set to is looked up before there is that local; a function knows itself.
function is_known(piece, name, i) {
	if ((piece, name) in defines)
		return i > 1 || lines[piece, 1] ~ /^local function /
	return (name in own) ? state[own[name]] == "written" : (name in shared)
}

function write(piece,    i, line, count, list, use, name) {
	state[piece] = "begun"
	for (i = 1; i <= line_count[piece]; i++)
		learn(piece, without_strings(lines[piece, i]), i == 1)
	braces = 0
	for (i = 1; i <= line_count[piece]; i++) {
		line = without_strings(lines[piece, i])
		if (i == 1)
			sub(/^local function [A-Za-z0-9_]+|^local [A-Za-z0-9_, ]+/, "", line)
		list_uses(piece, line, i)
	}
	count = split(uses[piece], list, " ")
	for (i = 1; i <= count; i++) {
		split(list[i], use, ":")
		name = use[1]
		if (!is_known(piece, name, use[2]))
			fail(file_of[piece], number_of[piece, use[2]], "no line before it defines '" name "'")
		if ((name in own) || (piece, name) in defines)
			continue
		if (state[shared[name]] == "begun")
			fail(file_of[piece], number_of[piece, use[2]], "'" name "' uses what uses it")
		if (state[shared[name]] == "")
			write(shared[name])
	}
	for (i = 1; i <= line_count[piece]; i++)
		print lines[piece, i]
	state[piece] = "written"
}

BEGIN {
	split("and break do else elseif end false for function if in local nil not or repeat return then true until while " \
		"ARGV KEYS redis ipairs math next pairs pcall string table tonumber tostring type unpack", words, " ")
	for (i in words)
		builtin[words[i]] = 1
	for (i = 2; i < ARGC; i++)
		if (read(ARGV[i], 0) < 0)
			fail(ARGV[i], 1, "cannot read it")
	if (read(ARGV[1], 1) < 0)
		fail(ARGV[1], 1, "cannot read it")
	for (i = 1; i <= script_count; i++)
		write(script[i])
	exit
}
