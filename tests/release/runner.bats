#!/usr/bin/env bats
# tests/run.sh: what counts as a failure, and what it prints at the end.

load ../lib/helpers

# run.sh expects its files at the same places as in this tree.
setup() {
	RLOCK=$(realpath "$RLOCK_BIN")
	mkdir -p "$BATS_TEST_TMPDIR/tests/bats"
	cp "$BATS_TEST_DIRNAME/../run.sh" "$BATS_TEST_TMPDIR/tests"
	cd "$BATS_TEST_TMPDIR" || return
}

# write_tests NAME LINE...: write the file tests/bats/NAME.bats.
write_tests() {
	local file=tests/bats/$1.bats
	shift
	printf '%s\n' "$@" >"$file"
}

# run_tests [VARIABLE=VALUE...]: run all tests as make does. Remove the variables of this bats, and its libexec directory from
# PATH, where "bats" is another program.
run_tests() {
	local path
	path=$(tr : '\n' <<<"$PATH" | grep -v libexec | paste -sd :)
	env -i PATH="$path" RLOCK_BIN="$RLOCK" "$@" tests/run.sh tests/bats/*.bats
}

@test "a file without a test is a failure" {
	write_tests empty '# no test'
	run -1 run_tests
	assert_line --index -1 '0 passed, 1 failed'
}

@test "a skipped test counts as failed, unless a list names its reason" {
	write_tests skipping '@test "it waits" { skip "no clock here"; }' '@test "it works" { true; }'
	printf '%s\n' '# a comment' 'tests/bats/skipping.bats: no clock *' >known
	touch none
	run -0 run_tests
	assert_line --index -1 '1 passed, 0 failed, 1 skipped'
	run -0 run_tests KNOWN_SKIPS="$PWD/none $PWD/known"
	assert_line --index -1 '1 passed, 0 failed, 1 skipped'
	run -1 run_tests KNOWN_SKIPS="$PWD/none"
	assert_line 'tests/bats/skipping.bats: skipped, and no list of known skips says so: it waits: no clock here'
	assert_line --index -1 '1 passed, 1 failed, 1 skipped'
}

@test "a run ends with a command that runs the failed test alone, and with the seed of its choices" {
	write_tests failing '@test "it'\''s \$5 (once)" { echo "seed: MODEL_SEED=42"; false; }' '@test "it works" { true; }'
	run -1 run_tests
	assert_line --regexp "^  make check FILES=tests/bats/failing.bats TEST='.*'\$"
	assert_line '  the same choices again: with MODEL_SEED=42 before it'
	local expression
	expression=$(sed -n "s/.* TEST='\(.*\)[$][$]'/\1$/p" <<<"$output")
	run -1 run_tests TEST="$expression"
	assert_line --index -1 '0 passed, 1 failed'
	assert_line "not ok 1 it's \$5 (once)"
}
