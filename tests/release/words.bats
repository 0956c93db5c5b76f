#!/usr/bin/env bats
# bats file_tags=computes
# Comments, names, messages and the manual use the words of tools/words.txt. The files and functions that documents name exist. The
# samples of rlock's output, and the lists of environment variables, are those of the program.

load ../lib/helpers

setup() { cd "$BATS_TEST_DIRNAME/../.." || return; }

@test "comments, names and texts for users have none of the words of tools/words.txt, and each row of it finds its example" {
	# Use a file name that matches no exception of any row, so that each row finds its example.
	local scratch=$BATS_TEST_TMPDIR/cli/process_lock/lib/net/scratch.c
	run -0 tools/words.py
	assert_output ''
	mkdir -p "${scratch%/*}"
	sed -n 's/^\tlike *//p' tools/words.txt >"$scratch"
	run -1 tools/words.py "$scratch"
	assert_equal "$(sed -n 's/.*: say //p' <<<"$output" | sort -u)" "$(grep "^[^#[:space:]]" tools/words.txt | sort -u)"
}

@test "the manual has the words by which users search for each idea" {
	run -0 tools/words.py --manual
	assert_output ''
	assert [ "$(grep -c "^	manual" tools/words.txt)" -gt 15 ]
}

@test "the files and functions that comments and documents for maintainers name exist" {
	run -0 tools/references.py
	assert_output ''
}

@test "a document must not name a parameter of a function, or a function that only a comment has left" {
	local page=$BATS_TEST_TMPDIR/page.md
	printf '%s\n' '`front.c: front_loop, lease`' '`wake.lua: wake_next, id`' '`rlock.h: rlock_kind, RLOCK_PLAIN`' >"$page"
	run -1 tools/references.py "$page"
	assert_output "$page:1: no 'lease' in front.c
$page:2: no 'id' in wake.lua"
}

@test "the samples in the documents have the words and columns that rlock prints (if not: tools/samples.py --write)" {
	run -0 tools/samples.py --check
	assert_output ''
}

@test "rlock(1) or rlock-flock(1) has each environment variable that the program reads, and those that COMMAND gets" {
	{
		grep -ohE 'getenv\("[A-Z_]+"\)' {cli,lib}/{,*/}*.c | cut -d '"' -f 2
		printf 'RLOCK_%s\n' NAME OWNER MODE TOKEN SLOT HELD
	} | sort -u >"$BATS_TEST_TMPDIR/there"
	assert [ "$(wc -l <"$BATS_TEST_TMPDIR/there")" -gt 11 ]
	run -0 comm -23 "$BATS_TEST_TMPDIR/there" <({
		sed -n '/^\.Sh ENVIRONMENT/,/^\.Sh FILES/s/^\.It Ev //p' man/rlock.1 | sed 's/ , /\n/g'
		sed -n 's/^\.Ev //p' man/rlock-flock.1
	} | sort -u)
	assert_output ''
}

@test "no manual page breaks a word at the end of a line, where a search would not find it" {
	local page
	for page in man/*.[1-9]; do
		run -0 sed -n '/^\.Os$/{n;n;p}' "$page"
		assert_output '.nr doc-hyphen-flags 0'
		! command -v groff >/dev/null || refute grep -E '[a-z](-|‐)$' <(groff -mandoc -Tutf8 -rLL=80n "$page")
	done
}
