#!/usr/bin/env bats
# The runtime directory, where each lock without a command has its hold file: whose it has to be, and what is swept away.

# In single quotes stand whole scripts: what is to be expanded is theirs.
# shellcheck disable=SC2016

load ../lib/helpers
load ../lib/leftovers
load ../lib/scripting

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { watchful_teardown; }

@test "the runtime directory is made for the user alone" {
	run -0 bash -c 'umask 0; rlock lock --pid $$ a; stat -c %a "$RLOCK_RUNTIME_DIR" "$RLOCK_RUNTIME_DIR"/*'
	assert_output "700
600"
}

@test "only hold files of dead processes are swept away" {
	start_locking_script lock -t 1s b
	kill -KILL "$(renewers)"
	kill -KILL "$PID"
	ended_with 137
	assert_equal "$(count_hold_files)" 1
	wait_until 5 is_free b
	start_locking_script lock a
	touch "$RLOCK_RUNTIME_DIR/hold-999999999-1-00000000000000000000000000000000"
	# One that was killed while it wrote, and one that writes still.
	touch -d '2 hours ago' "$RLOCK_RUNTIME_DIR/new-999999999-00000000000000000000000000000000"
	touch "$RLOCK_RUNTIME_DIR/new-1-00000000000000000000000000000000"
	touch "$RLOCK_RUNTIME_DIR/hold-and-other-things"
	run -0 bash -c 'rlock lock --pid $$ b; rlock unlock b; exit'
	run -0 ls "$RLOCK_RUNTIME_DIR"
	assert_equal "$(grep -c '^hold-[0-9]' <<<"$output")" 1
	assert_line --regexp "^hold-$PID-"
	assert_line hold-and-other-things
	assert_line new-1-00000000000000000000000000000000
	refute_line --partial -999999999-
}

# write_elsewhere FIELD: as if the one hold file came from another boot (2), pid namespace (3) or time namespace (4).
write_elsewhere() {
	cp "$1" "$BATS_TEST_TMPDIR/original"
	awk -v field="$2" '$1 == "place" { $field = field == 2 ? "1b4e28ba-2fa1-11d2-883f-0016d3cca427" : $field + 1 } 1' \
		"$BATS_TEST_TMPDIR/original" >"$1"
	refute cmp -s "$1" "$BATS_TEST_TMPDIR/original"
}

@test "a hold file of another host, virtual machine or time namespace is not used, and not swept away" {
	local file field
	start_locking_script lock a
	file=$(echo "$RLOCK_RUNTIME_DIR"/hold-*)
	for field in 2 3 4; do
		write_elsewhere "$file" "$field"
		run -1 rlock unlock --pid "$PID" a
		run -75 rlock lock --pid "$PID" -n a
		is_held a
		cp "$BATS_TEST_TMPDIR/original" "$file"
	done
	kill -KILL "$(renewers)"
	kill -KILL "$PID"
	ended_with 137
	for field in 2 3 4; do
		write_elsewhere "$file" "$field"
		run -1 rlock unlock a
		assert_equal "$(count_hold_files)" 1
		cp "$BATS_TEST_TMPDIR/original" "$file"
	done
	run -1 rlock unlock a
	no_hold_files
}

refuses_runtime_directory() {
	local words
	for words in "lock --pid $$ a" 'unlock a'; do
		# shellcheck disable=SC2086
		run -71 rlock $words
		assert_one_line '^rlock: '
		assert_output --partial "${RLOCK_RUNTIME_DIR%/}"
	done
	no_keys
	nothing_runs
}

@test "a runtime directory that others may enter is refused, and a link or a file in its place, and one that can't be made" {
	mkdir -m 755 "$RLOCK_RUNTIME_DIR"
	refuses_runtime_directory
	rmdir "$RLOCK_RUNTIME_DIR"
	touch "$RLOCK_RUNTIME_DIR"
	refuses_runtime_directory
	rm "$RLOCK_RUNTIME_DIR"
	mkdir -m 700 "$BATS_TEST_TMPDIR/elsewhere"
	ln -s "$BATS_TEST_TMPDIR/elsewhere" "$RLOCK_RUNTIME_DIR"
	refuses_runtime_directory
	RLOCK_RUNTIME_DIR=$RLOCK_RUNTIME_DIR/ refuses_runtime_directory
	RLOCK_RUNTIME_DIR=/proc/rlock run -71 rlock lock --pid $$ a
	assert_one_line '^rlock: .*/proc/rlock'
	no_keys
}

@test "a runtime directory that is another user's is refused" {
	[ "$(id -u)" = 0 ] || skip 'only root can give a directory away'
	mkdir -m 700 "$RLOCK_RUNTIME_DIR"
	chown 65534 "$RLOCK_RUNTIME_DIR"
	refuses_runtime_directory
}

@test "with a runtime directory that can't be written to nothing stays locked" {
	mkdir -m 700 "$RLOCK_RUNTIME_DIR"
	if [ "$(id -u)" = 0 ]; then
		unshare -m true 2>/dev/null || skip 'no mount namespaces here'
		run -71 unshare -m sh -c '
			mount --bind "$RLOCK_RUNTIME_DIR" "$RLOCK_RUNTIME_DIR" &&
			mount -o remount,ro,bind "$RLOCK_RUNTIME_DIR" || exit 9
			rlock lock --pid $$ a
		'
	else
		chmod 500 "$RLOCK_RUNTIME_DIR"
		run -71 rlock lock --pid $$ a
	fi
	assert_one_line '^rlock: .+$'
	assert_output --partial "$RLOCK_RUNTIME_DIR"
	no_keys
	nothing_runs
}
