#!/usr/bin/env bats
# Which configuration file is read, whose it may be, and that nothing else is needed where the environment is empty, as under
# cron. What may stand in it, and what goes before what, is in the tables of unit/test_config.c.

load ../lib/usual
load ../lib/configuring

setup() { config_setup; }
teardown() { common_teardown; }

# ---- where the file is ----

@test "the file is that of --config, of RLOCK_CONFIG, in XDG_CONFIG_HOME or in the home directory, the first that there is" {
	export HOME=$PWD/home
	mkdir -p home/.config
	echo "url = $SOCKET_URL?db=4" >home/.config/rlock.conf
	echo 'not a line' >"$XDG_CONFIG_HOME/rlock.conf"
	write_config "url = $SOCKET_URL?db=1"
	echo "url = $SOCKET_URL?db=2" >other
	locks_in 2 --config other
	locks_in 2 "--config=$PWD/other"
	locks_in 1
	echo "url = $SOCKET_URL?db=3" >"$XDG_CONFIG_HOME/rlock.conf"
	RLOCK_CONFIG='' locks_in 3
	unset RLOCK_CONFIG XDG_CONFIG_HOME
	locks_in 4
}

# A file's mode is for root as well: `as_its_mode_says COMMAND`.
as_its_mode_says() {
	[ "$(id -u)" != 0 ] || set -- setpriv --bounding-set=-dac_override,-dac_read_search "$@"
	"$@"
}

# below_etc COMMAND [ARG...]: with the test's own directory etc in the place of /etc.
below_etc() {
	as_its_mode_says unshare -rm sh -c 'mount --bind "$0" /etc &&
		exec setpriv --bounding-set=-dac_override,-dac_read_search "$@"' "$BATS_TEST_TMPDIR/etc" "$@"
}

need_etc() {
	mkdir etc
	cp /etc/passwd etc
	[ ! -e /etc/ld.so.cache ] || cp /etc/ld.so.cache etc
	below_etc true 2>/dev/null || skip 'no namespaces here'
}

@test "without another file /etc/rlock.conf is read; one that cannot be read is an error, unless a server was given" {
	need_etc
	unset RLOCK_CONFIG
	echo "url = $SOCKET_URL?db=6" >etc/rlock.conf
	run -0 below_etc rlock run a -- sh -c "$LOCK_IS_IN"
	assert_output db6
	chmod 000 etc/rlock.conf
	run -78 below_etc rlock run a -- touch ran
	assert_output "rlock: cannot read '/etc/rlock.conf': Permission denied"
	RLOCK_URL=$SOCKET_URL run -0 below_etc rlock run a -- true
	assert_output ''
	refute file_exists ran
}

# as_other_user GROUP COMMAND: as user 4711, with access to the directories of the tests.
as_other_user() {
	setpriv --reuid=4711 --regid="$1" --clear-groups --inh-caps=+dac_read_search \
		--ambient-caps=+dac_read_search "${@:2}"
}

@test "with cron's environment the user's file is found, and all that is needed" {
	mkdir -p home/.config
	printf '%s\n' "url = $SOCKET_URL?db=7" 'ttl = 20s' 'note = from cron' >home/.config/rlock.conf
	run -0 env -i HOME="$PWD/home" LOGNAME=nobody PATH=/usr/bin:/bin SHELL=/bin/sh \
		SERVER_SOCKET="$SERVER_SOCKET" "$(command -v rlock)" run a -- sh -c "$LOCK_IS_IN"
	assert_output db7
	run -0 env -i "$(command -v rlock)" run --config home/.config/rlock.conf a -- "$(command -v redis-cli)" -s "$SERVER_SOCKET" \
		-n 7 pttl a
	assert [ "$output" -le 20000 ]
	assert [ "$output" -gt 0 ]
}

# ---- whose it is, and which users may read it ----

@test "a configuration file that belongs to another user is refused, however it is found" {
	[ "$(id -u)" = 0 ] || skip 'only root can give a file away'
	write_config "url = $SOCKET_URL"
	chown 65534 "$CONFIG"
	run -78 rlock run a -- touch ran
	assert_output "rlock: configuration file '$CONFIG' (RLOCK_CONFIG): belongs to user 65534, not to root or to \
the caller: check what is in it, then: chown 0 $CONFIG"
	run -78 rlock run --config "$CONFIG" -u "$SOCKET_URL" a -- touch ran
	ln -s "$CONFIG" "$XDG_CONFIG_HOME/rlock.conf"
	RLOCK_CONFIG='' run -78 rlock run a -- touch ran
	assert_equal "${#lines[@]}" 1
	assert_output --partial "$XDG_CONFIG_HOME/rlock.conf"
	refute file_exists ran
	no_keys
	chown 0 "$CONFIG"
	run -0 rlock run a -- true
}

@test "a configuration file that other users can write is refused, and its password command is not run" {
	write_config "url = $SOCKET_URL" 'password-command = touch ran; echo x'
	chmod 602 "$CONFIG"
	run -78 rlock run a -- touch ran
	assert_output "rlock: configuration file '$CONFIG' (RLOCK_CONFIG): other users can write it, its mode is \
0602: check what is in it, then: chmod go-w $CONFIG"
	refute file_exists ran
	no_keys
}

@test "a group may write the file only if it is the owner's own" {
	[ "$(id -u)" = 0 ] || skip 'only root can give a file to any group'
	write_config "url = $SOCKET_URL"
	chmod 664 "$CONFIG"
	chgrp 100 "$CONFIG"
	run -78 rlock run a -- touch ran
	assert_output --partial "its mode is 0664: check what is in it, then: chmod go-w $CONFIG"
	refute file_exists ran
	chgrp 0 "$CONFIG"
	run -0 rlock run a -- true
	# Another user, with a group of the same number.
	echo 'ttl = soon' >"$CONFIG"
	chown 4711:4711 "$CONFIG"
	run -78 as_other_user 4711 rlock run a -- true
	assert_output --partial "$CONFIG:1: ttl"
	run -78 as_other_user 4712 rlock run a -- true
	assert_output --partial "chmod go-w $CONFIG"
}

@test "a named pipe in the place of the user's file is refused at once" {
	unset RLOCK_CONFIG
	mkfifo "$XDG_CONFIG_HOME/rlock.conf"
	run -78 timeout 30 rlock run a -- touch ran
	assert_output "rlock: configuration file '$XDG_CONFIG_HOME/rlock.conf': a named pipe, not a regular file: \
to set no option, let an empty file stand there"
	run -78 timeout 30 rlock run -u "$SOCKET_URL" a -- touch ran
	refute file_exists ran
}

@test "/dev/null can be named to set no option" {
	echo 'kill-after = nonsense' >"$XDG_CONFIG_HOME/rlock.conf"
	RLOCK_CONFIG='' run -78 rlock run -u "$SOCKET_URL" a -- true
	RLOCK_CONFIG=/dev/null run -0 rlock run -u "$SOCKET_URL" a -- true
	refute_output
	run -0 rlock run --config /dev/null -u "$SOCKET_URL" a -- true
	refute_output
}

@test "a file that was named may be a pipe, whose writer may be late" {
	locks_in 5 --config <(wait_until 5 test -e go && echo "url = $SOCKET_URL?db=5") &
	: >go
	wait $!
	RLOCK_CONFIG=<(printf 'url = %s?db=4\n' "$SOCKET_URL") locks_in 4
	mkfifo unwritten
	run -78 timeout 30 rlock run --config unwritten a -- touch ran
	assert_output "rlock: configuration file 'unwritten' (--config): the pipe is empty, and has no writer"
	refute file_exists ran
}

@test "the user's file that cannot be read is an error, unless a server was given; one that was named is one always" {
	as_its_mode_says true || skip 'root reads everything here'
	write_config 'ttl = 20s'
	chmod 000 "$CONFIG"
	run -78 as_its_mode_says rlock run -u "$SOCKET_URL" a -- touch ran
	assert_equal "${#lines[@]}" 1
	unset RLOCK_CONFIG
	echo "url = redis://nowhere" >"$XDG_CONFIG_HOME/rlock.conf"
	chmod 000 "$XDG_CONFIG_HOME/rlock.conf"
	run -78 as_its_mode_says rlock run a -- touch ran
	assert_output "rlock: cannot read '$XDG_CONFIG_HOME/rlock.conf': Permission denied"
	run -0 as_its_mode_says rlock run -u "$SOCKET_URL" a -- true
	assert_output ''
	RLOCK_URL=$SOCKET_URL run as_its_mode_says rlock check
	assert_output --regexp "config +$XDG_CONFIG_HOME/rlock.conf, the default: not used: it can't be read, and is not needed"
	refute file_exists ran
}

@test "a file in another user's home directory is used by no call: another place has to name the server" {
	[ "$(id -u)" = 0 ] || skip 'only root can give a directory away'
	need_etc
	unset RLOCK_CONFIG XDG_CONFIG_HOME
	export HOME=$PWD/home
	mkdir -p home/.config
	echo "url = $SOCKET_URL?db=3" >home/.config/rlock.conf
	chown 65534 home
	run -78 below_etc rlock run a -- touch ran
	assert_output "rlock: configuration file '$HOME/.config/rlock.conf' is not read: HOME belongs to user 65534, \
not to root or to the caller, and no other place names the server: give --url, or set HOME"
	# Whatever stands there.
	ln -sf /dev/null home/.config/rlock.conf
	echo 'ttl = 20s' >etc/rlock.conf
	run -78 below_etc rlock run a -- touch ran
	assert_output --partial 'no other place names the server'
	refute file_exists ran
	run -0 below_etc rlock run -u "$SOCKET_URL?db=2" a -- sh -c "$LOCK_IS_IN"
	assert_output db2
	run below_etc rlock check -u "$SOCKET_URL?db=2"
	assert_output --regexp "config +$HOME/.config/rlock.conf, the default: not used: it is in another user's directory, and is not needed"
	echo "url = $SOCKET_URL?db=6" >etc/rlock.conf
	run -0 below_etc rlock run a -- sh -c "$LOCK_IS_IN"
	assert_output db6
	# Which may not even be looked into.
	chmod 700 home
	run -0 below_etc rlock run a -- sh -c "$LOCK_IS_IN"
	assert_output db6
	chmod 755 home
	rm home/.config/rlock.conf etc/rlock.conf
	run -69 below_etc unshare -n rlock run a -- true
	assert_output --partial 'no server was named, and this is the default'
}

# ---- what it says ----

@test "a bad line is told with file and line, and no server is asked anything" {
	local before
	write_config "url = $SOCKET_URL" 'wait = soon'
	before=$(server_commands)
	run -78 rlock run a -- touch ran
	assert_output --regexp "^rlock: $CONFIG:2: [^"$'\n'"]*'soon'[^"$'\n'"]*\$"
	assert_equal $(($(server_commands) - before)) 1
	refute file_exists ran
}

@test "with a server that cannot be reached it is said what named it, or that nothing did, with what to set" {
	local unserved="unix://$PWD/unserved.sock"
	write_config 'ttl = 20s'
	RLOCK_URL=$unserved run -69 rlock run a -- true
	assert_output --regexp "^rlock: a: cannot reach $unserved?.*: the server is from RLOCK_URL\$"
	run -69 rlock run -u "$unserved" a -- true
	refute_output --partial 'the server is from'
	write_config "url = $unserved"
	run -69 rlock run a -- true
	assert_output --regexp ": the server is from $CONFIG\$"
	unshare -rn true 2>/dev/null || skip 'no namespaces here'
	write_config 'ttl = 20s'
	run -69 unshare -rn rlock run a -- true
	assert_output --regexp ": no server was named, and this is the default: set RLOCK_URL, --url, or url in $CONFIG\$"
}
