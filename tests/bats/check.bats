#!/usr/bin/env bats
# bats file_tags=long
# rlock check: whether the configuration and the server can be relied on for locks.

load ../lib/usual
load ../lib/replicas
load ../lib/proxying
load ../lib/inspecting
load ../lib/rights
load ../lib/contenders

setup_file() { start_server_at_port --appendonly yes --appendfsync always; }

teardown() {
	redis config set maxmemory 0 >/dev/null
	redis config set maxmemory-policy noeviction >/dev/null
	redis config set min-replicas-to-write 0 >/dev/null
	teardown_and_check_processes
}

# finds LEVEL SUBJECT TEXT: the output must have a line with this level and subject, and a text that matches TEXT.
finds() {
	assert_line --regexp "^$1 +$2 +$3"
}

# limited RULE...: creates a user with the rights of the manual and those that check needs, changed by these rules. Lets RLOCK_URL
# log in as this user.
limited() {
	read_all_rights
	redis acl setuser limited reset resetchannels on ">$SECRET" "${RIGHTS[@]}" +info +ping '+config|get' "$@" >/dev/null
	RLOCK_URL=$(url_of limited)
}

@test "check calls a sound server sound" {
	run -0 rlock check
	assert_line --index 0 --regexp '^unix://'
	finds ok version '(Redis|Valkey) [0-9]'
	finds ok role master
	finds ok eviction noeviction
	finds ok persistence 'append-only file, appendfsync always$'
	finds ok memory '[0-9.]+ [KM]B used, without a limit'
	finds ok latency 'median [0-9.]+ ms, worst [0-9.]+ ms, of 20'
	finds ok clock "as fast as this machine's"
	finds ok rights all
	finds ok directory "$RLOCK_RUNTIME_DIR"
	finds ok kernel has
	finds ok proc shows
	refute_line --regexp '^BAD'
	assert_equal "${lines[-1]}" 'sound: locks can be relied on here, within limits, see replicas'
	run -0 rlock check --json
	assert_output --regexp '"level":"ok","subject":"role",.*"sound":true,"conclusion":"sound: locks can be relied on here, '
	no_keys
	# check prints colours only on a terminal.
	export TERM=xterm
	run -0 on_terminal 80 rlock check
	assert_output --partial $'\e[32mok  \e[0m'
	NO_COLOR=1 run -0 on_terminal 80 rlock check
	refute_output --partial $'\e['
}

# ---- rights ----

@test "check names each missing right as a rule for ACL SETUSER, or reports that all rights are there" {
	local status level subject right text
	limited
	run -0 rlock check 'nightly*'
	finds ok rights all
	while IFS='|' read -r status level subject right text; do
		# shellcheck disable=SC2086
		limited $right
		run "-$status" rlock check 'nightly*'
		finds "$level" "$subject" "$text"
	done <<-'END'
		0|note|role|-info|unknown: .* try: ACL SETUSER limited \+info$
		0|ok|rights|-ping|all
		77|BAD|rights|-evalsha|plain locks can't be used; try: ACL SETUSER limited \+evalsha$
		77|BAD|rights|-hset|plain locks can't be used; try: ACL SETUSER limited \+hset$
		77|BAD|rights|resetkeys ~nightly* ~{nightly*}:timeout|plain locks can't be used; .* ~rlock_holds:\{nightly\*\}
		77|note|rights|resetkeys ~nightly* ~{nightly*}:timeout|read and write locks need more rights than plain locks; try: .*~\{nightly\*\}:\*:rwlock_timeout:\*
		77|BAD|rights|resetchannels|plain locks can't be used; try: .* &redisson_lock__channel:\{nightly\*\}\*
		77|note|rights|resetchannels|read and write locks need more rights than plain locks; try: ACL SETUSER limited &redisson_rwlock:\{nightly\*\}\*$
		0|note|rights|-zcard -lpos|fair locks can't be used; try: ACL SETUSER limited .*\+lpos
		0|note|rights|-zadd|fair locks can't be used; try: ACL SETUSER limited \+zadd$
		0|note|rights|-set|read and write locks can't be used; try: ACL SETUSER limited \+set$
		0|note|rights|-incrby|semaphores can't be used; try: ACL SETUSER limited \+incrby$
		0|note|rights|-scan|list needs more rights than locks; try: ACL SETUSER limited \+scan$
		0|note|rights|-pubsub -scan|waiters and --remember use more rights than locks need; try: ACL SETUSER limited \+pubsub[|]numsub$
	END
	paste_rights
	run -0 rlock list 'nightly*'
	no_keys
}

# paste_rights: runs the ACL lines that the output proposes, as they are. The server must accept all of them.
paste_rights() {
	sed -nE 's/^(BAD|note) +rights .*try: //p' <<<"$output" | redis-cli -s "$SERVER_SOCKET" >pasted
	grep -q OK pasted
	run ! grep -vx OK pasted
}

@test "the ACL line that check prints can be pasted, and grants rights to the given name or pattern only" {
	local asked
	for asked in 'job of alice' 'job-*-north'; do
		limited -@all resetkeys resetchannels +ping +info '+config|get'
		run -77 rlock check "$asked"
		paste_rights
		run -0 rlock check "$asked"
		finds ok rights all
		run -77 rlock run 'job of bob' -- true
		run -0 rlock write "${asked/\*/7}" -- true
	done
	# If check is called without a pattern, the rule that it proposes must only grant commands, not all keys and channels.
	limited -@all resetkeys resetchannels +ping +info '+config|get'
	run -77 rlock check
	refute_output --regexp 'SETUSER .* [~&]'
	paste_rights
	redis acl setuser limited '~nightly*' >/dev/null
	run -0 rlock check
	finds note rights "not every name is allowed: rlock check 'PATTERN' tries the names that fit it\$"
	# A user that has all keys, but not all commands, must get no rule for keys, since the server refuses a pattern after "all
	# keys".
	limited resetkeys resetchannels '~*' '&*' +@all -publish
	run -77 rlock check 'nightly*'
	paste_rights
}

# ---- the server ----

@test "check reports permits without a record of a holder, and what to do" {
	run -0 rlock sem --permits 3 imports -- rlock check imports
	finds ok permits 'imports: 2 of 3 free, none without a record of a holder$'
	# Acquire two permits as threads of a Java service do by RSemaphore, which stores no record of a holder.
	redis decrby imports 2 >/dev/null
	run -0 rlock check imports
	finds note permits 'imports: 2 of 3 have no record of a holder, .* try: rlock unlock --force imports$'
}

@test "a server that evicts locks when its memory is full, or denies new ones, is not sound" {
	redis config set maxmemory-policy allkeys-lru >/dev/null
	run -0 rlock check
	finds note eviction 'allkeys-lru: deletes locks as soon as maxmemory is set'
	redis config set maxmemory 1gb >/dev/null
	run -78 rlock check
	finds BAD eviction 'allkeys-lru deletes locks'
	redis config set maxmemory-policy noeviction >/dev/null
	redis config set maxmemory 1mb >/dev/null
	run -78 rlock check
	finds BAD memory 'full, [0-9.]+ [KM]B of 1.0 MB used: it grants no lock'
	assert_equal "${lines[-1]}" "NOT SOUND: locks can't be relied on here, see lock, memory"
	run -78 rlock check --json
	assert_output --partial '"sound":false,"conclusion":"NOT SOUND: '
	# Retry, since the used memory changes while the server frees the buffers of clients.
	wait_until 20 is_noted_as_nearly_full
}

# is_noted_as_nearly_full: sets maxmemory to a fifteenth more than the used memory. Whether check then notes that the memory is
# nearly full.
is_noted_as_nearly_full() {
	local used
	used=$(redis info memory | sed -n 's/^used_memory:\([0-9]*\).*/\1/p')
	redis config set maxmemory $((used + used / 15)) >/dev/null
	run rlock check
	[ "$status" = 0 ] && [[ $output = *$'\n''note  memory '* ]]
}

@test "check notes a server without persistence, with one fsync a second, without replicas, or whose CONFIG SET was not saved" {
	start_server_in bare
	run -0 rlock check -u "unix://$PWD/bare/redis.sock"
	finds note persistence 'none: a restart deletes all locks'
	finds note replicas none
	redis-cli -s bare/redis.sock config set appendonly yes >/dev/null
	run -0 rlock check -u "unix://$PWD/bare/redis.sock"
	finds note persistence 'append-only file, appendfsync everysec: a crash of its machine loses'
	is_redis_6 ||
		finds note config 'CONFIG SET was called 1 time .* a restart loses what was set; try: CONFIG REWRITE$'
}

@test "check calls a replica unsound, and reports the replica of its master" {
	start_replicated_servers
	run -78 rlock check -u "unix://$PWD/two/redis.sock"
	finds BAD role 'replica: cannot grant a lock'
	run -0 rlock check
	finds note replicas '1, but no lock waits for them: .* try: --replicas 1$'
	run -0 rlock check --replicas 1
	finds ok replicas 1
	run -78 rlock check --replicas 2
	finds BAD replicas '1, but --replicas needs 2'
}

@test "check exits with 69 for an unreachable server of several, 77 for a wrong password, 78 for a runtime directory open to others or a slow server" {
	run -69 --separate-stderr rlock check -u "$RLOCK_URL" -u "unix://$PWD/nowhere" -u "$RLOCK_URL?db=1"
	[ "$(grep -c '^ok *role *master' <<<"$output")" = 2 ]
	finds BAD server '.*nowhere'
	finds ok kernel has
	assert_equal "$stderr" ''
	run -77 rlock check -u "redis://limited:wrong@127.0.0.1:$PORT"
	finds BAD server
	mkdir -m 755 dir
	start_proxy
	proxy delay 120
	RLOCK_RUNTIME_DIR=$PWD/dir run -78 rlock check -t 1s
	finds BAD directory ".*dir can't be used"
	finds BAD latency 'median [0-9.]+ ms, worst [0-9.]+ ms, of 20: too slow for a lease of 1s'
}

@test "check notes that a server on another machine has no TLS or no password" {
	# Use 0.0.0.0: the kernel connects it to this machine, but rlock does not recognise it as a local address.
	run -0 rlock check -u "redis://0.0.0.0:$PORT"
	finds note url 'no TLS: any machine on the way'
	finds note url 'no password: any machine that reaches the server'
	redis acl setuser limited reset on ">$SECRET" '~*' '&*' +@all >/dev/null
	run -0 rlock check -u "redis://limited:$SECRET@0.0.0.0:$PORT"
	refute_output --partial 'no password'
	run -0 rlock check -u "redis://127.0.0.1:$PORT"
	refute_output --regexp 'no (TLS|password)'
}

# ---- what is printed ----

# site_config LINE...: writes the user's configuration file.
site_config() {
	mkdir -p "$XDG_CONFIG_HOME"
	printf '%s\n' "$@" >"$XDG_CONFIG_HOME/rlock.conf"
}

@test "check prints where each option comes from, and warns that without a server each machine locks on its own" {
	site_config '# of the site' "url = $RLOCK_URL" '' 'wait = 5s'
	unset RLOCK_URL
	run -0 rlock check -t 50s
	finds ok ttl '50s, from the command line$'
	finds ok url "unix://.*, from $XDG_CONFIG_HOME/rlock.conf:2\$"
	finds ok wait "5s, from $XDG_CONFIG_HOME/rlock.conf:4, for other verbs\$"
	finds ok config "$XDG_CONFIG_HOME/rlock.conf, the default\$"
	finds ok RLOCK_RUNTIME_DIR ".*, from the environment\$"
	refute_line --regexp '^note +url'
	RLOCK_URL=unix://$SERVER_SOCKET run -0 rlock check --json
	assert_output --partial '"source":"environment","variable":"RLOCK_URL","file":null,"line":null,"used":true,'
	assert_output --partial '"line":2,"used":false,"other_verbs":false,"reason":"RLOCK_URL takes precedence"'
	site_config
	RLOCK_URI=redis://x:s3cret@h RLOCK_TTL=5s REDIS_URL=redis://h run rlock check
	finds note RLOCK_URI '\(not shown\), from the environment: not used: rlock reads no such variable; give the option, or a line in the configuration file$'
	finds note RLOCK_TTL '.*: not used: rlock reads no such variable'
	finds note REDIS_URL '\(not shown\), from the environment: not used: rlock reads RLOCK_URL$'
	refute_output --regexp 'note +RLOCK_RUNTIME_DIR|s3cret'
	finds note url 'the default, since no server is named anywhere: each machine then locks on a server of its own'
	# Exactly one line must say that no server is named: the failure and the list of options must not repeat it.
	assert_equal "$(grep -c 'server is named\|server was named' <<<"$output")" 1
	refute_output --partial SSL_CERT_FILE
}

@test "check says why an option of a lower source is not used, and shows neither a password nor a password command" {
	site_config 'url = redis://other:1/3' "password-file = $PWD/password" 'ttl = 9s'
	redis acl setuser limited reset on '>third' '~*' '&*' +@all >/dev/null
	REDISCLI_AUTH=s3cond run -0 rlock check -u "redis://limited:third@127.0.0.1:$PORT/2" -t 50s
	finds note url 'unix://.*, from RLOCK_URL in the environment: not used: --url takes precedence$'
	finds note url 'redis://other:1/3, from .*:1: not used: --url takes precedence$'
	finds note password-file "$PWD/password, from .*:2: not used: it is for the url in that file, and --url names the server\$"
	finds note ttl '9s, from .*:3: not used: --ttl takes precedence$'
	finds note REDISCLI_AUTH '\(not shown\), from the environment: not used: the password is in the URL$'
	finds note db '0, the default: not used: the URL names the database$'
	refute_output --regexp 'third|s3cond'
	export RLOCK_URL=redis://limited@127.0.0.1:$PORT
	REDISCLI_AUTH=s3cond run -0 rlock check --password-command 'echo third'
	finds ok password-command '\(not shown\), from the command line$'
	finds note REDISCLI_AUTH '\(not shown\), from the environment: not used: password-command takes precedence$'
	refute_output --regexp 'third|s3cond'
	run -0 rlock check --json -u "redis://limited:third@127.0.0.1:$PORT"
	refute_output --partial third
}

# ---- a lock that is tried ----

# check_is_bad TEXT [OPTION...]: check must report that no lock can be acquired, for the reason TEXT.
check_is_bad() {
	run -78 rlock check "${@:2}"
	finds BAD lock "none can be acquired: denied by the server: .*$1"
	assert_equal "${lines[-1]}" "NOT SOUND: locks can't be relied on here, see lock"
}

@test "check with a name says whether that lock is held, and that the exit status of status says so" {
	run -0 rlock check nightly
	finds ok name 'nightly is free; the exit status of this says so: rlock status nightly$'
	run -0 rlock run nightly -- rlock check nightly
	finds ok name 'nightly is held; the exit status of this says so: rlock status nightly$'
	run -0 rlock check 'nightly*'
	refute_line --regexp '^ok +name '
}

@test "check acquires a lock whose name matches the pattern, releases it, and leaves nothing" {
	record_messages '*lock__channel*'
	run -0 rlock check 'nightly-*-north'
	finds ok lock 'one was acquired and released$'
	no_keys
	run -0 show_messages 'redisson_lock__channel'
	assert_output --regexp 'redisson_lock__channel:\{nightly-[0-9a-f]{32}-north\} 0'
	# Log in as a user that may only lock the name "nightly".
	limited resetkeys ~nightly '~{nightly}:*' '~rlock_*' '~redisson_*'
	run -0 rlock check nightly
	finds ok lock 'one was acquired and released$'
	no_keys
}

@test "a server that denies all locks is not sound: too few replicas, a full disk, a renamed command" {
	local command
	redis config set min-replicas-to-write 1 >/dev/null
	check_is_bad 'NOREPLICAS Not enough good replicas'
	redis config set min-replicas-to-write 0 >/dev/null
	start_server_in full --dbfilename there.rdb --save '3600 1'
	mkdir -p full/there.rdb/in-the-way
	redis-cli -s full/redis.sock config set save '3600 1' >/dev/null
	redis-cli -s full/redis.sock bgsave >/dev/null
	wait_until 5 has_failed_to_save
	check_is_bad 'MISCONF ' -u "unix://$PWD/full/redis.sock"
	for command in eval evalsha hset; do
		start_server_in "$command" --rename-command "$command" ''
		check_is_bad "ERR unknown command .?($command|${command^^})" -u "unix://$PWD/$command/redis.sock"
	done
}

# start_server_with_full_file: no file of this server may have more than 1 KiB, so it cannot write its append-only file.
start_server_with_full_file() {
	mkdir appending
	in_background bash -c 'trap "" XFSZ; ulimit -f 1; exec redis-server --port 0 --unixsocket "$PWD/appending/redis.sock" --save "" \
		--appendonly yes --dir "$PWD/appending" --logfile ""' >/dev/null
	wait_until 10 answers appending
}

has_failed_to_append() {
	redis_at appending set filler "$(printf %0600d 1)" >/dev/null
	[[ $(redis_at appending info persistence) = *aof_last_write_status:err* ]]
}

@test "a server that cannot write its append-only file is not sound" {
	start_server_with_full_file
	wait_until 10 has_failed_to_append
	check_is_bad 'MISCONF Errors writing to the AOF file' -u "unix://$PWD/appending/redis.sock"
}

@test "check names the kinds of locks that a server denies while it grants others" {
	start_server_in zadd --rename-command zadd ''
	run -78 rlock check -u "unix://$PWD/zadd/redis.sock"
	finds BAD lock 'none of these kinds can be acquired: read: denied by the server: .* ERR unknown command .?(zadd|ZADD)'
	run -0 rlock run -n -u "unix://$PWD/zadd/redis.sock" x -- true
}

has_failed_to_save() {
	[[ $(redis-cli -s full/redis.sock info persistence) = *rdb_last_bgsave_status:err* ]]
}

@test "check notes that waiters are not notified where PUBLISH was renamed" {
	start_server_in publish --rename-command publish ''
	run -0 rlock check -u "unix://$PWD/publish/redis.sock"
	finds note messages 'none are sent by this server: .* ERR unknown command PUBLISH: a waiter may notice a release only at the end of the lease$'
	finds ok lock 'one was acquired and released$'
}

@test "check notes that waiters get no messages where SUBSCRIBE is denied, in any words" {
	start_proxy
	proxy deny subscribe 1000
	run -0 rlock check
	finds note messages 'none come from this server: it denies SUBSCRIBE: waiters poll at least once a second: ERR forbidden$'
	finds ok lock 'one was acquired and released$'
	proxy pass
	proxy cut-before subscribe 1000
	run -0 rlock check
	finds note messages 'none come from this server: cannot reach .*: waiters poll at least once a second$'
}
