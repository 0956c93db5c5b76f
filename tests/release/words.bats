#!/usr/bin/env bats
# bats file_tags=computes
# One idea has one word, in comments, names, messages and the manual: tools/words.txt says which. What the documents
# for maintainers say of files and functions is there. And what they show of rlock's output is what it prints.

load ../lib/helpers

setup() { cd "$BATS_TEST_DIRNAME/../.." || return; }

@test "comments, names and what users read use the project's words, and the search finds each of those that are not used" {
	# A file to which every row's exceptions leave something.
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

@test "what ARCHITECTURE.md and its like name exists, and so do the files that comments name" {
	run -0 tools/references.py
	assert_output ''
}

@test "the samples of the documents have the words and columns that rlock prints: else tools/samples.py --write" {
	run -0 tools/samples.py --check
	assert_output ''
}
