#!/usr/bin/env bats
# bats file_tags=long
# Redis Cluster: requests reach the node that owns the lock's slot, also after the slot has moved.

load ../lib/usual
load ../lib/certificates
load ../lib/clusters

setup_file() { start_cluster 3 --cluster-node-timeout 15000; }

# ---- use ----

@test "locks of all nodes can be held, re-entered with the nodes in another order, and released" {
	local name nodes backwards
	backwards=redis+cluster://$(tr ' ' '\n' <<<"$PORTS" | tac | sed 's/^/127.0.0.1:/' | paste -sd ,)
	for name in a b c; do
		nodes+="$(node_of "$name")"
		run -0 rlock run "$name" -- sh -c 'rlock run -n -u "$0" "$1" -- ask_redis "$2" hvals "$1"' \
			"$backwards" "$name" "$(socket_of "$(node_of "$name")")"
		assert_output 2
	done
	[[ $nodes = *1* && $nodes = *2* && $nodes = *3* ]]
	cluster_is_empty
	run -0 rlock sem --permits 1 a b c -- printenv RLOCK_SLOT
	assert_output $'1\n1\n1'
}

@test "run --owner re-enters the locks that an owner holds on several nodes, and leaves the owner what it held" {
	local name
	run -0 rlock lock --owner ci --lease 1m a b c
	in_background rlock run -n --owner ci -t 9s a b c -- run_until_ended
	wait_until 10 has_child "$PID" run_until_ended
	for name in a b c; do
		at_node_of "$name" has_hold_count "$name" 2
	done
	run -0 rlock unlock --owner ci a b c
	run -1 rlock unlock --owner ci a
	rlock lock --owner ci --lease 1m b
	end_commands
	ended_with 0
	at_node_of b has_hold_count b 1
	at_node_of b ttl_is_above b 30000
	run -0 rlock unlock --owner ci b
	cluster_is_empty
}

@test "a name whose braces would split its keys is refused before anything is sent" {
	local name
	for name in 'a}b' '{}a'; do
		run -64 rlock run "$name" -- touch begun
		assert_one_line '^rlock: .*: its braces put its keys into different slots of the cluster; take another name$'
	done
	run -0 rlock run 'a{b}c' -- true
	assert [ ! -e begun ]
	cluster_is_empty
}

@test "a redis:// URL of a cluster node is refused with 78 and the right URL, also by check" {
	local port=${PORTS%% *} name
	name=$(name_at 2)
	run -78 rlock run -u "redis://127.0.0.1:$port" "$name" -- touch begun
	assert_one_line "^rlock: $name: denied by the server: this is a node of a cluster; its URL is redis\+cluster://HOST:PORT: MOVED .*$"
	assert [ ! -e begun ]
	run -78 rlock check -u "redis://127.0.0.1:$port" "$(name_at 1)"
	assert_line --regexp "^BAD +role +master, one node of a cluster: it denies most names; try: -u redis\\+cluster://127.0.0.1:$port\$"
}

# name_at NUMBER: prints a name whose slot this node owns.
name_at() {
	local name
	for name in a b c d e f g h; do [ "$(node_of "$name")" != "$1" ] || break; done
	echo "$name"
}

@test "a cluster is reached over TLS, and its certificate is verified" {
	export CERTIFICATES=$BATS_TEST_TMPDIR/certificates
	BATS_FILE_TMPDIR=$BATS_TEST_TMPDIR/alone
	create_certificates "$CERTIFICATES"
	choose_node_port
	start_tls_server_on "$PORT" server --cluster-enabled yes --tls-cluster yes --tls-replication yes
	BACKGROUND+=("$SERVER_PID")
	redis cluster addslots {0..16383}
	wait_until 10 eval 'redis cluster info | grep -q "^cluster_state:ok"'
	run -0 rlock run -u "rediss+cluster://localhost:$PORT?cacert=$CERTIFICATES/ca.crt" a -- true
	run -78 rlock run -u "rediss+cluster://localhost:$PORT" a -- touch begun
	assert_one_line "^rlock: a: cannot connect to rediss://localhost:$PORT/0: .*certificate.*$"
	assert [ ! -e begun ]
}

@test "another node of the URL is used when one is down or frozen; 69 when none answers" {
	local name
	name=$(name_at 2)
	choose_port
	run -69 rlock run -n -u "redis+cluster://127.0.0.1:$PORT" a -- touch begun
	assert_one_line "^rlock: a: cannot reach redis://127.0.0.1:$PORT/0: Connection refused$"
	assert [ ! -e begun ]
	takes_less_than 4 rlock run -u "redis+cluster://127.0.0.1:$PORT,127.0.0.1:$(port_of 3)" a -- true
	# rlock sorts the nodes of the URL by address, so it connects to node 1 first.
	freeze_server 1
	run -0 rlock run -w 20s --connect-timeout 0.5s "$name" -- true
}

@test "a node that announces no address is reported, since no attempt can reach it" {
	local name number
	name=$(name_at 2)
	for number in 1 2 3; do
		on "$number" ask_server config set cluster-preferred-endpoint-type hostname
		[ "$ANSWER" = OK ] || skip 'this server cannot announce a host name'
	done
	run -69 rlock run -n -u "redis+cluster://127.0.0.1:$(port_of 1)" "$name" -- true
	for number in 1 2 3; do on "$number" redis config set cluster-preferred-endpoint-type ip; done
	assert_one_line "^rlock: $name: the node that serves the lock's slot announces no address; set its cluster-announce-hostname, or cluster-preferred-endpoint-type ip on each node: MOVED [0-9]+ \\?:$(port_of 2)\$"
}

# ---- waking ----

# waiter_hears NODE COMMAND: a waiter for "a" must acquire the lock when COMMAND publishes on NODE. Without a message the waiter
# would wait until the holder's lease of 30 s ends.
waiter_hears() {
	at_node_of a hold_by_foreign_client a
	in_background rlock run a -- touch entered
	wait_until 5 has_subscribed_waiter a
	at_node_of a redis del a
	on "$1" redis "$2" 'redisson_lock__channel:{a}' 0
	wait_until 5 file_exists entered
	ended_with 0
	rm entered
}

@test "a waiter is woken by PUBLISH of an old Redisson on any node, and by SPUBLISH of a new one in the lock's slot" {
	waiter_hears $(($(node_of a) % 3 + 1)) publish
	is_redis_6 || waiter_hears "$(node_of a)" spublish
}

@test "a release of any kind is published by PUBLISH and by SPUBLISH, for old and new Redissons" {
	local verb count=6
	! is_redis_6 || skip 'the server has no sharded channels'
	in_background sh -c 'exec redis-cli -s "$0" ssubscribe "redisson_lock__channel:{a}" "redisson_rwlock:{a}" >heard' "$(socket_of "$(node_of a)")"
	in_background sh -c 'exec redis-cli -s "$0" subscribe "redisson_lock__channel:{a}" "redisson_rwlock:{a}" >heard-old' "$(socket_of $(($(node_of a) % 3 + 1)))"
	wait_until 5 has_line_count heard 6
	wait_until 5 has_line_count heard-old 6
	for verb in run wlock unlock; do
		case $verb in
		unlock) hold_at_its_node run a && rlock unlock --force a ;;
		*) rlock "$verb" a -- true ;;
		esac
		count=$((count + 3))
		wait_until 5 has_line_count heard $count
		wait_until 5 has_line_count heard-old $count
	done
}

# ---- slots that move ----

# choose_nodes NAME: sets FROM to the node of the lock, and TO to another node.
choose_nodes() {
	FROM=$(node_of "$1")
	TO=$((FROM % 3 + 1))
}

@test "a held lock whose slot moves is renewed and released at the new node" {
	local holder waiter
	choose_nodes a
	hold_at_its_node run a -t 6s
	holder=$PID
	in_background rlock run -w 60s a -- touch entered
	waiter=$PID
	wait_until 5 has_subscribed_waiter a
	begin_migration a "$FROM" "$TO"
	stays_true_for 2.2 is_running "$holder"
	move_keys a "$FROM" "$TO"
	stays_true_for 2.2 is_running "$holder"
	end_migration a "$FROM" "$TO"
	wait_until 5 on "$TO" is_renewed a 6000
	assert [ ! -e entered ]
	end_commands
	ended_with 0 "$holder"
	ended_with 0 "$waiter"
	assert [ -e entered ]
	cluster_is_empty
}

@test "a call for a new lock in a migrating slot waits, for 2 s even without a wait time" {
	choose_nodes c
	begin_migration c "$FROM" "$TO"
	run -69 rlock run -n c -- touch begun
	assert_one_line "^rlock: c: denied by the server: the lock's slot is on its way to another node of the cluster; give --wait: TRYAGAIN .*\$"
	assert [ ! -e begun ]
	# On a busy machine the end of the migration can take longer than 2 s. A call that does not wait fails each time.
	calls_wait_for_migration || calls_wait_for_migration || calls_wait_for_migration || calls_wait_for_migration
	cluster_is_empty
}

# calls_wait_for_migration: whether calls that begin while the slot of c migrates acquire their locks when the migration has ended.
calls_wait_for_migration() {
	BACKGROUND=()
	choose_nodes c
	begin_migration c "$FROM" "$TO"
	in_background rlock run -w 30s c -- true
	in_background rlock run '{c}1' -- true
	in_background rlock run -n '{c}2' -- true
	stays_true_for 0.3 is_running "$PID" || :
	end_migration c "$FROM" "$TO"
	all_ended_with 0
}

@test "a release and a stop request during a migration are delivered immediately, by the node that has the lock" {
	local verb moved
	choose_nodes d
	while read -r verb moved; do
		rm -f end-commands
		in_background rlock "$verb" -t 9s d -- run_until_ended
		wait_until 5 on "$FROM" is_held d
		begin_migration d "$FROM" "$TO"
		[ "$moved" = no ] || move_keys d "$FROM" "$TO"
		if [ "$moved" = ended ]; then
			end_migration d "$FROM" "$TO"
			run -0 rlock stop d
			ended_with 124
		else
			end_commands
			ended_with 0
			on "$FROM" no_keys
			on "$TO" no_keys
			end_migration d "$TO" "$FROM"
		fi
		cluster_is_empty
	done <<-'END'
		fair no
		read no
		write no
		run yes
		run ended
	END
}

@test "rlock whose renewer was killed releases immediately during a migration of the slot" {
	local verb
	choose_nodes e
	for verb in run fair read write; do
		rm -f end-commands
		in_background rlock "$verb" -t 60s e -- run_until_ended
		wait_until 5 has_child "$PID" run_until_ended
		! has_renewer "$PID" || kill -KILL "${RENEWERS[@]}"
		begin_migration e "$FROM" "$TO"
		end_commands
		ended_with 0
		on "$FROM" no_keys
		on "$TO" no_keys
		end_migration e "$TO" "$FROM"
		cluster_is_empty
	done
}

# is_kept NAME: whether --at-least keeps the lock: the lock and its hold record have a TTL of about an hour.
is_kept() {
	[ "$(redis exists "$1" "rlock_holds:{$1}")" = 2 ]
	if [ "$(redis type "$1")" = hash ]; then
		[[ $(redis hkeys "$1" | grep -vx mode) =~ ^[^$'\n']*:lingering:[0-9]+$ ]]
		[ "$(redis pttl "$1")" -gt 3500000 ]
	else
		[ "$(redis zcard "{$1}:timeout")" = 1 ]
	fi
	[[ $(redis hvals "rlock_holds:{$1}") = *:lingering:* ]]
	[ "$(redis pttl "rlock_holds:{$1}")" -gt 3500000 ]
}

@test "--at-least keeps the lock during a migration of its slot" {
	local verb
	choose_nodes f
	for verb in run fair write 'sem --permits 1'; do
		rm -f end-commands
		# shellcheck disable=SC2086 # a verb with its option
		in_background rlock $verb -t 60s --at-least 1h f -- run_until_ended
		wait_until 5 on "$FROM" redis_says 1 exists 'rlock_holds:{f}'
		begin_migration f "$FROM" "$TO"
		end_commands
		ended_with 0
		on "$FROM" is_kept f
		on "$FROM" redis flushall
		end_migration f "$TO" "$FROM"
	done
}

# ---- readers whose slot moves: their timeout keys move one by one ----

# hold_to_read: a reader acquires "a" at node FROM. Tests then migrate the slot to node TO.
hold_to_read() {
	choose_nodes a
	in_background rlock read -t 60s a -- run_until_ended
	wait_until 5 on "$FROM" is_held a
	TIMEOUT_KEY=$(on "$FROM" redis --scan --pattern '{a}:*:rwlock_timeout:1')
}

# move_all_but_timeouts: migrates the keys that requests name to TO. The timeout keys stay at FROM.
move_all_but_timeouts() {
	local key
	for key in a 'rlock_holds:{a}' 'rlock_ends:{a}'; do
		move_key "$key" "$FROM" "$TO"
	done
}

complete_migration() {
	move_keys a "$FROM" "$TO"
	end_migration a "$FROM" "$TO"
}

# says REPLY NODE COMMAND [ARG...]: whether NODE replies REPLY to COMMAND. ASKING is sent before, as by a client that was
# redirected.
says() {
	[ "$(printf 'asking\n%s\n' "${*:3}" | on "$2" redis | tail -n 1)" = "$1" ]
}

@test "--at-least keeps a read lock during a migration of its slot" {
	local key
	choose_nodes a
	in_background rlock read -t 60s --at-least 1h a -- run_until_ended
	wait_until 5 on "$FROM" is_held a
	begin_migration a "$FROM" "$TO"
	end_commands
	ended_with 0
	on "$FROM" redis_says 2 hlen a
	for key in a 'rlock_holds:{a}' 'rlock_ends:{a}' "$(on "$FROM" redis --scan --pattern '{a}:*:rwlock_timeout:1')"; do
		[ "$(on "$FROM" redis pttl "$key")" -gt 3500000 ]
	done
	complete_migration
	run -75 rlock write -n a -- true
	at_node_of a redis flushall
}

@test "a read lock whose timeout key migrates before or after the lock is released once all keys have moved" {
	local ahead at tries
	for ahead in yes no; do
		# Try again if the lock was not released: rlock attempts that for 5 seconds only, and a busy machine can need longer to
		# move the keys.
		for ((tries = 3; tries > 0; tries--)); do
			rm -f end-commands
			hold_to_read
			begin_migration a "$FROM" "$TO"
			if [ "$ahead" = yes ]; then
				move_key "$TIMEOUT_KEY" "$FROM" "$TO"
				at=$FROM
			else
				move_all_but_timeouts
				at=$TO
			fi
			end_commands
			# The holder attempts the release at the new node, where it must change nothing yet.
			stays_true_for 0.3 says 1 "$at" hlen 'rlock_holds:{a}'
			says 2 "$at" hlen a
			complete_migration
			ended_with 0 "$PID"
			! cluster_is_empty || break
			at_node_of a redis flushall
		done
		assert [ "$tries" -gt 0 ]
	done
}

@test "a reader's release does not free the lock while the timeout key of another reader has not migrated yet" {
	local first other_key tries
	# Try again if the lock was not released: rlock attempts that for 5 seconds only.
	for ((tries = 3; tries > 0; tries--)); do
		rm -f inside leave end-commands
		hold_to_read
		first=$PID other_key=$TIMEOUT_KEY
		in_background sh -c 'exec rlock read -t 60s a -- sh -c "touch inside; wait_until_true test -e leave"'
		wait_until 5 file_exists inside
		begin_migration a "$FROM" "$TO"
		for TIMEOUT_KEY in $(on "$FROM" redis --scan --pattern '{a}:*:rwlock_timeout:1'); do
			[ "$TIMEOUT_KEY" = "$other_key" ] || move_key "$TIMEOUT_KEY" "$FROM" "$TO"
		done
		move_all_but_timeouts
		touch leave
		stays_true_for 0.3 says 3 "$TO" hlen a
		complete_migration
		ended_with 0 "$PID"
		is_running "$first"
		! on "$TO" redis_says 2 hlen a || break
		end_commands
		ended_with 0 "$first"
		at_node_of a redis flushall
	done
	assert [ "$tries" -gt 0 ]
	end_commands
	ended_with 0 "$first"
	cluster_is_empty
}

# ---- check ----

@test "check examines each node, and a node that evicts locks makes the cluster unsound" {
	run -0 rlock check
	assert_equal "$(grep -c '^redis://.*: a node of the cluster$' <<<"$output")" 3
	assert_equal "$(grep -c '^ok *role *master, in a cluster$' <<<"$output")" 3
	cluster_is_empty
	on 2 redis config set maxmemory-policy allkeys-lru >/dev/null
	on 2 redis config set maxmemory 1gb >/dev/null
	run rlock check
	# Redis 6.2 sets one at a time.
	on 2 redis config set maxmemory 0 >/dev/null
	on 2 redis config set maxmemory-policy noeviction >/dev/null
	assert_equal "$status" 78
	assert_line --regexp '^BAD +eviction +allkeys-lru deletes locks'
	assert_equal "$(grep -c '^ok *eviction *noeviction$' <<<"$output")" 2
}

@test "check names the right that a user lacks to list the nodes of a cluster" {
	local number
	! on 1 is_redis_6 || skip 'a right to one subcommand is new in Redis 7'
	for number in 1 2 3; do
		on "$number" redis acl setuser limited reset on '>secret' '~*' '&*' +@all '-cluster|slots' >/dev/null
	done
	run -0 rlock check -u "${RLOCK_URL/redis+cluster:\/\//redis+cluster://limited:secret@}"
	assert_line --regexp '^note +rights +.*try: ACL SETUSER limited \+cluster\|slots$'
	assert_line --regexp '^note +nodes +not checked: denied by the server'
	for number in 1 2 3; do on "$number" redis acl setuser limited '+cluster|slots' '-cluster|nodes' >/dev/null; done
	run -0 rlock check -u "${RLOCK_URL/redis+cluster:\/\//redis+cluster://limited:secret@}"
	assert_line --regexp '^note +rights +.*try: ACL SETUSER limited \+cluster\|nodes$'
	run -77 rlock list -u "${RLOCK_URL/redis+cluster:\/\//redis+cluster://limited:secret@}"
	assert_one_line '^rlock: denied by the server: .* it needs the ACL rule \+cluster\|nodes$'
}

@test "check calls a cluster unsound while no lock can be acquired in a migrating slot" {
	local slot node other
	slot=$(redis cluster keyslot moving)
	node=$(node_of moving)
	other=$((node % 3 + 1))
	on "$node" redis cluster setslot "$slot" migrating "$(id_of "$other")" >/dev/null
	run -78 rlock check
	assert_line --regexp "^BAD +slots +slot $slot is on its way from redis://127.0.0.1:$(port_of "$node")/0 to 127.0.0.1:$(port_of "$other"), and no lock can be acquired in it: .* --cluster fix "
	assert_line --regexp '^NOT SOUND: .* see slots'
	on "$other" redis cluster setslot "$slot" importing "$(id_of "$node")" >/dev/null
	run -78 rlock check
	assert_line --regexp "^BAD +slots +slot $slot is on its way .*, and no lock can be acquired in it: denied by the server: .*TRYAGAIN "
	on "$other" redis cluster setslot "$slot" stable >/dev/null
	on "$node" redis cluster setslot "$slot" stable >/dev/null
	wait_until 10 eval 'rlock check >/dev/null 2>&1'
	run -0 rlock check
	refute_output --partial 'on its way'
	assert_equal "$(grep -c '^ok *lock *one was acquired and released at redis://127.0.0.1:' <<<"$output")" 3
	refute_output --partial 'messages'
}
