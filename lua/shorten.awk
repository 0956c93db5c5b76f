# Shortens the body of a script, from standard input, without changing what it does: functions, constants and the parameter that
# most functions have, "name", get short names, and redis.call and redis.pcall are locals. The script that leaves a queue must be short, see inc/queue.lua.
#
#   awk -f shorten.awk

# Replaces each use of such a name, but in strings, and where it is a field.
function renamed(line,    parts, count, i, text, before, name, result) {
	count = split(line, parts, "'")
	for (i = 1; i <= count; i++) {
		if (i > 1)
			result = result "'"
		text = parts[i]
		if (i % 2) {
			gsub(/redis[.]call\(/, "rcall(", text)
			gsub(/redis[.]pcall\(/, "rpcall(", text)
			while (match(text, /[A-Za-z_][A-Za-z0-9_]*/)) {
				before = substr(text, 1, RSTART - 1)
				name = substr(text, RSTART, RLENGTH)
				text = substr(text, RSTART + RLENGTH)
				result = result before ((name in short) && before !~ /(^|[^.])[.]$/ ? short[name] : name)
			}
		}
		result = result text
	}
	return result
}

{
	lines[NR] = $0
	if (match($0, /^local function [A-Za-z0-9_]+/))
		short[substr($0, 16, RLENGTH - 15)] = "_" ++count
	else if (match($0, /^local [A-Z_]+=/))
		short[substr($0, 7, RLENGTH - 7)] = "_" ++count
}

END {
	short["name"] = "_n"
	print "local rcall,rpcall=redis.call,redis.pcall"
	# A key of a table keeps its name, and so does what a line with a string of the other sort has.
	for (i = 1; i <= NR; i++)
		for (name in short)
			if (lines[i] !~ "^local " name "=" && lines[i] ~ (lines[i] ~ /"/ ? name : "(^|[^A-Za-z0-9_.])" name "=[^=]"))
				delete short[name]
	for (i = 1; i <= NR; i++)
		print lines[i] ~ /"/ ? lines[i] : renamed(lines[i])
}
