#!/usr/bin/env bats
# bats file_tags=long
# What the documents show of rlock's output is what it prints: the samples of rlock(1), and the terminal of README.md.

load ../lib/helpers

setup() { cd "$BATS_TEST_DIRNAME/../.." || return; }

@test "the samples of the documents have the words and columns that rlock prints: else tools/samples.py --write" {
	run -0 tools/samples.py --check
	assert_output ''
}

@test "a sample that rlock does not print is found" {
	mkdir "$BATS_TEST_TMPDIR/tools" "$BATS_TEST_TMPDIR/man" "$BATS_TEST_TMPDIR/doc"
	cp tools/samples.py tools/tree.py "$BATS_TEST_TMPDIR/tools"
	sed 's/held, /taken, /' man/rlock.1 >"$BATS_TEST_TMPDIR/man/rlock.1"
	sed 's/waiting/standing/' doc/terminal.svg >"$BATS_TEST_TMPDIR/doc/terminal.svg"
	run -1 "$BATS_TEST_TMPDIR/tools/samples.py" --check
	assert_line -- -taken,
	assert_line -- +held,
	assert_line --partial standing
}
