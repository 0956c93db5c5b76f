#!/bin/sh
# With GNU parallel: four hosts at a time are upgraded from here, and no host by two calls, from whatever machine.
#
#   parallel.sh HOST...
#
# Change the names and the command. parallel quotes {}, and ends with the number of hosts that failed. moreutils has
# another program of that name.
set -eu
[ $# -gt 0 ] || exit 64
parallel --jobs 4 rlock run --wait 10m --name upgrade-{} -- upgrade {} ::: "$@"
