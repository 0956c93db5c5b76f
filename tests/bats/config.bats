#!/usr/bin/env bats
# Where options come from: the command line, the environment, the first configuration file that there is; and that
# nothing but a file is needed where the environment is empty, as under cron. What may stand in the file:
# config_lines.bats.

load ../lib/helpers
load ../lib/configuring

setup_file() { start_server; }
teardown_file() { stop_server; }
setup() { config_setup; }
teardown() { common_teardown; }

# pttl_within LEAST MOST OPTION...: what the server is told to keep the lock for.
pttl_within() {
	local least=$1 most=$2
	shift 2
	run -0 rlock run "$@" a -- ask_redis "$SERVER_SOCKET" pttl a
	assert [ "$output" -ge "$least" ]
	assert [ "$output" -le "$most" ]
}

# ---- where the file is ----

@test "RLOCK_CONFIG names a configuration file" {
	write_config "url = $SOCKET_URL?db=1"
	locks_in 1
}

@test "--config names a configuration file, before RLOCK_CONFIG" {
	write_config "url = $SOCKET_URL?db=1"
	echo "url = $SOCKET_URL?db=2" >other
	locks_in 2 --config other
	locks_in 2 "--config=$PWD/other"
}

@test "without these the file is rlock.conf in XDG_CONFIG_HOME" {
	unset RLOCK_CONFIG
	echo "url = $SOCKET_URL?db=3" >"$XDG_CONFIG_HOME/rlock.conf"
	locks_in 3
}

@test "without XDG_CONFIG_HOME it is .config/rlock.conf in the home directory" {
	unset RLOCK_CONFIG XDG_CONFIG_HOME
	mkdir -p home/.config
	echo "url = $SOCKET_URL?db=4" >home/.config/rlock.conf
	HOME=$PWD/home locks_in 4
}

@test "RLOCK_CONFIG goes before the user's file, and that before the home directory's" {
	mkdir -p home/.config
	echo 'not a line' >home/.config/rlock.conf
	echo "url = $SOCKET_URL?db=3" >"$XDG_CONFIG_HOME/rlock.conf"
	write_config "url = $SOCKET_URL?db=1"
	HOME=$PWD/home locks_in 1
	unset RLOCK_CONFIG
	HOME=$PWD/home locks_in 3
}

@test "only the first file is read" {
	echo 'db = 5' >"$XDG_CONFIG_HOME/rlock.conf"
	write_config "url = $SOCKET_URL"
	locks_in 0
}

@test "without another file /etc/rlock.conf is read" {
	local etc=$BATS_TEST_TMPDIR/etc
	mkdir "$etc"
	cp /etc/passwd "$etc"
	[ ! -e /etc/ld.so.cache ] || cp /etc/ld.so.cache "$etc"
	echo "url = $SOCKET_URL?db=6" >"$etc/rlock.conf"
	unshare -rm mount --bind "$etc" /etc 2>/dev/null || skip "no namespaces here"
	unset RLOCK_CONFIG
	# shellcheck disable=SC2016
	run -0 unshare -rm sh -c 'mount --bind "$1" /etc && exec rlock run a -- sh -c "$LOCK_IS_IN"' sh "$etc"
	assert_output db6
}

@test "a file that was named and is not there is an error" {
	run -78 rlock run --config "$PWD/no-such-file" a -- touch ran
	assert_equal "${#lines[@]}" 1
	assert_output --partial no-such-file
	RLOCK_CONFIG=$PWD/nor-this run -78 rlock run a -- touch ran
	assert_equal "${#lines[@]}" 1
	assert_output --partial nor-this
	refute file_exists ran
}

@test "a user's file that is not there is none" {
	unset RLOCK_CONFIG
	rmdir "$XDG_CONFIG_HOME"
	RLOCK_URL=$SOCKET_URL locks_in 0
}

@test "a directory in the place of the file is an error" {
	run -78 rlock run --config "$PWD" a -- touch ran
	assert_equal "${#lines[@]}" 1
	unset RLOCK_CONFIG
	mkdir "$XDG_CONFIG_HOME/rlock.conf"
	run -78 rlock run a -- touch ran
	assert_equal "${#lines[@]}" 1
}

@test "an empty RLOCK_CONFIG is as if it was not set" {
	export RLOCK_CONFIG=
	RLOCK_URL=$SOCKET_URL locks_in 0
	echo "url = $SOCKET_URL?db=3" >"$XDG_CONFIG_HOME/rlock.conf"
	locks_in 3
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
	local mode
	write_config "url = $SOCKET_URL" 'password-command = touch ran; echo x'
	for mode in 666 646 622; do
		chmod "$mode" "$CONFIG"
		run -78 rlock run a -- touch ran
		assert_output "rlock: configuration file '$CONFIG' (RLOCK_CONFIG): other users can write it, its mode is \
0$mode: check what is in it, then: chmod go-w $CONFIG"
	done
	ln -s "$CONFIG" "$XDG_CONFIG_HOME/rlock.conf"
	RLOCK_CONFIG='' run -78 rlock run a -- touch ran
	assert_output --partial ": chmod go-w $XDG_CONFIG_HOME/rlock.conf"
	refute file_exists ran
	no_keys
	run -0 chmod go-w "$XDG_CONFIG_HOME/rlock.conf"
	write_config "url = $SOCKET_URL"
	run -0 rlock run a -- true
}

# as_other_user GROUP COMMAND: as user 4711, with access to the directories of the tests.
as_other_user() {
	setpriv --reuid=4711 --regid="$1" --clear-groups --inh-caps=+dac_read_search \
		--ambient-caps=+dac_read_search "${@:2}"
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
	run -78 timeout 5 rlock run a -- touch ran
	assert_output "rlock: configuration file '$XDG_CONFIG_HOME/rlock.conf': a named pipe, not a regular file: \
to set no option, let an empty file stand there"
	run -78 timeout 5 rlock run -u "$SOCKET_URL" a -- touch ran
	refute file_exists ran
}

@test "a device in the place of a file is refused: locks would be on the default server" {
	ln -s /dev/null "$XDG_CONFIG_HOME/rlock.conf"
	RLOCK_CONFIG='' run -78 rlock run a -- touch ran
	assert_output --partial "'$XDG_CONFIG_HOME/rlock.conf': a device, not a regular file"
	run -78 rlock run --config /dev/zero a -- touch ran
	assert_output --partial "'/dev/zero' (--config): a device, not a regular file"
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

@test "a link to a file is followed" {
	echo "url = $SOCKET_URL?db=3" >dotfile
	ln -s "$PWD/dotfile" "$XDG_CONFIG_HOME/rlock.conf"
	RLOCK_CONFIG='' locks_in 3
}

@test "a file that was named may be a pipe, whose writer may be late" {
	locks_in 5 --config <(wait_until 5 test -e go && echo "url = $SOCKET_URL?db=5") &
	: >go
	wait $!
	RLOCK_CONFIG=<(printf 'url = %s?db=4\n' "$SOCKET_URL") locks_in 4
	mkfifo unwritten
	run -78 timeout 5 rlock run --config unwritten a -- touch ran
	assert_output "rlock: configuration file 'unwritten' (--config): the pipe is empty, and has no writer"
	refute file_exists ran
}

# A file's mode is for root as well: `as_its_mode_says COMMAND`.
as_its_mode_says() {
	[ "$(id -u)" != 0 ] || set -- setpriv --bounding-set=-dac_override,-dac_read_search "$@"
	"$@"
}

# below_etc COMMAND [ARG...]: with the test's own directory etc in the place of /etc.
below_etc() {
	# shellcheck disable=SC2016
	as_its_mode_says unshare -rm sh -c 'mount --bind "$0" /etc &&
		exec setpriv --bounding-set=-dac_override,-dac_read_search "$@"' "$BATS_TEST_TMPDIR/etc" "$@"
}

need_etc() {
	mkdir etc
	cp /etc/passwd etc
	[ ! -e /etc/ld.so.cache ] || cp /etc/ld.so.cache etc
	below_etc true 2>/dev/null || skip 'no namespaces here'
}

@test "the user's file that cannot be read is an error, unless a server was given" {
	as_its_mode_says true || skip 'root reads everything here'
	unset RLOCK_CONFIG
	echo "url = redis://nowhere" >"$XDG_CONFIG_HOME/rlock.conf"
	chmod 000 "$XDG_CONFIG_HOME/rlock.conf"
	run -78 as_its_mode_says rlock run a -- touch ran
	assert_output "rlock: cannot read '$XDG_CONFIG_HOME/rlock.conf': Permission denied"
	run -0 as_its_mode_says rlock run -u "$SOCKET_URL" a -- true
	assert_output ''
	RLOCK_URL=$SOCKET_URL run -0 as_its_mode_says rlock run -v a -- true
	assert_line "rlock: $XDG_CONFIG_HOME/rlock.conf: ignored, since it can't be read"
	refute file_exists ran
}

@test "a file that was named and cannot be read is an error, also when a server was given" {
	as_its_mode_says true || skip 'root reads everything here'
	write_config 'ttl = 20s'
	chmod 000 "$CONFIG"
	run -78 as_its_mode_says rlock run -u "$SOCKET_URL" a -- touch ran
	assert_equal "${#lines[@]}" 1
	refute file_exists ran
}

@test "/etc/rlock.conf that cannot be read is an error, unless a server was given" {
	need_etc
	unset RLOCK_CONFIG
	echo "url = redis://nowhere" >etc/rlock.conf
	chmod 000 etc/rlock.conf
	run -78 below_etc rlock run a -- touch ran
	assert_output "rlock: cannot read '/etc/rlock.conf': Permission denied"
	run -0 below_etc rlock run -u "$SOCKET_URL" a -- true
	assert_output ''
	RLOCK_URL=$SOCKET_URL run -0 below_etc rlock run a -- true
	assert_output ''
	refute file_exists ran
}

@test "with another user's home directory, which cannot be read, /etc/rlock.conf is read" {
	[ "$(id -u)" = 0 ] || skip 'only root can give a directory away'
	need_etc
	unset RLOCK_CONFIG XDG_CONFIG_HOME
	echo "url = $SOCKET_URL?db=6" >etc/rlock.conf
	mkdir -p home/.config
	echo "url = redis://nowhere" >home/.config/rlock.conf
	chmod 700 home/.config
	chown -R 65534 home
	HOME=$PWD/home run -0 below_etc rlock run a -- sh -c "$LOCK_IS_IN"
	assert_output db6
	chmod 700 home
	HOME=$PWD/home run -0 below_etc rlock run a -- sh -c "$LOCK_IS_IN"
	assert_output db6
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
	run -78 below_etc rlock run a -- touch ran
	assert_output --partial 'no other place names the server'
	echo 'ttl = 20s' >etc/rlock.conf
	run -78 below_etc rlock run a -- touch ran
	refute file_exists ran
	run -0 below_etc rlock run -v -u "$SOCKET_URL?db=2" a -- sh -c "$LOCK_IS_IN"
	assert_line db2
	assert_line "rlock: $HOME/.config/rlock.conf: ignored, since it is in another user's directory"
	echo "url = $SOCKET_URL?db=6" >etc/rlock.conf
	run -0 below_etc rlock run a -- sh -c "$LOCK_IS_IN"
	assert_output db6
	RLOCK_URL="$SOCKET_URL?db=2" run -0 below_etc rlock run a -- sh -c "$LOCK_IS_IN"
	assert_output db2
	rm home/.config/rlock.conf etc/rlock.conf
	run -69 below_etc unshare -n rlock run a -- true
	assert_output --partial 'no server was named, and this is the default'
}

@test "a user whose home directory is root's has a file there, as in a container" {
	[ "$(id -u)" = 0 ] || skip 'only root can be another user'
	unset RLOCK_CONFIG XDG_CONFIG_HOME
	mkdir -p home/.config
	echo 'ttl = soon' >home/.config/rlock.conf
	HOME=$PWD/home run -78 as_other_user 4711 rlock run a -- true
	assert_output --partial "$PWD/home/.config/rlock.conf:1: ttl"
}

# ---- what goes before what ----

@test "the server: the command line goes before the environment, and that before the file" {
	write_config "url = $SOCKET_URL?db=1"
	locks_in 1
	RLOCK_URL="$SOCKET_URL?db=2" locks_in 2
	export RLOCK_URL=redis://nowhere
	locks_in 3 -u "$SOCKET_URL?db=3"
}

@test "the database of a URL that was given does not come from another one" {
	write_config "url = $SOCKET_URL?db=1"
	locks_in 0 -u "$SOCKET_URL"
	RLOCK_URL=$SOCKET_URL locks_in 0
}

@test "--db goes before the database in the URL of the file and of the environment" {
	write_config "url = $SOCKET_URL?db=1"
	locks_in 4 --db 4
	RLOCK_URL="$SOCKET_URL?db=2" locks_in 4 --db 4
	locks_in 0 --db 0
}

@test "a database in the file is used with a URL there that names none" {
	write_config "url = $SOCKET_URL" 'db = 6'
	locks_in 6
	write_config 'db = 6' "url = $SOCKET_URL"
	locks_in 6
	locks_in 4 --db 4
}

@test "what the file says of its servers is not for a URL that was given" {
	write_config "url = $SOCKET_URL" 'db = 5' 'quorum = 2' 'password-file = no-such-file'
	RLOCK_URL=$SOCKET_URL locks_in 0
	locks_in 0 -u "$SOCKET_URL"
	RLOCK_URL="$SOCKET_URL?db=2" locks_in 2
	locks_in 3 -u "$SOCKET_URL" --db 3
}

@test "what of the file is ignored for a URL that was given is told with -v, and only then" {
	write_config "url = $SOCKET_URL" 'db = 5' 'quorum = all' 'ttl = 20s' 'password-file = no-such-file'
	run -0 rlock run -u "$SOCKET_URL" a -- true
	assert_output ''
	run -0 rlock run -v -u "$SOCKET_URL" a -- true
	assert_line "rlock: $CONFIG: ignored, since --url names the server: db, quorum, password-file"
	RLOCK_URL=$SOCKET_URL run -0 rlock run -v --db 1 a -- true
	assert_line "rlock: $CONFIG: ignored, since RLOCK_URL names the server: quorum, password-file"
	write_config "url = $SOCKET_URL" 'db = 5' 'verbose = yes'
	run -0 rlock run a -- true
	refute_output --partial ignored
}

@test "an option on the command line goes before the file's" {
	write_config "url = $SOCKET_URL" 'ttl = 50s' 'conflict-exit-code = 3'
	pttl_within 45000 50000
	pttl_within 10000 20000 -t 20s
	redis hset a x:1 1 >/dev/null
	run -3 rlock run -n a -- true
	run -4 rlock run -n -E 4 a -- true
}

@test "an option on the command line goes before its opposite in the file" {
	write_config "url = $SOCKET_URL" 'no-wait = yes' 'lease = 50s'
	pttl_within 10000 20000 -t 20s
	pttl_within 45000 50000
	redis hset a x:1 1 >/dev/null
	run -75 rlock run a -- true
	assert_output ''
	run -75 rlock run -w 20ms a -- true
	refute_output ''
	write_config "url = $SOCKET_URL" 'wait = 20ms' 'ttl = 50s'
	run -75 rlock run a -- true
	refute_output ''
	run -75 rlock run -n a -- true
	assert_output ''
	redis del a >/dev/null
	pttl_within 10000 20000 -l 20s
}

@test "with a server that cannot be reached it is said what named it" {
	local unserved="unix://$PWD/unserved.sock?db=1"
	write_config 'ttl = 20s'
	RLOCK_URL=$unserved run -69 rlock run a -- true
	assert_output --regexp "^rlock: a: cannot reach ${unserved/\?/\\?}: .*: the server is from RLOCK_URL\$"
	write_config "url = $unserved"
	run -69 rlock run a -- true
	assert_output --regexp "^rlock: a: cannot reach ${unserved/\?/\\?}: .*: the server is from $CONFIG\$"
	run -69 rlock run -u "$unserved" a -- true
	refute_output --partial ' is from '
}

@test "where nothing named a server that is said, with what to set" {
	unshare -rn true 2>/dev/null || skip 'no namespaces here'
	write_config 'ttl = 20s'
	run -69 unshare -rn rlock run a -- true
	assert_output --regexp "^rlock: a: cannot reach redis://127.0.0.1:6379/0: .*: no server was named, and this \
is the default: set RLOCK_URL, --url, or url in $CONFIG\$"
	unset RLOCK_CONFIG
	run -69 unshare -rn rlock unlock --owner x a
	assert_output --partial ': set RLOCK_URL, --url, or url in /etc/rlock.conf'
}

# ---- passwords ----

@test "a password file that cannot be read is a matter of configuration" {
	write_config "url = $SOCKET_URL"
	run -78 rlock run --password-file no-such-file a -- true
	assert_equal "${#lines[@]}" 1
	assert_output --partial no-such-file
	: >empty
	run -78 rlock run --password-file empty a -- true
	assert_output --partial empty
	printf '\nsecret\n' >second
	run -78 rlock run --password-file second a -- true
	assert_output --partial second
	refute_output --partial secret
}

# ---- cron ----

@test "with an empty environment a file is all that is needed" {
	write_config "url = $SOCKET_URL" 'ttl = 20s' 'note = from cron'
	run -0 env -i "$(command -v rlock)" run --config "$CONFIG" a -- \
		"$(command -v redis-cli)" -s "$SERVER_SOCKET" pttl a
	assert [ "$output" -le 20000 ]
	assert [ "$output" -gt 0 ]
}

@test "with cron's environment the user's file is found" {
	mkdir -p home/.config
	echo "url = $SOCKET_URL?db=7" >home/.config/rlock.conf
	run -0 env -i HOME="$PWD/home" LOGNAME=nobody PATH=/usr/bin:/bin SHELL=/bin/sh \
		SERVER_SOCKET="$SERVER_SOCKET" "$(command -v rlock)" run a -- sh -c "$LOCK_IS_IN"
	assert_output db7
}
