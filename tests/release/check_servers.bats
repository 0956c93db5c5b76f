#!/usr/bin/env bats
# tests/servers.sh, by which `make check-servers` plays the tests on servers of other versions.

load ../lib/helpers

setup() {
	cd "$BATS_TEST_DIRNAME/../.." || return
	export SERVERS_DIR=$BATS_TEST_TMPDIR/servers TOOLS_DIR=$BATS_TEST_TMPDIR
	# No package comes from anywhere.
	mkdir "$BATS_TEST_TMPDIR/bin"
	ln -s /bin/false "$BATS_TEST_TMPDIR/bin/apt-get"
	PATH=$BATS_TEST_TMPDIR/bin:$PATH
	printf '%s\n' '#!/usr/bin/env bats' '@test "which" { echo "# $(redis-server)" >&3; }' >"$BATS_TEST_TMPDIR/which.bats"
}

# bring NAME: such a server is there.
bring() {
	mkdir -p "$SERVERS_DIR/$1/bin"
	printf '#!/bin/sh\necho Redis server v=%s sha=0\n' "$1" >"$SERVERS_DIR/$1/bin/redis-server"
	chmod +x "$SERVERS_DIR/$1/bin/redis-server"
	touch "$SERVERS_DIR/$1/complete"
}

@test "the tests find the server that is their turn, and the table has what it says of itself" {
	bring redis-7.0
	run -0 env SERVERS=redis-7.0 tests/servers.sh "$BATS_TEST_TMPDIR/which.bats"
	assert_line '# Redis server v=redis-7.0 sha=0'
	assert_output --regexp $'\n''Redis redis-7.0 +1 +0 *$'
}

@test "a server that cannot be brought is told, and fails the run" {
	bring redis-7.0
	run -1 env SERVERS='redis-8.0 redis-7.0' tests/servers.sh "$BATS_TEST_TMPDIR/which.bats"
	assert_line --partial 'servers.sh: redis-8.0 cannot be brought: there is no package list of Debian here'
	assert_line --regexp '^redis-8.0 +cannot be brought'
	assert_line --regexp '^Redis redis-7.0 +1 +0'
}
