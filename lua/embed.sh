#!/bin/sh
# Makes a C file of all Lua scripts beside it: purpose, SHA-1, body. expand.awk makes a body of a script, and shorten.awk
# shortens it; when the first finds a mistake it prints file and line, and no C file is made. The rights that inc/rights.lua
# tries are a table there, too.
#
#   embed.sh OUTPUT
set -eu

here=$(dirname "$0")
out=$1
trap 'rm -f "$out.tmp"' EXIT

{
	echo '/* Made by lua/embed.sh: do not edit. */'
	echo '#include "kinds.h"'
	for script in "$here"/*.lua; do
		name=$(basename "$script" .lua)
		body=$(awk -f "$here/expand.awk" "$script" "$here"/inc/*.lua)
		body=$(printf '%s\n' "$body" | awk -f "$here/shorten.awk")
		sha1=$(printf '%s' "$body" | sha1sum | cut -d ' ' -f 1)
		# What -v says of it: "acquire (plain)", "release, or leave the queue (fair)", "inspect".
		purpose=$(printf '%s' "$name" | sed 's/_leave$/_release, or leave the queue/; s/_return$/_return to the queue/
			s/^readwrite_/read or write_/; s/^\([^_]*\)_\(.*\)/\2 (\1)/')
		printf '\nconst struct rlock__script rlock__script_%s = {\n\t.purpose = "%s",\n\t.sha1 = "%s",\n\t.body =\n' \
			"$name" "$purpose" "$sha1"
		printf '%s' "$body" | sed 's/\\/\\\\/g; s/"/\\"/g; s/^/\t\t"/; s/$/\\n"/' | sed '$s/\\n"$/",/'
		printf '\n};\n'
	done
	printf '\nconst struct rlock__right rlock__rights[] = {\n'
	# Behind the name of a list, words between quotes: "KEY:", or a command with the number of its arguments.
	awk -F "'" '
		/^local / { split($1, words, " "); list = words[2] }
		list ~ /_RIGHTS$/ && NF > 1 {
			count = split($2, words, " ")
			for (i = 1; i <= count; i++)
				if (words[i] !~ /:$/)
					printf "\t{ \"%s\", \"%s\", %d },\n", list, substr(words[i], 1, length(words[i]) - 1),
						substr(words[i], length(words[i]))
		}' "$here"/inc/*.lua
	printf '\t{ NULL, NULL, 0 },\n};\n'
} >"$out.tmp"
mv "$out.tmp" "$out"
