#!/usr/bin/env bats
# bats file_tags=computes
# What the documents list is what there is: exit statuses, environment variables and chaos scenarios. No server is
# asked.

load ../lib/helpers
load ../lib/documenting

setup() {
	TOP=$BATS_TEST_DIRNAME/../..
	cd "$BATS_TEST_TMPDIR" || return
}

# listed_variables: what stands in rlock(1), ENVIRONMENT.
listed_variables() {
	sed -n '/^\.Sh ENVIRONMENT/,/^\.Sh FILES/s/^\.It Ev //p' "$TOP/man/rlock.1" | sed 's/ , /\n/g'
}

@test "rlock(1) lists each exit status" {
	local code
	sed -n '/^\.Sh EXIT STATUS/,/^\.Sh EXAMPLES/s/^\.It \([0-9]*\)$/\1/p' "$TOP/man/rlock.1" >listed
	for code in 0 1 64 69 70 71 75 76 77 78 124 126 127; do
		echo "$code"
	done >promised
	run -0 diff promised listed
}

@test "README: each exit code is listed" {
	local code
	sed -n '/^## Exit codes/,/^## /p' "$TOP/README.md" >listed
	exit_codes_of_program >codes
	assert [ -s codes ]
	while read -r code; do
		run -0 grep -w "$code" listed
	done <codes
}

@test "rlock(1) lists each environment variable" {
	local name
	listed_variables >listed
	for name in RLOCK_URL RLOCK_CONFIG RLOCK_RUNTIME_DIR REDISCLI_AUTH XDG_CONFIG_HOME HOME RLOCK_NAME \
		RLOCK_OWNER RLOCK_MODE RLOCK_TOKEN RLOCK_HELD; do
		run -0 grep -x "$name" listed
	done
}

@test "rlock(1) or rlock-flock(1) has each environment variable that the program reads" {
	grep -ohE 'getenv\("[A-Z_]+"\)' "$TOP"/{cli,lib}/{,*/}*.c | cut -d '"' -f 2 | sort -u >asked
	{
		listed_variables
		sed -n 's/^\.Ev //p' "$TOP/man/rlock-flock.1"
	} | sort -u >listed
	assert [ -s asked ]
	run -0 comm -23 asked listed
	assert_output ''
}

@test "each chaos scenario is described, with the guarantee of rlock(7) that it tests" {
	grep -ohE "begin_scenario ['\"][^,'\"]+" "$TOP"/tests/chaos/*.bats | cut -c 17- | sort -u >played
	sed -nE 's/^\| ([^|]+) \| [1-6, ]+ \| [^|]+ \|$/\1/p' "$TOP/tests/chaos/README.md" | sort >described
	assert [ -s described ]
	run -0 diff described played
}

@test "each guarantee of rlock(7) is tested by a chaos scenario" {
	sed -nE 's/^\.Ss ([0-9]+)\. .*/\1/p' "$TOP/man/rlock.7" >guaranteed
	sed -nE 's/^\| [^|]+ \| ([1-6, ]+) \| [^|]+ \|$/\1/p' "$TOP/tests/chaos/README.md" | tr -d ' ' | tr , '\n' | sort -u >tested
	assert [ -s guaranteed ]
	run -0 diff guaranteed tested
}

@test "no manual page breaks a word at the end of a line, where a search would not find it" {
	local page
	for page in "$TOP"/man/*.[1-9]; do
		run -0 sed -n '/^\.Os$/{n;n;p}' "$page"
		assert_output '.nr doc-hyphen-flags 0'
		! command -v groff >/dev/null || refute grep -E '[a-z](-|‐)$' <(groff -mandoc -Tutf8 -rLL=80n "$page")
	done
}
