#!/usr/bin/env bats
# bats file_tags=long
# Sentinels: the server that they name is used, and what it granted while they named another one does not count.

# In single quotes stand whole scripts; each test is a subshell, and knows that.
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2153,SC2154

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/certificates
load ../lib/sentinels

setup_file() {
	start_masters 2
	start_sentinels 3
}

teardown_file() {
	stop_sentinels
	stop_servers
}

setup() {
	directory_setup
	on 2 redis flushall >/dev/null
	name_master "$(port_of 1)"
}

teardown() {
	thaw_server 1
	thaw_sentinels
	REDISCLI_AUTH=MASTER redis config set requirepass '' >/dev/null 2>&1
	forget_sentinel_login
	watchful_teardown
}

# all_nodes_are_empty: no key of a lock is left on either server.
all_nodes_are_empty() {
	no_keys && on 2 no_keys
}

# tell_of_failover NUMBER PORT: this sentinel alone has heard that another server is the master now.
tell_of_failover() {
	on_sentinel "$1" publish __sentinel__:hello \
		"127.0.0.1,1,$(printf '%040d' 7),99,$SERVICE,127.0.0.1,$2,99" >/dev/null
	wait_until 5 names_port "$1" "$2"
}

names_port() {
	ask_sentinel "$1" sentinel get-master-addr-by-name "$SERVICE" && [ "${ANSWER##*$'\n'}" = "$2" ]
}

# says_its_role: the server was asked since its statistics were reset.
says_its_role() {
	ask_server info commandstats && [[ $ANSWER = *cmdstat_role:* ]]
}

# The sentinels want SECRET from here on, of clients without a user, and of the user me.
require_sentinel_login() {
	local number
	for number in 1 2 3; do
		ask_sentinel "$number" acl setuser me on '>SECRET' +@all '&*'
		ask_sentinel "$number" acl setuser default '>SECRET'
	done
}

forget_sentinel_login() {
	local number
	local -x REDISCLI_AUTH=SECRET
	for number in 1 2 3; do
		# Where none is wanted the password is wrong, and everything allowed.
		ask_sentinel "$number" acl setuser default nopass 2>/dev/null || :
	done
}

# own_tls_pair DIR SENTINEL MASTER: a sentinel of this test alone with that certificate of DIR, on SENTINEL_PORT, whose
# master has that one, on PORT. Neither is reached in clear.
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

# ---- use ----

@test "check says which master the sentinels name, and how many of them answered" {
	run -0 rlock check
	assert_line --regexp "^ok +sentinels +3 of 3 answered, the master is redis://127.0.0.1:$(port_of 1)/0\$"
	assert_line --regexp '^note +replicas +0, but no lock waits for them: .* try: --replicas 1$'
	freeze_sentinels 3
	run -0 rlock check --connect-timeout 1s
	assert_line --regexp '^note +sentinels +2 of 3 answered'
	freeze_sentinels 2
	run -69 rlock check --connect-timeout 1s
	assert_line --regexp '^BAD +sentinels +1 of 3 answered'
}

@test "the lock is on the server that the sentinels name, and its exit status is the command's" {
	run -3 rlock run a -- sh -c 'ask_redis "$SERVER_SOCKET" exists a; exit 3'
	assert_output 1
	all_nodes_are_empty
}

@test "every verb that locks works behind sentinels" {
	local verb
	for verb in run lock fair rlock wlock; do
		run -0 rlock "$verb" a -- true
	done
	run -0 bash -c 'rlock lock --pid $$ a && rlock renew a && rlock unlock a'
	assert_output --regexp '^(30|29\.[0-9]+)s$'
	all_nodes_are_empty
}

@test "status and list look at the master that the sentinels name" {
	rlock lock --owner ci --lease 60s a
	run -0 rlock status --json a
	assert_output --partial "\"server\":\"redis://127.0.0.1:$(port_of 1)/0\""
	run -0 rlock list
	assert_line --regexp '^a +plain '
	name_master "$(port_of 2)"
	run -1 rlock status a
	run -0 --separate-stderr rlock list
	assert_output ''
}

@test "a lock is re-entered inside, in whatever order the sentinels are named" {
	local backwards
	backwards=redis+sentinel://$(tr , '\n' <<<"$SENTINELS" | tac | paste -sd ,)/$SERVICE
	run -0 rlock run a -- rlock run -n -u "$backwards" a -- ask_redis "$SERVER_SOCKET" hvals a
	assert_output 2
	all_nodes_are_empty
}

@test "a waiter behind sentinels is woken by the release" {
	hold_in_background a
	in_background rlock run a -- touch entered
	wait_until 5 has_waiters a
	let_go
	wait_until 5 file_exists entered
	wait_until 5 all_nodes_are_empty
}

@test "a database and a client's name behind sentinels are as on one server" {
	run -0 rlock run -u "$RLOCK_URL/3" a -- redis-cli -s "$SERVER_SOCKET" -n 3 exists a
	assert_output 1
}

@test "with -v it is said which server the sentinels name" {
	run -0 --separate-stderr rlock run -v a -- true
	assert_regex "$stderr" "the sentinels name redis://127.0.0.1:$(port_of 1)/0"
}

# ---- sentinels that are dead, or know less than others ----

@test "a sentinel that is frozen delays no lock" {
	freeze_sentinels 2
	took_less 4 rlock run a -- true
}

@test "without a wait time the sentinels are not queried again when that took too long to do it twice in 2 s" {
	freeze_sentinels 2 3
	run -69 rlock run -nv a -- touch ran
	assert_line --partial '1 of 3 sentinels has answered: a grant needs the majority of them'
	assert_equal "$(grep -c 'asking to acquire' <<<"$output")" 1
	assert [ ! -e ran ]
}

@test "a grant needs the majority of three sentinels, as a minority may not have heard of a failover" {
	freeze_sentinels 1 3
	run -69 rlock run --connect-timeout 0.4s a -- touch begun
	assert_one_line '^rlock: a: 1 of 3 sentinels has answered: a grant needs the majority of them(: .*)?$'
	assert [ ! -e begun ]
	all_nodes_are_empty
	thaw_sentinels
	run -0 rlock run a -- true
}

@test "one sentinel of two is enough, and delays a lock by less than the connect timeout" {
	freeze_sentinels 1
	took_less 4 rlock run -u "redis+sentinel://$(cut -d , -f 1-2 <<<"$SENTINELS")/$SERVICE" a -- true
	all_nodes_are_empty
}

@test "a lock is renewed and released with one sentinel of three" {
	in_background rlock run -t 2s --connect-timeout 0.3s a -- until_let_go
	wait_until 5 is_held a
	freeze_sentinels 1 3
	stays 3 is_running "$PID"
	let_go
	ended_with 0 "$PID"
	all_nodes_are_empty
}

@test "a sentinel that has gone delays no lock" {
	choose_port
	took_less 4 rlock run -u "redis+sentinel://127.0.0.1:$PORT,$SENTINELS/$SERVICE" a -- true
}

@test "rlock ends with 69 at once when no sentinel can be reached, and names one" {
	choose_port
	run -69 rlock run -u "redis+sentinel://127.0.0.1:$PORT/$SERVICE" a -- touch begun
	assert_one_line "^rlock: a: no sentinel names the master of $SERVICE: cannot reach redis://127.0.0.1:$PORT/0: Connection refused$"
	assert [ ! -e begun ]
}

@test "rlock ends with 69 after the connect timeout when all sentinels are frozen" {
	freeze_sentinels 1 2 3
	run -69 rlock run --connect-timeout 0.4s a -- touch begun
	assert_one_line "^rlock: a: no sentinel names the master of $SERVICE: no answer from redis://127.0.0.1:[0-9]+/0 in time(: .*)?$"
	assert [ ! -e begun ]
}

@test "sentinels that come back within the wait time are queried once more" {
	freeze_sentinels 1 2 3
	in_background rlock run -w 20s --connect-timeout 0.4s a -- touch entered
	stays 1 is_running "$PID"
	thaw_sentinels
	ended_with 0 "$PID"
	assert [ -e entered ]
}

@test "the answer of the latest configuration counts" {
	tell_of_failover 2 "$(port_of 2)"
	freeze_sentinels 3
	run -0 rlock run a -- ask_redis "$(socket_of 2)" exists a
	assert_output 1
}

# ---- what is wrong ----

@test "a service that the sentinels do not know: 78" {
	run -78 rlock run -u "redis+sentinel://$SENTINELS/other" a -- touch begun
	assert_one_line '^rlock: a: no sentinel names the master of other: redis://127.0.0.1:[0-9]+/0 knows no service of that name$'
	assert [ ! -e begun ]
}

@test "a server that is no sentinel: 78" {
	run -78 rlock run -u "redis+sentinel://127.0.0.1:$(port_of 1)/$SERVICE" a -- touch begun
	assert_one_line "^rlock: a: no sentinel names the master of $SERVICE: redis://127.0.0.1:$(port_of 1)/0 is no sentinel: sentinels listen on port 26379 by default$"
	assert [ ! -e begun ]
}

@test "a sentinel that is taken for a server: 78, and its URL" {
	run -78 rlock run -u "redis://${SENTINELS%%,*}" a -- touch begun
	assert_one_line '^rlock: a: denied by the server: it runs no scripts: is it a sentinel\? Its URL is redis\+sentinel://HOST:PORT/SERVICE: ERR unknown command .*$'
	assert [ ! -e begun ]
}

@test "sentinels that name a replica: 69, and a failover is told" {
	on 2 redis replicaof 127.0.0.1 "$(port_of 1)"
	name_master "$(port_of 2)"
	run -69 rlock run a -- touch begun
	on 2 redis replicaof no one
	assert_one_line '^rlock: a: its sentinels name a master that is a replica: a failover is under way$'
	assert [ ! -e begun ]
}

@test "a master that cannot be reached is named" {
	choose_port
	name_master "$PORT"
	run -69 rlock run a -- touch begun
	assert_one_line "^rlock: a: cannot reach redis://127.0.0.1:$PORT/0: Connection refused: the server is from RLOCK_URL$"
	assert [ ! -e begun ]
}

@test "options for sentinels without one are refused, with the URL that has some" {
	run -64 rlock run -u "unix://$SERVER_SOCKET" --sentinel-user me a -- true
	assert_one_line '^rlock: --sentinel-user is for sentinels, and unix://.* has none: name the server by a URL like redis\+sentinel://HOST:26379/SERVICE$'
	printf '%s\n' "url = unix://$SERVER_SOCKET" 'sentinel-map = a:1=b:2' >conf
	unset RLOCK_URL
	run -78 rlock run --config conf a -- true
	assert_one_line '^rlock: .*conf: sentinel-map is for sentinels, and unix://.* has none: add url = redis\+sentinel://HOST:26379/SERVICE$'
}

# ---- a NAT ----

@test "sentinel-map leads to the server where the sentinels' address is not ours" {
	name_master 6379 192.0.2.1
	run -0 rlock run --sentinel-map "192.0.2.2:6379=127.0.0.1:1,192.0.2.1:6379=127.0.0.1:$(port_of 2)" a -- \
		ask_redis "$(socket_of 2)" exists a
	assert_output 1
	# It goes on to be the one that they name.
	run -0 rlock run -t 3s --sentinel-map "192.0.2.1:6379=127.0.0.1:$(port_of 2)" a -- sleep 1.5
}

# ---- logins ----

@test "sentinels have a login of their own" {
	printf 'SECRET\n' >password
	chmod 600 password
	require_sentinel_login
	run -77 rlock run a -- touch begun
	assert_one_line "^rlock: a: no sentinel names the master of $SERVICE: denied by redis://127.0.0.1:[0-9]+/0: the sentinels' user is given by --sentinel-user, and their password by --sentinel-password-file$"
	run -0 rlock run --sentinel-password-file password a -- true
	run -0 rlock run --sentinel-user me --sentinel-password-file password a -- true
	run -77 rlock run --sentinel-user you --sentinel-password-file password a -- touch begun
	assert_one_line "^rlock: a: no sentinel names the master of $SERVICE: denied by redis://127.0.0.1:[0-9]+/0: the sentinels' user is given by .*$"
	assert [ ! -e begun ]
}

@test "the login at the sentinels stands in the configuration file, for the URL of that file alone" {
	printf 'SECRET\n' >password
	chmod 600 password
	printf '%s\n' "url = $RLOCK_URL" 'sentinel-user = me' "sentinel-password-file = $PWD/password" >conf
	require_sentinel_login
	run -77 rlock run --config conf a -- true
	unset RLOCK_URL
	run -0 rlock run --config conf a -- true
}

@test "the URL's password is the master's, and no sentinel sees it" {
	redis config set requirepass MASTER >/dev/null
	run -0 rlock run -u "${RLOCK_URL/:\/\//://:MASTER@}" a -- true
	run -77 rlock run a -- true
}

# ---- another master meanwhile ----

@test "no command begins on a grant of a server that is master no more" {
	held_by_stranger a
	on 2 held_by_stranger a
	in_background rlock run -w 6s a -- touch begun
	wait_until 5 has_waiters a
	name_master "$(port_of 2)"
	# What the sentinels said before counts for a second.
	let_pass 1.1
	redis del a >/dev/null
	redis publish 'redisson_lock__channel:{a}' 0 >/dev/null
	ended_with 75 "$PID"
	assert [ ! -e begun ]
}

@test "a waiter gets the lock from the new master" {
	held_by_stranger a
	redis pexpire a 6000
	in_background rlock run -w 20s a -- touch entered
	wait_until 5 has_waiters a
	name_master "$(port_of 2)"
	ended_with 0 "$PID"
	assert [ -e entered ]
	on 2 no_keys
}

@test "a waiter notices another master within seconds, however long the lease at the old one" {
	held_by_stranger a
	in_background rlock run -w 60s a -- touch entered
	wait_until 5 has_waiters a
	name_master "$(port_of 2)"
	wait_until 9 file_exists entered
	ended_with 0 "$PID"
}

@test "a waiter whose master falls silent gets the lock from the new one" {
	held_by_stranger a
	in_background rlock run -w 60s --connect-timeout 1s a -- touch entered
	wait_until 5 has_waiters a
	freeze_server 1
	name_master "$(port_of 2)"
	wait_until 12 file_exists entered
	thaw_server 1
	ended_with 0 "$PID"
}

@test "a lock that the new master does not know is lost, and the command is stopped" {
	in_background sh -c 'exec rlock run -t 3s a -- sh -c "echo \$\$ >inner; exec until_let_go" 2>said'
	wait_until 5 is_held a
	wait_until 5 [ -s inner ]
	name_master "$(port_of 2)"
	ended_with 76 "$PID"
	is_gone "$(<inner)"
	assert_regex "$(<said)" '^rlock: a: lock lost at .*: it expired or was deleted on the server: terminating the command: before you run it again, look at what is half done$'
}

@test "a lock that the new master knows is held on" {
	in_background rlock run -t 6s a -- until_let_go
	wait_until 5 is_held a
	on 2 redis replicaof 127.0.0.1 "$(port_of 1)"
	wait_until 10 on 2 is_held a
	on 2 redis replicaof no one
	name_master "$(port_of 2)"
	wait_until 6 on 2 is_renewed a 6000
	stays 1 is_running "$PID"
	let_go
	ended_with 0 "$PID"
	on 2 no_keys
}

@test "a lock is held on, and released, though the sentinels name a master before it is one" {
	in_background rlock run -t 12s a -- until_let_go
	holder=$PID
	wait_until 5 is_held a
	on 2 redis replicaof 127.0.0.1 "$(port_of 1)"
	wait_until 10 on 2 is_held a
	on 2 redis config resetstat
	name_master "$(port_of 2)"
	# The renewal meets a replica, and later the release.
	wait_until 6 on 2 says_its_role
	on 2 redis replicaof no one
	wait_until 8 on 2 is_renewed a 12000
	is_running "$holder"
	on 2 redis replicaof 127.0.0.1 "$(port_of 1)"
	on 2 redis config resetstat
	let_go
	wait_until 5 on 2 says_its_role
	is_running "$holder"
	on 2 redis replicaof no one
	ended_with 0 "$holder"
}

@test "a release that only a former master got is none" {
	in_background rlock run -t 20s a -- until_let_go
	wait_until 5 is_held a
	let_pass 1.1
	name_master "$(port_of 2)"
	let_go
	ended_with 76 "$PID"
}

@test "no answer of any sentinel in time: the lock counts as lost" {
	hold_in_background a -t 2s --connect-timeout 0.3s
	freeze_sentinels 1 2 3
	ended_with 76 "$PID"
}

@test "a holder survives sentinels that are gone for less than its lease" {
	in_background rlock run -t 12s --connect-timeout 0.3s a -- until_let_go
	wait_until 5 is_held a
	freeze_sentinels 1 2 3
	stays 4.5 is_running "$PID"
	thaw_sentinels
	wait_until 8 on 1 is_renewed a 12000
	stays 1 is_running "$PID"
	let_go
	ended_with 0 "$PID"
}

# ---- TLS ----

@test "sentinels and their master are reached over TLS, and both certificates are verified" {
	local dir=$BATS_TEST_TMPDIR/certificates url
	certificates "$dir"
	own_tls_pair "$dir" server server
	url=rediss+sentinel://localhost:$SENTINEL_PORT/$SERVICE
	run -0 rlock run -u "$url?cacert=$dir/ca.crt" a -- true
	run -78 rlock run -u "$url" a -- touch begun
	assert_one_line "^rlock: a: no sentinel names the master of $SERVICE: cannot connect to rediss://localhost:$SENTINEL_PORT/0: .*certificate.*$"
	assert [ ! -e begun ]
}

@test "a master whose certificate is for another name is refused, though its sentinel is trusted" {
	local dir=$BATS_TEST_TMPDIR/certificates
	certificates "$dir"
	own_tls_pair "$dir" server other
	run -78 rlock run -u "rediss+sentinel://localhost:$SENTINEL_PORT/$SERVICE?cacert=$dir/ca.crt" a -- touch begun
	assert_one_line "^rlock: a: cannot connect to rediss://127.0.0.1:$PORT/0: .*certificate.*$"
	assert [ ! -e begun ]
}

@test "renewals over TLS behind a sentinel hold the lock, from whatever directory" {
	local dir=certificates
	certificates "$dir"
	own_tls_pair "$PWD/$dir" server server
	run -0 rlock run -t 3s -u "rediss+sentinel://localhost:$SENTINEL_PORT/$SERVICE?cacert=$dir/ca.crt" a -- sleep 2.2
}

@test "a holder is stopped at the master that the sentinels name" {
	in_background rlock run -t 2s a -- until_let_go
	wait_until 10 is_above "$PID" until_let_go
	run -0 rlock stop a
	ended_with 124
	all_nodes_are_empty
}
