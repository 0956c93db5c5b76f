# What the help and the documents list, and their examples. Sourced after helpers.bash.

# verbs: those that there are, as help lists them.
verbs() {
	rlock help | sed -n '/^Verbs:/,/^$/s/^  \([a-z]*\) .*/\1/p' | grep -vx -e flock -e help -e version
}

# exit_codes_of_program: one a line, in their order; 0 has no name there.
exit_codes_of_program() {
	sed -nE 's/.*EXIT_[A-Z_]+ = ([0-9]+),.*/\1/p' "$BATS_TEST_DIRNAME/../../cli/base/message.h"
}

# stub NAME [SCRIPT]: a program in this directory, in the place of the real work; else it prints how it was called.
stub() {
	printf '#!/bin/sh\n%s\n' "${2-echo \"$1 \$*\"}" >"$1"
	chmod +x "$1"
}
