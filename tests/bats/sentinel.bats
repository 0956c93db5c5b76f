#!/usr/bin/env bats
# bats file_tags=long
# Sentinels: rlock uses the server that they name as master, and what another server granted does not count.

load ../lib/usual
load ../lib/certificates
load ../lib/proxying
load ../lib/sentinels

setup_file() {
	start_masters 3
	start_sentinels 3
}

teardown_file() {
	stop_sentinels
	stop_servers
}

setup() {
	directory_setup
	on 2 redis flushall >/dev/null
	on 3 redis flushall >/dev/null
	# Remove the service from all sentinels first: one with a later configuration would otherwise spread that to the others.
	for number in 1 2 3; do ask_sentinel "$number" sentinel remove "$SERVICE"; done
	set_master "$(port_of 1)"
}

teardown() {
	local number password
	find_server 1
	kill -CONT "$PID_OF_SERVER"
	thaw_sentinels
	REDISCLI_AUTH=MASTER redis config set requirepass '' >/dev/null 2>&1
	for number in 1 2 3; do
		# If a sentinel has no password, it refuses this login, but then carries out the command.
		for password in SECRET OTHER; do
			REDISCLI_AUTH=$password ask_sentinel "$number" acl setuser default nopass 2>/dev/null || :
		done
	done
	teardown_and_check_processes
}

# own_tls_pair DIR SENTINEL MASTER: starts a sentinel with the certificate SENTINEL of DIR, on SENTINEL_PORT, and its master with the
# certificate MASTER, on PORT. Both accept TLS only.
own_tls_pair() {
	local dir=$1
	choose_port
	SENTINEL_PORT=$PORT
	choose_port
	in_background redis-server --port 0 --tls-port "$PORT" --save '' --appendonly no --dir "$PWD" \
		--tls-cert-file "$dir/$3.crt" --tls-key-file "$dir/$3.key" --tls-ca-cert-file "$dir/ca.crt" --tls-auth-clients no
	printf '%s\n' 'port 0' "tls-port $SENTINEL_PORT" "tls-cert-file $dir/$2.crt" "tls-key-file $dir/$2.key" \
		"tls-ca-cert-file $dir/ca.crt" 'tls-auth-clients no' 'tls-replication yes' "dir $PWD" \
		"sentinel monitor $SERVICE 127.0.0.1 $PORT 1" >sentinel.conf
	in_background redis-server "$PWD/sentinel.conf" --sentinel
	wait_until 10 is_answered "$SENTINEL_PORT" "$dir"
	wait_until 10 is_answered "$PORT" "$dir"
}

is_answered() {
	[ "$(redis-cli -p "$1" --tls --cacert "$2/ca.crt" ping 2>/dev/null)" = PONG ]
}

# server_at NUMBER: prints the server's URL as messages show it.
server_at() {
	echo "redis://127.0.0.1:$(port_of "$1")/0"
}

# refused STATUS URL TEXT: a call with -n must exit with STATUS and one line with TEXT. It makes a second attempt, which must fail
# as well. Where a sentinel is frozen, PATIENCE is how long rlock waits for it.
refused() {
	run rlock run -n --connect-timeout "${PATIENCE-8s}" -u "$2" a -- touch begun
	assert [ "$status" = "$1" ]
	assert_one_line "^rlock: a: $3\$"
	assert [ ! -e begun ]
}

# ---- use ----

@test "check prints the master that the sentinels name and how many answered, or that none names one" {
	run -0 rlock check
	assert_line --regexp "^ok +sentinels +3 of 3 answered, the master is redis://127.0.0.1:$(port_of 1)/0\$"
	run -78 rlock check -u "redis+sentinel://$SENTINELS/nosuch"
	assert_line --regexp '^BAD +server +no sentinel names the master of nosuch'
	refute_line --regexp '^[a-zA-Z]+ +(latency|clock|rights) '
	freeze_sentinels 3
	run -0 rlock check --connect-timeout 3s
	assert_line --regexp '^note +sentinels +2 of 3 answered'
	freeze_sentinels 2
	run -69 rlock check --connect-timeout 3s
	assert_line --regexp '^BAD +sentinels +1 of 3 answered'
}

@test "check of a master without a replica advises to start one, not --replicas, with which no lock could be acquired" {
	run -0 rlock check
	assert_line --regexp '^note +replicas +none: if this server is lost, so are all its locks, and no failover is possible; start a replica$'
	refute_output --partial '--replicas'
	run -78 rlock check --replicas 1
	assert_line --regexp '^BAD +replicas +0, but --replicas needs 1; start replicas, or lower --replicas$'
}

@test "the lock is in the URL's database on the master, whatever the order of the sentinels; status and list read it there" {
	local backwards
	backwards=redis+sentinel://$(tr , '\n' <<<"$SENTINELS" | tac | paste -sd ,)/$SERVICE/3
	run -3 rlock run -u "$RLOCK_URL/3" a -- sh -c '
		rlock run -n -u "$0" a -- redis-cli -s "$SERVER_SOCKET" -n 3 hvals a
		exit 3' "$backwards"
	assert_output 2
	no_keys
	rlock lock --owner ci --lease 60s a
	run -0 rlock status --json a
	assert_output --partial "\"server\":\"redis://127.0.0.1:$(port_of 1)/0\""
	run -0 rlock list
	assert_line --regexp '^a +plain '
	set_master "$(port_of 2)"
	run -1 rlock status a
	run -0 --separate-stderr rlock list
	assert_output ''
}

@test "--sentinel-map reaches the master when the sentinels name an address that is unreachable here" {
	set_master 6379 192.0.2.1
	run -0 rlock run --sentinel-map "192.0.2.2:6379=127.0.0.1:1,192.0.2.1:6379=127.0.0.1:$(port_of 2)" a -- \
		ask_redis "$(socket_of 2)" exists a
	assert_output 1
}

@test "sentinels have a login of their own; the one in the configuration file applies to its URL only" {
	local number denied="no sentinel names the master of $SERVICE: denied by redis://127.0.0.1:[0-9]+/0; the sentinels' user is given by --sentinel-user, and their password by --sentinel-password-file"
	printf 'SECRET\n' >password
	chmod 600 password
	printf '%s\n' "url = $RLOCK_URL" 'sentinel-user = me' "sentinel-password-file = $PWD/password" >conf
	for number in 1 2 3; do
		ask_sentinel "$number" acl setuser me on '>SECRET' +@all '&*'
		ask_sentinel "$number" acl setuser default '>SECRET'
	done
	refused 77 "$RLOCK_URL" "$denied"
	run -0 rlock run --sentinel-password-file password a -- true
	run -0 rlock run --sentinel-user me --sentinel-password-file password a -- true
	run -77 rlock run --sentinel-user you --sentinel-password-file password a -- true
	run -77 rlock run --config conf a -- true
	unset RLOCK_URL
	run -0 rlock run --config conf a -- true
}

@test "a lock stays held when the sentinels' password changes together with its file" {
	local number
	printf 'SECRET\n' >password
	chmod 600 password
	for number in 1 2 3; do ask_sentinel "$number" acl setuser default '>SECRET'; done
	in_background rlock run -t 12s --sentinel-password-file password a -- run_until_ended
	wait_until 5 has_child "$PID" run_until_ended
	printf 'OTHER\n' >password
	for number in 1 2 3; do
		REDISCLI_AUTH=SECRET ask_sentinel "$number" acl setuser default resetpass '>OTHER'
	done
	# Shorten the TTL, so that the next renewal can be recognised by it.
	redis_says 1 pexpire a 10000
	wait_until 10 is_renewed a 12000
	printf 'WRONG\n' >password
	# A renewal is due within this time.
	stays_true_for 4.5 is_running "$PID"
	run -77 rlock run -n --sentinel-password-file password b -- true
	end_commands
	ended_with 0
}

@test "the URL's password is sent to the master only, to no sentinel" {
	redis config set requirepass MASTER >/dev/null
	run -0 rlock run -u "${RLOCK_URL/:\/\//://:MASTER@}" a -- true
	run -77 rlock run a -- true
}

# ---- errors ----

@test "rlock exits with 78 if no sentinel knows the service, or the server is no sentinel; with 69 if none is reachable, or the master is a replica" {
	local none="no sentinel names the master of"
	refused 78 "redis+sentinel://$SENTINELS/other" "$none other: redis://127.0.0.1:[0-9]+/0 knows no service of that name"
	refused 78 "redis+sentinel://127.0.0.1:$(port_of 1)/$SERVICE" \
		"$none $SERVICE: redis://127.0.0.1:$(port_of 1)/0 is no sentinel: sentinels listen on port 26379 by default"
	refused 78 "redis://${SENTINELS%%,*}" \
		'denied by the server: it runs no scripts; if it is a sentinel, its URL is redis\+sentinel://HOST:PORT/SERVICE: ERR unknown command .*'
	choose_port
	refused 69 "redis+sentinel://127.0.0.1:$PORT/$SERVICE" "$none $SERVICE: cannot reach redis://127.0.0.1:$PORT/0: Connection refused"
	set_master "$PORT"
	refused 69 "$RLOCK_URL" "cannot reach redis://127.0.0.1:$PORT/0: Connection refused: the sentinels name it; if its address from here is another one, give --sentinel-map"
	RLOCK_SENTINEL_MAP=127.0.0.1:$PORT=127.0.0.1:1 refused 69 "$RLOCK_URL" \
		"cannot reach redis://127.0.0.1:1/0: Connection refused: it is the sentinels' answer, translated by the map"
	on 2 redis replicaof 127.0.0.1 "$(port_of 1)"
	set_master "$(port_of 2)"
	refused 69 "$RLOCK_URL" 'its sentinels name a master that is a replica: a failover is under way'
	on 2 redis replicaof no one
}

# ---- sentinels that are dead, or know less than others ----

@test "a grant needs half of the sentinels in the URL; sentinels that do not answer cause no delay, and are retried within --wait" {
	freeze_sentinels 1
	takes_less_than 10 rlock run --connect-timeout 20s a -- true
	takes_less_than 10 rlock run --connect-timeout 20s -u "redis+sentinel://$(cut -d , -f 1-2 <<<"$SENTINELS")/$SERVICE" a -- true
	freeze_sentinels 3
	run -69 rlock run -n --connect-timeout 3s a -- touch begun
	assert_one_line '^rlock: a: 1 of 3 sentinels names the master; a grant needs the majority of them: no answer from .*$'
	freeze_sentinels 2
	run -69 rlock run -n --connect-timeout 0.4s a -- touch begun
	assert_one_line "^rlock: a: no sentinel names the master of $SERVICE: no answer from redis://127.0.0.1:[0-9]+/0 in time(; .*)?$"
	assert [ ! -e begun ]
	in_background rlock run -w 20s --connect-timeout 0.4s a -- touch entered
	stays_true_for 1 is_running "$PID"
	thaw_sentinels
	ended_with 0
	assert [ -e entered ]
}

@test "a grant that the sentinels do not confirm is released although the server is slow" {
	# The proxy makes it slow to open a connection, and rlock must open one again before it can release.
	start_realtime_proxy tcp:127.0.0.1:0
	proxy far 350
	freeze_sentinels 1
	freeze_sentinels 3
	run -69 rlock run -n -t 60s --connect-timeout 3s --sentinel-map "127.0.0.1:$(port_of 1)=127.0.0.1:$PROXY_PORT" a -- touch begun
	assert_one_line '^rlock: a: 1 of 3 sentinels names the master; a grant needs the majority of them: no answer from .*$'
	assert [ ! -e begun ]
	# The proxy can deliver the release after rlock has ended.
	wait_until 5 is_free a
}

@test "a waiter that is granted the lock while no sentinel answers leaves no hold when its wait ends" {
	hold_by_foreign_client a
	in_background rlock run -w 15s --connect-timeout 1s -t 60s a -- touch begun
	wait_until 10 has_waiters a
	run_waiter_in_real_time "$PID"
	# What the sentinels have answered confirms replies for one second.
	pause_for 1.2
	freeze_sentinels 1 2 3
	release_by_foreign_client a
	ended_with 69
	wait_until 5 is_free a
	refute file_exists begun
}

@test "rlock reads locks at the master of the latest epoch, and acquires none before most sentinels name that master" {
	# Let the sentinels forget each other: otherwise the third one would send its epoch to the others.
	ask_sentinel 3 sentinel remove "$SERVICE"
	ask_sentinel 1 sentinel reset "$SERVICE"
	ask_sentinel 2 sentinel reset "$SERVICE"
	set_master_at 3 2 99
	on 2 hold_by_foreign_client a
	# A sentinel that answers late is not awaited for a read.
	wait_until 10 rlock status a
	release_by_foreign_client a
	on 2 release_by_foreign_client a
	# A third sentinel that answers after the two that agree does not count, and the lock is rightly granted. So delay one of the two
	# by more than a busy machine delays the third.
	start_proxy_between tcp:127.0.0.1:0 "tcp:${SENTINELS%%,*}"
	proxy delay 2000
	export RLOCK_URL=redis+sentinel://${LISTENED#tcp:},${SENTINELS#*,}/$SERVICE
	# Set a short lease: on a slow machine the lock of the call that is refused below can stay until its lease ends.
	echo 'ttl = 3s' >conf
	export RLOCK_CONFIG=$PWD/conf
	run -69 rlock run -n a -- touch begun
	assert_one_line "^rlock: a: the sentinels do not agree: 1 of 3 names $(server_at 2) \(config-epoch 99\), (2 of 3 name|1 of 3 names) $(server_at 1) \(config-epoch 0\); wait for the end of a failover, or compare SENTINEL MASTER $SERVICE on each of them\$"
	assert [ ! -e begun ]
	in_background rlock run -t 9s -w 20s a -- ask_redis "$(socket_of 2)" exists a
	stays_true_for 2 is_running "$PID"
	set_master_at 2 2
	ended_with 0
}

@test "of two sentinels the one that answers late is awaited before a grant, as it may name another master" {
	local late
	set_master_at 2 2
	start_proxy_between tcp:127.0.0.1:0 "tcp:$(cut -d , -f 2 <<<"$SENTINELS")"
	run_in_real_time "$PID"
	proxy delay 400
	late=${LISTENED#tcp:}
	refused 69 "redis+sentinel://$late,${SENTINELS%%,*}/$SERVICE" 'the sentinels do not agree: .*'
	refused 69 "redis+sentinel://${SENTINELS%%,*},$late/$SERVICE" 'the sentinels do not agree: .*'
}

# check_finds PATTERN: whether `rlock check` finds no fault, and prints a line that matches.
check_finds() {
	rlock check >checked && grep -qE "$1" checked
}

@test "nothing is granted when no majority of the sentinels names one master, or two sentinels disagree" {
	local one disagree
	one="1 of [23] names redis://127.0.0.1:($(port_of 1)|$(port_of 2))/0 \(config-epoch 0\)"
	disagree="the sentinels do not agree: $one, $one; .*"
	set_master_at 2 2
	refused 69 "$(sentinels_url 1 2)" "$disagree"
	refused 69 "$(sentinels_url 2 1)" "$disagree"
	run -69 rlock check -u "$(sentinels_url 1 2)"
	assert_line --regexp "^BAD +sentinels +$disagree"
	ask_sentinel 3 sentinel remove "$SERVICE"
	refused 69 "$RLOCK_URL" "$disagree"
	set_master_at 3 2
	run -0 rlock run a -- ask_redis "$(socket_of 2)" exists a
	assert_output 1
	# On a busy machine the sentinel that names the other master may answer long before the others.
	wait_until 20 check_finds "^note +sentinels +3 of 3 answered, but only 2 name the master: it is $(server_at 2)\$"
	freeze_sentinels 3
	PATIENCE=3s refused 69 "$RLOCK_URL" "$disagree"
	freeze_sentinels 1
	run -0 rlock run -w 20s -u "$(sentinels_url 1 2)" --connect-timeout 1s a -- ask_redis "$(socket_of 2)" exists a
	assert_output 1
}

# has_reached NUMBER: whether this master has granted the lock, or rlock has ended. In the first case adds the number to REACHED, and sets
# GRANTED_US to the time of the grant.
has_reached() {
	local now_us=${EPOCHREALTIME/./}
	on "$1" ask_server pttl a
	if ((ANSWER > 0)); then
		REACHED+=$1
		GRANTED_US=$((now_us - (30000 - ANSWER) * 1000))
	else
		is_gone "$PID"
	fi
}

# note_if_late: sets LATE if a sentinel was continued 0.8 s or more after the grant. One second after it rlock rightly grants the lock by the
# other sentinel alone.
note_if_late() {
	((${EPOCHREALTIME/./} - GRANTED_US < 800000)) || LATE=yes
}

@test "a call whose sentinels disagree leaves no hold, also when its two attempts reach two masters" {
	local LATE GRANTED_US REACHED=
	set_master_at 2 2
	# On a busy machine the sentinels may be stopped and continued too late for the second attempt.
	for _ in {1..25}; do
		LATE=no GRANTED_US=0 REACHED=
		rm -f begun
		freeze_sentinels 1
		record_stderr rlock run -n --connect-timeout 8s -u "$(sentinels_url 1 2)" a -- touch begun
		POLL_US=10000 wait_until 8 has_reached 2
		freeze_sentinels 2
		signal_sentinels CONT 1
		note_if_late
		POLL_US=10000 wait_until 8 has_reached 1
		signal_sentinels CONT 2
		note_if_late
		wait_until 30 is_gone "$PID"
		wait_until 5 on 1 is_free a
		wait_until 5 on 2 is_free a
		[ "$REACHED $LATE" != '21 no' ] || break
	done
	assert_equal "$REACHED $LATE" '21 no'
	ended_with 69
	refute file_exists begun
}

# start_callers COUNT: starts callers that record in files what they find when they have acquired the lock.
start_callers() {
	local number
	for ((number = 1; number <= $1; number++)); do
		in_background rlock run -w 60s --connect-timeout 1s a -- sh -c 'mkdir inside || touch overlap
			echo >>"grants-$(ask_redis "$0" exists a)"; run_until_ended; rmdir inside' "$(socket_of 2)"
		callers+=("$PID")
	done
}

@test "six callers of one URL never hold the lock at the same time while the sentinels name two masters" {
	local number first callers=()
	# The sentinel that rlock queries first names one master, both others name another one.
	first=$(tr , '\n' <<<"$SENTINELS" | nl | sort -t : -k 2n | awk '{ print $1; exit }')
	for number in 1 2 3; do
		[ "$number" = "$first" ] || set_master_at "$number" 2
	done
	freeze_sentinels $((first % 3 + 1))
	start_callers 3
	stays_true_for 1 [ ! -e inside ]
	thaw_sentinels
	freeze_sentinels "$first"
	start_callers 3
	wait_until 10 [ -e grants-1 ]
	end_commands
	for number in "${callers[@]}"; do ended_with 0 "$number"; done
	assert [ ! -e overlap ]
	assert [ ! -e grants-0 ]
	assert_equal "$(wc -l <grants-1)" 6
}

@test "a lock is renewed while the sentinels disagree" {
	in_background rlock run -t 9s a -- run_until_ended
	wait_until 5 has_child "$PID" run_until_ended
	# First sentinel 1 disagrees, then sentinel 2. rlock sorts the sentinels of the URL, so either can be the one that it asks first.
	set_master_at 1 2
	# Shorten the TTL, so that the next renewal can be recognised by it.
	redis_says 1 pexpire a 8000
	wait_until 8 is_renewed a 9000
	set_master_at 1 1
	set_master_at 2 2
	freeze_sentinels 3
	redis_says 1 pexpire a 8000
	wait_until 8 is_renewed a 9000
	is_running "$PID"
	end_commands
	ended_with 0
}

# lead_to_old_master: closes the connections, and lets only sentinel 2 answer, which names server 2. EVALUATED: the scripts that this
# server has run. The test gets a real-time priority: rlock gives up a release after 5 s, and the sentinels must be continued before that.
lead_to_old_master() {
	run_in_real_time "$BASHPID"
	set_master_at 2 2
	freeze_sentinels 1 3
	EVALUATED=$(on 2 calls_of evalsha)
	redis client kill type normal skipme yes >/dev/null
}

has_reached_old_master() {
	(($(on 2 calls_of evalsha) > EVALUATED))
}

@test "a renewal at an old master, which one sentinel still names, is no loss of the lock" {
	in_background rlock run -t 18s a -- run_until_ended
	wait_until 5 has_child "$PID" run_until_ended
	lead_to_old_master
	wait_until 12 has_reached_old_master
	stays_true_for 1 is_running "$PID"
	thaw_sentinels
	# The renewal was due when 12 s were left.
	wait_until 10 ttl_is_above a 13000
	end_commands
	ended_with 0
}

@test "a release at an old master, which one sentinel still names, is repeated at the master" {
	record_stderr rlock run -t 60s a -- run_until_ended
	wait_until 5 has_child "$PID" run_until_ended
	lead_to_old_master
	end_commands
	wait_until 5 has_reached_old_master
	thaw_sentinels
	ended_with 0
	stderr_is_empty
	is_free a
}

@test "unlock by owner looks for the hold at the master when one sentinel still names an old one" {
	rlock lock --owner job --lease 60s a
	lead_to_old_master
	record_stderr rlock unlock --owner job a
	wait_until 5 has_reached_old_master
	thaw_sentinels
	ended_with 0
	stderr_is_empty
	is_free a
}

# start_sockets NAME...: starts servers for this test alone, and waits until they have run for longer than a lease of 9 s.
start_sockets() {
	local name
	for name; do
		in_background redis-server --port 0 --unixsocket "$PWD/$name" --save '' --appendonly no --dir "$PWD" --logfile ''
		run_in_real_time "$PID"
	done
	for name; do
		wait_until 20 has_run_for "$name" 11
	done
} >/dev/null

has_run_for() {
	[[ $(redis-cli -s "$1" info server 2>/dev/null) =~ uptime_in_seconds:([0-9]+) ]] && [ "${BASH_REMATCH[1]}" -ge "$2" ]
}

@test "a server of several that lost the lock grants it again only when most of its sentinels name that server" {
	start_sockets x y
	in_background rlock run --quorum majority -t 9s -u "$RLOCK_URL unix://$PWD/x unix://$PWD/y" a -- run_until_ended
	wait_until 5 has_child "$PID" run_until_ended
	set_master_at 2 2
	freeze_sentinels 3
	redis flushall >/dev/null
	stays_true_for 4 is_free a
	thaw_sentinels
	wait_until 10 is_held a
	end_commands
	ended_with 0
}

@test "a sentinel that the URL names twice counts once" {
	local address port
	address=${SENTINELS%%,*}
	port=${address#*:}
	set_master_at 2 2
	refused 69 "redis+sentinel://127.1:$port,$(cut -d , -f 1-2 <<<"$SENTINELS")/$SERVICE" 'the sentinels do not agree: .*'
	set_master_at 2 1
	run -0 rlock run -u "redis+sentinel://127.1:$port,$(cut -d , -f 1-2 <<<"$SENTINELS")/$SERVICE" a -- true
	freeze_sentinels 2
	PATIENCE=3s refused 69 "redis+sentinel://127.1:$port,$(cut -d , -f 1-2 <<<"$SENTINELS")/$SERVICE" \
		'1 of 3 sentinels names the master; a grant needs the majority of them: .*'
}

@test "sentinels that name the master by its host and by its address agree" {
	local number
	for number in 1 2; do
		ask_sentinel "$number" sentinel config set resolve-hostnames yes
		ask_sentinel "$number" sentinel config set announce-hostnames yes
		ask_sentinel "$number" sentinel remove "$SERVICE"
	done
	ask_sentinel 1 sentinel monitor "$SERVICE" localhost "$(port_of 1)" 2
	ask_sentinel 3 sentinel remove "$SERVICE"
	ask_sentinel 2 sentinel monitor "$SERVICE" 127.0.0.1 "$(port_of 1)" 2
	run -0 rlock run -w 20s -u "$(sentinels_url 1 2)" a -- ask_redis "$(socket_of 1)" exists a
	assert_output 1
	for number in 1 2; do
		ask_sentinel "$number" sentinel config set announce-hostnames no
		ask_sentinel "$number" sentinel config set resolve-hostnames no
	done
}

@test "a lock is renewed with one sentinel of three, and stays held while all are down for less than its lease" {
	in_background rlock run -w 20s -t 15s --connect-timeout 0.5s a -- run_until_ended
	wait_until 5 has_child "$PID" run_until_ended
	freeze_sentinels 1 3
	# A renewal is due within this time.
	stays_true_for 5.5 is_running "$PID"
	await_renewal a 15000
	freeze_sentinels 2
	# A renewal is due within this time. The TTL does not show whether it succeeded: the server renews the lock, but no sentinel
	# confirms that this is the master.
	stays_true_for 5.2 is_running "$PID"
	thaw_sentinels
	await_renewal a 15000
	freeze_sentinels 1 2 3
	ended_with 76
}

@test "a holder leaves the queue of a server that most sentinels do not confirm, although a quorum without it grants the lock" {
	local number urls
	start_proxy_between "unix:$PWD/proxy.sock" "unix:$(socket_of 3)"
	run_in_real_time "$PID"
	urls="$RLOCK_URL unix://$(socket_of 2) unix://$PWD/proxy.sock"
	# A server that has run for a shorter time than the lease does not count.
	wait_until 30 is_older 3 13
	for number in 1 2 3; do on "$number" redis hset a other:1 1 >/dev/null; done
	in_background rlock run --quorum majority -t 12s -w 60s -u "$urls" a -- run_until_ended
	for number in 1 2 3; do wait_until 5 on "$number" has_waiters a; done
	# A new renewer could not connect to the first server: it must not become necessary.
	run_waiter_in_real_time "$PID"
	freeze_sentinels 2 3
	# rlock uses the sentinels' last replies for a second.
	pause_for 1.1
	# Let the holder on the first server be new. A new holder can be one without a quorum, so rlock tries there once more.
	redis hset 'rlock_holds:{a}' 0123456789abcdef0123456789abcdef "other:1 $(($(server_ms) + 60000)) $(($(server_ms) + 60000)) - - x" \
		>/dev/null
	# rlock waits for the reply of the first server for as long as for those of a quorum.
	proxy delay 1500
	# Connections that rlock has keep their rights, but it can open no other one.
	redis config set requirepass MASTER >/dev/null
	for number in 2 3; do
		on "$number" redis del a >/dev/null
		on "$number" redis publish 'redisson_lock__channel:{a}' 0 >/dev/null
	done
	wait_until 10 has_child "$PID" run_until_ended
	export REDISCLI_AUTH=MASTER
	wait_until 5 redis_says 0 exists 'rlock_queue:{a}'
	end_commands
	ended_with 0
	redis_says 1 hget a other:1
}

# ---- another master while a lock is waited for or held ----

@test "no command starts on a grant of a server that is no longer the master" {
	hold_by_foreign_client a
	on 2 hold_by_foreign_client a
	in_background rlock run -w 12s a -- touch begun
	wait_until 5 has_waiters a
	set_master "$(port_of 2)"
	# rlock uses the sentinels' last replies for a second.
	pause_for 1.1
	redis del a >/dev/null
	redis publish 'redisson_lock__channel:{a}' 0 >/dev/null
	ended_with 75
	assert [ ! -e begun ]
}

@test "no command starts on a grant of a server that was replaced while rlock connected to it" {
	local tries
	find_server 1
	# rlock must get the grant within a second after it has asked the sentinels. On a busy machine that needs several tries.
	for ((tries = 5; tries > 0; tries--)); do
		set_master "$(port_of 1)"
		kill -STOP "$PID_OF_SERVER"
		rm -f stderr found
		record_stderr rlock run -v -w 20s -t 6s a -- sh -c 'ask_redis "$0" exists a >found' "$(socket_of 2)"
		wait_until 10 grep -qs 'the sentinels name ' stderr
		set_master "$(port_of 2)"
		kill -CONT "$PID_OF_SERVER"
		ended_with 0
		assert_equal "$(<found)" 1
	done
}

@test "after a failover the lock is held at the new master, and a waiter notices it within seconds and acquires the lock there" {
	local holder
	on 2 redis replicaof 127.0.0.1 "$(port_of 1)"
	in_background rlock run -t 12s a -- run_until_ended
	holder=$PID
	wait_until 10 on 2 is_held a
	in_background rlock run -w 60s a -- touch entered
	wait_until 5 has_waiters a
	on 2 redis replicaof no one
	set_master "$(port_of 2)"
	wait_until 9 on 2 has_waiters a
	wait_until 8 on 2 is_renewed a 12000
	assert [ ! -e entered ]
	end_commands
	ended_with 0 "$holder"
	ended_with 0
	assert [ -e entered ]
	on 2 no_keys
}

@test "a lock unknown to the new master is lost, and its command terminated; a release that only the old master got does not count" {
	record_stderr rlock run -t 12s a -- sh -c 'echo $$ >inner; exec run_until_ended'
	wait_until 5 [ -s inner ]
	set_master "$(port_of 2)"
	ended_with 76
	is_gone "$(<inner)"
	stderr_is_one_line '^rlock: a: lock lost at .*: it expired or was deleted on the server; terminating the command; '
	in_background rlock run -t 20s b -- run_until_ended
	wait_until 5 has_child "$PID" run_until_ended
	pause_for 1.1
	set_master "$(port_of 1)"
	end_commands
	ended_with 76
}

# ---- TLS ----

@test "the certificates of sentinels and of their master are both verified" {
	local dir=$BATS_TEST_TMPDIR/certificates url
	create_certificates "$dir"
	own_tls_pair "$dir" server server
	url=rediss+sentinel://localhost:$SENTINEL_PORT/$SERVICE
	run -0 rlock run -u "$url?cacert=$dir/ca.crt" a -- true
	refused 78 "$url" \
		"no sentinel names the master of $SERVICE: cannot connect to rediss://localhost:$SENTINEL_PORT/0: .*certificate.*"
	mkdir other
	cd other || return
	own_tls_pair "$dir" server other
	refused 78 "rediss+sentinel://localhost:$SENTINEL_PORT/$SERVICE?cacert=$dir/ca.crt" \
		"cannot connect to rediss://127.0.0.1:$PORT/0: .*certificate.*"
}
