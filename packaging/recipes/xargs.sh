#!/bin/sh
# With xargs -P: four hosts at a time are upgraded from here, and no host by two calls, from whatever machine.
#
#   xargs.sh HOST...
#
# Change the names and the command. --name takes what begins with a "-", too.
# xargs goes on with the other hosts when one fails, and ends with 123 then. It starts no
# other host when one exits with 255 or is killed by a signal.
set -eu
[ $# -gt 0 ] || exit 64
printf '%s\0' "$@" | xargs -0 -P 4 -I '{}' rlock run --wait 10m --name 'upgrade-{}' -- upgrade '{}'
