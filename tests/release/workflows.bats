#!/usr/bin/env bats
# The workflows of .github and the recipes for workflows: actionlint accepts them, and they run steps and scripts that exist.

load ../lib/usual

# Keep actionlint in the build directory, above TOOLS_DIR, for later runs.
setup_file() {
	export ACTIONLINT
	ACTIONLINT=$("$TOP/tools/actionlint.sh" "${TOOLS_DIR%/*}/actionlint" 2>"$BATS_FILE_TMPDIR/log") || ACTIONLINT=
}

teardown_file() { :; }
setup() {
	cd "$BATS_TEST_TMPDIR" || return
	WORKFLOWS=$TOP/.github/workflows
}
teardown() { :; }

# values KEY FILE: print the values of that key, one a line, without quotes and brackets.
values() {
	sed -n "s/^ *\(- \)\?$1: *//p" "$2" | tr -d "[]'"
}

@test "actionlint finds no fault with the workflows of this project, nor with the recipes for workflows" {
	[ -n "$ACTIONLINT" ] || skip "actionlint is not here: $(tail -n 1 "$BATS_FILE_TMPDIR/log")"
	run -0 "$ACTIONLINT" -no-color -shellcheck= "$WORKFLOWS"/*.yml "$TOP"/packaging/recipes/github-{workflow,jobs}.yml
	assert_output ''
	sed 's/runs-on/run-on/' "$WORKFLOWS/release.yml" >"$BATS_TEST_TMPDIR/wrong.yml"
	run -1 "$ACTIONLINT" -no-color -shellcheck= "$BATS_TEST_TMPDIR/wrong.yml"
}

@test "the workflow ci runs each step of .ci/run once, except those that its machines cannot run" {
	sed -n 's/^#  *bash .ci\/run \[STEP...\].*: //p; /^#  *interop sanitize/s/^# *//p' "$TOP/.ci/run" | tr ' ' '\n' | sort >steps
	assert [ "$(wc -l <steps)" -gt 10 ]
	awk '/ steps:$/ && !list { list = 1; next } list && /^ *- / { sub(/^ *- /, ""); print; next } list { exit }' "$WORKFLOWS/ci.yml" |
		tr ' ' '\n' | sort >named
	run -0 comm -3 steps named
	assert_output fresh
}

@test "the workflow release runs for tags of versions, checks the tag, makes the release, and attaches its files" {
	assert_equal "$(values tags "$WORKFLOWS/release.yml")" 'v*'
	run -0 grep -n -e 'packaging/versions.sh "$GITHUB_REF_NAME"' -e 'make release' -e 'gh release create' "$WORKFLOWS/release.yml"
	assert_line --index 0 --partial versions.sh
	assert_line --index 1 --partial 'make release'
	assert_line --index 2 --partial 'build/release/*'
	assert [ -x "$TOP/packaging/versions.sh" ]
	# The shell script of each step must be valid.
	run -0 python3 -c 'import subprocess, sys, yaml
for job in yaml.safe_load(open(sys.argv[1]))["jobs"].values():
    for step in job["steps"]:
        subprocess.run(["sh", "-n"], input=step.get("run", ""), text=True, check=True)' "$WORKFLOWS/release.yml"
}
