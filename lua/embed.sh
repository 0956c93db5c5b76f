#!/bin/sh
# Makes a C file of all Lua scripts beside it: name, SHA-1, body. Lines "-- include: NAME" are
# replaced by inc/NAME.lua; whole-line comments and blank lines are left out of the body.
#
#   embed.sh OUTPUT
set -eu

here=$(dirname "$0")
out=$1

expand() {
	awk -v inc="$here/inc" '
		/^-- include: / { file = inc "/" $3 ".lua"
			while ((got = (getline line < file)) > 0) print line
			if (got < 0) { print "embed.sh: cannot read " file > "/dev/stderr"; exit 1 }
			close(file); next }
		{ print }' "$1" | awk '!/^[ \t]*--/ && !/^[ \t]*$/ { sub(/^[ \t]+/, ""); print }'
}

{
	echo '/* Made by lua/embed.sh: do not edit. */'
	echo '#include "redis/script.h"'
	for script in "$here"/*.lua; do
		name=$(basename "$script" .lua)
		body=$(expand "$script")
		sha1=$(printf '%s' "$body" | sha1sum | cut -d ' ' -f 1)
		printf '\nconst struct rlock__script rlock__script_%s = {\n\t.name = "%s",\n\t.sha1 = "%s",\n\t.body =\n' \
			"$name" "$name" "$sha1"
		printf '%s' "$body" | sed 's/\\/\\\\/g; s/"/\\"/g; s/^/\t\t"/; s/$/\\n"/' | sed '$s/\\n"$/",/'
		printf '\n};\n'
	done
} >"$out.tmp"
mv "$out.tmp" "$out"
