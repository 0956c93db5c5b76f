#!/usr/bin/env bats
# What `make bench` measures with, and how it shows what it measured. What the numbers are is its own business.

load ../lib/usual
load ../lib/proxying

bench=$BATS_TEST_DIRNAME/../bench

teardown() { common_teardown; }

# pinged_ms PORT: how long a connection takes until its first reply came, and from there to its second one.
pinged_ms() {
	python3 -IS - "$1" <<-'END'
		import socket, sys, time
		begin = time.monotonic()
		server = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
		for _ in range(2):
		    server.sendall(b"PING\r\n")
		    assert server.recv(100) == b"+PONG\r\n"
		    print(int(1000 * (time.monotonic() - begin)), end=" ")
		    begin = time.monotonic()
		print()
	END
}

# is_as_far PORT FIRST_MS SECOND_MS: replies take no less than that, and, as soon as the machine is not too busy, less than half
# a second more.
is_as_far() {
	local first second deadline=$((SECONDS + 60))
	while read -r first second < <(pinged_ms "$1"); do
		((first >= $2 && second >= $3)) || break
		((first >= $2 + 500 || second >= $3 + 500)) || return 0
		((SECONDS < deadline)) || break
	done
	echo "took $first and $second ms" >&2
	return 1
}

@test "a server that is far away is so for the handshake of a connection and for each request" {
	local port
	start_proxy_between tcp:127.0.0.1:0 "unix:$SERVER_SOCKET"
	port=${LISTENED##*:}
	proxy far 500
	is_as_far "$port" 1000 500
	proxy delay 500
	is_as_far "$port" 500 500
}

# ---- the report ----

# samples FILE [LABEL MS]...: three of each, around that many ms.
samples() {
	local file=$1
	shift
	while (($#)); do
		printf "$1 %d 2 30\n" $(($2 * 900000)) $(($2 * 1000000)) $(($2 * 1200000))
		shift 2
	done >>"raw/$file"
}

# measured [TOOL...]: raw/ is what a benchmark of rlock and flock has left, and of these tools, each slower than the last.
measured() {
	local size ms=100 tool kind action holders
	mkdir raw
	printf '%s\n' 'version rlock 1.2.3 (hiredis 0.14.1)' 'server Redis 7.0.15' 'flock flock from util-linux 2.38.1' \
		'processors 4' 'machine a<b' 'date 2026-11-23' 'load_before 0.10' 'load_after 0.20' 'rounds 3' 'round_trips 2' \
		'connections 1' 'requests 5' 'readers 50' 'readers_requests 52' 'readers_all_in_us 200' \
		'readers_bare_us 100' 'idle_s 10' 'pss_rlock 400' 'pss_rlock_front 200' 'pss_rlock_renewer 200' 'pss_rlock_waiter 380' \
		'pss_flock 150' 'waiter_requests 0' >raw/facts
	printf '%s 0\n' switches_flock switches_rlock-{30s,3s}{,-renewer} >>raw/facts
	samples uncontended bare 1 flock 2 rlock 3 rlock-tcp 4 rlock-tls 9
	samples handover flock 2 rlock 3 rlock-fair 3
	for size in 1 10 100; do
		samples "crowd.$size" flock 2 rlock 3 rlock-fair 3
		printf '%s-waiting 100 200 -\n' rlock rlock-fair >>"raw/crowd.$size"
		samples "permits.$size" rlock-sem 2
	done
	for size in 1 5 20; do
		samples "far-uncontended.$size" rlock $((size * 3))
		samples "far-handover.$size" rlock $((size * 2))
	done
	for tool; do
		samples uncontended "$tool" "$ms"
		samples handover "$tool" "$ms"
		samples others.1 "$tool" "$ms"
		samples others.10 "$tool" "$ms"
		ms=$((ms + 200))
	done
	for kind in plain read write sem; do
		for action in acquire release; do
			echo "$kind $action rlock 40000"
			echo "$kind $action redisson 20000"
		done
	done >raw/server_time
	for holders in 10 1000; do
		echo "read acquire rlock-$holders $((1000 * holders))"
		echo "read release rlock-$holders 50000"
	done >>raw/server_time
	for holders in 10 1000 10000; do
		echo "sem acquire rlock-$holders $((10000 + holders))"
	done >>raw/server_time
}

# report: prints what the benchmark does, and makes handover.svg.
report() {
	"$bench/picture.py" raw handover.svg && "$bench/report.py" raw
}

# in_picture EXPRESSION: prints what it is, of the SVG `svg`; words(CLASS) are its texts, all(TAG, CLASS) its elements.
in_picture() {
	python3 -IS - "$1" <<-'END'
		import sys, xml.etree.ElementTree
		svg = xml.etree.ElementTree.parse("handover.svg").getroot()
		def all(tag, name):
		    found = svg.iter("{http://www.w3.org/2000/svg}" + tag)
		    return [each for each in found if name in each.get("class", "").split()]
		def words(name):
		    return [each.text for each in all("text", name)]
		print(eval(sys.argv[1]))
	END
}

@test "the picture of hand-overs has a line for each tool, with its name, and says where it was made" {
	measured etcdctl redis-cli
	report
	run -0 in_picture 'len(all("polyline", "line")), sorted(words("label"))'
	assert_output "(5, ['etcdctl lock', 'flock', 'redis-cli', 'rlock', 'rlock fair'])"
	run -0 in_picture 'words("small")'
	assert_output --partial "4 processors (a<b), load 0.10 before, 2026-11-23. rlock 1.2.3, Redis 7.0.15, flock from util-linux 2.38.1."
	assert_output --partial log
	# What takes longer is higher.
	run -0 in_picture '[name for name in sorted(("plain", "rlock", "etcd", "idiom"), key=lambda name: float(all("circle", name)[0].get("cy")))]'
	assert_output "['idiom', 'etcd', 'rlock', 'plain']"
	# Names of lines that end at the same point stand one below the other.
	run -0 in_picture 'abs(float(all("text", "fair")[0].get("y")) - float(all("text", "rlock")[0].get("y"))) >= 15'
	assert_output True
}

@test "the report says what was measured, and whether each goal is met" {
	measured redis-cli
	run -0 report
	refute_output --partial etcdctl
	assert_line --regexp '^  rlock, TCP +3000 +15000 +60000 +3\.0$'
	assert_line --regexp '^  read, acquire: 1000 holders +10\.0 +1000\.0 +100\.00   <= 1\.20 x that with 10: missed$'
	assert_line --regexp '^  read, release: 1000 holders +50\.0 +50\.0 +1\.00   <= 1\.20 x that with 10: met$'
	assert_line --regexp '^  100 waiting +([0-9.]+ +){4}<= 3 requests: '
	assert_line --regexp '^  rlock -t 30s, and its renewer +400 +2\.67 +0 \+ 0 +<= 400 kB: met$'
}
