#!/bin/sh
# With xargs -P: upgrade four hosts at a time from here. No host is upgraded by two calls, from all machines.
#
#   xargs.sh HOST...
#
# Change the names and the command. --name also takes a name that begins with "-".
# If a host fails, xargs continues with the others and exits with 123. If a command exits with 255 or is killed by a signal,
# xargs starts no other host.
set -eu
[ $# -gt 0 ] || exit 64
printf '%s\0' "$@" | xargs -0 -P 4 -I '{}' rlock run --wait 10m --name 'upgrade-{}' -- upgrade '{}'
