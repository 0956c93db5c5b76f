#!/usr/bin/env bats
# bats file_tags=computes
# What the documents list is what there is: environment variables and chaos scenarios. No server is asked.

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

@test "each chaos scenario is described, with the guarantee of rlock(7) that it tests, and each guarantee is tested" {
	sed -nE "s/^\s*(SCALE=1 )?(begin_)?scenario(_of_kinds)? ['\"]([^,'\"]+).*/\4/p" tests/chaos/*.bats | sort -u >"$BATS_TEST_TMPDIR/played"
	assert [ -s "$BATS_TEST_TMPDIR/played" ]
	run -0 diff <(sed -nE 's/^\| ([^|]+) \| [1-6, ]+ \| [^|]+ \|$/\1/p' tests/chaos/README.md | sort) "$BATS_TEST_TMPDIR/played"
	run -0 diff <(sed -nE 's/^\.Ss ([0-9]+)\. .*/\1/p' man/rlock.7) \
		<(sed -nE 's/^\| [^|]+ \| ([1-6, ]+) \| [^|]+ \|$/\1/p' tests/chaos/README.md | tr -d ' ' | tr , '\n' | sort -u)
}

@test "no manual page breaks a word at the end of a line, where a search would not find it" {
	local page
	for page in man/*.[1-9]; do
		run -0 sed -n '/^\.Os$/{n;n;p}' "$page"
		assert_output '.nr doc-hyphen-flags 0'
		! command -v groff >/dev/null || refute grep -E '[a-z](-|‐)$' <(groff -mandoc -Tutf8 -rLL=80n "$page")
	done
}
