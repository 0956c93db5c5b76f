# Programs whose wall clock is wrong, or is set while they run. Sourced after helpers.bash.
#
#   needs_wrong_clocks         builds the library that changes the clock; skips the test if it cannot be used
#   follow_clock_file FILE     sets CLOCK, which precedes a command: its wall clock then differs by the seconds in FILE
#   step_clock FILE SECONDS    changes that difference, also for running programs
#   clock_is_off_by SECONDS    whether the wall clock of a command after CLOCK differs by SECONDS

# needs_wrong_clocks: call it in the first line of a test. The library adds the seconds in the file CLOCK_OFF_FILE to the wall
# clock. It does not change the monotonic clocks and the kernel's timers. (faketime changes those: a timer for a point in time
# would fire immediately, or never.)
needs_wrong_clocks() {
	WRONG_CLOCK=$BATS_FILE_TMPDIR/wrong-clock.so
	[ -e "$WRONG_CLOCK" ] || needs_preload "$WRONG_CLOCK" <<-'EOS'
		#include <fcntl.h>
		#include <stdlib.h>
		#include <sys/syscall.h>
		#include <sys/time.h>
		#include <time.h>
		#include <unistd.h>

		int clock_gettime(clockid_t clock, struct timespec *now)
		{
			int result = (int)syscall(SYS_clock_gettime, clock, now), fd;
			char seconds[32] = "";

			if (result != 0 || clock != CLOCK_REALTIME)
				return result;
			fd = open(getenv("CLOCK_OFF_FILE"), O_RDONLY | O_CLOEXEC);
			if (fd >= 0 && read(fd, seconds, sizeof(seconds) - 1) > 0)
				now->tv_sec += atoi(seconds);
			(void)close(fd);
			return 0;
		}

		/* The call that redis-server uses. */
		int gettimeofday(struct timeval *restrict now, void *restrict zone)
		{
			struct timespec precise;
			int result = clock_gettime(CLOCK_REALTIME, &precise);

			(void)zone;
			now->tv_sec = precise.tv_sec;
			now->tv_usec = precise.tv_nsec / 1000;
			return result;
		}
	EOS
}

follow_clock_file() {
	CLOCK=(env "LD_PRELOAD=$WRONG_CLOCK" "CLOCK_OFF_FILE=$1")
}

# step_clock FILE SECONDS: replaces FILE by rename(2), so that no program reads half a number.
step_clock() {
	echo "$2" >"$1.new"
	mv "$1.new" "$1"
}

# clock_is_off_by SECONDS: accepts 2 s more or less, since the two clocks are read one after the other.
clock_is_off_by() {
	local off
	off=$(($("${CLOCK[@]}" date +%s) - $(date +%s) - $1))
	((off >= -2 && off <= 2))
}
