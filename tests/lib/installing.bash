# What `make install` installs, in a place of its own. Sourced after helpers.bash.

# run_make DIRECTORY ARG...: as if no other make called it. What that one was given on its command line (CC, CFLAGS) is in
# the environment.
run_make() {
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s -C "$@"
}

# copy_build DIRECTORY: what was built is there, too. librlock.pc is another one for each PREFIX, so that nothing is
# installed from where other tests run.
copy_build() {
	local built=${RLOCK_BIN%/*}
	# What is watched stands one directory below.
	[ -z "${TESTS_UNDER-}" ] || built=${built%/*}
	mkdir "$1"
	(cd "$built" && cp -a --parents flags scripts.gen.c rlock librlock.* cli.a lib cli packaging completions "$1")
}

# header_functions: prints those that rlock.h declares, sorted.
header_functions() {
	sed -n '/^RLOCK_API/,/;/p' "$TOP/lib/rlock.h" | tr '\n' ' ' | grep -o 'rlock_[a-z_]*(' | tr -d '(' | sort -u
}
