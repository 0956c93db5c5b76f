#!/usr/bin/env bats
# A wrong value of an option is told in one line that shows it, with status 64, and no server is asked anything:
# durations, URLs, and what else options take.

load ../lib/helpers
load ../lib/refusing

setup_file() { start_counted_server; }
teardown_file() { stop_counted_server; }
setup() { counted_setup; }
teardown() { common_teardown; }

# ---- durations ----

@test "a text that is no duration is refused, repeated, and an example is shown" {
	local value
	for value in '' x 1x 1.2.3 -1 -1s +1 0x10 1e3 ' 1' '1 s' 30m1h 1h1h 1h30 1h-5m inf nan . s 1,5s; do
		refused "'$value'" run "--wait=$value" a -- touch ran
		assert_output --regexp '--wait .*30s'
	done
}

@test "every option that takes a duration refuses what is none" {
	local option
	for option in --ttl --lease --at-least --max-run --grace --connect-timeout; do
		refused "'-1'" run "$option=-1" a -- touch ran
		assert_output --regexp "$option .*30s"
		refused "''" run "$option=" a -- touch ran
	done
	refused "'x'" renew --owner x --lease x a
}

@test "a duration beyond all bounds is refused" {
	refused 99999999999999999999 run -w 99999999999999999999 a -- touch ran
	refused 9223372036854775807ms run -t 9223372036854775807ms a -- touch ran
	refused 4000000d run --at-least 4000000d a -- touch ran
}

@test "a lease of less than a second is refused" {
	refused 999ms run -t 999ms a -- touch ran
	assert_output --partial 1s
	refused 0.5 run -l 0.5 a -- touch ran
	refused "'0'" lock --owner x --lease 0 a
	refused 999ms renew --owner x --lease 999ms a
}

@test "a short option's wrong value is refused as the long one's" {
	refused "'x'" run -wx a -- touch ran
	refused "'x'" run -nt x a -- touch ran
}

# ---- other values ----

@test "an exit status that is no number from 0 to 255 is refused" {
	local value
	for value in 256 -1 x '' 0x10 5KB 1.5 ' 1' 99999999999999999999; do
		refused "'$value'" run "--conflict-exit-code=$value" a -- touch ran
	done
	refused "'256'" run -E 256 a -- touch ran
}

@test "an unknown answer to a lost lock is refused" {
	refused "'stop'" run --on-lost stop a -- touch ran
	refused term run --on-lost '' a -- touch ran
}

@test "an owner that is no plain word is refused" {
	local value
	for value in '' 'a b' a:0 ä 'a/b' $'a\nb' "$(printf '%129s' '' | tr ' ' x)"; do
		refused --owner lock --owner "$value" --lease 5s a
	done
}

@test "a process id that cannot be one is refused" {
	local value
	for value in '' 0 -1 x 1.5 99999999999999999999; do
		refused "'$value'" lock "--pid=$value" a
	done
}

@test "a note that is not one line is refused" {
	refused --note run --note $'two\nlines' a -- touch ran
	refused --note run --note "$(printf '%256s' '' | tr ' ' x)" a -- touch ran
	refused --note run --note '' a -- touch ran
}

@test "a database that is no number is refused" {
	local value
	for value in '' x -1 1.5 0x1 99999999999999999999; do
		refused "'$value'" run "--db=$value" a -- touch ran
	done
}

@test "a holder that cannot be one is refused" {
	refused --holder unlock --force --holder '' a
}

@test "a place for the log that is none, and an unknown format, are refused" {
	refused --log run --log '' a -- touch ran
	refused --log run --log - a -- touch ran
	refused --log-format run --log stderr --log-format yaml a -- touch ran
}

@test "a format of a log that there is not is refused" {
	refused --log-format run --log-format json a -- touch ran
}

@test "an empty name of a file is refused" {
	refused --password-file run --password-file '' a -- touch ran
	refused --config run --config '' a -- touch ran
}

# ---- URLs ----

# bad_url TEXT URL...
bad_url() {
	local text=$1 url
	shift
	for url; do
		refused "$text" run -u "$url" a -- touch ran
		assert_output --partial -- --url
	done
}

@test "an empty URL is refused" {
	refused --url run -u '' a -- touch ran
	refused --url run --url= a -- touch ran
	RLOCK_URL='' refused RLOCK_URL run a -- touch ran
}

@test "a URL with an unknown scheme, or without one, is refused" {
	bad_url scheme http://localhost localhost:6379 localhost "//$LISTENER" "tcp://$LISTENER"
	bad_url redis redis redis:localhost redis:/localhost
}

@test "a URL without a host is refused" {
	bad_url host redis:// redis:///0 redis://:6379 redis://user@
}

@test "a URL with a bad port is refused" {
	bad_url port redis://localhost:x redis://localhost:0 redis://localhost:65536 redis://localhost:-1 \
		redis://localhost: 'redis://[::1]:x' redis://localhost:99999999999999999999
}

@test "a URL with a malformed address is refused" {
	bad_url '' 'redis://[::1' 'redis://[::1]6379' redis://::1 'redis://[localhost]' 'redis://two words'
}

@test "a URL with a bad database is refused" {
	bad_url database redis://localhost/x redis://localhost/-1 redis://localhost/1/2 \
		'unix:///run/redis.sock?db=x' redis://localhost/99999999999999999999
}

@test "a URL with something unknown in it is refused" {
	bad_url '' 'redis://localhost?frobnicate=1' 'redis://localhost/0#x' 'unix:///s?port=1' 'local:x'
}

@test "a URL of a socket without an absolute path is refused" {
	bad_url socket unix:// unix://run/redis.sock unix:///
}

@test "a URL with a malformed percent-encoding is refused" {
	bad_url % 'redis://user:%@localhost' 'redis://user:%zz@localhost' 'redis://user:%4@localhost'
}

@test "a bad URL in the environment is told as the environment's" {
	RLOCK_URL=http://localhost refused RLOCK_URL run a -- touch ran
}

@test "a database that is given twice is refused" {
	refused database run -u redis://localhost/3 --db 3 a -- touch ran
	refused database run --db 3 -u 'unix:///run/redis.sock?db=3' a -- touch ran
	refused database run -u 'unix:///run/redis.sock?db=3&db=3' a -- touch ran
}

@test "a server that is given twice is refused" {
	refused server run -u "redis://$LISTENER" -u "redis://$LISTENER" a -- touch ran
}
