#!/bin/sh
# With GNU parallel: upgrade four hosts at a time from here. No host is upgraded by two calls, from all machines.
#
#   parallel.sh HOST...
#
# Change the names and the command. parallel quotes {}, and exits with the number of hosts that failed. The program of that
# name in moreutils is another one.
set -eu
[ $# -gt 0 ] || exit 64
parallel --jobs 4 rlock run --wait 10m --name upgrade-{} -- upgrade {} ::: "$@"
