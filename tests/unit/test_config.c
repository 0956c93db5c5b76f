/*
 * The lines of the configuration file: which are valid, and that a bad one is reported with file and line number before any server is
 * contacted; and the precedence of the sources. config.bats tests which file is read, and who may own it.
 */
#include <stdlib.h>

#include "options/load.h"
#include "options/opts.h"
#include "options/table.h"
#include "verbs.h"

#include "program.h"
#include "unit.h"

#define SECRET "sEcReT"

/* ---- a bad line ---- */

static const struct {
	const char *text;
	int line;
	const char *message;
} bad[] = {
	/* no option, a mistyped one, or an option of another program */
	{ "# comment\ndb = 0\nfrobnicate\n", 3, "option = value" },
	{ "url: redis://h\n", 1, "not a line like 'option = value'; try: url = redis://h" },
	{ "ttl 5s\n", 1, "try: ttl = 5s" },
	{ "url: redis://:" SECRET "@h\n", 1, "try: url = redis://:" },
	{ "[rlock]\ndb = 0\n", 1, "no sections" },
	{ "db = 0\nfrobnicate = 3\n", 2, "frobnicate" },
	{ "w = 3s\n", 1, "'w'" },
	{ "No-Wait = yes\n", 1, "No-Wait" },
	{ "no-wai = yes\n", 1, "no-wai" },
	{ "Password_File = " SECRET "\n", 1, "try: password-file" },
	{ "timeout = 3s\n", 1, "try: wait" },
	/* a wrong value */
	{ "\nttl = 10ms\n", 2, "'10ms'" },
	{ "url =\n", 1, "url" },
	{ "url = http://localhost\n", 1, "http" },
	{ "no-wait = true\n", 1, "no-wait" },
	{ "no-wait =\n", 1, "no-wait" },
	{ "ttl = 30000\n", 1, "ttl '30000': seconds, or milliseconds? Say 30000s or 30000ms" },
	{ "log = journald\n", 1, "log 'journald': not syslog, stderr or a file's name" },
	/* syntax of other programs' files */
	{ "\xef\xbb\xbfttl = 3s\n", 1, "byte order mark" },
	{ "db = 0\nttl = 3s # short\n", 2, "'ttl': a comment needs a line of its own" },
	{ "url = redis://ci:" SECRET "@h\t# the server\n", 1,
	  "'url': a comment needs a line of its own" },
	{ "password-file = '/etc/rlock/password'\n", 1,
	  "'password-file': write the value without quotes" },
	{ "url = \"redis://ci:" SECRET "@h\"\n", 1, "write the value without quotes" },
	{ "url = redis://ci:" SECRET " two@h\n", 1,
	  "a blank in a user or password is written %20" },
	{ "host = h\n", 1,
	  "no such option; host, port and user are in one line: url = redis://USER@HOST:PORT\n" },
	{ "port = 6379\n", 1,
	  "no such option; host, port and user are in one line: url = redis://USER@HOST:PORT\n" },
	{ "export RLOCK_URL=redis://h\n", 1, "no such option; try: url = redis://h\n" },
	{ "RLOCK_URL = redis://ci:" SECRET "@h\n", 1, "try: url = redis://ci:******@h\n" },
	{ "RLOCK_WAIT=5m\n", 1, "no such option; try: wait = 5m\n" },
	{ "RLOCK_WAIT=soon\n", 1, "no such option; try: wait\n" },
	{ "password = " SECRET "\n", 1,
	  "no such option; write the password to the first line of a file of mode 600, and name that file: password-file = /etc/rlock.password\n" },
	{ "sentinel-password = " SECRET "\n", 1,
	  "and name that file: sentinel-password-file = /etc/rlock.password\n" },
	{ "sentinel-pass = " SECRET "\n", 1,
	  "and name that file: sentinel-password-file = /etc/rlock.password\n" },
	{ "sentinel_password_file = " SECRET "\n", 1,
	  "no such option; try: sentinel-password-file = /etc/rlock/sentinel-password\n" },
	{ "key-password = " SECRET "\n", 1, "no such option; try: key = " },
	{ "key-pass = " SECRET "\n", 1, "no such option; try: key = " },
	{ "cert-password = " SECRET "\n", 1, "no such option; try: cert = " },
	{ "sentinel-user-password = " SECRET "\n", 1, "no such option; try: sentinel-user = " },
	{ "note-token = " SECRET "\n", 1, "no such option; try: note = " },
	{ "note-secret = " SECRET "\n", 1, "no such option; try: note = " },
	{ "note-auth = " SECRET "\n", 1, "no such option; try: note = " },
	{ "note-author = me\n", 1, "no such option; try: note = me\n" },
	{ "url = tls://h\n", 1, "try: rediss://h" },
	/* options that are given twice, or exclude each other */
	{ "ttl = 3s\ndb = 0\nttl = 4s\n", 3, "ttl" },
	{ "db = 0\nno-wait = yes\nwait = 3s\n", 3, "wait" },
	{ "quiet = yes\nverbose = yes\n", 2, "can't go together with quiet" },
	{ "password-command = echo " SECRET "\npassword-file = f\n", 2,
	  "can't go together with password-command" },
	{ "url = redis://a/2\ndb = 2\n", 2, "db" },
	/* lines that are wrong together, without a server in the environment */
	{ "url = redis://a\nurl = redis://b\nurl = redis://a\n", 1, "twice" },
	{ "url = redis://a\nurl = local:\n", 1, "local:" },
	{ "\nurl = redis://a redis://b redis://c\nquorum = 1\n", 3, "quorum 1: of 3" },
	{ "quorum = 2\nurl = redis://a\n", 1, "quorum 2: there is one server; give -u for each" },
	{ "url = redis+cluster://a\ndb = 2\n", 2, "has no database 2" },
	{ "url = redis://a\ncacert = f\n", 2, "cacert is for TLS" },
	{ "url = redis://a\nsentinel-user = me\n", 2, "sentinel-user is for sentinels" },
	{ "url = redis+sentinel://h/m\nsentinel-map = x\n", 2, "sentinel-map: " },
	{ "url = redis+cluster://h\ncluster-map = x\n", 2, "cluster-map: " },
	{ "url = redis://a\ncluster-map = a:1=b:2\n", 2, "cluster-map is for nodes of a cluster" },
	/* a password in a bad line */
	{ "url = redis://ci:" SECRET "@localhost:x\n", 1, "port" },
	{ "url = " SECRET "@localhost\n", 1, "url" },
	{ "redis://ci:" SECRET "@localhost\n", 1, "option = value" },
	{ "redis://ci:" SECRET "@localhost = x\n", 1, "option" },
};

static void check_bad_line(const char *line, const char *text, size_t len, int number,
			   const char *said_of_it)
{
	char want[128];
	struct call_result result;

	program_configure(text, len);
	(void)snprintf(want, sizeof(want), "%s:%d: ... %s", program_config(), number, said_of_it);
	program_call(line, &result);
	if (!CHECK(program_refused(&result, 78, want) && strstr(result.err, SECRET) == NULL,
		   "the file '%.80s' is refused", unit_shown(text)))
		(void)printf("# want %s\n# got  %d: %s\n", want, result.status,
			     unit_shown(result.err));
}

static void check_bad(void)
{
	struct call_result result;

	(void)unsetenv("RLOCK_URL");
	for (size_t i = 0; i < COUNT_OF(bad); i++)
		check_bad_line("run a -- true", bad[i].text, strlen(bad[i].text), bad[i].line,
			       bad[i].message);
	/* A bad value must be an error even if the command line overrides it. */
	check_bad_line("run -t 3s a -- true", "db = 0\nttl = soon\n", 18, 2, "'soon'");
	check_bad_line("run a -- true", "db = 0\nttl = 3\0s\n", 17, 2, "NUL");
	program_call("run --config /dev/zero a -- true", &result);
	CHECK(program_refused(&result, 78, "'/dev/zero' (--config): a device, not a regular file"),
	      "a device is no configuration file");
	program_call("run --config no-such-file a -- true", &result);
	CHECK(program_refused(&result, 78, "no-such-file"),
	      "a file that --config names must exist");
	program_set_url("http://localhost");
	program_configure("db = 0\n", 7);
	program_call("run a -- true", &result);
	CHECK(program_refused(&result, 64, "RLOCK_URL"),
	      "a bad value in the environment is reported as one of the environment");
	program_set_url(NULL);
}

/* ---- valid lines ---- */

/* Load the options of a command line and of a file with this text. NULL: refused. The caller frees them by load_free(). */
static struct opts *load(const char *line, const char *text, size_t len)
{
	static struct opts opts;
	static char copy[256];
	char *words[PROGRAM_WORDS_MAX];
	bool is_done = false;
	int count;

	(void)snprintf(copy, sizeof(copy), "rlock %s", line);
	count = program_cut(copy, words);
	program_configure(text, len);
	return load_opts(verbs_find(words[1]), count, words, &opts, &is_done) == 0 ? &opts : NULL;
}

static const struct {
	const char *text;
	int64_t wait_ms;
	const char *note;
} good[] = {
	{ "", -1, NULL },
	{ "# wait = 1s\n", -1, NULL },
	{ "# a comment\n\n   \n\t#another\n  note=x  \n\twait\t =  2s \t\n", 2000, "x" },
	{ "note = x\r\nwait = 2s", 2000, "x" },
	{ "note = a = b  c\n", -1, "a = b  c" },
	{ "no-wait = no\nverbose = no\nquiet = yes\nkill-child = no\nwait = 2s\n", 2000, NULL },
	{ "no-wait = yes\n", 0, NULL },
	{ "wait = inf\n", -1, NULL },
	{ "note = 'a' # b\n", -1, "'a' # b" },
};

static void check_good(void)
{
	for (size_t i = 0; i < COUNT_OF(good); i++) {
		struct opts *opts = load("run a -- true", good[i].text, strlen(good[i].text));

		if (!CHECK(opts != NULL, "the file '%s' is read", unit_shown(good[i].text)))
			continue;
		CHECK_NUMBER(opts->wait_ms, good[i].wait_ms, "the file sets the wait time, or not");
		CHECK_STRING(opts->note, good[i].note, "the file sets the note, or not");
		load_free(opts);
	}
}

/* A verb must ignore options in the file that only other verbs use, or only calls with a command. */
static void check_other_verbs(void)
{
	static const char text[] =
		"at-least = 20s\nmax-run = 1s\nkill-child = yes\nttl = 20s\nnote = x\n";
	struct opts *opts = load("status a", text, strlen(text));

	if (CHECK(opts != NULL, "a file with options of other verbs is read")) {
		CHECK_NUMBER(opts->max_run_ms, 0, "options that the verb does not use are ignored");
		load_free(opts);
	}
}

/* A comment can have any length. The length of other lines is limited. */
static void check_long_lines(void)
{
	static char text[80000];
	size_t len = (size_t)snprintf(text, sizeof(text), "# %050000d\n", 0);
	struct opts *opts = load("run a -- true", text, len);

	if (CHECK(opts != NULL, "a file with a long comment is read"))
		load_free(opts);
	len += (size_t)snprintf(text + len, sizeof(text) - len, "note = %020000d\n", 0);
	check_bad_line("run a -- true", text, len, 2, "the line is too long");
}

/* ---- precedence ---- */

/*
 * The command line precedes the environment, and that the file. This holds for options, for the server, and for options that
 * belong to a server.
 */
#define OF_SERVER                                                                                  \
	"url = redis://f redis://g\ndb = 5\nquorum = 2\nreplicas = 1\npassword-file = no-such\n"   \
	"cacert = x\ncacertdir = x\ncert = x\nkey = x\nsni = x\ninsecure = yes\n"                  \
	"sentinel-user = x\nsentinel-password-file = no-such\nsentinel-map = a:1=b:2\n"            \
	"cluster-map = a:1=b:2\n"
static const struct {
	const char *text, *url, *line, *server; /* url: RLOCK_URL */
	int64_t wait_ms, lease_ms;
} order[] = {
	{ "", NULL, "", "127.0.0.1:6379/0", -1, 30000 },
	{ "url = redis://f/1\n", NULL, "", "f:6379/1", -1, 30000 },
	{ "url = redis://f/1\n", "redis://e/2", "", "e:6379/2", -1, 30000 },
	{ "url = redis://f/1\n", "redis://e/2", "-u redis://c/3", "c:6379/3", -1, 30000 },
	{ "url = redis://f/1\n", "http://x", "-u redis://c/3", "c:6379/3", -1, 30000 },
	/* a URL with a line end, as in a Kubernetes secret or a YAML block; two lines are two servers */
	{ "", "redis://e/2\n", "", "e:6379/2", -1, 30000 },
	{ "", "redis://e/2\nredis://f\n", "", "e:6379/2 redis://f:6379/0", -1, 30000 },
	/* the database of one URL does not apply to another one */
	{ "url = redis://f/1\n", NULL, "-u redis://c", "c:6379/0", -1, 30000 },
	{ "url = redis://f/1\n", NULL, "--db 4", "f:6379/4", -1, 30000 },
	{ "", "redis://e/2", "--db 4", "e:6379/4", -1, 30000 },
	{ "db = 6\nurl = redis://f\n", NULL, "", "f:6379/6", -1, 30000 },
	{ "db = 6\nurl = redis://f\n", NULL, "--db 4", "f:6379/4", -1, 30000 },
	/* server options in the file apply to the file's servers only */
	{ OF_SERVER, "redis://e", "", "e:6379/0", -1, 30000 },
	{ OF_SERVER, NULL, "-u redis://c --db 3", "c:6379/3", -1, 30000 },
	/* options that exclude each other, from different sources */
	{ "ttl = 50s\nwait = 1s\n", "redis://e", "", "e:6379/0", 1000, 50000 },
	{ "ttl = 50s\nwait = 1s\n", "redis://e", "-t 20s -w 2s", "e:6379/0", 2000, 20000 },
	{ "no-wait = yes\nlease = 50s\n", "redis://e", "-t 20s -w 2s", "e:6379/0", 2000, 20000 },
	{ "wait = 2s\nttl = 50s\n", "redis://e", "-n -l 20s", "e:6379/0", 0, 20000 },
	{ "wait = 2s\n", "redis://e", "-w inf", "e:6379/0", -1, 30000 },
	{ "no-wait = yes\n", "redis://e", "--wait=inf", "e:6379/0", -1, 30000 },
	{ "", "redis://e", "-vv -t 3600", "e:6379/0", -1, 3600000 },
};

static void check_order(void)
{
	for (size_t i = 0; i < COUNT_OF(order); i++) {
		struct opts *opts;
		char line[128];

		program_set_url(order[i].url);
		if (order[i].url == NULL)
			(void)unsetenv("RLOCK_URL");
		(void)snprintf(line, sizeof(line), "run %s a -- true", order[i].line);
		opts = load(line, order[i].text, strlen(order[i].text));
		if (!CHECK(opts != NULL, "'%s' is read with the file '%s'", line,
			   unit_shown(order[i].text)))
			continue;
		CHECK_STRING(opts->server + strlen("redis://"), order[i].server,
			     "row %zu: the server", i);
		CHECK_NUMBER(opts->wait_ms, order[i].wait_ms, "row %zu: the wait time", i);
		CHECK_NUMBER(opts->lease_ms, order[i].lease_ms, "row %zu: the lease", i);
		CHECK(opts->is_fixed_lease == (strstr(line, "-l") != NULL),
		      "row %zu: whether the lease is fixed", i);
		CHECK_NUMBER(opts->replicas, 0, "row %zu: the replicas", i);
		CHECK(opts->grace_ms == 5000 && opts->connect_timeout_ms == 5000,
		      "row %zu: an option without a source has its default", i);
		load_free(opts);
	}
	program_set_url(NULL);
}

/* ---- each option ---- */

/* A valid value of the option. */
static const char *value_of(const struct opt *opt)
{
	switch (opt->type) {
	case TYPE_DURATION:
		return "3s";
	case TYPE_NUMBER:
		return "1";
	case TYPE_SIGNAL:
		return "INT";
	case TYPE_URLS:
		return "redis://h";
	case TYPE_QUORUM:
		return "all";
	case TYPE_LOG:
		return "syslog";
	case TYPE_CHOICE:
		return strcmp(opt->name, "on-lost") == 0 ? "term" : "json";
	default:
		return opt->value == NULL ? "yes" : "x";
	}
}

/* An option must either work in the file and need a value there; or it is for a single call, and must be refused. */
static void check_option(const struct opt *opt)
{
	struct opts *opts;
	char text[128];

	(void)snprintf(text, sizeof(text), "%s = %s\n", opt->name, value_of(opt));
	if ((opt->scope & FOR_FILE) == 0) {
		check_bad_line("run a -- true", text, strlen(text), 1, "only for the command line");
		return;
	}
	opts = load("run a -- true", text, strlen(text));
	if (CHECK(opts != NULL, "the file '%s = %s' is read", opt->name, value_of(opt)))
		load_free(opts);
	(void)snprintf(text, sizeof(text), "\n%s =\n", opt->name);
	check_bad_line("run a -- true", text, strlen(text), 2, opt->name);
}

static void check_options(void)
{
	for (size_t i = 0; i < OPT_COUNT; i++)
		check_option(&opt_table[i]);
}

void test_config(void)
{
	program_setup();
	check_bad();
	check_good();
	check_other_verbs();
	check_long_lines();
	check_order();
	check_options();
	program_teardown();
}
