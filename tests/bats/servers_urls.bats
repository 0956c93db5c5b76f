#!/usr/bin/env bats
# bats file_tags=long
# Several servers in one call: which may be named together, with which quorum and options, and where their passwords and
# databases come from. One server's: usage.bats, password.bats.

# In single quotes stand whole scripts; run sets stderr.
# shellcheck disable=SC2016,SC2154

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/agreeing

setup_file() { start_warm_servers 6 --databases 40; }
teardown_file() { stop_servers; }
setup() { servers_setup; }
teardown() { servers_teardown; }

# ---- what the tests share ----

# refused STATUS TEXT ARGUMENT...: one line with TEXT, no command started, nothing locked.
refused() {
	run "-$1" --separate-stderr rlock "${@:3}"
	assert_equal "$output" ''
	output=$stderr
	refute_output --regexp $'\n'
	assert_output --regexp '^rlock: .'
	assert_output --partial -- "$2"
	[ ! -e ran ]
}

# ---- what was typed wrongly ----

@test "a quorum that is half of the servers or less, more than there are, or no number is refused" {
	local quorum
	for quorum in 0 1 4 -1 2.5 '' most ALL '2 ' 18446744073709551618; do
		refused 64 quorum run "${U[@]}" --quorum="$quorum" a -- touch ran
	done
	refused 64 quorum run -u redis://a -u redis://b --quorum 1 a -- touch ran
	refused 64 quorum run -u redis://a -u redis://b -u redis://c -u redis://d --quorum 2 a -- touch ran
	refused 64 quorum lock --owner x --lease 9s "${U[@]}" --quorum 1 a
	refused 64 quorum unlock "${U[@]}" --quorum 1 a
}

@test "one server may be given with a quorum that one server can be" {
	local quorum
	for quorum in 1 all majority; do
		run -0 rlock run -u "$(urls_of 1)" --quorum $quorum a -- true
	done
	refused 64 quorum run -u "$(urls_of 1)" --quorum 2 a -- touch ran
	refused 64 quorum run -u "$(urls_of 1)" --quorum 0 a -- touch ran
}

@test "a server that is given twice is refused, however it is spelled" {
	local pair
	for pair in 'redis://a redis://a' 'redis://a redis://a:6379' 'redis://a redis://a/0' 'redis://a redis://a:6379/0' \
		'redis://a redis://A' 'redis://a redis://x@a' 'redis://a redis://x:s3cr3t@a' \
		'redis://[::1] redis://[::1]:6379' 'unix:///a unix:///a?db=0' 'unix:///a unix:///%61'; do
		refused 64 twice run -u redis://b -u "${pair% *}" -u "${pair#* }" a -- touch ran
		refute_output --partial s3cr3t
	done
	RLOCK_URL='redis://b redis://x:s3cr3t@a redis://a' refused 64 twice run a -- touch ran
	refute_output --partial s3cr3t
	refused 64 twice run --db 3 -u unix:///a -u unix:///a a -- touch ran
}

@test "databases of one server are told from each other" {
	run -0 rlock run -u "$(urls_of 1)?db=1" -u "$(urls_of 1)?db=2" a -- \
		sh -c 'for db in 1 2; do redis-cli -s "$SERVER_SOCKET" -n $db exists a; done'
	assert_output $'1\n1'
}

@test "local: cannot be one of several servers" {
	refused 64 local: run -u local: -u "$(urls_of 1)" a -- touch ran
	refused 64 local: run -u "$(urls_of 1) local:" a -- touch ran
	RLOCK_URL="$(urls_of 1) local: $(urls_of 2)" refused 64 local: run a -- touch ran
}

@test "several servers issue no fencing token, and a file that asks for one is ignored" {
	refused 64 fence run --fence "${U[@]}" a -- touch ran
	refused 64 fence lock --fence --pid $$ a
	echo 'fence = yes' >conf
	run -0 rlock run --config conf a -- sh -c 'echo "${RLOCK_TOKEN-none}"'
	assert_output none
	on_each no_keys
}

@test "what is wrong in the file is told with 78" {
	printf 'url = %s\n' redis://a redis://b redis://a >conf
	unset RLOCK_URL
	refused 78 twice run --config conf a -- touch ran
	printf 'url = %s\n' redis://a local: >conf
	refused 78 local: run --config conf a -- touch ran
	printf '%s\n' "url = $(urls_of 1 2 3)" 'quorum = 1' >conf
	refused 78 quorum run --config conf a -- touch ran
	printf '%s\n' "url = $(urls_of 1 2 3)" 'quorum = most' >conf
	refused 78 quorum run --config conf a -- touch ran
	printf '%s\n' "url = $(urls_of 1 2)" 'url = http://x' >conf
	refused 78 conf:2 run --config conf a -- touch ran
}

@test "one bad URL among several is told" {
	refused 64 http://x run -u "$(urls_of 1)" -u http://x a -- touch ran
	refused 64 http://x run -u "$(urls_of 1) http://x" a -- touch ran
	RLOCK_URL="$(urls_of 1) http://x" refused 64 RLOCK_URL run a -- touch ran
}

@test "thirty-two servers are not too many, and thirty-three are refused" {
	local number many=()
	for ((number = 1; number <= 33; number++)); do
		many+=("unix://$SERVER_SOCKET?db=$number")
	done
	run -0 rlock run -u "${many[*]:0:32}" a -- redis-cli -s "$SERVER_SOCKET" -n 32 exists a
	assert_output 1
	refused 64 32 run -u "${many[*]}" a -- touch ran
	run redis info keyspace
	refute_output --partial db
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
	refused 64 db run --db 3 -u "$(urls_of 1)" -u "$(urls_of 2)?db=1" a -- touch ran
}
