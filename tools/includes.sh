#!/bin/sh
# Check the includes of cli/ and lib/: modules must not include each other in a circle, and a module must not include one of
# a higher folder. A module is a .c with its .h; the modules in no folder are the highest. cli/ includes two headers of lib/: the
# public one, and lib/base/array.h, which needs no library.
set -u
cd "$(dirname "$0")/.." || exit 71

# edges LAYER: print a line "MODULE INCLUDED" for each include, without the name of the layer.
edges() {
	find "$1" -name '*.[ch]' -exec awk -v layer="$1/" '
		match($0, /^#include "[^"]+"/) {
			included = substr($0, 11, RLENGTH - 11)
			module = substr(FILENAME, length(layer) + 1)
			sub(/\.[ch]$/, "", module)
			sub(/\.[ch]$/, "", included)
			if (module != included) print module, included
		}' {} + | sort -u
}

# upwards FOLDER...: read edges, and print those that go from a lower to a higher FOLDER; the first FOLDER is the lowest.
# Any module may include a header of the other layer, and local.h, which names the process of the private server.
upwards() {
	awk -v order="$*" '
		function height(module) {
			return index(module, "/") ? rank[substr(module, 1, index(module, "/") - 1)] : count + 1
		}
		BEGIN {
			count = split(order, folders, " ")
			for (i = 1; i <= count; i++) rank[folders[i]] = i
		}
		$2 != "rlock" && $2 !~ /^lib\// && $2 != "local" && height($2) > height($1) { print $1 " includes " $2 }'
}

status=0
complain() {
	printf '%s: %s\n' "$1" "$2" >&2
	status=1
}

for layer in cli lib; do
	case $layer in
	cli) folders='base sys log options process_lock hold' ;;
	lib) folders='base url net' ;;
	esac
	# If there is a circle, tsort names its modules on standard error.
	circle=$(edges $layer | tsort 2>&1 >/dev/null)
	[ -z "$circle" ] || complain $layer "$circle"
	# shellcheck disable=SC2086
	upward=$(edges $layer | upwards $folders)
	[ -z "$upward" ] || complain $layer "$upward"
done
inner=$(grep -rnE '^#include "lib/' cli | grep -vE '"lib/(rlock|base/array)\.h"$')
[ -z "$inner" ] || complain cli "$inner"
exit $status
