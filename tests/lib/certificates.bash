# Certificates for tests of TLS, and servers that use them. Sourced after helpers.bash.
#
#   create_certificates DIR              creates the certificates below in DIR
#   start_tls_server NAME [OPTION...]    start_server with the certificate NAME, on a TLS port only; sets PORT and RLOCK_URL
#   start_tls_server_on PORT NAME [OPTION...]   as start_tls_server, on this port

# create_certificates DIR: creates ca.crt, and NAME.crt with NAME.key for each NAME, signed by ca: "server" for localhost, 127.0.0.1 and
# ::1; "expired" for the same; "other" for another host; "client". "stranger" is signed by itself.
create_certificates() {
	local names=subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1
	mkdir -p "$1"
	create_self_signed "$1" ca
	create_self_signed "$1" stranger "$names"
	sign "$1" server "$names" -days 2
	sign "$1" other subjectAltName=DNS:redis.example -days 2
	sign "$1" client subjectAltName=DNS:client.example -days 2
	# Use -not_before where openssl has it, since such versions refuse a negative -days. Old versions have only -days.
	if openssl x509 -help 2>&1 | grep -q -e -not_after; then
		sign "$1" expired "$names" -not_before 20200101000000Z -not_after 20200102000000Z
	else
		sign "$1" expired "$names" -days -1
	fi
}

# create_self_signed DIR NAME [EXTENSION]: creates a self-signed certificate.
create_self_signed() {
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=$2" \
		-keyout "$1/$2.key" -out "$1/$2.crt" ${3:+-addext "$3"} 2>/dev/null
	chmod 600 "$1/$2.key"
}

# sign DIR NAME EXTENSION OPTION...: creates a certificate signed by ca. The OPTIONs set how long it is valid.
sign() {
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$2" \
		-keyout "$1/$2.key" -out "$1/$2.csr" 2>/dev/null
	openssl x509 -req -in "$1/$2.csr" -CA "$1/ca.crt" -CAkey "$1/ca.key" -CAcreateserial "${@:4}" \
		-extfile <(echo "$3") -out "$1/$2.crt" 2>/dev/null
	chmod 600 "$1/$2.key"
}

start_tls_server() {
	on_free_port choose_port start_tls_server_on @PORT@ "$@"
}

start_tls_server_on() {
	start_server --tls-port "$1" --tls-cert-file "$CERTIFICATES/$2.crt" \
		--tls-key-file "$CERTIFICATES/$2.key" --tls-ca-cert-file "$CERTIFICATES/ca.crt" \
		--tls-auth-clients no "${@:3}" || return
	export RLOCK_URL=rediss://localhost:$1
}
