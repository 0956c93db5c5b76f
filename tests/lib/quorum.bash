# One lock on several servers, of which a majority is enough: each of them has to be as old as a lease, and some are not
# there. Sourced after agreeing.bash.

# Leases are of 9 s and less here: a server that has not run for so long does not count.
OLD_S=9

# start_old_servers COUNT [NUMBER...]: as start_warm_servers, with those numbers besides, and all of them count.
start_old_servers() {
	local number
	start_warm_servers "$1"
	for number in "${@:2}"; do
		start_server_number "$number"
	done
	wait_until 20 is_older "${!#}" $((OLD_S + 1))
}

# conf_for NUMBER...: a configuration file for these servers, whose quorum counts for no others.
conf_for() {
	local file="$BATS_TEST_TMPDIR/conf-$*"
	printf '%s\n' "url = $(urls_of "$@")" 'quorum = majority' 'ttl = 3s' >"$file"
	echo "$file"
}

# As that of servers.bash, by a configuration file.
use_servers() {
	SERVERS=("$@")
	RLOCK_CONFIG=$(conf_for "$@")
	export RLOCK_CONFIG
	unset RLOCK_URL
}

# hold_without NUMBER NAME [OPTION...]: as hold_on_each, on all but that one.
hold_without() {
	local number
	listen_to rlock run "${@:3}" "$2" -- until_let_go
	for number in "${SERVERS[@]}"; do
		[ "$number" = "$1" ] || wait_until 5 on "$number" is_held "$2"
	done
}

# is_nowhere NUMBER: that one is not there, from now on.
is_nowhere() {
	# shellcheck disable=SC2034 # urls_of uses it
	VIA[$1]=unix://$BATS_TEST_TMPDIR/nobody-$1.sock
	use_servers "${SERVERS[@]}"
}

# waits_for_none COMMAND [ARG...]: it did not wait for a server that does not answer, which would be for 5 s.
waits_for_none() {
	took_less 3 "$@"
}
