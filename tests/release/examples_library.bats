#!/usr/bin/env bats
# bats file_tags=long
# The programs of librlock(3) and of rlock.h compile and do what the text says, and the page lists the same functions as the
# header. library.bats tests other uses of the library.

load ../lib/usual
load ../lib/certificates
load ../lib/examples
load ../lib/installing

setup_file() { start_server_at_port; }
# compile NAME [FILE.c...]: compile NAME.c and these files to the program NAME.
compile() {
	local build=${RLOCK_BIN%/*}
	# Under valgrind or a sanitizer RLOCK_BIN is one directory further down.
	[ -z "${TESTS_UNDER-}" ] || build=${build%/*}
	[ -e "$build/librlock.so.1" ] || skip 'the build has no shared library'
	"${CC:-cc}" -Wall -Wextra -Werror -I "$TOP/lib" "$1.c" "${@:2}" "$build/librlock.so.1" -Wl,-rpath,"$build" -o "$1"
}

@test "librlock(3): the program compiles, and holds the lock while it works" {
	# Replace sleep(3): instead of sleeping for 3 s, the program records whether the lock exists.
	cat >sleep.c <<-'EOS'
		#include <stdlib.h>
		#include <unistd.h>
		unsigned int sleep(unsigned int seconds)
		{
			return seconds == 3 && system("redis-cli -s \"$SERVER_SOCKET\" exists nightly >>held") == 0 ? 0 : 1;
		}
	EOS
	show_example man/librlock.3 program >program.c
	compile program sleep.c
	run -0 --separate-stderr ./program
	assert_done "$(printf 'step %d\n' {1..10})"
	assert_equal "$(sort held | uniq -c | tr -s ' ')" ' 10 1'
	nothing_is_held
}

@test "librlock(3): the program for TLS compiles, and reports whether its server can be used" {
	local url
	show_example man/librlock.3 tls >tls.c
	compile tls
	create_certificates certificates
	url=$(choose_port && echo "rediss://127.0.0.1:$PORT")
	in_background redis-server --port 0 --tls-port "${url##*:}" --tls-cert-file certificates/server.crt --save '' \
		--tls-key-file certificates/server.key --tls-ca-cert-file certificates/ca.crt --tls-auth-clients no
	cp certificates/ca.crt ca.pem
	wait_until 10 ./tls "$url" >/dev/null 2>&1
	run -0 ./tls "$url"
	assert_output "$url/0 can be used"
	cp certificates/stranger.crt ca.pem
	run -69 ./tls "$url"
	assert_output --regexp "^tls: cannot connect to $url/0: (the authority \(CA\) of its certificate is not trusted|its certificate)"
	run -64 ./tls redis://127.0.0.1
	assert_output 'tls: redis://127.0.0.1:6379/0: no TLS'
}

@test "librlock(3): the program for sentinels compiles, and logs in at them" {
	local sentinel master url
	show_example man/librlock.3 sentinels >sentinels.c
	compile sentinels
	choose_port && master=$PORT
	choose_port && sentinel=$PORT
	url=redis+sentinel://127.0.0.1:$sentinel/mymaster
	in_background redis-server --port "$master" --save ''
	printf '%s\n' "port $sentinel" "dir $PWD" 'requirepass SECRET' "sentinel monitor mymaster 127.0.0.1 $master 1" >sentinel.conf
	in_background redis-server "$PWD/sentinel.conf" --sentinel
	SENTINEL_PASSWORD=SECRET wait_until 10 ./sentinels "$url" >/dev/null 2>&1
	SENTINEL_PASSWORD=SECRET run -0 ./sentinels "$url"
	assert_output "the master of $url/0 can be used"
	run -69 ./sentinels "$url"
	assert_output --regexp "^sentinels: no sentinel names the master of mymaster: denied by redis://127.0.0.1:$sentinel/0; "
	run -64 ./sentinels redis://127.0.0.1
	assert_output 'sentinels: redis://127.0.0.1:6379/0: no sentinels'
}

@test "librlock(3) and rlock.h: the calling sequences compile, acquire the lock and release it" {
	show_example man/librlock.3 sequence | sed "s/:6379/:$PORT/; /The work/c system(getenv(\"WORK\"));" >sequence.c
	compile sequence -include stdlib.h -Wno-unused-result
	WORK="redis-cli -s '$SERVER_SOCKET' exists nightly" run -0 ./sequence
	assert_output 1
	nothing_is_held
	{
		printf '#include <err.h>\n#include <rlock.h>\nint main(void)\n{\n'
		sed -n '/^ \*\tstruct rlock_url/,/rlock_url_free/s/^ \*\t*//p' "$TOP/lib/rlock.h" | grep -v '^\.\.\.'
		printf '}\n'
	} >header.c
	assert [ "$(wc -l <header.c)" -gt 20 ]
	compile header
}

@test "librlock(3) lists exactly the functions and statuses of the header" {
	local page=$TOP/man/librlock.3
	header_functions >there
	assert [ "$(wc -l <there)" -gt 30 ]
	# The sections NAME, SYNOPSIS and DESCRIPTION must each list all functions.
	run -0 diff there <(sed -nE 's/^\.Nm (rlock_[a-z_]+).*/\1/p' "$page" | sort)
	run -0 diff there <(sed -nE '/^\.Sh SYNOPSIS/,/^\.Sh DESC/s/^\.Fn (rlock_[a-z_]+).*/\1/p' "$page" | sort)
	run -0 diff there <(sed -n '/^\.Sh DESC/,/^\.Sh RETURN/p' "$page" | grep '^\.It Fn' | grep -o 'rlock_[a-z_]*' | sort)
	sed -n '/^enum rlock_status {/,/^}/s/^\t\(RLOCK_[A-Z_]*\) = .*/\1/p' "$TOP/lib/rlock.h" >there
	assert [ "$(wc -l <there)" -gt 10 ]
	run -0 diff there <(sed -n '/^\.Sh RETURN/,/^\.Sh EX/s/^\.It Dv //p' "$page")
}
