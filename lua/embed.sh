#!/bin/sh
# Makes a C file of all Lua scripts beside it: purpose, SHA-1, body. expand.awk makes a body of a script; when it
# finds a mistake it prints file and line, and no C file is made.
#
#   embed.sh OUTPUT
set -eu

here=$(dirname "$0")
out=$1
trap 'rm -f "$out.tmp"' EXIT

{
	echo '/* Made by lua/embed.sh: do not edit. */'
	echo '#include "redis/script.h"'
	for script in "$here"/*.lua; do
		name=$(basename "$script" .lua)
		body=$(awk -f "$here/expand.awk" "$script" "$here"/inc/*.lua)
		sha1=$(printf '%s' "$body" | sha1sum | cut -d ' ' -f 1)
		# What -v says of it: "acquire (plain)", "leave the queue (fair)", "inspect".
		purpose=$(printf '%s' "$name" | sed 's/_keep_until$/_keep/; s/_leave$/_leave the queue/; s/_return$/_return to the queue/
			s/^readwrite_/read or write_/; s/^\([^_]*\)_\(.*\)/\2 (\1)/')
		printf '\nconst struct rlock__script rlock__script_%s = {\n\t.purpose = "%s",\n\t.sha1 = "%s",\n\t.body =\n' \
			"$name" "$purpose" "$sha1"
		printf '%s' "$body" | sed 's/\\/\\\\/g; s/"/\\"/g; s/^/\t\t"/; s/$/\\n"/' | sed '$s/\\n"$/",/'
		printf '\n};\n'
	done
} >"$out.tmp"
mv "$out.tmp" "$out"
