#!/usr/bin/env bats
# TLS: what is verified, one clear line for each error, and locks that work as without TLS.

load ../lib/usual
load ../lib/certificates
load ../lib/hold_processes
load ../lib/proxying

setup_file() {
	export CERTIFICATES=$BATS_FILE_TMPDIR/certificates
	create_certificates "$CERTIFICATES"
}

setup() {
	start_tls_server server
	directory_setup
	unset SSL_CERT_FILE SSL_CERT_DIR
	CA=$CERTIFICATES/ca.crt
}

teardown() {
	local status=0
	teardown_and_check_processes || status=$?
	stop_server
	return "$status"
}

# replace_server NAME [OPTION...]: restarts the file's server with the certificate NAME.
replace_server() {
	stop_server
	start_tls_server "$@"
}

# trusted [OPTION...]: `rlock run` that trusts the authority which has signed the server's certificate.
trusted() {
	rlock run --cacert "$CA" "$@"
}

# refused STATUS PATTERN [OPTION...]: rlock run must exit with STATUS and one line that matches, without running its command.
refused() {
	run -"$1" rlock run "${@:3}" a -- touch begun
	assert_one_line "^rlock: a: cannot (connect to|reach) rediss://localhost:$PORT/0: $2"
	assert [ ! -e begun ]
}

# ---- what is trusted ----

@test "locks over TLS are held while the command runs, and released; check says when the certificate expires" {
	export RLOCK_URL="$RLOCK_URL?cacert=$CA"
	run -0 rlock run a -- ask_redis "$SERVER_SOCKET" exists a
	assert_output 1
	run -0 bash -c 'rlock lock --owner ci -l 1m a && rlock renew --owner ci -l 1m a && rlock unlock --owner ci a'
	no_keys
	run -0 rlock check
	assert_line --regexp "^(ok|note) +tls +TLSv1\\.[23], the server's certificate ends in [0-9]+[dh]"
}

@test "with -n the renewer goes on with the TLS connection by which rlock asked, and renews and releases the lock over it" {
	start_tls_proxy "$PORT"
	export RLOCK_URL="$RLOCK_URL?cacert=$CA"
	# Try again if a renewer stood still for a second: rlock has replaced it, and opened another connection.
	for _ in 1 2 3; do
		rm -f command-pid end-commands
		proxy reset-count
		hold_with_pids a -n -t 9s
		await_renewal a 9000
		end_commands
		ended_with 0
		stderr_is_empty
		no_keys
		run -0 proxy count
		[[ $output != 'connections=1 '* ]] || break
	done
	assert_output --regexp '^connections=1 '
}

@test "an address with a zone is verified without the zone, and an unknown zone is reported without a DNS query" {
	grep -qs '^0*1 ' /proc/net/if_inet6 || skip 'this machine has no IPv6'
	# Zone 1 is the first interface, lo.
	run -0 trusted -u "rediss://[::1%251]:$PORT" a -- ask_redis "$SERVER_SOCKET" exists a
	assert_output 1
	run -69 takes_less_than 4 rlock run -n -u 'redis://[fe80::1%25nosuch0]' a -- true
	assert_one_line '^rlock: a: cannot reach redis://\[fe80::1%25nosuch0\]:6379/0: this machine has no such network interface$'
}

@test "a stack of 64 KB is enough for TLS" {
	[ -z "${TESTS_UNDER-}" ] || skip 'sanitize needs a larger stack'
	run -0 bash -c 'ulimit -s 64; exec rlock run --cacert "$1" a -- true' - "$CA"
	run -78 bash -c 'ulimit -s 64; exec rlock run a -- true'
}

@test "an option, the URL, a directory, SSL_CERT_FILE and SSL_CERT_DIR can name the authority" {
	mkdir authorities
	cp "$CA" "authorities/$(openssl x509 -hash -noout -in "$CA").0"
	cp "$CA" 'my ca.pem'
	# The certificate is also valid for the server's address. valkeys:// means the same as rediss://.
	run -0 rlock run -u "valkeys://127.0.0.1:$PORT" --cacert "$CA" a -- true
	run -0 rlock run -u "rediss://localhost:$PORT?cacert=my%20ca.pem" a -- true
	run -0 rlock run --cacertdir authorities a -- true
	run -0 rlock run -u "rediss://localhost:$PORT?cacertdir=authorities" a -- true
	run -0 env SSL_CERT_FILE="$CA" rlock run a -- true
	run -0 env SSL_CERT_DIR="$PWD/authorities" rlock run a -- true
	# A parameter in the URL must precede the option.
	run -0 rlock run -u "$RLOCK_URL?cacert=$CA" --cacert missing a -- true
	run -0 rlock run -u "$RLOCK_URL?cacert=$CA" --cacertdir missing a -- true
}

@test "the authority in the configuration file applies to the file's server only, which a message says" {
	printf '%s\n' "url = $RLOCK_URL" "cacert = $CA" >rlock.conf
	chmod 600 rlock.conf
	run -0 env -u RLOCK_URL rlock run --config rlock.conf a -- true
	refused 78 "the authority \(CA\) of its certificate is not trusted; .*; the cacert in [^ ]*rlock.conf is for the url there, not for the one from --url$" \
		--config rlock.conf -u "$RLOCK_URL"
	printf '%s\n' "url = unix://$SERVER_SOCKET" "cacert = $CA" >rlock.conf
	run -78 env -u RLOCK_URL rlock run --config rlock.conf a -- true
	assert_one_line '^rlock: .*rlock\.conf:[0-9]+: cacert is for TLS, and unix://.* has none; add url = rediss://HOST:6379$'
}

@test "a certificate of another authority, for another host, expired or self-signed is refused, unless --cacert names it" {
	local certificate why options
	while IFS='~' read -r certificate why options; do
		[ "$certificate" = server ] || replace_server "$certificate"
		# shellcheck disable=SC2086
		refused 78 "$why" $options
	done <<-END
		server~the authority \(CA\) of its certificate is not trusted~
		server~(the authority \(CA\) of its certificate is not trusted|its certificate is not valid)~--cacert $CERTIFICATES/stranger.crt
		expired~its certificate, or that of its authority, has expired~--cacert $CA
		stranger~its certificate is self-signed~
		other~its certificate is not for localhost; if it is for another name, give that by --sni~--cacert $CA
		other~sni '\.example': not the name of a host~--cacert $CA --sni .example
	END
	run -0 rlock run -u "$RLOCK_URL?cacert=$CA&sni=redis.example" a -- true
	# A trailing dot of a name must be ignored in the comparison with the certificate.
	run -0 trusted --sni redis.example. a -- true
	replace_server stranger
	run -0 rlock run --cacert "$CERTIFICATES/stranger.crt" a -- true
	run -0 rlock run --insecure a -- true
	assert_output ''
	replace_server server
	run -78 rlock run -u "rediss://127.0.0.2:$PORT" --cacert "$CA" a -- touch begun
	assert_one_line 'its certificate has no IP entry for 127\.0\.0\.2; '
	assert [ ! -e begun ]
}

@test "no password is sent to a refused server; a wrong or missing password is reported as such" {
	export REDISCLI_AUTH=swordfish
	redis config set requirepass swordfish >/dev/null
	redis acl log reset >/dev/null
	run -78 env REDISCLI_AUTH=wrong rlock run a -- true
	run -0 redis acl log
	assert_output ''
	run -0 trusted a -- true
	# If a client that has not logged in sends a long request, Redis sends an error and closes the connection. rlock must
	# still report the error.
	for _ in {1..5}; do
		run -77 env -u REDISCLI_AUTH rlock run --cacert "$CA" a -- touch begun
		run -77 env REDISCLI_AUTH=wrong rlock run --cacert "$CA" a -- touch begun
	done
	assert [ ! -e begun ]
	redis config set requirepass '' >/dev/null
}

# ---- versions, ports ----

@test "TLS 1.2 and 1.3 are used, which -v reports, and no older version" {
	local version
	for version in 1.2 1.3; do
		replace_server server --tls-protocols "TLSv$version"
		run -0 --separate-stderr trusted -v a -- true
		[[ $stderr == *"connected, TLSv$version"* ]]
	done
	replace_server server --tls-protocols TLSv1.1 --tls-ciphers ALL:@SECLEVEL=0
	refused 78 'it has no version of TLS from 1\.2 on' --cacert "$CA"
}

# listen_in_clear WHAT: listens on a port without TLS. When a client has sent something, sends WHAT to it; if WHAT is empty,
# closes the connection. Sets PORT and RLOCK_URL.
listen_in_clear() {
	choose_port
	in_background python3 -IS -c '
import socket, sys, threading
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
if sys.argv[2] == "silence":
    threading.Event().wait(60)
while True:
    stream = listener.accept()[0]
    stream.recv(10000)
    stream.sendall(sys.argv[2].encode())
    if sys.argv[2]:
        stream.recv(1000)
    stream.close()
' "$PORT" "$1"
	wait_until 5 is_listened_on "$PORT"
	export RLOCK_URL=rediss://localhost:$PORT
}

@test "a port without TLS, a silent or closing port, and a TLS port under a redis:// URL are reported" {
	run -69 rlock run -u "redis://localhost:$PORT" a -- touch begun
	assert_one_line "^rlock: a: cannot reach redis://localhost:$PORT/0: .*; if this is a TLS port, its URL begins with rediss://$"
	listen_in_clear silence
	refused 69 'no answer to the TLS handshake in time; is this a TLS port\?' --connect-timeout 3s
	listen_in_clear ''
	refused 69 'the server closed the connection during the TLS handshake; is this a TLS port\?'
	listen_in_clear $'-ERR no such command as this one, at all\r\n'
	refused 69 'it does not speak TLS; is this a TLS port\?'
}

# ---- the client certificate ----

@test "options or the URL give the client certificate; a missing or unknown one is reported" {
	local client=$CERTIFICATES/client
	redis config set tls-auth-clients yes >/dev/null
	run -0 trusted --cert "$client.crt" --key "$client.key" a -- true
	cat "$client".{crt,key} >both.pem
	chmod 600 both.pem
	run -0 rlock run -u "$RLOCK_URL?cacert=$CA&cert=both.pem" --key missing a -- true
	refused 78 'it refuses the client certificate: ' --cacert "$CA" --cert "$CERTIFICATES/stranger.crt" \
		--key "$CERTIFICATES/stranger.key"
	refused 78 'it requires a client certificate; give one by --cert and --key' --cacert "$CA"
	redis config set tls-protocols TLSv1.2 >/dev/null
	refused 78 'it refuses the handshake: it may require a client certificate' --cacert "$CA"
}

@test "unusable files are reported in one line each, and rlock asks for no passphrase" {
	local client=$CERTIFICATES/client options text
	echo nonsense >nonsense
	cp "$client.crt" cert
	cp "$client.key" key
	cp key open.key
	openssl pkey -aes256 -passout pass:x -in key -out locked.key
	cat cert locked.key >locked.both
	chmod 600 nonsense locked.* key
	chmod 644 open.key
	mkdir empty
	cp "$CA" ca
	cp "$CERTIFICATES/other.key" .
	while IFS='|' read -r options text; do
		# shellcheck disable=SC2086
		refused 78 "$text" $options
	done <<-'END'
		--cacert missing|cacert 'missing': No such file or directory
		--cacert nonsense|cacert 'nonsense':
		--cacertdir missing|cacertdir 'missing': No such file or directory
		--cacertdir empty|cacertdir 'empty': no file in it has the name of its hash
		--cacert ca --cert missing --key key|cert 'missing': No such file or directory
		--cacert ca --cert nonsense --key key|cert 'nonsense':
		--cacert ca --cert cert|cert 'cert': there is no key in it; give its key by --key
		--cacert ca --key key|key 'key': there is no certificate for it; give that by --cert
		--cacert ca --cert cert --key missing|key 'missing': No such file or directory
		--cacert ca --cert cert --key nonsense|key 'nonsense': it has no private key$
		--cacert ca --cert cert --key other.key|key 'other\.key': it is not the key of the certificate
		--cacert ca --cert cert --key open.key|key 'open\.key': any user can read or write this key, its mode is 0644; give it mode 600
	END
	run -78 timeout 60 setsid rlock run --cacert ca --cert cert --key locked.key a -- true
	assert_one_line "key 'locked\.key': the key in it is encrypted; give it without a passphrase, as openssl pkey prints it$"
	run -78 timeout 60 setsid rlock run --cacert ca --cert locked.both a -- true
	assert_one_line "cert 'locked\.both': the key in it is encrypted; give it without a passphrase, as openssl pkey prints it$"
	# rlock must read the files before any connection, so the error must be the same if the server's name does not exist.
	run -78 rlock run -u rediss://does-not-exist.invalid --cacert nowhere -w 30s a -- true
	assert_output --partial "cacert 'nowhere': No such file or directory"
}

# ---- while a lock is held, and waited for ----

# connect_anew: cuts the renewer's connection, so that the next renewal needs a new one.
connect_anew() {
	redis client kill type normal >/dev/null 2>&1 || :
}

@test "a renewer whose connection was cut opens another one, also in another directory with relative file names" {
	cp "$CA" ca.pem
	cp "$CERTIFICATES/client".* .
	redis config set tls-auth-clients yes >/dev/null
	in_background rlock run --cacert ca.pem --cert client.crt --key client.key -t 9s a -- run_until_ended
	wait_until 5 is_held a
	connect_anew
	await_renewal a 9000
	end_commands
	ended_with 0
}

@test "rlock takes over from a killed renewer although the certificate files cannot be read any more" {
	cp "$CA" ca.pem
	hold_with_pids a --cacert ca.pem -t 9s
	rm ca.pem
	kill -KILL "$RENEWER"
	wait_until 5 is_gone "$RENEWER"
	await_renewal a 9000
	hold_is_alive a "$PID" "$COMMAND"
	end_commands
	ended_with 0
	stderr_is_empty
}

loads_key_and_certificate_together() {
	! is_redis_6 || skip 'the server sets one parameter at a time, so its key and its certificate never match'
}

@test "certificates, keys and authorities replaced while a lock is held are used for its next connection" {
	loads_key_and_certificate_together
	cp "$CA" ca.pem
	cp "$CERTIFICATES/client".* .
	redis config set tls-auth-clients yes >/dev/null
	in_background rlock run --cacert ca.pem --cert client.crt --key client.key -t 18s a -- run_until_ended
	wait_until 5 is_held a
	create_certificates new
	cp new/ca.crt ca.pem
	cp new/client.{key,crt} .
	chmod 600 client.key
	# Let the server load new files without a restart. It then refuses a client that has the old authority.
	redis config set tls-ca-cert-file "$PWD/new/ca.crt" tls-cert-file "$PWD/new/server.crt" tls-key-file "$PWD/new/server.key" >/dev/null
	run -78 rlock run --cacert "$CA" b -- true
	run -78 rlock run --cacert new/ca.crt --cert "$CERTIFICATES/client.crt" --key "$CERTIFICATES/client.key" b -- true
	connect_anew
	await_renewal a 18000
	end_commands
	ended_with 0
}

@test "a file that was half written when a connection began is read again by the next attempt" {
	loads_key_and_certificate_together
	cp "$CA" ca.pem
	cp "$CERTIFICATES/client".* .
	redis config set tls-auth-clients yes >/dev/null
	record_stderr rlock run -v --cacert ca.pem --cert client.crt --key client.key -t 24s a -- run_until_ended
	wait_until 5 is_held a
	create_certificates new
	cp new/ca.crt ca.pem
	cp new/client.crt .
	head -c 100 new/client.key >client.key
	redis config set tls-ca-cert-file "$PWD/new/ca.crt" tls-cert-file "$PWD/new/server.crt" tls-key-file "$PWD/new/server.key" >/dev/null
	connect_anew
	wait_until 10 grep -q "changed TLS files do not count yet: key 'client.key': it has no private key" stderr
	cp new/client.key .
	await_renewal a 24000
	end_commands
	ended_with 0
}

@test "a TLS file that blocks its reader does not prevent renewals" {
	cp "$CA" ca.pem
	in_background rlock run --cacert ca.pem -t 9s a -- run_until_ended
	wait_until 5 is_held a
	rm ca.pem
	mkfifo ca.pem
	connect_anew
	await_renewal a 9000
	end_commands
	ended_with 0
}

@test "an authority removed from the file while a lock is held is not trusted by its next connection" {
	cat "$CA" "$CERTIFICATES/stranger.crt" >ca.pem
	record_stderr rlock run --cacert ca.pem -t 8s a -- run_until_ended
	wait_until 5 has_command "$PID"
	cp "$CERTIFICATES/stranger.crt" ca.pem
	# A connection does not wait long for the new authorities to be read. If it still trusts the old ones, cut it as well.
	for _ in 1 2 3; do
		connect_anew
		redis pexpire a 6000 >/dev/null
		wait_until 20 eval 'is_gone "$PID" || ttl_is_above a 6000'
		! is_gone "$PID" || break
	done
	ended_with 76
	grep -q 'lock lost at .*not trusted' stderr
}

@test "a server that restarts with another certificate while a lock is held is not trusted" {
	record_stderr rlock run --cacert "$CA" -t 20s a -- run_until_ended
	wait_until 5 has_command "$PID"
	# Wait for a renewal: the server must start again before the lock counts as lost, or the message names another cause.
	await_renewal a 20000
	local port=$PORT
	stop_server
	start_server --tls-port "$port" --tls-cert-file "$CERTIFICATES/stranger.crt" \
		--tls-key-file "$CERTIFICATES/stranger.key" --tls-ca-cert-file "$CA" --tls-auth-clients no
	ended_with 76
	grep -q 'lock lost at .*self-signed' stderr
}

@test "a call without TLS does not load OpenSSL; without OpenSSL a TLS URL is refused with a message that names the library" {
	local library
	run -0 rlock run -u "unix://$SERVER_SOCKET" a -- sh -c 'cat /proc/$PPID/maps'
	refute_output --partial libssl
	unshare -m true 2>/dev/null || skip 'a library cannot be hidden here'
	library=$(ldconfig -p | sed -n 's/.*libssl\.so\.[0-9.]* .*=> //p' | head -n 1)
	assert [ -n "$library" ]
	run -78 unshare -m sh -c 'mount --bind /dev/null "$1" && exec rlock run a -- touch begun' sh "$library"
	assert_one_line "^rlock: a: cannot connect to rediss://localhost:$PORT/0: TLS needs OpenSSL: "
	assert [ ! -e begun ]
}
