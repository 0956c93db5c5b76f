#!/usr/bin/env bats
# Which configuration file is read, and who may own it; and that rlock needs nothing else when the environment is empty, as under
# cron. unit/test_config.c has tables for the file's syntax and for the precedence of the sources.

load ../lib/usual

# Unset RLOCK_URL, so that only a configuration file names a server.
setup() {
	directory_setup
	SOCKET_URL=$RLOCK_URL
	unset RLOCK_URL
	CONFIG=$BATS_TEST_TMPDIR/rlock.conf
	export RLOCK_CONFIG=$CONFIG
	mkdir "$XDG_CONFIG_HOME" etc
	cp /etc/passwd etc
	[ ! -e /etc/ld.so.cache ] || cp /etc/ld.so.cache etc
}

# write_config LINE...: writes the file that RLOCK_CONFIG names.
write_config() {
	printf '%s\n' "$@" >"$CONFIG"
}

# locks_in DATABASE COMMAND [ARG...]: COMMAND, an rlock call without names, must acquire its lock in this database.
locks_in() {
	run -0 "${@:2}" a -- "$(command -v redis-cli)" -s "$SERVER_SOCKET" info keyspace
	assert_line --partial "db$1:"
}

# refuses TEXT COMMAND [ARG...]: COMMAND, an rlock call without names, must exit with 78 and one line with TEXT.
refuses() {
	run -78 "${@:2}" a -- touch ran
	assert_output --partial "$1"
	assert_one_message
	refute file_exists ran
}

# with_test_etc COMMAND [ARG...]: runs COMMAND with the test's directory etc mounted at /etc.
with_test_etc() {
	as_mode_allows unshare -rm sh -c 'mount --bind "$0" /etc &&
		exec setpriv --bounding-set=-dac_override,-dac_read_search "$@"' "$BATS_TEST_TMPDIR/etc" "$@"
}

@test "the file is that of --config, RLOCK_CONFIG, XDG_CONFIG_HOME or the home directory, in this order" {
	export HOME=$PWD/home
	mkdir -p home/.config
	printf '%s\n' "url = $SOCKET_URL?db=4" 'ttl = 20s' >home/.config/rlock.conf
	echo 'not a line' >"$XDG_CONFIG_HOME/rlock.conf"
	write_config "url = $SOCKET_URL?db=1"
	echo "url = $SOCKET_URL?db=2" >other
	locks_in 2 rlock run --config other
	locks_in 1 rlock run
	echo "url = $SOCKET_URL?db=3" >"$XDG_CONFIG_HOME/rlock.conf"
	RLOCK_CONFIG='' locks_in 3 rlock run
	# Use the environment that cron gives its jobs.
	locks_in 4 env -i HOME="$HOME" LOGNAME=nobody PATH=/usr/bin:/bin SHELL=/bin/sh "$(command -v rlock)" run
}

@test "a variable named like an option, which rlock does not read, is a warning, unless the option is given" {
	local not_read='is set, but rlock reads no such variable; give'
	write_config "url = $SOCKET_URL"
	run -0 --separate-stderr env RLOCK_TIMEOUT=5m RLOCK_HOST=h RLOCK_HOME=x rlock run a -- true
	assert_equal "$stderr" "rlock: RLOCK_TIMEOUT $not_read --wait 5m, or a line in the configuration file"
	run -0 --separate-stderr env RLOCK_TTL=1minute RLOCK_WIAT=5 RLOCK_GRACE=x rlock run a -- true
	assert_equal "$(sort <<<"$stderr")" "rlock: RLOCK_GRACE $not_read --grace, or a line in the configuration file
rlock: RLOCK_TTL $not_read --ttl 1m, or a line in the configuration file
rlock: RLOCK_WIAT $not_read --wait 5, or a line in the configuration file"
	RLOCK_WAIT=5m run -0 rlock run -w 9s a -- true
	assert_output ''
	RLOCK_WAIT=5m RLOCK_MODE=x run -0 rlock run -n a -- true
	assert_output ''
}

@test "a variable named like RLOCK_URL is a warning that names RLOCK_URL, without its value, unless a server was given" {
	unset RLOCK_CONFIG RLOCK_URL
	RLOCK_URI=redis://:sEcReT@127.0.0.1:1 run -69 rlock run a -- true
	assert_line --index 0 'rlock: RLOCK_URI is set, but rlock reads RLOCK_URL'
	refute_output --partial sEcReT
	RLOCK_URI=redis://127.0.0.1:1 run -0 rlock run -u "$SOCKET_URL" a -- true
	assert_output ''
}

@test "an unreadable user's file is an error, unless a server was given" {
	(as_mode_allows true) || skip 'root reads everything here'
	unset RLOCK_CONFIG
	: >"$XDG_CONFIG_HOME/rlock.conf"
	chmod 000 "$XDG_CONFIG_HOME/rlock.conf"
	run -78 as_mode_allows rlock run --config "$XDG_CONFIG_HOME/rlock.conf" -u "$SOCKET_URL" a -- true
	run -78 as_mode_allows rlock run a -- true
	assert_output "rlock: cannot read '$XDG_CONFIG_HOME/rlock.conf': Permission denied"
	run -0 as_mode_allows rlock run -u "$SOCKET_URL" a -- true
	assert_output ''
	run as_mode_allows rlock check -u "$SOCKET_URL"
	assert_output --regexp "config +$XDG_CONFIG_HOME/rlock.conf, the default: not used: it can't be read, and is not needed"
}

@test "the value of an unknown option that may be a password is not shown, and that of another one is" {
	local option
	for option in sentinel-password sentinel-pass sentinel_password_file key-password key-pass cert-password note-token note-secret \
		RLOCK_NOTE_PASSWORD; do
		write_config "$option = sEcReT"
		refuses "'$option': there is no such option" rlock run
		refute_output --partial sEcReT
	done
	write_config 'notes = a backup'
	refuses "'notes': there is no such option; try: note = a backup" rlock run
}

@test "a file in another user's home directory is never used: another source, such as /etc/rlock.conf, must name the server" {
	[ "$(id -u)" = 0 ] || skip 'only root can give a directory away'
	(with_test_etc true) 2>/dev/null || skip 'no namespaces here'
	unset RLOCK_CONFIG XDG_CONFIG_HOME
	export HOME=$PWD/home
	mkdir -p home/.config
	echo "url = $SOCKET_URL?db=3" >home/.config/rlock.conf
	chown 65534 home
	run -78 with_test_etc rlock run a -- true
	assert_output "rlock: configuration file '$HOME/.config/rlock.conf' is not read: HOME belongs to user 65534, \
not to root or to the caller, and no other place names the server; give --url, or set HOME"
	locks_in 2 with_test_etc rlock run -u "$SOCKET_URL?db=2"
	run with_test_etc rlock check -u "$SOCKET_URL?db=2"
	assert_output --regexp "config +$HOME/.config/rlock.conf, the default: not used: it is in another user's directory, and is not needed"
	echo 'ttl = 20s' >etc/rlock.conf
	run -78 with_test_etc rlock run a -- true
	echo "url = $SOCKET_URL?db=6" >etc/rlock.conf
	: >"$CONFIG"
	run with_test_etc rlock check --config "$CONFIG" -u "$SOCKET_URL"
	assert_output --partial "/etc/rlock.conf, the default: not used: one file is read, and that is $CONFIG"
	# Let rlock not even search the home directory.
	chmod 700 home
	locks_in 6 with_test_etc rlock run
	chmod 000 etc/rlock.conf
	run -78 with_test_etc rlock run a -- true
	assert_output "rlock: cannot read '/etc/rlock.conf': Permission denied"
	RLOCK_URL=$SOCKET_URL run -0 with_test_etc rlock run a -- true
	assert_output ''
}

@test "a configuration file that belongs to another user, or that others can write, is refused, however it is found" {
	[ "$(id -u)" = 0 ] || skip 'only root can give a file away'
	write_config "url = $SOCKET_URL" 'password-command = touch ran; echo x'
	chmod 602 "$CONFIG"
	refuses "rlock: configuration file '$CONFIG' (RLOCK_CONFIG): other users can write it, its mode is 0602; check what is in it, then: \
chmod go-w $CONFIG" rlock run
	chmod 600 "$CONFIG"
	chown 65534 "$CONFIG"
	refuses "rlock: configuration file '$CONFIG' (RLOCK_CONFIG): belongs to user 65534, not to root or to the caller; \
check what is in it, then: chown 0 $CONFIG" rlock run
	refuses "$CONFIG" rlock run --config "$CONFIG" -u "$SOCKET_URL"
	ln -s "$CONFIG" "$XDG_CONFIG_HOME/rlock.conf"
	RLOCK_CONFIG='' refuses "$XDG_CONFIG_HOME/rlock.conf" rlock run
	no_keys
}

@test "a group may have write access to the file only if it is the owner's private group" {
	[ "$(id -u)" = 0 ] || skip 'only root can give a file to any group'
	write_config 'ttl = soon'
	chmod 664 "$CONFIG"
	chgrp 100 "$CONFIG"
	refuses "its mode is 0664; check what is in it, then: chmod go-w $CONFIG" rlock run
	# A file that belongs to root must be accepted for all users.
	chmod 644 "$CONFIG"
	refuses "$CONFIG:1: ttl" as_user 4711 rlock run
	install -D "$CONFIG" home/.config/rlock.conf
	refuses "home/.config/rlock.conf:1: ttl" as_user 4711 env -u RLOCK_CONFIG -u XDG_CONFIG_HOME HOME="$PWD/home" rlock run
	chmod 664 "$CONFIG"
	# Give the file a group with the same number as its owner: such a group counts as the owner's private one.
	chown 4711:4711 "$CONFIG"
	refuses "$CONFIG:1: ttl" as_user 4711 rlock run
	chown 4712:4711 "$CONFIG"
	refuses "chmod go-w $CONFIG" as_user 4712 rlock run
}

# as_user USER COMMAND: runs COMMAND as this user, with group 4711. A capability lets COMMAND read the directories of the tests.
as_user() {
	setpriv --reuid="$1" --regid=4711 --clear-groups --inh-caps=+dac_read_search --ambient-caps=+dac_read_search "${@:2}"
}

@test "a file named by --config may be a pipe with a late writer, or /dev/null; a pipe at the default path is refused" {
	locks_in 5 rlock run --config <(wait_until 5 test -e go && echo "url = $SOCKET_URL?db=5") &
	: >go
	wait $!
	mkfifo unwritten "$XDG_CONFIG_HOME/rlock.conf"
	refuses "rlock: configuration file 'unwritten' (--config): the pipe is empty, and has no writer" rlock run --config unwritten
	RLOCK_CONFIG='' refuses "rlock: configuration file '$XDG_CONFIG_HOME/rlock.conf': a named pipe, not a regular file; \
to set no option, put an empty file there" rlock run -u "$SOCKET_URL"
	RLOCK_CONFIG=/dev/null run -0 rlock run -u "$SOCKET_URL" a -- true
	assert_output ''
}

@test "a bad line is reported with file and line number before any connection; an unreachable server with the source of its URL" {
	local before unserved="unix://$PWD/unserved.sock"
	write_config "url = $SOCKET_URL" 'wait = soon'
	before=$(server_commands)
	refuses "rlock: $CONFIG:2: wait 'soon'" rlock run
	assert_equal $(($(server_commands) - before)) 1
	write_config "url = $unserved"
	run -69 rlock run a -- true
	assert_output --regexp "^rlock: a: cannot reach $unserved?.*; the server is from $CONFIG\$"
	RLOCK_URL=$unserved run -69 rlock run a -- true
	assert_output --regexp "; the server is from RLOCK_URL\$"
	unshare -rn true 2>/dev/null || skip 'no namespaces here'
	write_config 'ttl = 20s'
	run -69 unshare -rn rlock run a -- true
	assert_output --regexp "; no server was named, and this is the default; set RLOCK_URL, --url, or url in $CONFIG\$"
}
