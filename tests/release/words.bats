#!/usr/bin/env bats
# bats file_tags=computes
# One idea has one word, in comments, names, messages and the manual: tools/words.txt says which. And what the documents
# for maintainers say of files and functions is there.

load ../lib/helpers

setup() { cd "$BATS_TEST_DIRNAME/../.." || return; }

@test "comments, names and what users read use the project's words" {
	run -0 tools/words.py
	assert_output ''
}

@test "the search for words finds each of those that are not used" {
	# A file to which every row's exceptions leave something.
	local scratch=$BATS_TEST_TMPDIR/cli/process_lock/lib/net/scratch.c found
	mkdir -p "${scratch%/*}"
	sed -n 's/^\tlike *//p' tools/words.txt >"$scratch"
	run -1 tools/words.py "$scratch"
	assert_line --partial "scratch.c:1: 'Whoever': say it, they"
	found=$(sed -n 's/.*: say //p' <<<"$output" | sort -u)
	assert_equal "$found" "$(grep "^[^#[:space:]]" tools/words.txt | sort -u)"
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

@test "a file or a function that a document names, and that is not there, is found" {
	local document=$BATS_TEST_TMPDIR/document.md flies=front_flie
	printf '%s\n' "It is \`front.c: front_run\`," "not \`front.c: front_walk\`, in \`fronts.c\`," "or \`${flies}s\`." >"$document"
	run -1 tools/references.py "$document"
	assert_equal "${#lines[@]}" 3
	assert_line "$document:2: no 'front_walk' in front.c"
	assert_line "$document:2: no file 'fronts.c'"
	assert_line "$document:3: no '${flies}s' in the source"
}
