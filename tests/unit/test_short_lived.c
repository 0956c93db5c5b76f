/*
 * short_lived.c: what a caller's command line tells about whether the caller goes on behind the call.
 */
#include "process_lock/short_lived.h"

#include "unit.h"

/* The words end with two NULs. */
static void check(const char *words, enum short_lived want, const char *name)
{
	size_t len = 0;

	while (words[len] != '\0')
		len += strlen(words + len) + 1;
	CHECK_NUMBER(short_lived_judge(words, len, "lock"), want, "%s", name);
}

#define WRAPPER(words) check(words "\0", SHORT_LIVED_WRAPPER, "a wrapper: " words)
#define GOES_ON(text) check("sh\0-c\0" text "\0", SHORT_LIVED_NOT, "text that goes on: " text)
#define NO_MORE(text)                                                                              \
	check("sh\0-c\0" text "\0", SHORT_LIVED_TEXT, "text with nothing behind: " text)

static void check_programs(void)
{
	WRAPPER("timeout\0005\0rlock\0lock\0a");
	WRAPPER("/usr/bin/xargs\0rlock\0lock");
	WRAPPER("busybox\0timeout\0005\0rlock\0lock\0a");
	WRAPPER("/usr/bin/perl\0/usr/bin/parallel\0rlock\0lock");
	WRAPPER("sshd: user@notty");
	WRAPPER("sshd: user@pts/0");
	WRAPPER("/usr/sbin/CRON\0-f");
	check("make\0all\0", SHORT_LIVED_MAKE, "make");
	check("", SHORT_LIVED_NOT, "a process without a command line is not known to end");
	check("python3\0time.py\0", SHORT_LIVED_NOT, "nor a program that is not known");
	check("/bin/sh\0./timeout\0", SHORT_LIVED_NOT, "nor a script with the name of a wrapper");
	check("timeouts\0", SHORT_LIVED_NOT, "nor a program with a longer name");
	check("/opt/my timeout/sh\0", SHORT_LIVED_NOT,
	      "nor one in a directory with a blank in its name");
	check("-bash\0", SHORT_LIVED_NOT, "nor a login shell");
	check("bash\0-e\0script\0-c\0rlock lock a\0", SHORT_LIVED_NOT,
	      "nor a script with an argument that looks like a text");
}

static void check_texts(void)
{
	NO_MORE("rlock lock a");
	NO_MORE(" rlock lock -n a ; \n");
	NO_MORE("/usr/local/bin/rlock lock --wait 3s 'a; b'");
	NO_MORE("cd /tmp && rlock lock a 2>&1");
	NO_MORE("rlock lock a &");
	NO_MORE("(rlock lock a)");
	NO_MORE("A=1 rlock lock \"$1\" &>/dev/null");
	NO_MORE("rlock unlock b; rlock lock a >|said");
	GOES_ON("rlock lock a; work");
	GOES_ON("rlock lock a\nwork");
	GOES_ON("rlock lock a && work");
	GOES_ON("rlock lock a || exit 1");
	GOES_ON("rlock lock a | tee log");
	GOES_ON("rlock lock a; work; rlock unlock a");
	GOES_ON("rlock lock a; rlock lock b");
	GOES_ON("if rlock lock a; then work; fi");
	GOES_ON("while :; do rlock lock a; done");
	GOES_ON("work $(rlock lock --fence a)");
	GOES_ON("work `rlock lock --fence a`");
	GOES_ON("eval 'rlock lock a; work'");
	GOES_ON(". ./rlock-script");
	GOES_ON("rlock locks a");
	GOES_ON("rlock fair a");
	GOES_ON("");
}

static void check_options(void)
{
	check("bash\0-ec\0rlock lock a\0name\0argument\0", SHORT_LIVED_TEXT,
	      "-c among other letters");
	check("bash\0--norc\0-o\0pipefail\0-c\0rlock lock a\0", SHORT_LIVED_TEXT,
	      "-c behind an option with a value");
	check("busybox\0sh\0-c\0rlock lock a\0", SHORT_LIVED_TEXT, "the shell of busybox");
	check("sh\0-c\0--\0rlock lock a\0", SHORT_LIVED_TEXT, "dashes before the text");
	check("sh\0-c\0", SHORT_LIVED_NOT, "-c without a text");
	check("sh\0-o\0", SHORT_LIVED_NOT, "an option without its value");
}

void test_short_lived(void)
{
	check_programs();
	check_texts();
	check_options();
}
