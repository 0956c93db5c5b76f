# Configuration files. Sourced after helpers.bash.

# SOCKET_URL is for the tests.
# shellcheck disable=SC2034

# config_setup: as directory_setup, with no server but what a file names. Sets CONFIG, the file that RLOCK_CONFIG names,
# and SOCKET_URL, the server's URL.
config_setup() {
	directory_setup
	SOCKET_URL=$RLOCK_URL
	unset RLOCK_URL
	CONFIG=$BATS_TEST_TMPDIR/rlock.conf
	export RLOCK_CONFIG=$CONFIG
	mkdir "$XDG_CONFIG_HOME"
}

# write_config LINE...: the file that RLOCK_CONFIG names.
write_config() {
	printf '%s\n' "$@" >"$CONFIG"
}

# For a command to say in which databases there are keys: where its lock is.
export LOCK_IS_IN='redis-cli -s "$SERVER_SOCKET" info keyspace | grep -o "^db[0-9]*"'

# locks_in DATABASE [OPTION...]: an rlock with these options holds its lock there.
locks_in() {
	local database=$1
	shift
	run -0 rlock run "$@" a -- sh -c "$LOCK_IS_IN"
	assert_output "db$database"
}
