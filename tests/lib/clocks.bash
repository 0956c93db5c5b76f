# Programs whose wall clock is wrong, or is set while they run. Sourced after helpers.bash.

# CLOCK is for the tests: it goes before a command.
# shellcheck disable=SC2034

# need_wrong_clocks: for the first line of a test. A library that puts the wall clock of a program off by
# CLOCK_OFF seconds, or by what the file CLOCK_OFF_FILE says at that moment, and nothing else: a clock that no call sets
# runs on, and the kernel's timers with it. (With faketime a timer for a point in time is due at once, or never.)
need_wrong_clocks() {
	WRONG_CLOCK=$BATS_FILE_TMPDIR/wrong-clock.so
	[ -z "${TESTS_UNDER:-}" ] || skip "no library can be loaded before that of $TESTS_UNDER"
	[ -e "$WRONG_CLOCK" ] || "${CC:-cc}" -shared -fPIC -x c -o "$WRONG_CLOCK" - <<-'EOS' || skip 'there is no C compiler'
		#include <fcntl.h>
		#include <stdlib.h>
		#include <sys/syscall.h>
		#include <sys/time.h>
		#include <time.h>
		#include <unistd.h>

		static time_t off_of_file(const char *path)
		{
			char text[32] = "";
			int fd = open(path, O_RDONLY | O_CLOEXEC);

			if (fd < 0)
				return 0;
			if (read(fd, text, sizeof(text) - 1) < 0)
				text[0] = '\0';
			(void)close(fd);
			return atoi(text);
		}

		static time_t off(void)
		{
			const char *seconds = getenv("CLOCK_OFF"), *path = getenv("CLOCK_OFF_FILE");

			if (path != NULL)
				return off_of_file(path);
			return seconds != NULL ? atoi(seconds) : 0;
		}

		int clock_gettime(clockid_t clock, struct timespec *now)
		{
			int result = (int)syscall(SYS_clock_gettime, clock, now);

			if (result == 0 && clock == CLOCK_REALTIME)
				now->tv_sec += off();
			return result;
		}

		int gettimeofday(struct timeval *restrict now, void *restrict zone)
		{
			struct timespec real;

			(void)zone;
			clock_gettime(CLOCK_REALTIME, &real);
			now->tv_sec = real.tv_sec;
			now->tv_usec = real.tv_nsec / 1000;
			return 0;
		}

		time_t time(time_t *out)
		{
			struct timespec real;

			clock_gettime(CLOCK_REALTIME, &real);
			if (out != NULL)
				*out = real.tv_sec;
			return real.tv_sec;
		}
	EOS
}

# clock_is_off SECONDS: of those rlocks that begin from here on; none: right again.
clock_is_off() {
	CLOCK=()
	[ $# -eq 0 ] || CLOCK=(env "LD_PRELOAD=$WRONG_CLOCK" "CLOCK_OFF=$1")
}

# clock_follows FILE: of those that begin from here on it is off by what step_clock says.
clock_follows() {
	CLOCK=(env "LD_PRELOAD=$WRONG_CLOCK" "CLOCK_OFF_FILE=$1")
}

# step_clock FILE SECONDS: at once, for those that run already.
step_clock() {
	echo "$2" >"$1.new"
	mv "$1.new" "$1"
}

# is_off_by SECONDS: the wall clock of what CLOCK goes before, by more than is between two looks.
is_off_by() {
	local off
	off=$(($("${CLOCK[@]}" date +%s) - $(date +%s) - $1))
	((off >= -2 && off <= 2))
}
