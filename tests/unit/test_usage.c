/*
 * Mistakes on the command line are reported in one line, with status 64, before any server is contacted: verbs, options, values, names, and
 * combinations. The message proposes the right line, and shows no password.
 */
#include <stdlib.h>
#include <unistd.h>

#include "base/choice.h"

#include "program.h"
#include "unit.h"

#define SECRET "sEcReT"
/* The number that some lines of the table contain. */
#define OPEN_DESCRIPTOR 250

/* In the expected message " ... " stands for anything. */
static const struct {
	const char *line, *message;
} lines
	[] = {
		/* no verb, or an unknown one */
		{ "", "a verb is missing; see 'rlock help', or try: rlock run NAME -- COMMAND" },
		{ "frobnicate a", "'frobnicate' is not a verb; run acquires a lock, status shows "
				  "it, and unlock or stop ends it: see 'rlock help'\n" },
		{ "help frobnicate", "'frobnicate' is not a verb; run" },
		{ "help unlok",
		  "'unlok' is not a verb; see 'rlock help', or try: rlock help unlock\n" },
		{ "help run lock", "help takes one verb; try: rlock help run\n" },
		/* a mistyped verb */
		{ "unlok nightly",
		  "'unlok' is not a verb; see 'rlock help', or try: rlock unlock nightly\n" },
		/* the verb is missing, or not the first word */
		{ "nightly -- touch ran", "try: rlock run nightly -- touch ran\n" },
		{ "'a b' -n -- touch ran", "try: rlock run 'a b' -n -- touch ran\n" },
		{ "execute a -- touch ran",
		  "run NAME -- COMMAND; try: rlock run a -- touch ran\n" },
		{ "-n -w 3s run a -- touch ran", "rlock run -n -w 3s a -- touch ran\n" },
		{ "mylock ./job", "try: rlock run mylock -- ./job\n" },
		{ "rnu a -- touch ran", "try: rlock run a -- touch ran\n" },
		{ "restart a",
		  "'restart' is not a verb; nothing starts COMMAND again; to have the holder" },
		/* the word rlock twice: it is also a verb */
		{ "rlock run a -- touch ran",
		  "'rlock' is given twice, and 'run' would be the name of a read lock (--name has any name); try: rlock run a -- touch ran\n" },
		{ "rlock status a", "try: rlock status a\n" },
		/* an option that is mistyped, and is the whole line */
		{ "--verison",
		  "'--verison' is not a verb; see 'rlock help', or try: rlock version\n" },
		{ "--hlep", "try: rlock help\n" },
		/* the verb after "--" */
		{ "-- run a touch ran",
		  "the verb comes first; see 'rlock help', or try: rlock run a -- touch ran\n" },
		{ "-- status a", "try: rlock status a\n" },
		/* options of flock that no verb has */
		{ "-xn a touch ran",
		  "the verb comes first; see 'rlock help', or try: rlock run -n a -- touch ran, or as flock has it: rlock flock -xn a touch ran\n" },
		{ "-x -w 5 a -c 'touch ran'",
		  "the verb comes first; see 'rlock help', or try: rlock run -w 5 a -- sh -c 'touch ran', or as flock has it: rlock flock -x -w 5 a -c 'touch ran'\n" },
		{ "-x --wait 5 a touch ran",
		  "the verb comes first; see 'rlock help', or try: rlock run --wait 5 a -- touch ran, or for a line as flock has it: rlock flock\n" },
		/* a verb of another program: no corrected line, since its meaning is not certain */
		{ "ls a", "'ls' is not a verb; to see locks: list; try: rlock list a\n" },
		{ "SET a 1 NX PX 30000",
		  "'SET' is not a verb; to hold a lock: run NAME -- COMMAND, or in a script" },
		{ "keep-alive a",
		  "'keep-alive' is not a verb; run and lock renew a lock by themselves" },
		/* a number or a time is no COMMAND */
		{ "lock a 4711",
		  "and '4711' is no command: a process is --pid, a time --wait or --ttl\n" },
		{ "lock a 30s", "and '30s' is no command: a process is --pid" },
		{ "run a - touch ran", "'-' is not '--'; try: rlock run a -- touch ran\n" },
		{ "sem a 3 -- touch ran", "try: rlock sem --permits 3 a -- touch ran\n" },
		{ "lock -token=abc a -- touch ran",
		  "no such option '-token': a fencing token is --fence\n" },
		{ "list --format json",
		  "no such option '--format': a JSON document is --json; try: rlock list --json\n" },
		{ "lock -p 4711 a", "no such option '-p': the process is --pid" },
		{ "break a",
		  "stop NAME; one that cannot be asked: unlock --force --holder OWNER NAME\n" },
		{ "extend --ttl 60 a", "renew --owner ID --lease DUR NAME\n" },
		{ "acquire a touch ran",
		  "run NAME -- COMMAND, or in a script lock --pid $$ NAME; to hold a lock for a time: lock --owner ID --lease 30s NAME; try: rlock run a -- touch ran\n" },
		{ "acquire a ./no-such",
		  "lock --owner ID --lease 30s NAME; try: rlock run a -- ./no-such\n" },
		{ "acquire a b", "lock --owner ID --lease 30s NAME\n" },
		{ "get locks", "try: rlock list\n" },
		{ "get lock a", "try: rlock status a\n" },
		{ "extend --owner x --lease 2h a", "try: rlock renew --owner x --lease 2h a\n" },
		{ "nohup a touch ran", "stands after '--', as in: run NAME -- nice COMMAND\n" },
		{ "-h db -p 7000 SET a me NX EX 30",
		  "'SET' is not a verb; to hold a lock: run NAME" },
		/* the same words followed by "--" are names of locks */
		{ "job -- touch ran", "try: rlock run job -- touch ran\n" },
		/* the first line of a script, as the kernel passes it on */
		{ "'run -n job -- sh' /tmp/script",
		  "'run -n job -- sh' is one word; leave out the quotes around it; try: rlock run -n job -- sh /tmp/script\n" },
		{ "'flock -n job' /tmp/script",
		  "'flock -n job' is one word; leave out the quotes around it; try: rlock flock -n job /tmp/script\n" },
		{ "run 'run -n job -- sh'",
		  "'run -n job -- sh' is one word; leave out the quotes around it; try: rlock run -n job -- sh\n" },
		/* unknown options */
		{ "run --frobnicate a -- touch ran", "--frobnicate" },
		{ "run -nZ a -- touch ran", "-Z" },
		/* a long option with one dash */
		{ "run -verbose a -- touch ran",
		  "no such option '-verbose': a long option has two dashes; try: rlock run --verbose a -- touch ran\n" },
		{ "run -wait 10 -ttl=9s a touch ran",
		  "try: rlock run --wait 10 --ttl=9s a -- touch ran\n" },
		{ "sem -permits 3 a -- touch ran", "try: rlock sem --permits 3 a -- touch ran\n" },
		{ "list -held-for 1h", "try: rlock list --held-for 1h\n" },
		{ "run -verbsoe a -- touch ran", "no such option '-verbsoe'; try: --verbose\n" },
		/* a mistyped option, or one of another program */
		{ "run --wiat 3s a -- touch ran", "no such option '--wiat'; try: --wait\n" },
		{ "lock --timeout 3s a",
		  "no such option '--timeout': how long to wait is --wait, and how long COMMAND may run is --max-run; try: rlock lock --pid $$ --wait 3s a\n" },
		{ "stop --timeout 3s a",
		  "no such option '--timeout': how long to wait is --wait; try: rlock stop --wait 3s a\n" },
		{ "stop -t 10 held",
		  "'-t': how long COMMAND has to end is the --grace of the holder, and" },
		{ "run --max-runtime 5m a -- touch ran",
		  "no such option '--max-runtime': how long COMMAND may run is --max-run; try: rlock run --max-run 5m a -- touch ran\n" },
		{ "run --unit=a touch ran",
		  "'--unit': the name is a word, or --name; try: rlock run a -- touch ran\n" },
		{ "run a --dry-run -- touch ran",
		  "no such option '--dry-run': ... rlock status NAME\n" },
		{ "lock -shell=false a touch ran",
		  "no such option '-shell': no shell reads COMMAND" },
		{ "run -p RuntimeMaxSec=10 a -- touch ran", "no such option '-p': ... --max-run" },
		{ "-s /run/r.sock list",
		  "the verb comes first; see 'rlock help': no such option '-s': ... list, and the server is -u unix:///PATH\n" },
		{ "-u tls://h run a -- touch ran",
		  "the verb comes first; see 'rlock help': --url 'tls://h': the scheme 'tls' is unknown; try: rediss://h\n" },
		{ "rnu -w 5min a -- touch ran",
		  "'rnu' is not a verb; see 'rlock help': --wait '5min': ... try: 5m\n" },
		{ "nightly -w 5min -- touch ran", "'nightly' is not a verb; ... try: 5m\n" },
		{ "nightly --wiat 5 -- touch ran", "'nightly' is not a verb; ... try: --wait\n" },
		{ "run --on-lost stop a touch ran",
		  "--on-lost 'stop': not kill, term or ignore\n" },
		{ "-u held",
		  "the verb comes first; see 'rlock help': ... 'held' is the value of --url; to release a lock: rlock unlock held\n" },
		{ "-u " SECRET "@h", "'******@h' is the value of --url; was a variable empty?\n" },
		{ "-u ''", "'' is the value of --url; was a variable empty?\n" },
		{ "-u -n", "the verb comes first" },
		{ "'' status", "'' is not a verb; run acquires" },
		{ "run nightly '' -- -n", NULL },
		{ "stop '' 5", NULL },
		{ "run a -- -n ''", NULL },
		{ "run --nonblock a -- touch ran",
		  "'--nonblock': not to wait is --no-wait; try: rlock run --no-wait a -- touch ran\n" },
		{ "run -s KILL a -- touch ran",
		  "no such option '-s': a signal to end COMMAND is --signal, and a shared lock is the verb read; try: rlock run --signal KILL a -- touch ran\n" },
		{ "stop -9 a", "'-9': stop asks the holder" },
		{ "status -w 5 a",
		  "'-w': to print it again and again is --watch; try: rlock status --watch=5 a\n" },
		{ "check -n a", "no such option '-n' of check: it is one of run, lock, sem\n" },
		/* an option of another verb */
		{ "renew --ttl=3s a", "no such option '--ttl': the new lease is --lease\n" },
		{ "stop --force a", "no such option '--force': stop asks the holder" },
		{ "run --json a -- touch ran",
		  "no such option '--json' of run: it is one of status, list, check\n" },
		{ "list --all", "'--all': list has all locks without it; try: rlock list\n" },
		/* an option in the place of a value, as after an empty variable */
		{ "lock --lease 1m --owner --wait 1h production",
		  "--owner needs a value, and '--wait' is an option; was a variable empty?\n" },
		{ "run --note -n x -- touch ran",
		  "--note needs a value, and '-n' is an option; was a variable empty? (--note=-n has it as its value)\n" },
		{ "run --log --wait 5s x -- touch ran", "--log needs a value, and '--wait' is" },
		{ "run --note -nqw x -- touch ran", "--note needs a value" },
		{ "lock --owner --wiat 1h x", "--owner needs a value" },
		/* a duration has no blank */
		{ "run -w 5 min L -- touch ran",
		  "'min' after --wait ... try: rlock run -w 5m L -- touch ran\n" },
		{ "lock --pid 1 --ttl 30 s L", "try: rlock lock --pid 1 --ttl 30s L\n" },
		{ "run --wait=1m 30s L -- touch ran",
		  "try: rlock run --wait=1m30s L -- touch ran\n" },
		{ "run -w1 hour L -- touch ran", "try: rlock run -w1h L -- touch ran\n" },
		{ "renew --owner x --lease 1 hour L", "try: rlock renew --owner x --lease 1h L\n" },
		{ "run -w 5 min L touch ran", "try: rlock run -w 5m L -- touch ran\n" },
		{ "run -w 1 week L -- touch ran", "try: rlock run -w 7d L -- touch ran\n" },
		{ "run -w 5 30s L -- touch ran", "'30s' after --wait ... (--name has any name)\n" },
		{ "run -w 5s 3 L -- touch ran", "'3' after --wait ... (--name has any name)\n" },
		{ "run -n 5m L -- touch ran",
		  "-n takes no value: the time to wait is --wait ... any name)\n" },
		{ "sem -n 3 x -- touch ran", "try: rlock sem --permits 3 x -- touch ran\n" },
		{ "sem -n 1 --permits 3 x -- touch ran", "-n takes no value ... any name)\n" },
		/* an abbreviation */
		{ "sem --permit 3 x -- touch ran", "no such option '--permit'; try: --permits\n" },
		{ "sem --permits 3 --max 3 x -- touch ran",
		  "'--max': the number of permits is --permits\n" },
		{ "run --max 3 x -- touch ran", "no such option '--max'; try: --max-run\n" },
		/* a URL is no name, if its scheme is one of ours */
		{ "check redis://127.0.0.1:1", "try: rlock check -u redis://127.0.0.1:1\n" },
		{ "status redis://127.0.0.1:1",
		  "the server is -u URL ... try: rlock status -u redis://127.0.0.1:1\n" },
		{ "run rediss+cluster://h -- touch ran",
		  "try: rlock run -u rediss+cluster://h NAME -- touch ran\n" },
		{ "run local: a -- touch ran", "try: rlock run -u local: a -- touch ran\n" },
		{ "run -u redis://a redis://b x -- touch ran",
		  "'redis://b' is a URL ... any name)\n" },
		/* a missing value, or one that is not wanted */
		{ "run a -w -- touch ran", "-w" },
		{ "status --watch 5 a", "try: rlock status --watch=5 a\n" },
		{ "status --watch 5", "try: rlock status --watch=5\n" },
		{ "list --watch 5", "try: rlock list --watch=5\n" },
		{ "list --held-for 2 h", "try: rlock list --held-for 2h\n" },
		{ "check --connect-timeout 5 s", "try: rlock check --connect-timeout 5s\n" },
		/* an abbreviation of several options */
		{ "run --no x a -- touch ran",
		  "'--no' can be several options; see 'rlock help run'\n" },
		/* a typographic dash, copied from a web page */
		{ "run –wait 5 a -- touch ran", "try: rlock run --wait 5 a -- touch ran\n" },
		{ "run −n a -- touch ran", "try: rlock run -n a -- touch ran\n" },
		{ "run a — touch ran", "try: rlock run a -- touch ran\n" },
		{ "run a –- touch -f ran", "try: rlock run a -- touch -f ran\n" },
		/* quotes and no-break spaces, copied from a web page */
		{ "run “nightly” -- touch ran",
		  "'“nightly”' has quotes that no shell has removed (--name has any name); try: rlock run nightly -- touch ran\n" },
		{ "run ‘a’ „b“ «c» -- touch ran", "try: rlock run a b c -- touch ran\n" },
		{ "run a “touch” ran", "try: rlock run a -- touch ran\n" },
		{ "“a” -- touch ran", "try: rlock run a -- touch ran\n" },
		{ "stop “a”", "try: rlock stop a\n" },
		{ "status ‘a’", "try: rlock status a\n" },
		{ "unlock ”a”", "try: rlock unlock a\n" },
		{ "renew “a” “b”", "try: rlock renew a b\n" },
		{ "list “ci*”", "try: rlock list 'ci*'\n" },
		{ "run “my lock” -- touch ran", "'“my' has quotes ... any name)\n" },
		{ "run a --note “by me” -- touch ran", "'me”' has quotes ... any name)\n" },
		{ "run “” -- touch ran", "'“”' has quotes ... any name)\n" },
		{ "run “” '' -- touch ran", "'“”' has quotes ... any name)\n" },
		{ "run '\u00a0nightly' -- touch ran",
		  "contains a no-break space, perhaps of a web page (--name has any name); try: rlock run nightly -- touch ran\n" },
		{ "stop 'nightly\u00a0'", "a no-break space ... try: rlock stop nightly\n" },
		{ "run a '\u00a0--wait' 5 -- touch ran",
		  "try: rlock run a --wait 5 -- touch ran\n" },
		/* the command is missing, or misplaced */
		{ "run a", "rlock run a -- COMMAND\n" },
		{ "run -n a -c 'touch ran'", "rlock run -n a -- sh -c 'touch ran'\n" },
		{ "lock a --", "nothing after" },
		{ "run a cp -a from to", "try: rlock run a -- cp -a from to\n" },
		{ "check a -- touch ran", "check takes no '--' and no command\n" },
		{ "check -- ./job.sh", "check takes no '--' and no command\n" },
		{ "check 127.0.0.1:1",
		  "is an address, not a pattern of names; the server is -u redis://127.0.0.1:1 (" },
		{ "check localhost:6379", "the server is -u redis://localhost:6379 (" },
		{ "unlock a -- touch ran", "unlock takes no '--' and no command\n" },
		{ "unlock -- a b", "try: rlock unlock a b\n" },
		{ "list -- 'ci*'", "try: rlock list 'ci*'\n" },
		{ "list -- touch ran", "list takes no '--' and no command\n" },
		{ "run /bin/cp", "run needs the name of a lock; try: rlock run NAME -- /bin/cp\n" },
		{ "lock -n /bin/cp", "try: rlock lock -n NAME -- /bin/cp\n" },
		{ "run a --password-command /bin/cp",
		  "try: rlock run a --password-command /bin/cp -- COMMAND\n" },
		{ "/bin/cp", "try: rlock run NAME -- /bin/cp\n" },
		{ "run -n -- sync -- touch ran",
		  "run needs the name of a lock before '--'; try: rlock run -n sync -- touch ran\n" },
		{ "run -- nightly web -- touch ran", "try: rlock run nightly web -- touch ran\n" },
		{ "run -- touch a -- ran", "try: rlock run NAME -- touch a -- ran\n" },
		{ "run -n a --- touch ran",
		  "'---' is not '--'; try: rlock run -n a -- touch ran\n" },
		{ "run a --./job -x",
		  "a blank is missing after '--' in '--./job'; try: rlock run a -- ./job -x\n" },
		{ "run a --./job -- touch ran", "no such option '--./job'" },
		{ "run /bin/cp nightly", "try: rlock run nightly -- /bin/cp\n" },
		{ "run /bin/cp -- nightly",
		  "'/bin/cp' is a program, and 'nightly' is none: the name stands before '--'; try: rlock run nightly -- /bin/cp\n" },
		/* a variable, quotes or a template that nothing has replaced; words of a synopsis */
		{ "run $JOB -- touch ran",
		  "name '$JOB': nothing has replaced the variable in it: do single quotes stand around it? (--name has any name)\n" },
		{ "run deploy-${ENV} -- touch ran", "nothing has replaced the variable" },
		{ "run a-$(id) -- touch ran", "nothing has replaced the variable" },
		{ "run '{{ job }}' -- touch ran", "nothing has replaced the variable" },
		{ "run `id` -- touch ran", "nothing has replaced the variable" },
		{ "run \"a\" -- touch ran", "try: rlock run a -- touch ran\n" },
		{ "run <lock> -- touch ran", "'<lock>' stands for the name of a lock (" },
		{ "run NAME... -- touch ran", "'NAME...' stands for the name of a lock (" },
		/* a value of a switch, and '=' after a letter */
		{ "run --no-wait true a -- touch ran",
		  "--no-wait takes no value (--name has any name); try: rlock run --no-wait a -- touch ran\n" },
		{ "run -n -E=0 a -- touch ran",
		  "the value of -E stands after a blank, not after '='; try: rlock run -n -E 0 a -- touch ran\n" },
		/* dashes before the verb, and its first letters */
		{ "--run a touch ran", "try: rlock run a -- touch ran\n" },
		{ "-status a", "try: rlock status a\n" },
		{ "nulock a", "try: rlock unlock a\n" },
		{ "urn a -- touch ran", "try: rlock run a -- touch ran\n" },
		{ "run a ---./job", "try: rlock run a -- ./job\n" },
		/* what an empty variable leaves */
		{ "run -- touch ran",
		  "run needs the name of a lock (was a variable empty?); try: rlock run NAME -- touch ran\n" },
		{ "run a --",
		  "run needs a command after '--' (was a variable empty?); try: rlock run a -- COMMAND\n" },
		{ "run --wait a -- touch ran",
		  "'a' is the value of --wait; was a variable empty?\n" },
		{ "run -u redis://h/nightly -- touch ran",
		  "'nightly' is not the number of a database; the name of a lock is a word of its own\n" },
		{ "run web ./job", "try: rlock run web -- ./job\n" },
		{ "run nightly sh -- -c 'touch ran'",
		  "COMMAND begins with '-c', and 'sh' would be the name of a lock (--name has any name); try: rlock run nightly -- sh -c 'touch ran'\n" },
		{ "run nightly cp -- -a from to", "try: rlock run nightly -- cp -a from to\n" },
		{ "run nightly -- -n touch ran",
		  "'-n' begins COMMAND: options stand before '--'; try: rlock run nightly -n -- touch ran\n" },
		{ "run nightly -- -nw 5s touch ran",
		  "try: rlock run nightly -nw 5s -- touch ran\n" },
		{ "run --wait nightly ./job",
		  "rlock: --wait 'nightly': not a duration, ... nor inf\n" },
		{ "run --max-run nightly ./job", "rlock: --max-run 'nightly': not a duration, " },
		{ "sem --permits a touch ran", "--permits 'a': not a number from" },
		{ "run nightly -- -n -E 0", "try: rlock run nightly -n -E 0 -- COMMAND\n" },
		/* an option that rlock does not have, or that lacks its value, after "--" */
		{ "run nightly -- --wiat 5 touch ran",
		  "'--wiat' begins COMMAND: options stand before '--'; no such option '--wiat'; try: --wait\n" },
		{ "run nightly -- --timeout 5 touch ran",
		  "options stand before '--'; ... --max-run\n" },
		{ "lock nightly -- -x touch ran",
		  "'-x' begins COMMAND: options stand before '--'; try: rlock lock nightly -- touch ran\n" },
		{ "run nightly -- --wait -n touch ran",
		  "options stand before '--'; --wait needs a value" },
		{ "run nightly -- -n --wiat 5 touch ran",
		  "options stand before '--'; ... try: --wait\n" },
		{ "run nightly -- --help", "'--help' begins COMMAND: options stand before '--'" },
		{ "run nightly -- -h", "'-h' begins COMMAND: options stand before '--'" },
		{ "run nightly -- - touch ran",
		  "'-' stands after '--'; try: rlock run nightly -- touch ran\n" },
		{ "run nightly -- -c 'touch ran'",
		  "a line for a shell is a COMMAND: -- sh -c LINE\n" },
		{ "run nightly -- -- touch ran",
		  "'--' is given twice; try: rlock run nightly -- touch ran\n" },
		{ "lock --pid 1 nightly -- -- -w 5 touch ran", "'--' is given twice" },
		/* the verb after the name */
		{ "held status", "try: rlock status held\n" },
		{ "nightly run -- touch ran", "try: rlock run nightly -- touch ran\n" },
		{ "nightly lock", "try: rlock lock --pid $$ nightly\n" },
		{ "scale lock held --replicas 3", "'scale' is not a verb; run acquires" },
		{ "describe lock held",
		  "to see locks: list, or status NAME; try: rlock status held\n" },
		{ "hepl run", "try: rlock help run\n" },
		{ "unlok run", "try: rlock unlock run\n" },
		/* a command among the names of a lock without one */
		{ "lock --owner x --lease 1h web /bin/cp a b",
		  "'/bin/cp' is a program: a command stands after '--' (--name has any name); try: rlock run --owner x --lease 1h web -- /bin/cp a b\n" },
		{ "sem --permits 3 --pid 1 -n web /bin/cp --help",
		  "try: rlock sem --permits 3 -n web -- /bin/cp --help\n" },
		{ "lock --pid 1 web database /bin/cp a",
		  "'/bin/cp' is a program: ... any name); see 'rlock help lock'\n" },
		{ "lock web /bin/cp a b",
		  "without '--' and a COMMAND needs --pid or --owner; try: rlock run web -- /bin/cp a b\n" },
		/* a number that may be a descriptor, a count or a duration */
		{ "lock -n 9",
		  "for a descriptor 'rlock flock -n 9', ... (--name 9 has it as a name)\n" },
		{ "lock --pid 1 9",
		  "for a descriptor 'rlock flock 9', how long to wait is --wait 9 (" },
		{ "run -n 9 -- touch ran",
		  "rlock: '9' would be the name of a lock: how long to wait is --wait 9, ... --max-run 9 (--name 9 has" },
		{ "run 10 nightly -- touch ran",
		  "how long to wait is --wait 10, ... --max-run 10 (--name 10 has" },
		{ "run 300 nightly -- touch ran",
		  "how long to wait is --wait 300, ... --max-run 300 (" },
		{ "run nightly 3600 -- touch ran", "'3600' would be the name of a lock" },
		{ "run nightly 300 touch ran",
		  "'300' is no command: a process is --pid, a time --wait" },
		{ "fair --pid 1 nightly 300", "how long to wait is --wait 300 (--name 300 has" },
		{ "stop 300 nightly", "how long to wait is --wait 300 (--name 300 has" },
		{ "renew nightly 3600", "the new lease is --lease 3600 (--name 3600 has" },
		{ "run nightly NX EX 30 -- touch ran", "'30' would be the name of a lock" },
		{ "run nightly 10m -- touch ran",
		  "how long to wait is --wait 10m, ... --max-run 10m (--name 10m has" },
		{ "run nightly 10min -- touch ran",
		  "--wait 10m, ... --max-run 10m (--name 10min has" },
		{ "run 5s nightly touch ran",
		  "how long to wait is --wait 5s, how long COMMAND may run --max-run 5s (--name 5s has" },
		{ "stop held 5",
		  "'5' would be the name of a lock: how long to wait is --wait 5 (--name 5 has it as a name)\n" },
		{ "stop held 5s", "how long to wait is --wait 5s (--name 5s has" },
		{ "renew held 60",
		  "'60' would be the name of a lock: the new lease is --lease 60 (--name 60 has" },
		{ "renew held 5m", "the new lease is --lease 5m (--name 5m has" },
		{ "stop --dry-run held", "no such option '--dry-run': ... rlock status NAME\n" },
		{ "stop -n held", "no such option '-n': not to wait for the release is --wait 0" },
		/* a descriptor that is open, of the test below */
		{ "lock -n 250",
		  "for a descriptor 'rlock flock -n 250', ... (--name 250 has it as a name)\n" },
		{ "run -n 250 -- touch ran", "'250' would be the name of a lock" },
		{ "lock --pid 1 250", "for a descriptor 'rlock flock 250'" },
		/* a name that is cut short by an empty variable */
		{ "run deploy- -- touch ran",
		  "name 'deploy-': ends in '-': does a variable in it have no value? (--name has any name)\n" },
		{ "lock --pid 1 deploy:", "ends in ':': does a variable" },
		{ "fair web/ -- touch ran", "ends in '/': does a variable" },
		/* blanks and what a file with CRLF leaves */
		{ "run 'a\r' -- touch ran",
		  "'a\\x0d' contains a carriage return: does a file have line ends of Windows? (--name has any name); try: rlock run a -- touch ran\n" },
		{ "run ' a' -- touch ran",
		  "' a' contains a blank, after a backslash or in quotes (--name has any name); try: rlock run a -- touch ran\n" },
		{ "status 'a '",
		  "'a ' contains a blank, after a backslash or in quotes (--name has any name); try: rlock status a\n" },
		{ "run -n a ' '",
		  "' ' is a blank: does one follow the backslash at the end of a line?\n" },
		{ "run 'a\u00a0--\u00a0touch\u00a0ran'",
		  "contains a no-break space, perhaps of a web page (--name has any name); try: rlock run a -- touch ran\n" },
		/* a whole line in quotes */
		{ "run 'a -- touch ran'",
		  "'a -- touch ran' is one word; leave out the quotes around it; try: rlock run a -- touch ran\n" },
		{ "run '--wait 5m' a -- touch ran",
		  "'--wait 5m' is one word; try: rlock run --wait 5m a -- touch ran\n" },
		{ "run '--wiat 5m' a -- touch ran", "no such option '--wiat 5m'" },
		/* words of a synopsis */
		{ "run [-n] a -- touch ran",
		  "'[-n]' has the brackets of a synopsis (--name has any name); try: rlock run -n a -- touch ran\n" },
		{ "run [--wait 5s] a -- touch ran", "'[--wait' has the brackets of a synopsis" },
		{ "run NAME -- touch ran",
		  "'NAME' stands for the name of a lock (--name has any name)\n" },
		/* a variable, as env has it, and a program that runs a command */
		{ "run FOO=1 a -- touch ran",
		  "'FOO=1' would be the name of a lock: a variable is set by: -- env FOO=1 COMMAND (--name has any name); try: rlock run a -- env FOO=1 touch ran\n" },
		{ "run name=a cmd=./job", "'cmd=./job' is no command" },
		{ "run sudo -u nobody a -- touch ran",
		  "'sudo' would be the name of a lock: it runs COMMAND after '--', as in: -- sudo COMMAND (--name has any name); try: rlock run a -- sudo -u nobody touch ran\n" },
		{ "run nice -n 10 a -- touch ran", "try: rlock run a -- nice -n 10 touch ran\n" },
		{ "run -w 5 timeout 9 env A=1 a -- touch",
		  "try: rlock run -w 5 a -- timeout 9 env A=1 touch\n" },
		{ "run nice touch ran", "as in: -- nice COMMAND (" },
		/* a list with commas */
		{ "run db,files -- touch ran",
		  "'db,files' has a comma: blanks separate names (--name has any name); try: rlock run db files -- touch ran\n" },
		{ "unlock ,a,,b", "try: rlock unlock a b\n" },
		{ "run , -- touch ran", "',' has a comma" },
		{ "run a, b -- touch ran",
		  "'a,' has a comma: blanks separate names (--name has any name); try: rlock run a b -- touch ran\n" },
		{ "unlock a, b, c", "try: rlock unlock a b c\n" },
		/* perhaps another name, or a command that this machine does not have */
		{ "run web database ./job",
		  "run needs a command after '--'; see 'rlock help run'\n" },
		/* syntax of flock */
		{ "run -s a -- touch ran", "'-s': a shared lock is the verb read" },
		{ "a -c 'touch ran'", "try: rlock run a -- sh -c 'touch ran'\n" },
		{ "-n 9", "try: rlock flock -n 9\n" },
		{ "/tmp/a ./job", "try: rlock run /tmp/a -- ./job\n" },
		{ "9", "try: rlock flock 9\n" },
		{ "-n a",
		  "try: rlock run -n a -- COMMAND, or for a line as flock has it: rlock flock\n" },
		/* --help after the command belongs to the command */
		{ "run a -n 3 mytool --help", "try: rlock sem --permits 3 a -- mytool --help\n" },
		{ "lock a mytool --resize", "try: rlock run a -- mytool --resize\n" },
		{ "run a 'touch ran && true'", "try: rlock run a -- sh -c 'touch ran && true'\n" },
		/* syntax of consul */
		{ "run -n 0 -E 0 a -- touch ran", "(--name has any name)\n" },
		{ "run -timeout=10s a touch ran", "no such option '-timeout': how long to wait is --wait, and how long COMMAND may run is --max-run; try: rlock run --wait 10s a -- touch ran, or to limit COMMAND: rlock run --max-run 10s a -- touch ran\n" },
		{ "-n 3 -timeout=10s a touch ran",
		  "the verb comes first; see 'rlock help', or try: rlock sem --permits 3 --wait 10s a -- touch ran, or to limit COMMAND: rlock sem --permits 3 --max-run 10s a -- touch ran, or for a line as flock has it: rlock flock\n" },
		{ "run -n 3 a -- touch ran", "try: rlock sem --permits 3 a -- touch ran\n" },
		{ "sem 3 a touch ran", "try: rlock sem --permits 3 a -- touch ran\n" },
		{ "unlock -xh a", "no such option '-x'" },
		{ "run --help=3 a -- touch ran", "--help takes no value\n" },
		{ "lock -timeout a touch ran", "'-timeout': how long to wait is --wait, and" },
		{ "fair -n 3 a -- touch ran", "-n takes no value ... any name)\n" },
		{ "lock -n=3 a touch ran", "try: rlock sem --permits 3 a -- touch ran\n" },
		/* syntax of GNU sem */
		{ "sem -j 3 touch ran", "'-j': the number of permits is --permits" },
		{ "sem --id a --jobs=3 touch ran",
		  "'--id': the name is a word, or --name; try: rlock sem a --permits 3 -- touch ran\n" },
		/* redis-cli's option for the server */
		{ "run -h db a -- touch ran",
		  "try: rlock run -u redis://db:6379 a -- touch ran\n" },
		{ "unlock -h db:7000 a", "try: rlock unlock -u redis://db:7000 a\n" },
		{ "run --port 7000 --user me --tls a -- touch ran",
		  "no such option '--port': the server is -u redis://USER@HOST:PORT\n" },
		{ "unlock a -h db -p 7000",
		  "-h prints the help, and runs nothing; the server is -u redis://HOST:PORT; try: rlock unlock a -u redis://db:7000\n" },
		{ "renew a --pass " SECRET " -h db", "'--pass': a password is read by" },
		{ "run -h --pass " SECRET " a -- touch ran",
		  "-h prints the help, and runs nothing" },
		{ "run -nu " SECRET "@h a touch ran", "--url '******@h': the scheme is missing" },
		{ "run --ur=" SECRET "@h a touch ran", "no such option '--ur'; try: --url\n" },
		{ "--Password=" SECRET " a",
		  "the verb comes first; see 'rlock help': no such option '--Password'" },
		{ "-t --pass " SECRET " a",
		  "the verb comes first; see 'rlock help': --ttl needs a value" },
		{ "--password-file f a touch ran",
		  "try: rlock run --password-file f a -- touch ran, or" },
		{ "-h db run a -- touch ran",
		  "try: rlock run -u redis://db:6379 a -- touch ran\n" },
		{ "run -u redis-sentinel://db/main a -- touch ran",
		  "try: redis+sentinel://db/main\n" },
		{ "run -u redis-cluster://db a -- touch ran", "try: redis+cluster://db\n" },
		{ "run --username me a -- touch ran", "the server is -u redis://USER@HOST:PORT\n" },
		/* an @ alone does not make a password */
		{ "run -u redis://127.0.0.1:1 deploy@web1 'https://ci/job?id=5' --note me@host true",
		  "redis://127.0.0.1:1 deploy@web1 " },
		/* a bad name */
		{ "run -- touch ran", "name" },
		{ "run '' -- touch ran",
		  "name '': a name has at least one byte: is a variable empty?\n" },
		/* a missing name that may have been read as an option's value or as COMMAND */
		{ "run --key a -- touch ran",
		  "run needs the name of a lock: 'a' is the value of --key; was a variable empty?\n" },
		/* the same mistake twice: one message */
		{ "list a -w -w",
		  "rlock: no such option '-w': to print it again and again is --watch\n" },
		{ "run --db a -- touch ran", "'a' is the value of --db; was a variable empty?\n" },
		{ "run -u a -- touch ran", "'a' is the value of --url; was a variable empty?\n" },
		{ "unlock -u 9",
		  "'9' is the value of --url; to release a lock: rlock flock -u 9\n" },
		{ "unlock", "which 'rlock list' shows; try: rlock unlock NAME\n" },
		{ "unlock --owner a", "'a' is the value of --owner; was a variable empty?\n" },
		{ "run -w 5 -- touch ran", "try: rlock run -w 5 NAME -- touch ran\n" },
		{ "run -- nightly touch ran",
		  "run needs the name of a lock before '--'; try: rlock run nightly -- touch ran\n" },
		{ "run -- -w 5 nightly touch ran", "try: rlock run -w 5 nightly -- touch ran\n" },
		{ "run -- nightly ran", "run needs the name of a lock before '--'\n" },
		{ "run - -- touch ran", "'-' is a name only by --name" },
		{ "run 'two\nlines' -- touch ran", "newline" },
		{ "run a b a -- touch ran", "twice" },
		/* names that share their keys on the server */
		{ "run a {a} -- touch ran", "name '{a}': shares its keys on the server with 'a'" },
		{ "run --name a touch ran", "rlock run --name a -- touch ran\n" },
		/* dashes without a blank, or marks like them */
		{ "run nightly-- touch ran",
		  "a blank is missing before '--' in 'nightly--'; try: rlock run nightly -- touch ran\n" },
		{ "run nightly--./job -x", "try: rlock run nightly -- ./job -x\n" },
		{ "run nightly = touch ran",
		  "'=' is not '--'; try: rlock run nightly -- touch ran\n" },
		/* options of timeout(1), systemd-run(1), env(1), xargs(1) */
		{ "run -k 5 10min nightly -- touch ran",
		  "try: rlock run --grace 5 --max-run 10m nightly -- touch ran\n" },
		{ "run --kill-after=5s 10m nightly touch ran",
		  "try: rlock run --grace 5s --max-run 10m nightly -- touch ran\n" },
		{ "run -s INT 10m nightly -- touch ran",
		  "try: rlock run --signal INT --max-run 10m nightly -- touch ran\n" },
		{ "run -kill-after=5 a -- touch ran",
		  "a long option has two dashes; try: rlock run --grace 5 a -- touch ran\n" },
		{ "run -p MemoryMax=1G a touch ran",
		  "try: rlock run a -- systemd-run --scope -p MemoryMax=1G touch ran\n" },
		{ "run -p RuntimeMaxSec=10min a -- touch ran",
		  "try: rlock run --max-run 10m a -- touch ran\n" },
		{ "run -e FOO=1 a -- touch ran", "try: rlock run a -- env FOO=1 touch ran\n" },
		{ "run -n -e 0 a -- touch ran",
		  "try: rlock run -n --conflict-exit-code 0 a -- touch ran\n" },
		{ "run -s 9 -o --close a touch ran", "try: rlock run --signal 9 a -- touch ran\n" },
		{ "run --verbose=true --quiet=no a touch ran",
		  "try: rlock run --verbose a -- touch ran\n" },
		{ "run -v=1 a -- touch ran",
		  "--verbose takes no value; try: rlock run --verbose a -- touch ran\n" },
		{ "status a -o wide",
		  "no such option '-o': a JSON document is --json, and a text is printed without it\n" },
		{ "status a -o json", "try: rlock status a --json\n" },
		{ "run cp -j4", "run needs the name of a lock; try: rlock run NAME -- cp -j4\n" },
		{ "run -j x a -- touch ran",
		  "for N holders at a time: sem --permits N NAME -- COMMAND\n" },
		{ "run -j4 make -- touch", "try: rlock sem --permits 4 make -- touch\n" },
		{ "run -u 127.0.0.1 -p 7000 a -- touch ran",
		  "try: rlock run -u redis://127.0.0.1:7000 a -- touch ran\n" },
		{ "run -u 1000:1000 a -- touch ran",
		  "another user is set by: -- sudo -u USER COMMAND\n" },
		{ "run --scope --unit=a touch ran", "try: rlock run a -- touch ran\n" },
		{ "run --permits 3 a -- touch ran", "try: rlock sem --permits 3 a -- touch ran\n" },
		{ "run --permits 3 a touch ran", "try: rlock sem --permits 3 a -- touch ran\n" },
		{ "lock -p 4711 a",
		  "no such option '-p': the process is --pid, ... try: rlock lock --pid 4711 a\n" },
		{ "run -e A a -- touch ran",
		  "and a lock is exclusive without it, but for the verb read\n" },
		{ "run -e A a ./job",
		  "and a lock is exclusive without it, but for the verb read\n" },
		{ "lock --owner x --for 1h a", "try: rlock lock --owner x --lease 1h a\n" },
		{ "status -f a", "try: rlock status --watch a\n" },
		{ "run -I{} a -- touch {}", "try: xargs -I{} rlock run a -- touch '{}'\n" },
		{ "run -d a -- touch ran", "try: rlock run a -- touch ran &\n" },
		{ "run -s a -- touch ran", "try: rlock read a -- touch ran\n" },
		{ "run --cmd 'touch ran' a", "try: rlock run a -- sh -c 'touch ran'\n" },
		{ "run -j 3 a -- touch ran", "try: rlock sem --permits 3 a -- touch ran\n" },
		{ "run --host h --port 7000 a -- touch ran",
		  "try: rlock run -u redis://h:7000 a -- touch ran\n" },
		{ "run --timeout x a -- touch ran",
		  "no such option '--timeout': how long to wait is --wait, and how long COMMAND may run is --max-run\n" },
		/* options at the end, for COMMAND or for rlock */
		{ "run nightly touch -v",
		  "try: rlock run nightly -- touch -v, or with these options for rlock: rlock run nightly -v -- touch\n" },
		{ "nightly touch ran -n -w 5",
		  "try: rlock run nightly -- touch ran -n -w 5, or with these options for rlock: rlock run nightly -n -w 5 -- touch ran\n" },
		{ "run -w 5 nightly touch -n", "try: rlock run -w 5 nightly -- touch -n\n" },
		{ "run nightly touch --help", NULL },
		/* invisible characters, and a whole line in one word */
		{ "run nightly '--\u00a0touch' ran",
		  "contains a no-break space, perhaps of a web page (--name has any name); try: rlock run nightly -- touch ran\n" },
		{ "run '--wait\u200b' 5s a touch ran",
		  "contains an invisible character, perhaps of a web page (--name has any name); try: rlock run --wait 5s a -- touch ran\n" },
		{ "run '\ufeffa' -- touch ran",
		  "a byte order mark, ... try: rlock run a -- touch ran\n" },
		{ "run 'a\u2003b' -- touch ran", "contains a no-break space, ... any name)\n" },
		{ "run a ' --' touch ran",
		  "' --' contains a blank, after a backslash or in quotes (--name has any name); try: rlock run a -- touch ran\n" },
		{ "'run\u00a0a' -- touch ran",
		  "contains a no-break space; try: rlock run a -- touch ran\n" },
		{ "'list\r'", "'list\\x0d' contains a carriage return; try: rlock list\n" },
		{ "list '\r'", "try: rlock list\n" },
		{ "'run a -- touch ran'",
		  "is one word; leave out the quotes around it; try: rlock run a -- touch ran\n" },
		{ "'run a -- sh -c \"touch ran\"'",
		  "is one word; leave out the quotes around it; try: rlock run a -- sh -c \"touch ran\"\n" },
		{ "log a", "to see the last holder: status NAME" },
		/* options that exclude each other */
		{ "run -n -w 3s a -- touch ran", "--wait" },
		{ "run -l 3s -t 3s a -- touch ran", "--ttl" },
		/* options that need a command, or exclude one */
		{ "lock --pid 1 --at-least 3s a", "--at-least" },
		{ "run --unless-failed a -- touch ran", "--unless-failed needs --at-least" },
		{ "run --pid 1 a -- touch ran", "--pid" },
		/* locks without a command */
		{ "lock --lease 1h a",
		  "try: rlock lock --owner ID --lease 1h a, or for a process: rlock lock --pid $$ --lease 1h a\n" },
		{ "lock nightly",
		  "rlock: lock without a COMMAND needs --pid or --owner; try: rlock lock --pid $$ nightly\n" },
		{ "sem --permits 3 a", "try: rlock sem --pid $$ --permits 3 a\n" },
		{ "lock -w 3s x echo hi",
		  "try: rlock run -w 3s x -- echo hi, or for a process: rlock lock --pid $$ -w 3s x\n" },
		{ "lock x y",
		  "try: rlock run x -- y, or for a process: rlock lock --pid $$ x y\n" },
		{ "lock --pid 1 -l 20s 'my lock'",
		  "rlock: my lock: ... try: rlock lock --on-lost ignore --pid 1 -l 20s 'my lock'\n" },
		{ "wlock --pid 1 --on-lost term b",
		  "try: rlock wlock --on-lost ignore --pid 1 b\n" },
		{ "lock --owner x --ttl 5s a", "--lease " },
		{ "lock --owner x --pid 1 --lease 5s a", "--owner" },
		{ "run --owner job- a -- touch ran",
		  "rlock: --owner 'job-': ends in '-': does a variable in it have no value?\n" },
		{ "unlock --owner ci. a", "--owner 'ci.': ends in '.': does a variable in it" },
		{ "unlock --holder x a", "--force" },
		{ "lock --pid 4194304 a", "4194304" }, /* larger than any pid */
		{ "run --log-format json a -- touch ran", "--log-format" },
		{ "rlock --fence a -- touch ran", "--fence" },
		/* list and status */
		{ "list a b", "one pattern" },
		/* semaphores */
		{ "sem -n a -- true",
		  "rlock: sem needs --permits, how many there are in all; try: rlock sem --permits N -n a -- true\n" },
		{ "sem --permits 2 --take 3 a -- true", "--take" },
		{ "sem --permits 2 --fence a -- true", "--fence" },
		{ "sem --permits 2 -u redis://a -u redis://b a -- true", "server" },
		{ "sem --permits 2 --resize a -- true",
		  "--resize can't go together with a COMMAND; leave one of them out\n" },
		/* servers */
		{ "run --db 3 -u 'unix:///run/redis.sock?db=3' a -- touch ran", "database" },
		{ "run -u redis://a -u redis://b --fence a -- touch ran", "fence" },
		{ "run -u local: -u redis://b a -- touch ran", "local:" },
		{ "run -u redis://a -u redis://b -u redis://c --quorum 1 nightly -- true",
		  "rlock: --quorum 1: of 3 servers it takes 2 to 3: with fewer, two owners could hold the lock at "
		  "one time\n" },
		{ "run -u redis://a -u redis://b -u redis://c -u redis://d --quorum 2 a -- touch ran",
		  "quorum" },
		{ "lock --owner x --lease 9s --remember 1h a",
		  "--remember can't go together with --owner" },
		{ "run --password-file f --password-command 'echo " SECRET "' a -- touch ran",
		  "can't go together with --password-file" },
		{ "run -qv a -- touch ran", "--verbose: can't go together with --quiet" },
		{ "list --metrics --watch", "--metrics can't go together with --watch" },
		{ "run -u redis+sentinel://h/m --sentinel-map=a a -- true", "--sentinel-map: " },
		{ "run --complain-after 1h a -- touch ran", "--complain-after needs --no-wait" },
	};

/* A line with values, and the message about each. "%s" is the value. */
static const struct {
	const char *line, *message;
	const char *values[24];
} values[] = {
	/* durations, with an example in the message; test_duration.c has more invalid texts */
	{ "run --%s=-1 a -- touch ran",
	  "--%s '-1' ... 30s",
	  { "ttl", "lease", "at-least", "max-run", "grace", "remember", "connect-timeout" } },
	{ "run '--wait=%s' a -- touch ran", "--wait '%s' ... 30s", { "", "1:30" } },
	{ "run '--wait=%s' a -- touch ran",
	  "--wait '%s': not a duration; try: 90m\n",
	  { "90min", "90 m" } },
	{ "run -n --complain-after=%s a -- touch ran", "--complain-after '%s' ... 30s", { "-1" } },
	{ "list --held-for=%s", "--held-for '%s' ... 30s", { "-1" } },
	{ "run --at-least=%s a -- touch ran", "--at-least '%s' ... 30s", { "4000000d" } },
	{ "run --ttl=%s a -- touch ran", "--ttl '%s' ... 1s", { "999ms", "0" } },
	{ "run --lease=%s a -- touch ran", "--lease '%s' ... 1s", { "999ms" } },
	{ "renew --owner x --lease=%s a", "--lease '%s' ... 1s", { "999ms" } },
	{ "run -w%s a -- touch ran", "'%s'", { "x", "INF", "infinity" } },
	{ "run --wait=%s a -- touch ran",
	  "'%s': not a duration; try: inf\n",
	  { "-1", "INF", "forever", "infinity" } },
	{ "run --ttl=%s a -- touch ran",
	  "'%s': not a duration; a lease ends",
	  { "inf", "forever" } },
	{ "run --max-run %s a -- touch ran", "try: 0\n", { "inf", "never", "none" } },
	{ "run --wait %s a -- touch ran",
	  "perhaps a time of day, and not a duration, like 30s",
	  { "03:00", "3am", "2026-11-29" } },
	{ "run --wait %s a -- touch ran", "try: 5m\n", { "5Minuten", "5minutes" } },
	{ "run --wait=%s a -- touch ran",
	  "'%s': longer than 10000d, try 30s",
	  { "9999999999", "10001d" } },
	{ "run --ttl=%s a -- touch ran",
	  "'%s': seconds, or milliseconds? Say ",
	  { "30000", "3600.5" } },
	{ "renew --owner x --lease %s a", "'%s': seconds, or milliseconds?", { "3601" } },
	/* words and numbers */
	{ "run '--conflict-exit-code=%s' a -- touch ran",
	  "'%s'",
	  { "256", "-1", "x", "", "0x10" } },
	{ "run --on-lost '%s' a -- touch ran", "'%s' ... term", { "stop", "" } },
	{ "run '--signal=%s' a -- touch ran", "--signal '%s' ... INT or 10", { "STOP", "" } },
	{ "lock --owner '%s' --lease 5s a", "--owner", { "", "a b", "a:0", "ä", "a/b" } },
	{ "lock --owner=%s --lease 5s a", "--owner '%s': not", { "--wait", "-a" } },
	{ "unlock --owner %s a", "try: ci-1\n", { "ci-1:12" } },
	{ "lock '--pid=%s' a", "'%s'", { "", "0", "-1", "x", "99999999999999999999" } },
	{ "run --note '%s' a -- touch ran", "--note", { "two\nlines", "" } },
	{ "run '--db=%s' a -- touch ran", "'%s'", { "", "x", "-1", "99999999999999999999" } },
	{ "unlock --force --holder '%s' a", "--holder", { "" } },
	{ "run --log '%s' a -- touch ran", "--log", { "", "-" } },
	{ "run --log %s a -- touch ran",
	  "--log '%s': not syslog, stderr or a file's name, like /var/log/rlock.log: ./",
	  { "journald", "json", "info", "stdout" } },
	{ "run --log %s a -- touch ran",
	  "is a file of that name; the format is log-format\n",
	  { "json" } },
	{ "run --log stderr --log-format %s a -- touch ran", "--log-format", { "yaml" } },
	{ "run '--%s=' a -- touch ran", "--%s", { "password-file", "password-command", "config" } },
	{ "run -u 'redis://a redis://b redis://c' '--quorum=%s' a -- touch ran",
	  "quorum",
	  { "0", "1", "4", "-1", "2.5", "", "ALL", "2 ", "18446744073709551618" } },
	/* servers; test_url_refused.c has more invalid URLs */
	{ "run -u %s a -- touch ran",
	  "the scheme is missing; try: redis://%s\n",
	  { "host:6379", "127.0.0.1", "[::1]:6379" } },
	{ "run -u %s a -- touch ran",
	  "the scheme is missing; try: unix://%s\n",
	  { "/run/r.sock" } },
	{ "run -u %s://h:6380/1 a -- touch ran",
	  "the scheme '%s' is unknown; try: rediss://h:6380/1\n",
	  { "tls", "redis+tls", "redis+ssl", "valkey+ssl", "https" } },
	{ "run -u %s://h a -- touch ran",
	  "the scheme '%s' is unknown; try: redis://h\n",
	  { "http", "tcp", "reddis", "Http" } },
	{ "run -u %s://h a -- touch ran",
	  "try: rediss+sentinel://h/SERVICE\n",
	  { "rediss+sentinel", "rediss-sentinel" } },
	{ "run -u %s a -- touch ran",
	  "try: redis+sentinel://h:26379,i/SERVICE/0\n",
	  { "redis-sentinel://h:26379,i/0" } },
	{ "run -u %s a -- touch ran",
	  "try: redis+sentinel://HOST:26379/SERVICE\n",
	  { "redis-sentinel://h/0#mymaster" } },
	{ "run -u %s a -- touch ran",
	  "try: unix:///run/r.sock\n",
	  { "unix://run/r.sock", "unix:run/r.sock", "unix:/run/r.sock",
	    "redis+socket:///run/r.sock" } },
	{ "run -u %s a -- touch ran",
	  "; try: redis://%s\n",
	  { "localhost", "127.0.0.1:6379/0", "redis", "redis:6379", "valkey:6379" } },
	{ "run -u %s a -- touch ran", "try: redis://h\n", { "redis:h", "redis:/h" } },
	{ "run -u %s a -- touch ran", "; try: local:\n", { "local", "local://" } },
	{ "run -u %s a -- touch ran",
	  "other characters stand around the URL; try: redis://h\n",
	  { "<redis://h>", "url=redis://h", "redis://h,", "jdbc:redis://h",
	    "RLOCK_URL=redis://h" } },
	{ "run -u 'redis://h %s' -- touch ran",
	  "the scheme is missing; the name of a lock is a word of its own\n",
	  { "nightly" } },
	{ "run -u redis%sh a -- touch ran", "the scheme is missing; try: redis://h\n", { "//" } },
	{ "run -u redis://a%sredis://b a -- touch ran",
	  "blanks separate several URLs; try: 'redis://a redis://b'\n",
	  { ",", ";" } },
	{ "run -u redis://a:1,%s a -- touch ran",
	  "a list of hosts is that of redis+cluster://HOST,HOST or",
	  { "b:2" } },
	{ "run -u redis://h?%s=x a -- touch ran",
	  "the password stands before the host, as in redis://:PASSWORD@HOST:6379\n",
	  { "password", "auth" } },
	{ "run -u redis://h?%s=5s a -- touch ran",
	  "is --connect-timeout\n",
	  { "timeout", "socket_timeout", "Timeout" } },
	{ "run -u 'redis://ci:%s two@h' a -- touch ran",
	  "a blank in a user or password is written %20",
	  { SECRET, "63" } },
	{ "run -u %s a -- touch ran", "quotes are no part of a URL", { "\"redis://h\"" } },
	{ "run -u 'redis://h %s' a -- touch ran", "a comment needs a line of its own", { "# x" } },
	{ "run -u redis://h?%s a -- touch ran", "the database follows the host", { "db=1" } },
	{ "run -u redis://h?%s=true a -- touch ran", "TLS is the scheme rediss", { "ssl", "tls" } },
	{ "run '--url=%s' a -- touch ran", "--url", { "", "http://localhost" } },
	{ "run -u redis://b -u redis://a -u '%s' a -- touch ran",
	  "twice",
	  { "redis://a", "redis://A:6379/0", ("redis://x:" SECRET "@a") } },
	{ "run --db 3 -u unix:///a -u %s a -- touch ran", "twice", { "unix:///a" } },
	{ "run -u unix:///a %s a -- touch ran",
	  "is for TLS, and unix:///a ... has none; name the server by a URL like rediss://HOST:6379\n",
	  { "--cacert /c" } },
	{ "run -u unix:///a %s a -- touch ran",
	  "is for sentinels, and unix:///a ... has none; name the server by a URL like "
	  "redis+sentinel://HOST:26379/SERVICE\n",
	  { "--sentinel-user me", "--sentinel-map a:1=b:2" } },
	{ "run -u redis://h %s a -- touch ran",
	  "is for nodes of a cluster, and redis://h:6379/0 has none; name the server by a URL like redis+cluster://HOST:6379\n",
	  { "--cluster-map a:1=b:2" } },
	/* options for an acquisition, with --resize */
	{ "sem --permits 3 --resize %s a",
	  "can't go together with --resize, which acquires nothing; leave one of them out\n",
	  { "--at-least 5s", "--owner x", "--lease 5s", "--ttl 5s", "--pid 1", "--note x", "-w 3s",
	    "-n", "--take 2", "--wait-all", "--kill-child", "--max-run 3s", "--grace 3s",
	    "--on-lost term", "--replicas 1" } },
	{ "sem --permits '%s' a -- true", "--permits", { "0", "x", "" } },
	{ "sem --permits 2 --take '%s' a -- true", "--take", { "0", "x" } },
	{ "unlock --mode '%s' a", "'%s': not plain, fair, read, write or sem", { "shared" } },
	{ "status --watch=%s nightly", "less than 100ms", { "1ms" } },
	/* the options of flock */
	{ "run %s a -- touch ran",
	  "no such option '%s': a lock is exclusive without it, but for the verb read; try: rlock run a -- touch ran\n",
	  { "-x", "--exclusive" } },
	{ "run %s a -- touch ran",
	  "no such option '%s': the exit code of a busy lock is -E, ... -- env VAR=VALUE COMMAND, and ... try: rlock run a -- touch ran\n",
	  { "-e" } },
	{ "run %s a -- touch ran",
	  "no such option '%s': COMMAND inherits no",
	  { "-o", "--close" } },
	{ "run %s a -- touch ran",
	  "no such option '%s': rlock has to stay",
	  { "-F", "--no-fork" } },
	/* options of other programs: the hint must contain this word */
	{ "run %s 3 a -- touch ran", " --wait\n", { "--retry", "--retries", "--retry-lock" } },
	{ "run %s 3 a -- touch ran",
	  "try: rlock run --wait 3 a -- touch ran\n",
	  { "-try", "--lock-timeout", "--max-wait", "--acquire-timeout", "-W" } },
	{ "run %s 3 a -- touch ran",
	  "sem --permits N NAME -- COMMAND",
	  { "-j", "--jobs", "-P", "--parallel", "-f" } },
	{ "run %s 2 a -- touch ran",
	  "sem --permits 5 --take 2 NAME -- COMMAND\n",
	  { "--quantity" } },
	{ "sem --permits 5 %s 2 a -- touch ran",
	  "try: rlock sem --permits 5 --take 2 a -- touch ran\n",
	  { "--quantity" } },
	{ "list %s", "try: rlock list --metrics\n", { "--prometheus" } },
	{ "%s", "to print metrics for Prometheus: list --metrics\n", { "metrics", "prometheus" } },
	{ "%s a", "to keep jobs from running for a time: lock --owner ID", { "disable", "pause" } },
	{ "%s bash", "completions of bash, zsh and fish\n", { "completion" } },
	{ "run a %s -- touch ran", "rlock status NAME\n", { "--check", "--noop" } },
	{ "run %s a -- touch ran", "'&' at the end", { "-d", "--detach", "-b" } },
	{ "run %s a -- touch ran", "sudo -u USER COMMAND\n", { "-b", "--become" } },
	{ "run %s /tmp a -- touch ran",
	  "try: rlock run a -- env -C /tmp touch ran\n",
	  { "-C", "--chdir" } },
	{ "run %s a -- touch ran", "a lock is removed at the end", { "--rm", "-it" } },
	{ "run %s a -- touch ran", "--conflict-exit-code\n", { "-X", "-nX" } },
	{ "run %s redis://h a -- touch ran", "the server is -u redis://HOST:PORT\n", { "-r" } },
	{ "run %s a -- touch ran", "the name is a word", { "--label", "--resource" } },
	{ "unlock %s a", "broken by unlock --force\n", { "--remove-all", "--all" } },
	{ "%s a", "lock --owner ID --lease 30s NAME", { "lease", "grant", "set", "acquire" } },
	{ "%s url redis://h", "a line of rlock.conf: url = redis://HOST:PORT", { "config" } },
	{ "%s a ./job", "'%s' is not a verb; how long to wait is --wait", { "30m", "5min" } },
	{ "run %s a ran",
	  "the name is a word, or --name; try: rlock run a -- ran\n",
	  { "-L", "--lock", "--lockfile", "--lock-file" } },
	{ "run %s a -- touch ran", "'%s': not to wait is -n, and the name is a word\n", { "-N" } },
	{ "status %s a", "try: rlock status a\n", { "-N", "--lock" } },
	{ "run %s 5s a -- touch ran",
	  "no such option '%s'; try: --wait\n",
	  { "--wait-time", "--wait-for-lock", "--wait_time" } },
	{ "sem %s 3 a -- touch ran",
	  "'%s': the number of permits is --permits, and the server is -u",
	  { "-p" } },
	{ "%s a",
	  "to see whether a lock is held: status NAME (1: not held); try: rlock status a\n",
	  { "test", "is-free", "locked", "exists", "is-locked" } },
	{ "run %s 5 a -- touch ran",
	  "try: rlock run --at-least 5 a -- touch ran\n",
	  { "--keep", "--cooldown" } },
	{ "run %s x a -- touch ran",
	  "try: rlock run --note x a -- touch ran\n",
	  { "--message", "--reason", "-m" } },
	{ "run %s x a -- touch ran", "try: rlock run --log x a -- touch ran\n", { "--log-file" } },
	{ "list %s", "try: rlock list --quiet\n", { "--silent" } },
	{ "status %s a", "try: rlock status --verbose a\n", { "--debug" } },
	{ "check %s 1", "try: rlock check --db 1\n", { "--database" } },
	{ "list %s 2h", "try: rlock list --held-for 2h\n", { "--older", "--older-than" } },
	{ "renew %s 60 a", "the new lease is --lease\n", { "--for" } },
	{ "check %s", "the server is -u redis://%s (", { "localhost", "127.0.0.1" } },
	{ "%s a -- touch ran",
	  "write NAME -- COMMAND; try: rlock write a -- touch ran\n",
	  { "write-lock", "wrlock" } },
	{ "status %s", "one line for each lock is: list", { "-s", "--short" } },
	{ "run %s a -- touch ran", "verb ", { "--fair", "--read", "--write", "--shared" } },
	{ "run %s 3 a -- touch ran",
	  "try: rlock run --grace 3 a -- touch ran\n",
	  { "-k", "--kill-after" } },
	{ "run %s 3 a -- touch ran",
	  "try: rlock run --max-run 3 a -- touch ran\n",
	  { "--max-time", "--time-limit" } },
	{ "run %s 3 a -- touch ran", " --ttl\n", { "--px", "--ex", "--expire" } },
	{ "run %s 3 a -- touch ran",
	  "try: rlock run --conflict-exit-code 3 a -- touch ran\n",
	  { "--exit-code" } },
	{ "run %s a -- touch ran",
	  "try: rlock run --fence a -- touch ran\n",
	  { "--fencing", "--token" } },
	{ "run %s a -- touch ran",
	  "try: rlock run --insecure a -- touch ran\n",
	  { "--tls-skip-verify" } },
	{ "run %s f a -- touch ran",
	  "try: rlock run --cacert f a -- touch ran\n",
	  { "--cafile", "--ca" } },
	{ "run %s a -- touch ran", " --no-wait", { "--try", "--nb", "--skip-if-locked" } },
	/* the verbs of other programs */
	{ "%s", "see locks: list", { "ps", "ls", "top", "locks", "show", "get", "describe" } },
	{ "%s a", "status NAME", { "st", "who", "holders", "get", "info", "watch" } },
	{ "%s", ": check; try: rlock check\n", { "doctor", "ping", "health" } },
	{ "%s a", "to wait until a lock is free: run NAME -- true\n", { "wait" } },
	{ "%s a",
	  "unlock NAME; ... stop NAME; ... unlock --force NAME\n",
	  { "del", "rm", "free", "release" } },
	{ "%s a", "stop NAME; ... unlock --force", { "steal", "force-unlock", "break", "kill" } },
	{ "%s a",
	  "renew --owner ID --lease DUR NAME; try: rlock renew a\n",
	  { "refresh", "touch", "keepalive", "extend" } },
	{ "%s a touch ran",
	  "run NAME -- COMMAND",
	  { "job", "mutex", "hold", "with", "exec", "acquire", "wait" } },
	{ "%s a -- touch ran", "run -n NAME -- COMMAND\n", { "trylock" } },
	{ "%s a -- touch ran", "try: rlock fair a -- touch ran\n", { "queue" } },
	{ "%s a -- touch ran", "try: rlock read a -- touch ran\n", { "shared" } },
	{ "%s a -- touch ran", "try: rlock sem --permits N a -- touch ran\n", { "semaphore" } },
	/* the passwords of redis-cli */
	{ "run %s a -- touch ran",
	  "a password is read by --password-file or --password-command, or from REDISCLI_AUTH\n",
	  { "-a " SECRET, "--pass " SECRET, "--pass=" SECRET, "--password " SECRET,
	    "--password=" SECRET } },
	{ "%s run a -- touch ran",
	  "the verb comes first; see 'rlock help': no such option",
	  { "-a " SECRET, "--pass " SECRET, "--password=" SECRET } },
	{ "%s a touch ran",
	  "the verb comes first; see 'rlock help': no such option",
	  { "--passwd " SECRET, "--requirepass=" SECRET, "-a " SECRET, "--pass " SECRET,
	    "--password=" SECRET, "--auth " SECRET, "--auth=" SECRET } },
	{ "run a redis-cli %s ping",
	  "needs a command after '--'",
	  { "-a " SECRET, "--pass " SECRET, "--pass=" SECRET } },
	{ "-n run x -- client %s ping",
	  "the verb comes first; see 'rlock help', or try: rlock run -n x -- client ",
	  { "--password " SECRET, "--passwd=" SECRET, "--proxy-password " SECRET,
	    "--api-token " SECRET, "--api_token=" SECRET, "-token " SECRET,
	    "--client-secret=" SECRET, "--Auth=" SECRET, "--basic-auth " SECRET } },
	{ "-n run x -- client %s ping",
	  "-- client %s ping",
	  { "--password-file file", "--token-path=file", "--password-stdin file", "--author=me" } },
	/* a password in a variable */
	{ "run %s x -- true",
	  "would be the name of a lock: a variable is set by: -- env ... try: rlock run x -- env ",
	  { "REDISCLI_AUTH=" SECRET, "PGPASSWORD=" SECRET, "MYSQL_PWD=" SECRET, "API_KEY=" SECRET,
	    "api_token=" SECRET, "CLIENT_SECRET=" SECRET, "'REDISCLI_AUTH=a " SECRET "'" } },
	{ "run %s touch ran",
	  "run needs a command after '--'",
	  { "REDISCLI_AUTH=" SECRET, "-n REDISCLI_AUTH=" SECRET, "x REDISCLI_AUTH=" SECRET,
	    "x env REDISCLI_AUTH=" SECRET, "x export REDISCLI_AUTH=" SECRET } },
	{ "%s run x -- true", NULL, { "REDISCLI_AUTH=" SECRET } },
	/* a password in a whole line */
	{ "run '%s'",
	  "is one word; leave out the quotes around it",
	  { "x REDISCLI_AUTH=" SECRET " -- true", "x -- REDISCLI_AUTH=" SECRET " true",
	    "x -- redis-cli -a " SECRET " ping", "x -- redis-cli --pass " SECRET " ping",
	    "x -- client --api-token=" SECRET } },
	{ "'run %s'",
	  "is one word; leave out the quotes around it",
	  { "x -- REDISCLI_AUTH=" SECRET " true", "x -- redis-cli -a " SECRET " ping" } },
	/* a password in a wrong URL, or in a wrong line */
	{ "run -v -u '%s' a -- true",
	  NULL,
	  { "redis://ci:" SECRET "@h/x", "redis://ci:" SECRET "@:x", "http://ci:" SECRET "@h",
	    "redis:/ci:" SECRET "@h", "ci:" SECRET "@h", "redis://ci:" SECRET,
	    "redis://ci:" SECRET "/@h", "redis://ci:" SECRET "%@h", "redis://h?password=" SECRET,
	    "redis://h?db=1&user=ci&token=" SECRET, "redis:h?auth=" SECRET, SECRET "@h",
	    "redis//" SECRET "@h", "redis://h " SECRET "@h", "tls://ci:" SECRET "@h",
	    "tls://" SECRET "@h", "redis:ci:" SECRET "@h", "unix://u:" SECRET "@/run/s" } },
	{ "run -u '%s' a true",
	  NULL,
	  { "redis://ci:" SECRET "@h", SECRET "@h", "redis://h?auth=" SECRET } },
	{ "-u '%s' run a -- true",
	  NULL,
	  { "redis://ci:" SECRET "@h", SECRET "@h", "redis://h?auth=" SECRET } },
};

static void check_line(const char *line, const char *text)
{
	struct call_result result;

	program_call(line, &result);
	if (CHECK(program_refused(&result, 64, text) && strstr(result.err, SECRET) == NULL,
		  "'%s' is refused", unit_shown(line)))
		return;
	(void)printf("# want %s\n", text != NULL ? unit_shown(text) : "no password");
	(void)printf("# got  %d: %s\n", result.status, unit_shown(result.err));
}

/* Replace "%s" in the template by the value. */
static void fill(char out[512], const char *template, const char *value)
{
	const char *at = strstr(template, "%s");
	int len = at != NULL ? (int)(at - template) : (int)strlen(template);

	(void)snprintf(out, 512, "%.*s%s%s", len, template, at != NULL ? value : "",
		       at != NULL ? at + 2 : "");
}

static void check_values(void)
{
	for (size_t i = 0; i < COUNT_OF(values); i++) {
		for (size_t k = 0; values[i].values[k] != NULL; k++) {
			char line[512], message[512];

			fill(line, values[i].line, values[i].values[k]);
			fill(message, values[i].message != NULL ? values[i].message : "",
			     values[i].values[k]);
			check_line(line, message);
		}
	}
}

/* Messages and statuses of rlock flock: those of flock, or of rlock where a lock on a server differs. */
static const struct {
	const char *line;
	int status;
	const char *message;
} flock[] = {
#define FLOCK_HELP "\nTry 'rlock flock --help' for more information.\n"
	{ "", 64, "flock: not enough arguments" FLOCK_HELP },
	{ "--foo a true", 64, "flock: unrecognized option '--foo'" FLOCK_HELP },
	{ "-w", 64, "flock: option '-w' requires an argument" FLOCK_HELP },
	{ "-F -o a true", 64, "flock: the --no-fork and --close options are incompatible\n" },
	{ "-E 300 a true", 64,
	  "flock: invalid exit code (allowed values: 0-255): '300': Numerical result out of range\n" },
	{ "-w 5s a true", 64,
	  "flock: invalid timeout: '5s'\nrlock: flock takes seconds without a unit; try: rlock flock -w 5 a true\n" },
	{ "--timeout=2min a true", 64,
	  "flock: invalid timeout: '2min'\nrlock: flock takes seconds without a unit; try: rlock flock --timeout=120 a true\n" },
	{ "-w x a true", 64, "flock: invalid timeout: 'x'\n" },
	{ "x", 64,
	  "flock: invalid file descriptor: 'x'\nrlock: a command is missing; try: rlock flock x COMMAND\n" },
	{ "-n /bin/cp", 64,
	  "flock: invalid file descriptor: '/bin/cp'\nrlock: the file or name to lock is missing; try: rlock flock -n NAME /bin/cp\n" },
	{ "--max-run 9m -n /a true", 64,
	  "flock: unrecognized option '--max-run'\nrlock: flock has no such option, but read and write have it; try: rlock write -E 1 --wait-all --max-run 9m -n /a -- true\n" },
	{ "-s -o -E 3 -t 9s -w 2 /a -c 'a b'", 64,
	  "flock: unrecognized option '-t'\nrlock: flock has no such option, but read and write have it; try: rlock read -E 3 -t 9s -w 2 /a -- sh -c 'a b'\n" },
	{ "a -c b c", 64, "flock: -c requires exactly one command argument\n" },
	{ "-n", 64, "flock: missing file descriptor, file or directory\n" },
	{ "--fd -1 true", 64, "flock: missing file descriptor, file or directory\n" },
	{ "-w -1 a true", 71, "flock: cannot set up timer: Invalid argument\n" },
	{ "-w 1e400 a true", 71, "flock: cannot set up timer: Invalid argument\n" },
	{ "'' true", 66, "flock: cannot open lock file : No such file or directory\n" },
	{ "77", 65, "flock: 77: Bad file descriptor\n" },
	{ "--url=redis://ci:" SECRET "@h /a true", 64,
	  "flock: unrecognized option '--url=redis://ci:******@h'\nrlock: flock has no such option" },
	{ "-nuredis://ci:" SECRET "@h /a true", 64,
	  "flock: unrecognized option '-nuredis://ci:******@h'\n" },
	{ "-n --password=" SECRET " /a true", 64,
	  "flock: unrecognized option '--password=******'" FLOCK_HELP },
	{ "-u redis://ci:" SECRET "@h", 64,
	  "flock: invalid file descriptor: 'redis://ci:******@h'\n" },
	{ "-u " SECRET "@h", 64, "flock: invalid file descriptor: '******@h'\n" },
	{ "-w redis://ci:" SECRET "@h /a true", 64,
	  "flock: invalid timeout: 'redis://ci:******@h'\n" },
	{ "-E redis://ci:" SECRET "@h /a true", 64,
	  "flock: invalid exit code (allowed values: 0-255): 'redis://ci:******@h'\n" },
	{ "--fcntl a true", 64, "rlock: " },
	{ "--start=1 a true", 64, "rlock: " },
	{ "-u a true", 64, "rlock: " },
	{ "'a\nb' true", 64, "newline" },
};

static void check_flock(void)
{
	for (size_t i = 0; i < COUNT_OF(flock); i++) {
		struct call_result result;
		char line[128];

		(void)snprintf(line, sizeof(line), "flock %s", flock[i].line);
		program_call(line, &result);
		CHECK(result.status == flock[i].status && result.out[0] == '\0' &&
			      program_message_has(result.err, flock[i].message) &&
			      strstr(result.err, SECRET) == NULL,
		      "'%s' is refused: %d %s", unit_shown(line), result.status,
		      unit_shown(result.err));
	}
}

/* One byte, name or server more than allowed must be refused. */
static void check_limits(void)
{
	char line[4096];
	size_t len;

	(void)snprintf(line, sizeof(line), "run %0513d -- touch ran", 0);
	check_line(line, "512");
	(void)snprintf(line, sizeof(line), "list %0513d", 0);
	check_line(line, "pattern");
	(void)snprintf(line, sizeof(line), "flock /%0600d true", 0);
	check_line(line, "512 bytes");
	(void)snprintf(line, sizeof(line), "lock --owner %0129d --lease 5s a", 0);
	check_line(line, "--owner");
	(void)snprintf(line, sizeof(line), "run --note %0256d a -- touch ran", 0);
	check_line(line, "--note");
	len = (size_t)snprintf(line, sizeof(line), "run --name a");
	for (int i = 1; i <= 64; i++)
		len += (size_t)snprintf(line + len, sizeof(line) - len, " n%d", i);
	(void)snprintf(line + len, sizeof(line) - len, " -- touch ran");
	check_line(line, "64");
	len = (size_t)snprintf(line, sizeof(line), "run -u '");
	for (int i = 1; i <= 33; i++)
		len += (size_t)snprintf(line + len, sizeof(line) - len, " unix:///s?db=%d", i);
	(void)snprintf(line + len, sizeof(line) - len, "' a -- touch ran");
	check_line(line, "32");
}

/* Suggestions: at most one mistake per three letters, and at most two. */
static void check_nearest(void)
{
	static const char *const words[] = { "run", "wait", "ttl", "no-wait", "verbose", "fair" };
	static const char *const rows[][2] = {
		{ "wiat", "wait" },
		{ "wai", "wait" },
		{ "wayt", "wait" },
		{ "wwait", "wait" },
		{ "rnu", "run" },
		{ "tll", "ttl" },
		{ "Wiat", "wait" },
		{ "verbsoe", "verbose" },
		{ "wair", "wait" },
		{ "ttl-time", "none" },
		{ "rxx", "none" },
		{ "", "none" },
		{ "a-word-that-is-longer-than-all-words-are", "none" },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct nearest nearest = { .typed = rows[i][0] };

		for (size_t k = 0; k < COUNT_OF(words); k++)
			nearest_try(&nearest, words[k]);
		CHECK_STRING(nearest.word != NULL ? nearest.word : "none", rows[i][1],
			     "the suggestion for '%s'", rows[i][0]);
	}
}

/* If a value in the environment is wrong, the message must name the variable. */
static void check_environment(void)
{
	static const char *const urls[] = {
		"",
		"redis://a http://x",
		"redis://ci:" SECRET "@:x",
		"redis://h?auth=" SECRET,
		SECRET "@h",
	};

	for (size_t i = 0; i < COUNT_OF(urls); i++) {
		program_set_url(urls[i]);
		check_line("run -v a -- touch ran", "RLOCK_URL");
	}
	program_set_url("");
	check_line("run a -- touch ran", "RLOCK_URL '': not a URL, ... was a variable empty?\n");
	program_set_url("redis://b redis://x:" SECRET "@a redis://a");
	check_line("run a -- touch ran", "twice");
	program_set_url("redis://a local: redis://b");
	check_line("run a -- touch ran", "local:");
	program_set_url(NULL);
}

void test_usage(void)
{
	program_setup();
	(void)dup2(STDOUT_FILENO, OPEN_DESCRIPTOR);
	for (size_t i = 0; i < COUNT_OF(lines); i++)
		check_line(lines[i].line, lines[i].message);
	(void)close(OPEN_DESCRIPTOR);
	check_values();
	check_flock();
	check_limits();
	check_environment();
	check_nearest();
	program_teardown();
}
