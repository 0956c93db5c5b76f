#!/usr/bin/env bats
# bats file_tags=long
# The table of README.md for users of flock. Both programs run the work of each line under the lock, and exit with the same
# status, when the lock is free and when it is held.

load ../lib/usual

# Write the table of README.md to the file "table", with a tab between the line for flock and that for rlock. Also write "report", the
# work of these lines: it prints "protected" and its arguments if a lock of flock or rlock is held, else "unprotected".
setup() {
	directory_setup
	sed -n '/^| flock | rlock |$/,/^$/s/^| `\(.*\)` | `\(.*\)` |$/\1\t\2/p' "$TOP/README.md" |
		sed "s|/tmp/job|$PWD/job|; s/\\\\|/|/g" >table
	assert [ "$(wc -l <table)" -gt 10 ]
	cat >report <<-END
		#!/bin/sh
		cd '$PWD'
		for file in job by-flock; do
			[ ! -e "\$file" ] || flock -n "\$file" true || exec echo protected "\$@"
		done
		[ "\$(redis-cli -s '$SERVER_SOCKET' exists job)" = 1 ] && exec echo protected "\$@"
		echo unprotected
	END
	chmod +x report
}

# write_scripts FLOCK_LINE RLOCK_LINE: write by-flock and by-rlock, scripts that can call themselves.
write_scripts() {
	printf '#!/bin/sh\nset -u\n%s\n' "$1" >by-flock
	printf '#!/bin/sh\nset -u\n%s\n' "$2" >by-rlock
	chmod +x by-flock by-rlock
}

@test "README: a line for flock and its line for rlock do the same while the lock is free" {
	local by_flock by_rlock expected
	while IFS=$'\t' read -r by_flock by_rlock <&4; do
		write_scripts "$by_flock" "$by_rlock"
		run -0 --separate-stderr ./by-flock 'first argument' second
		assert_line --index 0 --regexp '^protected'
		[[ $by_flock != *'"$@"' ]] || assert_output 'protected first argument second'
		expected=$output
		run -0 --separate-stderr ./by-rlock 'first argument' second
		assert_equal "$by_rlock: $output$stderr" "$by_rlock: $expected"
		# The lock of a script must end with the script.
		wait_until 5 no_keys
		rm -f job
	done 4<table
	wait_until 5 no_hold_files
}

@test "README: a line that limits its wait exits as flock does while the lock is held, or with 75" {
	local by_flock by_rlock expected
	grep -E 'flock.* -[nw] ' table | sed 's/-w 10/-w 0.2/g' >hurried
	assert [ "$(wc -l <hurried)" -ge 4 ]
	rlock lock --owner another --lease 1h job
	while IFS=$'\t' read -r by_flock by_rlock <&4; do
		write_scripts "$by_flock" "$by_rlock"
		# Lock the script as well: one of the lines for flock locks the script itself.
		exec 6>job 7<by-flock
		flock 6
		flock 7
		run --separate-stderr ./by-flock
		assert_output ''
		expected=$status
		[[ $by_rlock = *' -E '* ]] || expected=75
		run "-$expected" --separate-stderr ./by-rlock
		assert_output ''
		exec 6>&- 7<&-
	done 4<hurried
}
