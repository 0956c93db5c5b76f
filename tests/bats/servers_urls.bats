#!/usr/bin/env bats
# bats file_tags=long
# Several servers in one call: where their passwords and databases come from. Which may be named together, with which
# quorum and options, is in the tables of unit/test_usage.c.

# In single quotes stand whole scripts.
# shellcheck disable=SC2016

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/agreeing

setup_file() { start_warm_servers 6 --databases 40; }
teardown_file() { stop_servers; }
setup() { servers_setup; }
teardown() { servers_teardown; }

@test "one server may be given with a quorum that one server can be" {
	local quorum
	for quorum in 1 all majority; do
		run -0 rlock run -u "$(urls_of 1)" --quorum $quorum a -- true
	done
}

@test "databases of one server are told from each other" {
	run -0 rlock run -u "$(urls_of 1)?db=1" -u "$(urls_of 1)?db=2" a -- \
		sh -c 'for db in 1 2; do redis-cli -s "$SERVER_SOCKET" -n $db exists a; done'
	assert_output $'1\n1'
}

@test "a file that asks for a fencing token is ignored for several servers" {
	echo 'fence = yes' >conf
	run -0 rlock run --config conf a -- sh -c 'echo "${RLOCK_TOKEN-none}"'
	assert_output none
	on_each no_keys
}

@test "thirty-two servers are not too many" {
	local number many=()
	for ((number = 1; number <= 32; number++)); do
		many+=("unix://$SERVER_SOCKET?db=$number")
	done
	run -0 rlock run -u "${many[*]}" a -- redis-cli -s "$SERVER_SOCKET" -n 32 exists a
	assert_output 1
}

# ---- passwords and databases ----

# hides_passwords PID: the command line of rlock, which is there, shows none.
hides_passwords() {
	local line
	line=$(tr '\0' ' ' <"/proc/$1/cmdline") && [[ $line = *rlock* && $line != *s3cr3t* && $line != *w0rd* ]]
}

@test "the passwords of all URLs are hidden in the list of processes, and in messages" {
	need_own_command_line
	local pid
	VIA[1]=redis://:s3cr3t@127.0.0.1:1
	VIA[2]=redis://ci:w0rd@127.0.0.1:2
	in_background rlock run -v -w 3s -u "$(urls_of 1)" --url="$(urls_of 2)" a -- true
	pid=$PID
	in_background rlock run -w 3s -u "redis://127.0.0.1:3 $(urls_of 1)  $(urls_of 2)" a -- true
	wait_until 2 hides_passwords "$pid"
	wait_until 2 hides_passwords "$PID"
	grep -qa 127.0.0.1:2 "/proc/$pid/cmdline"
	use_servers 1 2
	run -69 rlock run -v a -- true
	refute_output --regexp 's3cr3t|w0rd'
	run -69 rlock run -u "$(urls_of 2)" -u "$(urls_of 1)" a -- true
	refute_output --regexp 's3cr3t|w0rd'
	run -64 rlock run -u "$(urls_of 2)" -u "$(urls_of 1)" -u 'redis://:s3cr3t@127.0.0.1:x' a -- true
	refute_output --regexp 's3cr3t|w0rd'
}

@test "the passwords of the URLs are not in RLOCK_HELD, nor in the file of a lock without a command" {
	start_proxy_to 2 tcp:127.0.0.1:0
	VIA[2]=redis://default:s3cr3t@$(sed -n 's/^listen tcp://p' proxy-said-2)
	on 2 redis config set requirepass s3cr3t
	use_servers 1 2 3
	run -0 rlock run a -- sh -c 'echo "$RLOCK_HELD"; printenv | grep -v ^RLOCK_URL='
	refute_output --partial s3cr3t
	run -0 rlock lock --pid $$ a
	run grep -r s3cr3t "$RLOCK_RUNTIME_DIR"
	assert_output ''
	run -0 rlock unlock --pid $$ a
	REDISCLI_AUTH=s3cr3t on 2 redis config set requirepass ''
	on_each no_keys
}

@test "a password file and REDISCLI_AUTH are for each server whose URL has none" {
	local address
	take_servers 3
	start_proxy_to "${SERVERS[1]}" tcp:127.0.0.1:0
	address=$(sed -n 's/^listen tcp://p' "proxy-said-${SERVERS[1]}")
	on "${SERVERS[0]}" redis config set requirepass s3cr3t
	on "${SERVERS[1]}" redis config set requirepass w0rd
	on "${SERVERS[2]}" redis config set requirepass s3cr3t
	VIA[SERVERS[1]]=redis://:w0rd@$address
	use_servers "${SERVERS[@]}"
	echo s3cr3t >file
	chmod 600 file
	run -0 rlock run --password-file file a -- true
	assert_output ''
	REDISCLI_AUTH=s3cr3t run -0 rlock run a -- true
	# shellcheck disable=SC2034 # urls_of uses it
	VIA[SERVERS[1]]=redis://$address
	use_servers "${SERVERS[@]}"
	run -77 rlock run --password-file file a -- true
	refute_output --partial s3cr3t
	REDISCLI_AUTH=s3cr3t on "${SERVERS[0]}" no_keys
	REDISCLI_AUTH=s3cr3t on "${SERVERS[2]}" no_keys
}

@test "--db is the database of each server" {
	run -0 rlock run --db 3 a -- sh -c '
		for number in 1 2 3; do
			redis-cli -s "$BATS_FILE_TMPDIR/$number/server/redis.sock" -n 3 exists a
			ask_redis "$BATS_FILE_TMPDIR/$number/server/redis.sock" exists a
		done'
	assert_output $'1\n0\n1\n0\n1\n0'
}
