# Write a script as it is sent to the server. Replace each line "-- include: NAME" by the file inc/NAME.lua with its own
# includes, and leave out comments, blank lines and indents. embed.sh writes the result into a C file.
#
#   awk -f expand.awk SCRIPT
#
# A file is included once, by the first line that names it. If that line is indented, the file is local to the indented
# block: a line after the block includes the file again.

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

# Write the lines of a file. Return a number below 0 if the file cannot be read.
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
