# Jobs that the recipes of packaging/recipes run, and what becomes of their locks. Sourced after helpers.bash and
# leftovers.bash.

# RECIPES is for the tests.
# shellcheck disable=SC2034

# recipes_setup: as directory_setup; each job of the recipes is in PATH, and the server is in the configuration file. Sets
# RECIPES, where they are.
recipes_setup() {
	local name
	directory_setup
	RECIPES=$(realpath "$BATS_TEST_DIRNAME/../../packaging/recipes")
	mkdir jobs
	make_job >job
	chmod +x job
	for name in nightly-report deploy build migrate prepare check upgrade; do
		ln job "jobs/$name"
	done
	ln job deploy
	ln job build
	ln -s "$RLOCK_BIN" jobs/rlock
	export PATH=$PWD/jobs:$PATH PREPEND_PATH=$PWD/jobs
	# In the place of /etc/rlock.conf, for cron and systemd.
	mkdir .config
	echo "url = $RLOCK_URL" >.config/rlock.conf
	export HOME=$PWD
}

# Each job of the recipes: it writes down that it runs, stays until told to go where "stay" is, and ends as "status" says.
make_job() {
	cat <<-END
		#!/bin/sh
		cd '$BATS_TEST_TMPDIR'
		echo "\${0##*/} \$*" >>did
		case \${0##*/} in prepare | build) exit 0 ;; esac
		[ ! -e stay ] || '$BATS_TEST_DIRNAME/../bin/comes_true' test -e go
		echo "ended \${0##*/}" >>did
		[ ! -e status ] || exit "\$(cat status)"
	END
}

# has_done REGEXP: a job that did so runs, or has run.
has_done() {
	grep -q "$1" did 2>/dev/null
}

# processes_with VARIABLE=VALUE: those that have it in their environment, as programs know the processes of a job. The value is
# this test's alone on the machine, where the same test may run elsewhere: its processes are killed.
processes_with() {
	grep -lzsxF "$1" /proc/[0-9]*/environ | cut -d / -f 3
}

# none_with VARIABLE=VALUE
none_with() {
	[ -z "$(processes_with "$1")" ]
}

# begin COMMAND...: as in_background, for a function, too.
begin() {
	"$@" 3>&- &
	PID=$!
	BACKGROUND+=("$PID")
}

# guards LOCK JOB STATUS COMMAND...: COMMAND runs a recipe, and ends with STATUS when its job ends with 3.
guards() {
	local lock=$1 job=$2 expected=$3
	shift 3
	touch stay
	begin "$@"
	wait_until 120 has_done "$job"
	run -75 rlock run -n "$lock" -- true
	touch go
	ended_with 0
	is_free "$lock"
	rm did stay go
	echo 3 >status
	run -"$expected" "$@"
	has_done "$job"
	is_free "$lock"
	rm status
}
