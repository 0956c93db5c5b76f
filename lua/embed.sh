#!/bin/sh
# Write all Lua scripts of this directory into a C file, each with its purpose, SHA-1 and body (see expand.awk). The rights
# that inc/rights.lua tries are a table in that file. If an include is missing, expand.awk prints file and line, and no C
# file is written.
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
		body=$(awk -f "$here/expand.awk" "$script")
		sha1=$(printf '%s' "$body" | sha1sum | cut -d ' ' -f 1)
		# purpose: how messages and -v name the script, such as "acquire (plain)" or "inspect".
		purpose=$(printf '%s' "$name" | sed 's/^readwrite_/read or write_/; s/^\([^_]*\)_\(.*\)/\2 (\1)/')
		printf '\nconst struct rlock__script rlock__script_%s = {\n\t.purpose = "%s",\n\t.sha1 = "%s",\n\t.body =\n' \
			"$name" "$purpose" "$sha1"
		printf '%s' "$body" | sed 's/\\/\\\\/g; s/"/\\"/g; s/^/\t\t"/; s/$/\\n"/' | sed '$s/\\n"$/",/'
		printf '\n};\n'
	done
	printf '\nconst struct rlock__right rlock__rights[] = {\n'
	# Print a row for each command in the lists of rights (HASH_RIGHTS and others). A list is a quoted string of words: "KEY:",
	# or a command followed by the number of its arguments.
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
