#!/usr/bin/env bats
# The image of packaging/container/Dockerfile, built and run by buildah, as root, with a network for apt. BASE is the image in which
# the program is built, or a directory with the root of a Debian, as debootstrap makes it. Default: the image of the Dockerfile.

load ../lib/helpers

# build_ah ARG...: run buildah with images in the directory of this test, which is removed at the end.
build_ah() {
	buildah --root "$BATS_FILE_TMPDIR/images" --runroot "$BATS_FILE_TMPDIR/state" --storage-driver vfs "$@"
}

setup_file() {
	local base=${BASE-} container
	export CONTAINER ROOT
	start_server_at_port
	mkdir "$BATS_FILE_TMPDIR/tree"
	tar -C "$BATS_TEST_DIRNAME/../.." -c --exclude='./build*' --exclude=./.git . | tar -x -C "$BATS_FILE_TMPDIR/tree"
	if [ -d "$base" ]; then
		container=$(build_ah from scratch)
		build_ah add -q "$container" "$base" / >/dev/null
		build_ah commit -q "$container" localhost/base >/dev/null
		base=localhost/base
	fi
	build_ah build --isolation chroot ${base:+--build-arg "BASE=$base"} -t localhost/rlock \
		-f "$BATS_FILE_TMPDIR/tree/packaging/container/Dockerfile" "$BATS_FILE_TMPDIR/tree" >"$BATS_FILE_TMPDIR/log" 2>&1 ||
		fail "$(tail -n 20 "$BATS_FILE_TMPDIR/log")"
	CONTAINER=$(build_ah from localhost/rlock)
	ROOT=$(build_ah mount "$CONTAINER")
}

teardown_file() {
	build_ah unmount --all >/dev/null
	stop_server
}

setup() { common_setup; }
teardown() { common_teardown; }

# in_container ARG...: run rlock in the container.
in_container() {
	build_ah run --isolation chroot "$CONTAINER" -- /rlock "$@"
}

@test "the image has only the program, its notices and the certificate authorities, and runs the program as an unprivileged user" {
	run -0 find "$ROOT" -type f -printf '/%P\n'
	assert_equal "$(sort <<<"$output")" $'/NOTICES\n/etc/ssl/certs/ca-certificates.crt\n/rlock'
	run -0 grep -c 'BEGIN CERTIFICATE' "$ROOT/etc/ssl/certs/ca-certificates.crt"
	assert [ "$output" -gt 50 ]
	run -1 sh -c 'readelf -SW "$1" | grep -F .debug_' sh "$ROOT/rlock"
	run -0 build_ah inspect --type image --format \
		'{{.OCIv1.Config.Entrypoint}} {{.OCIv1.Config.User}} {{.OCIv1.Config.Env}}' localhost/rlock
	assert_output --partial '[/rlock] 65534:65534 '
	assert_output --partial SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
}

@test "the program in the image runs a command of the image with a lock" {
	run -0 in_container run -u "redis://127.0.0.1:$PORT" name -- /rlock status -u "redis://127.0.0.1:$PORT" name
	assert_output --partial 'name: plain lock, held'
	assert_output --partial uid65534@
	no_keys
	run -127 in_container run -u "redis://localhost:$PORT" name -- /missing
	assert_output --partial ': /missing: command not found'
}
