# Passwords that commands print, and that these have ended. Sourced after helpers.bash and leftovers.bash, by files
# whose server listens on PORT.

# COMMAND is for the tests.
# shellcheck disable=SC2034

# password_command_setup: as directory_setup; RLOCK_URL names the user ci, and COMMAND prints its password of this moment.
# Sets NAP: so long sleeps what hangs; and NAP_COMMAND, the regular expression of such a command line.
password_command_setup() {
	directory_setup
	SERVER_URL=$RLOCK_URL
	export RLOCK_URL=redis://ci@127.0.0.1:$PORT
	rotate 'first-t0ken'
	# So long sleeps what hangs, and nothing else on this machine.
	NAP=3600.$$$RANDOM
	NAP_COMMAND="^sleep ${NAP/./\\.}\$"
	# It prints the token of this moment, and counts its calls.
	write_script token 'echo call >>"$HERE/calls"' 'cat "$HERE/token-now"'
}

password_command_teardown() {
	redis acl deluser ci >/dev/null
	let_go
	pkill -KILL -f "$NAP_COMMAND" || :
	RLOCK_URL=$SERVER_URL
	watchful_teardown
}

# rotate TOKEN: from now on the user ci has this password, and no other.
rotate() {
	echo "$1" >token-now
	redis acl setuser ci reset on ">$1" allkeys allchannels +@all >/dev/null
}

# write_script NAME LINE...: a program of that name, of which COMMAND is the path. HERE is the test's directory: a password
# command runs in another.
write_script() {
	printf '%s\n' '#!/bin/sh' "HERE='$PWD'" "${@:2}" >"$1"
	chmod +x "$1"
	COMMAND=$PWD/$1
}

calls() {
	local lines=()
	[ ! -e calls ] || mapfile lines <calls
	echo ${#lines[@]}
}

has_calls() {
	(($(calls) >= $1))
}

# The connections of the user ci are gone; a server with a limit of time for them does the same.
close_connections() {
	redis client kill user ci >/dev/null
}

# has_connections COUNT: so many have logged in, with what the command printed.
has_connections() {
	ask_server client list && [ "$(grep -c ' user=ci ' <<<"$ANSWER")" = "$1" ]
}

# What hangs has ended, or does not run yet.
none_sleeps() {
	! pgrep -f "$NAP_COMMAND" >/dev/null
}
