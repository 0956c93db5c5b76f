# Write a script as it is sent: each line "-- include: NAME" becomes the file inc/NAME.lua, with its own includes; comments, blank
# lines and indents are left out. embed.sh makes C of it.
#
#   awk -f expand.awk SCRIPT
#
# A file is included once, by the first line that names it. A file that is included in an indented block is local to that block:
# a line after the block may include it again.

function fail(file, number, text) {
	print file ":" number ": " text >"/dev/stderr"
	exit 1
}

function include(name, is_in_block, from, number,    file) {
	if (name in included)
		return
	file = directory "inc/" name ".lua"
	included[name] = is_in_block ? "block" : "script"
	if (write(file, is_in_block) < 0)
		fail(from, number, "cannot read " file)
}

# Write the lines of a file. Below 0: the file cannot be read.
function write(file, is_in_block,    line, got, number, name, is_indented) {
	while ((got = (getline line < file)) > 0) {
		number++
		is_indented = line ~ /^[ \t]/
		if (!is_indented && !is_in_block)
			for (name in included)
				if (included[name] == "block")
					delete included[name]
		sub(/^[ \t]+/, "", line)
		name = line
		if (sub(/^-- include: /, "", name))
			include(name, is_in_block || is_indented, file, number)
		else if (line !~ /^(--|$)/)
			print line
	}
	close(file)
	return got
}

BEGIN {
	directory = ARGV[1]
	sub(/[^\/]*$/, "", directory)
	if (write(ARGV[1], 0) < 0)
		fail(ARGV[1], 1, "cannot read it")
	exit
}
