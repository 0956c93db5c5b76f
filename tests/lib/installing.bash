# What `make install` installs, into a directory of the test. Sourced after helpers.bash.
#
#   run_make DIRECTORY ARG...   runs make there, without the variables of an outer make
#   copy_build DIRECTORY        copies the build to DIRECTORY
#   header_functions            prints the functions that rlock.h declares, sorted

# run_make: variables such as CC and CFLAGS from the outer make's command line still apply, since make also puts them into the
# environment.
run_make() {
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s -C "$@"
}

# copy_build: install from a copy, since `make install` rewrites librlock.pc for each PREFIX, and other tests use the original
# build.
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
