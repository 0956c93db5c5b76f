#!/usr/bin/env bats
# The record of a hold tells others for which process it is: whether that one is of this machine and still there, and whether
# a renewer reads requests for it. Records of older versions, which do not tell it, stand beside.

# shellcheck disable=SC2154

load ../lib/usual
load ../lib/sharing
load ../lib/permits
load ../lib/queue
load ../lib/inspecting

NAMESPACE=$(stat -L -c %i /proc/self/ns/pid)
BOOT=$(tr -d - </proc/sys/kernel/random/boot_id)
BOOT=${BOOT:0:16}

# hold_as VERB NAME [OPTION...]: until let_go. Sets PID.
hold_as() {
	# shellcheck disable=SC2086
	in_background rlock $1 --note 'a note' "${@:3}" "$2" -- until_let_go
	wait_until 5 is_above "$PID" until_let_go
}

# change_process NAME PATTERN REPLACEMENT: of the first record whose process matches; Lua's pattern, of the word in front of the
# note and its blank.
change_process() {
	run -0 redis eval '
		local records = redis.call("HGETALL", KEYS[1])
		for i = 2, #records, 2 do
			local before, word, note = string.match(records[i], "^(%S+ %d+ %d+ %S+ )(%x+%.%d+%.%d+[+-] )(.*)$")
			local changed, count = string.gsub(word or "", ARGV[1], ARGV[2])
			if word and count > 0 then
				redis.call("HSET", KEYS[1], records[i - 1], before .. changed .. note)
				return count
			end
		end
		return 0' 1 "rlock_holds:{$1}" "$2" "$3"
	assert_output 1
}

# as_older_version NAME: one of its records.
as_older_version() {
	change_process "$1" '^.*$' ''
}

# end_of_old NAME: when the hold of the record that has no process ends.
end_of_old() {
	redis hvals "rlock_holds:{$1}" | awk '/^[^ ]/ && $5 == "a" { print $3 }'
}

ends_later_than() {
	[ "$(end_of_old "$1")" -gt "$2" ]
}

processes() {
	json '[(h["process"] or {}).get("pid") for h in lock["holders"]]'
}

@test "the record of a hold has the process that the lock is for in front of its note" {
	hold_as run a
	run -0 redis hvals 'rlock_holds:{a}'
	assert_output --regexp " - $BOOT\.$NAMESPACE\.$PID\+ a note\$"
	run -0 rlock status --json a
	assert_equal "$(json '[lock["holders"][0]["process"][m] for m in ("pid", "pid_namespace", "boot", "here", "reads_requests")]')" \
		"[$PID, $NAMESPACE, '$BOOT', True, True]"
	assert_equal "$(json 'lock["holders"][0]["note"]')" 'a note'
	run -75 rlock run -w 100ms a -- true
	assert_output --regexp ': held by a note \([^ ]+\), for [0-9.]+s: '
	let_go
}

@test "the process of a lock without a command is that of --pid, and --owner has none" {
	rlock lock --pid $$ a
	rlock lock --owner ci --lease 60s b
	run -0 rlock status --json a
	assert_equal "$(processes)" "[$$]"
	run -0 rlock status --json b
	assert_equal "$(json 'lock["holders"][0]["process"]')" None
	run -0 redis hvals 'rlock_holds:{b}'
	assert_output --regexp ' - 0000000000000000\.0\.0- '
	rlock unlock --pid $$ a
}

reads_requests() {
	run -0 rlock status --json "$2"
	assert_equal "$(json 'lock["holders"][0]["process"]["reads_requests"]')" "$1"
}

@test "no renewer reads requests of a fixed lease, of --on-lost ignore with --pid, and of a hold that is kept" {
	hold_as run b --on-lost ignore
	reads_requests True b
	hold_as run c --lease 60s
	reads_requests False c
	rlock lock --pid $$ --on-lost ignore e
	reads_requests False e
	rlock run --at-least 60s f -- true
	run -0 rlock status --json f
	assert_equal "$(json 'lock["holders"][0]["process"]')" None
	let_go
	rlock unlock --pid $$ e
}

@test "a waiter for a fair lock and the writer that is next name their processes" {
	start_waiter r1 a
	await_entry r1
	queue_waiter r2 a
	run -0 rlock status --json a
	assert_equal "$(json '[(w["process"]["pid"], w["process"]["here"], w["dead"]) for w in lock["queue"]]')" \
		"[(${PIDS[r2]}, True, False)]"
	hold_as read b
	queue_guest w write b
	run -0 rlock status --json b
	assert_equal "$(json 'lock["next_writer"]["process"]["pid"]')" "$PID"
	run -75 rlock read -w 100ms b -- true
	assert_output --regexp "held by readers, and next is [^ ]+@[^ ]+ pid $PID inside \("
	let_go
	let_all_leave
	let_guest_out w
}

@test "a hold with an older record is shown, renewed, and released, of one holder and of several" {
	local kind end old new
	hold_as run a -t 1s
	old=$PID
	as_older_version a
	run -0 rlock status --json a
	assert_equal "$(json '[(h["client"], h["note"], h["process"], h["gone"]) for h in lock["holders"]]')" \
		"[('rlock', 'a note', None, False)]"
	end=$(end_of_old a)
	wait_until 5 ends_later_than a "$end"
	let_go
	ended_with 0
	for kind in read 'sem --permits 3'; do
		rm -f let-go
		hold_as "$kind" a
		old=$PID
		as_older_version a
		hold_as "$kind" a
		new=$PID
		run -0 rlock status --json a
		assert_equal "$(json 'sorted((h["process"] or {}).get("pid", 0) for h in lock["holders"])')" "[0, $new]"
		let_go
		ended_with 0 "$old"
		ended_with 0 "$new"
		redis del 'rlock_total:{a}' a >/dev/null
		wait_until 5 no_keys
	done
}

@test "status and the messages of a wait say that the process of a holder has ended" {
	local kind holder
	for kind in run 'sem --permits 1'; do
		hold_as "$kind" a -t 60s
		holder=$PID
		kill_holder "$holder"
		wait "$holder" || :
		run -0 rlock status a
		assert_line --regexp "^  process $holder is not there: it has ended; .*; 5[0-9]s of its lease left\$"
		run -0 rlock status --json a
		assert_equal "$(json 'lock["holders"][0]["gone"]')" True
		# shellcheck disable=SC2086
		run -75 rlock $kind -w 100ms a -- true
		assert_output --regexp ': held by a note \([^ ]+\), for [0-9.]+s; its process has ended: '
		redis flushall >/dev/null
	done
}

@test "a note that names a process of this host is not believed" {
	hold_in_background a --note "me@$(uname -n) pid 999999999 x"
	run -0 rlock status a
	refute_output --partial 'is not there'
	as_older_version a
	run -0 rlock status a
	refute_output --partial 'is not there'
	let_go
}

@test "a holder of another boot, and one of another PID namespace, may be there" {
	local holder
	hold_as run a -t 60s
	holder=$PID
	kill_holder "$holder"
	wait "$holder" || :
	change_process a "$(printf '%%.%s%%.' "$NAMESPACE")" '.1.'
	run -0 rlock status --json a
	assert_equal "$(json 'lock["holders"][0]["gone"], lock["holders"][0]["process"]["here"]')" '(False, False)'
	change_process a '%.1%.' ".$NAMESPACE."
	run -0 rlock status --json a
	assert_equal "$(json 'lock["holders"][0]["gone"]')" True
	change_process a "^${BOOT:0:15}." '0123456789abcdef'
	run -0 rlock status a
	refute_output --partial 'is not there'
	run -75 rlock run -w 100ms a -- true
	refute_output --partial 'has ended'
}
