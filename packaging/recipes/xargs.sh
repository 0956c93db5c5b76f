#!/bin/sh
# With xargs -P: four hosts at a time are upgraded from here, and no host by two calls, from whatever machine.
#
#   xargs.sh HOST...
#
# Change the names and the command. --name takes what begins with a "-", too.
# xargs goes on with the other hosts when one fails, and ends with 123 then. But a status of 255, or a signal that ends one,
# has it begin with no other host.
set -eu
[ $# -gt 0 ] || exit 64
printf '%s\0' "$@" | xargs -0 -P 4 -I '{}' rlock run --wait 10m --name 'upgrade-{}' -- upgrade '{}'
