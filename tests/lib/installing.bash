# What `make install` installs, into a directory of the test. Sourced after helpers.bash.
#
#   run_make DIRECTORY ARG...   runs make there, without the variables of an outer make
#   copy_build DIRECTORY        copies the build to DIRECTORY
#   header_functions            prints the functions that rlock.h declares, sorted

# The command-line variables of the outer make (CC, CFLAGS) are in the environment, and still apply.
run_make() {
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s -C "$@"
}

# `make install` rewrites librlock.pc for each PREFIX: it must not do so in the build that other tests use.
copy_build() {
	local built=${RLOCK_BIN%/*}
	# Under valgrind or a sanitizer RLOCK_BIN is one directory further down.
	[ -z "${TESTS_UNDER-}" ] || built=${built%/*}
	mkdir "$1"
	(cd "$built" && cp -a --parents flags scripts.gen.c rlock librlock.* cli.a lib cli packaging completions "$1")
}

header_functions() {
	sed -n '/^RLOCK_API/,/;/p' "$TOP/lib/rlock.h" | tr '\n' ' ' | grep -o 'rlock_[a-z_]*(' | tr -d '(' | sort -u
}
