#!/usr/bin/env bats
# bats file_tags=computes
# What the documents list is what there is: environment variables. No server is asked.

load ../lib/helpers

setup() { cd "$BATS_TEST_DIRNAME/../.." || return; }

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
