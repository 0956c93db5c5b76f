# A FUSE file system whose requests can be left without a reply. Sourced after helpers.bash.
#
#   can_mount                          whether this user can mount it
#   mount_hung_file_system TARGET      mounts it at "mnt"; a file in "switches" names a request that hangs
#   set_on_file_system [SCRIPT]        sets ON_FILE_SYSTEM, an array that precedes a command and runs it where "mnt" is mounted

can_mount() {
	[[ $(id -u) = 0 && -w /dev/fuse ]] && unshare --mount true 2>/dev/null
}

# mount_hung_file_system TARGET: runs tests/bin/hung_file_system in its own mount namespace. Sets FILE_SYSTEM, its pid. Fails where
# there is no FUSE. With a real-time priority it reads each request before SIGKILL can end the process that waits for the reply.
mount_hung_file_system() {
	mkdir mnt switches
	in_background unshare --mount --propagation slave hung_file_system "$PWD/mnt" "$PWD/switches" "$1"
	FILE_SYSTEM=$PID
	run_in_real_time "$FILE_SYSTEM"
	wait_until 20 eval 'is_gone "$FILE_SYSTEM" || [ -e switches/mounted ]'
	is_running "$FILE_SYSTEM"
}

# set_on_file_system [SCRIPT]: sh runs SCRIPT before the command.
set_on_file_system() {
	ON_FILE_SYSTEM=(nsenter --mount --target "$FILE_SYSTEM" sh -c 'cd "$0" || exit; '"${1-:}"'; exec "$@"' "$PWD")
}
