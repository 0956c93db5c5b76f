# What the help and the source list, for comparison with the documents. Sourced after helpers.bash.
#
#   verbs                   prints the verbs that help lists, except flock, help and version
#   exit_codes_of_program   prints the exit codes of message.h other than 0, one a line
#   stub NAME [SCRIPT]      creates a program NAME in this directory that runs SCRIPT; without SCRIPT it prints its arguments

verbs() {
	rlock help | sed -n '/^Verbs:/,/^$/s/^  \([a-z]*\) .*/\1/p' | grep -vx -e flock -e help -e version
}

exit_codes_of_program() {
	sed -nE 's/.*EXIT_[A-Z_]+ = ([0-9]+),.*/\1/p' "$BATS_TEST_DIRNAME/../../cli/base/message.h"
}

stub() {
	printf '#!/bin/sh\n%s\n' "${2-echo \"$1 \$*\"}" >"$1"
	chmod +x "$1"
}
