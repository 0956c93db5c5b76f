/*
 * session.c, command.c and lib/request.c: requests of several steps. A login goes before, the text of a script is sent
 * when the server does not know it, and a subscription is acknowledged for each channel.
 */
#include <hiredis/hiredis.h>
#include <string.h>

#include "net/connection.h"
#include "net/command.h"
#include "rlock.h"
#include "request.h"

#include "parties.h"
#include "unit.h"

static void check_login(void)
{
	const char *argv[] = { "PICKY" };
	const size_t lengths[] = { 5 };
	const struct rlock__command picky = { 1, argv, (size_t *)lengths, true, NULL };

	start_tcp(0, ":secret@", "127.0.0.1");
	start_unix(1, "?db=7");
	start_unix(2, "?db=8");
	begin(0, "EAGER", INT64_MAX);
	rlock__request_begin(parties[1].connection, &picky, INT64_MAX);
	rlock__request_begin(parties[2].connection, &picky, INT64_MAX);
	parties[1].is_under_way = parties[2].is_under_way = true;
	CHECK(hears(0, "EAGER") && strstr(parties[0].heard, "secret") != NULL,
	      "the login goes out with the first command");
	CHECK(hears(1, "SELECT") && hears(2, "SELECT"), "or before it");
	CHECK(strstr(parties[1].heard, "PICKY") == NULL, "when that needs a login");
	says(0, "-WRONGPASS no\r\n+done\r\n");
	says(1, "+OK\r\n");
	says(2, "-ERR DB index is out of range\r\n");
	CHECK(hears(1, "PICKY"), "it is sent when the login was accepted");
	says(1, "+picked\r\n");
	drive(0, patience_ms);
	CHECK(has_answer(1, "picked"), "and answered");
	CHECK(parties[0].result.status == RLOCK_EAUTH && parties[0].result.reply != NULL &&
		      parties[0].result.reply->type == REDIS_REPLY_STATUS,
	      "a login that was refused leaves the reply to what was done all the same");
	CHECK(has_failed(2, RLOCK_EUNSUPPORTED, "no such database") &&
		      !parties[2].result.was_sent &&
		      !rlock__connection_is_open(parties[2].connection),
	      "without an accepted login nothing is sent");
	stop_all();
}

static void check_logins(void)
{
	start_tcp(0, "ci:secret@", "127.0.0.1");
	start_tcp(1, "guest@", "127.0.0.1");
	begin(0, "FIRST", INT64_MAX);
	begin(1, "FIRST", INT64_MAX);
	CHECK(hears(0, "FIRST") && hears(1, "FIRST"), "two servers are asked by users of theirs");
	CHECK(strstr(parties[1].heard, "$4\r\nAUTH\r\n$5\r\nguest\r\n$0\r\n") != NULL,
	      "a user without a password logs in with an empty one");
	says(0,
	     "-ERR unknown command 'AUTH', with args beginning with: 'ci' 'secret' \r\n-ERR no\r\n");
	says(1, "-WRONGPASS invalid username-password pair\r\n-NOAUTH no\r\n");
	drive(0, patience_ms);
	CHECK(parties[0].result.status == RLOCK_EUNSUPPORTED && has_error(0, "knows no login") &&
		      !has_error(0, "secret"),
	      "a server that says the password again is not quoted");
	CHECK(parties[1].result.status == RLOCK_EAUTH && has_error(1, "WRONGPASS"),
	      "a wrong one is refused, in the server's words");
	stop_all();
}

static void check_scripts(void)
{
	static const struct rlock__script script = { "run", "0123456789abcdef", "return 1" };
	struct rlock__args args;

	rlock__args_init(&args);
	rlock__args_string(&args, "word");
	for (size_t i = 0; i < PARTIES; i++) {
		start_unix(i, "");
		rlock__call_begin(&parties[i].call, parties[i].connection, &script, false, &args,
				  INT64_MAX);
		parties[i].is_under_way = true;
	}
	CHECK(hears(0, "EVALSHA") && hears(1, "EVALSHA") && hears(2, "EVALSHA"),
	      "a script is called on three servers with the same arguments");
	says(1, "-NOSCRIPT none such\r\n");
	CHECK(hears(1, "return 1"), "one that doesn't know it is sent its text");
	says(0, "+known\r\n");
	says(2, "-LOADING just a moment\r\n");
	drive(1, patience_ms);
	CHECK(has_answer(0, "known"), "one that knows it answers");
	CHECK(has_failed(2, RLOCK_ENET, "LOADING") && !parties[2].result.was_sent,
	      "an error reply becomes a status");
	says(1, "+learnt\r\n");
	drive(0, patience_ms);
	CHECK(has_answer(1, "learnt"), "the text is answered as well");
	rlock__args_free(&args);
	rlock__call_begin(&parties[0].call, parties[0].connection, &script, false, &args,
			  INT64_MAX);
	parties[0].is_under_way = true;
	drive(0, patience_ms);
	CHECK(has_failed(0, RLOCK_ENOMEM, "out of memory"), "without arguments nothing begins");
	stop_all();
}

static void check_subscriptions(void)
{
	char *const channels[] = { "news", "views" };
	int64_t retry_after_ms = 0;

	for (size_t i = 0; i < 2; i++) {
		start_unix(i, "");
		rlock__subscription_begin(parties[i].connection, channels, 2, INT64_MAX);
		parties[i].is_under_way = true;
	}
	CHECK(hears(0, "views") && hears(1, "views"), "two servers are subscribed to");
	says(1, "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n");
	says(0, "-NOPERM no permissions to access the channel\r\n");
	drive(1, patience_ms);
	CHECK(has_failed(0, RLOCK_EACL, "channel") &&
		      !rlock__connection_is_open(parties[0].connection),
	      "one that refuses is closed");
	CHECK(parties[1].is_under_way, "one channel of two is not enough");
	says(1, "*3\r\n$9\r\nsubscribe\r\n$5\r\nviews\r\n:2\r\n");
	drive(0, patience_ms);
	CHECK(parties[1].result.status == RLOCK_OK &&
		      rlock__connection_is_open(parties[1].connection),
	      "when all are acknowledged it is over");
	says(1, "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$1\r\n0\r\n");
	CHECK(rlock__subscription_drain(parties[1].connection, "ews", &retry_after_ms) ==
			      RLOCK_OK &&
		      retry_after_ms == 0,
	      "messages come then");
	says(1, "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$4\r\n2000\r\n");
	CHECK(rlock__subscription_drain(parties[1].connection, "ews", &retry_after_ms) ==
			      RLOCK_OK &&
		      retry_after_ms == 2000,
	      "one may ask for a try later");
	says(1, "*3\r\n$7\r\nmessage\r\n$5\r\nviews\r\n$4\r\n2000\r\n");
	CHECK(rlock__subscription_drain(parties[1].connection, "ews", &retry_after_ms) ==
			      RLOCK_OK &&
		      retry_after_ms == 2000,
	      "a channel that ends so is the waiter's own");
	says(1, "*3\r\n$7\r\nmessage\r\n$5\r\nviews\r\n$4\r\n2000\r\n");
	CHECK(rlock__subscription_drain(parties[1].connection, "news", &retry_after_ms) ==
			      RLOCK_OK &&
		      retry_after_ms == 0,
	      "a number on a channel of others is none of ms");
	CHECK(rlock__subscription_drain(parties[1].connection, "ews", &retry_after_ms) ==
			      RLOCK_OK &&
		      retry_after_ms == INT64_MAX,
	      "none has come since");
	stop_all();
}

void test_request_steps(void)
{
	begin_parties();
	check_login();
	check_logins();
	check_scripts();
	check_subscriptions();
	end_parties();
}
