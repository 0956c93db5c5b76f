/*
 * signals.c: how a signal is written, which ones are refused, and the way back.
 */
#include <signal.h>

#include "sys/signals.h"

#include "unit.h"

void test_signals(void)
{
	static const char *const refused[] = {
		"",
		"SIG",
		"STOP",
		"SIGTSTP",
		"ttin",
		"TTOU",
		"CHLD",
		"CONT",
		"urg",
		"0",
		"-1",
		"+15",
		" 15",
		"0x0f",
		"32",
		"33",
		"65",
		"TERMX",
		"RTMIN+",
		"RTMIN-1",
		"RTMAX+1",
		"RTMIN+31",
		"99999999999999999999",
	};
	const struct {
		const char *text;
		int signal;
		const char *name;
	} good[] = {
		{ "SIGTERM", SIGTERM, "SIGTERM" },
		{ "sigint", SIGINT, "SIGINT" },
		{ "hup", SIGHUP, "SIGHUP" },
		{ "009", SIGKILL, "SIGKILL" },
		{ "rtmin", SIGRTMIN, "SIGRTMIN+0" },
		{ "SIGRTMIN+3", SIGRTMIN + 3, "SIGRTMIN+3" },
		{ "RTMAX-30", SIGRTMAX - 30, "SIGRTMIN+0" },
	};
	char name[SIGNAL_NAME_MAX];
	int signal = 0;

	for (size_t i = 0; i < COUNT_OF(good); i++) {
		CHECK(signals_parse(good[i].text, &signal) && signal == good[i].signal,
		      "'%s' is signal %d", good[i].text, good[i].signal);
		CHECK_STRING(signals_name(good[i].signal, name), good[i].name,
			     "signal %d is written %s", good[i].signal, good[i].name);
	}
	for (size_t i = 0; i < COUNT_OF(refused); i++) {
		signal = 42;
		CHECK(!signals_parse(refused[i], &signal) && signal == 42, "'%s' is no signal",
		      refused[i]);
	}
	for (int i = 1; i < SIGRTMAX; i++)
		CHECK(!signals_parse(signals_name(i, name), &signal) || signal == i,
		      "signal %d is written as it is read", i);
}
