# A file system that leaves questions without an answer. Sourced after helpers.bash.

can_mount() {
	[[ $(id -u) = 0 && -w /dev/fuse ]] && unshare --mount true 2>/dev/null
}

# mount_hung_file_system TARGET: tests/bin/hung_file_system at "mnt", in a mount namespace of its own; what it leaves without an answer is
# a file in "switches". Sets FILE_SYSTEM. Fails where there is no FUSE.
mount_hung_file_system() {
	mkdir mnt switches
	in_background unshare --mount --propagation slave hung_file_system "$PWD/mnt" "$PWD/switches" "$1"
	FILE_SYSTEM=$PID
	wait_until 20 eval 'is_gone "$FILE_SYSTEM" || [ -e switches/mounted ]'
	is_running "$FILE_SYSTEM"
}

# set_on_file_system SCRIPT: sets ON_FILE_SYSTEM to words that go before a command: it runs where that is mounted, after SCRIPT of sh.
set_on_file_system() {
	ON_FILE_SYSTEM=(nsenter --mount --target "$FILE_SYSTEM" sh -c 'cd "$0" || exit; '"${1-:}"'; exec "$@"' "$PWD")
}
