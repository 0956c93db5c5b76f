#!/usr/bin/env bats
# A server that denies commands in its own words: too few replicas, a full disk, commands that the administrator has renamed. The
# message must give this cause, also for a user with limited rights, and must name no missing right.

load ../lib/usual
load ../lib/own_servers
load ../lib/rights

setup_file() { start_server_at_port; }

teardown() {
	redis config set min-replicas-to-write 0 >/dev/null
	common_teardown
}

VERBS=('run' 'fair' 'read' 'write' 'sem --permits 3')

# each_is STATUS REGEXP URL...: with each of these URLs, each verb of VERBS must exit with STATUS, and print one line that
# matches.
each_is() {
	local url verb
	for url in "${@:3}"; do
		for verb in "${VERBS[@]}"; do
			# shellcheck disable=SC2086
			run "-$1" rlock $verb -u "$url" -n a -- touch ran
			assert_one_line "$2"
		done
	done
	refute file_exists ran
}

# users_may_all: creates a user with all rights; sets URLS, which log in as the default user and as the new user.
users_may_all() {
	redis acl setuser ci on resetpass ">$SECRET" allkeys allchannels +@all >/dev/null
	URLS=("redis://127.0.0.1:$PORT" "$(url_of ci)")
}

@test "the verbs that acquire, and stop, exit with 69 when the server has too few replicas, whatever user asks" {
	local url
	users_may_all
	hold_in_background held -t 10m
	redis config set min-replicas-to-write 1 >/dev/null
	each_is 69 '^rlock: a: denied by the server: too few of its replicas are connected; .*: NOREPLICAS ' "${URLS[@]}"
	for url in "${URLS[@]}"; do
		run -69 rlock stop -u "$url" -w 1s held
		assert_output --partial NOREPLICAS
	done
	redis config set min-replicas-to-write 0 >/dev/null
	end_commands
	ended_with 0
}

@test "a waiter whose server has too few replicas for a while acquires the lock afterwards" {
	users_may_all
	hold_in_background a
	redis config set min-replicas-to-write 1 >/dev/null
	record_stderr rlock run -v -u "${URLS[1]}" -w 60s a -- touch ran
	wait_until 10 file_contains stderr NOREPLICAS
	redis config set min-replicas-to-write 0 >/dev/null
	end_commands
	ended_with 0
	assert file_exists ran
}

@test "the verbs that acquire, and stop, exit with 69 when the server cannot write to its disk, whatever user asks" {
	local url
	mkdir data
	on_free_port choose_port start_own_server --port @PORT@ --bind 127.0.0.1 --dir "$PWD/data"
	redis config set save '3600 1' >/dev/null
	users_may_all
	hold_in_background held -t 10m
	rmdir data
	redis bgsave >/dev/null
	wait_until 10 has_failed_to_save
	each_is 69 '^rlock: a: denied by the server: it cannot write to its disk; see its log: MISCONF ' "${URLS[@]}"
	for url in "${URLS[@]}"; do
		run -69 rlock stop -u "$url" -w 1s held
		assert_output --partial MISCONF
	done
	redis config set stop-writes-on-bgsave-error no >/dev/null
	end_commands
	ended_with 0
}

has_failed_to_save() {
	redis info persistence | grep -q '^rdb_last_bgsave_status:err'
}

@test "the message names a command that the server has renamed, and no missing right, whatever user asks" {
	on_free_port choose_port start_own_server --port @PORT@ --bind 127.0.0.1 --rename-command hset my-hset
	users_may_all
	each_is 78 'none of them renamed: (ERR )?[Uu]nknown .*command' "${URLS[@]}"
	run -78 rlock stop -u "${URLS[0]}" a
	assert_output --partial "ERR unknown command HSET"
	assert_equal "$(redis keys 'rlock_holds:*')" ''
}
