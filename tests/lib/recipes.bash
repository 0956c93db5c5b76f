# Jobs that the recipes of packaging/recipes run, and what becomes of their locks. Sourced after helpers.bash and
# leftovers.bash.

# recipes_setup: as directory_setup; each job of the recipes is in PATH, and the server is in the configuration file. Sets
# RECIPES, where they are.
recipes_setup() {
	local name
	directory_setup
	RECIPES=$(realpath "$TOP/packaging/recipes")
	mkdir jobs
	# Each writes down that it runs, stays until told to go where "stay" is, and ends as "status" says.
	cat >job <<-END
		#!/bin/sh
		cd '$BATS_TEST_TMPDIR'
		echo "\${0##*/} \$*" >>did
		case \${0##*/} in prepare | build) exit 0 ;; esac
		[ ! -e stay ] || '$(type -P comes_true)' test -e go
		echo "ended \${0##*/}" >>did
		[ ! -e status ] || exit "\$(cat status)"
	END
	chmod +x job
	for name in jobs/{nightly-report,deploy,build,migrate,prepare,check,upgrade} deploy build; do
		ln job "$name"
	done
	ln -s "$RLOCK_BIN" jobs/rlock
	export PATH=$PWD/jobs:$PATH PREPEND_PATH=$PWD/jobs
	# In the place of /etc/rlock.conf, for cron and systemd.
	mkdir .config
	echo "url = $RLOCK_URL" >.config/rlock.conf
	export HOME=$PWD
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
	touch stay
	begin "${@:4}"
	wait_until 120 has_done "$2"
	run -75 rlock run -n "$1" -- true
	touch go
	ended_with 0
	is_free "$1"
	rm did stay go
	echo 3 >status
	run -"$3" "${@:4}"
	has_done "$2"
	is_free "$1"
	rm status
}
