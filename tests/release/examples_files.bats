#!/usr/bin/env bats
# bats file_tags=long
# The complete files of rlock.conf(5): each is read without a complaint, and the server that it names is the one that is
# asked. Hosts and paths are this test's; what comes after a connection is tested by tls.bats, sentinel.bats and the like.

load ../lib/usual
load ../lib/certificates

setup_file() { start_server_at_port; }
setup() {
	directory_setup
	unset RLOCK_URL
}

# write_file MARK: what stands in the manual behind it, with paths of this directory.
write_file() {
	sed -n '/^\.\\" file: '"$1"'$/,/^\.Ed/{/^\./d; s/\\&//g; s/\\e/\\/g; p}' "$BATS_TEST_DIRNAME/../../man/rlock.conf.5" |
		sed "s|/etc/|$PWD/|" >rlock.conf
	assert [ -s rlock.conf ]
	mkdir -p rlock
	echo SECRET >rlock.password
	echo SECRET >rlock.sentinel-password
	chmod 600 rlock.conf rlock.password rlock.sentinel-password
}

@test "rlock.conf(5): the files for a password, and for a token of IAM" {
	write_file password
	sed -i "s/redis\.example/127.0.0.1:$PORT/; s/syslog/stderr/" rlock.conf
	redis acl setuser ci on '>SECRET' '>token' '~*' '&*' +@all >/dev/null
	run -0 rlock run --config rlock.conf nightly -- true
	assert_line --regexp ' event=released name=nightly '
	echo WRONG >rlock.password
	run -77 rlock run --config rlock.conf nightly -- true
	write_file iam
	printf '#!/bin/sh\necho "$@" >arguments\necho token\n' >elasticache-token
	chmod +x elasticache-token
	sed -i "s|/usr/local/bin/|cd '$PWD' \&\& ./|; s|rediss://ci@.*|redis://ci@127.0.0.1:$PORT|" rlock.conf
	run -0 rlock run --config rlock.conf nightly -- true
	assert_equal "$(<arguments)" 'locks ci eu-west-1'
}

@test "rlock.conf(5): the files for TLS, Sentinel, a cluster, several servers and ElastiCache" {
	local mark
	certificates certificates
	for mark in tls sentinel cluster several elasticache; do
		write_file "$mark"
		cp certificates/ca.crt rlock/ca.pem
		cp certificates/client.crt rlock/client.pem
		cp certificates/client.key rlock
		# Instead of the hosts there are ports where none listens.
		sed -i -E 's/[a-z0-9.]+\.(example|amazonaws\.com)(:[0-9]+)?/127.0.0.1:1/; s/[a-z0-9]+\.example(:[0-9]+)?/127.0.0.1:2/; s/[a-z0-9]+\.example(:[0-9]+)?/127.0.0.1:3/' rlock.conf
		run -69 --separate-stderr rlock run --config rlock.conf nightly -- true
		assert_regex "$mark: $stderr" 'cannot reach redis.*127\.0\.0\.1:[123]'
	done
}

@test "rlock.conf(5): the program that makes a token of IAM" {
	write_file elasticache-token
	mkdir botocore
	# Only what the program asks of botocore.
	cat >botocore/__init__.py <<-"END"
		class Session:
		    def get_credentials(self): return 'credentials'
		    def get_component(self, name): return name
		def get_session(): return Session()
		def ServiceId(name): return name
		class RequestSigner:
		    def __init__(self, *arguments): assert arguments == ('elasticache', 'eu-west-1', 'elasticache', 'v4', 'credentials', 'event_emitter')
		    def generate_presigned_url(self, request, operation, expires_in, region_name): return request['url'] + '&X-Amz-Expires=%d' % expires_in
	END
	for name in model session signers; do
		echo 'from botocore import *' >"botocore/$name.py"
	done
	PYTHONPATH=$PWD run -0 python3 rlock.conf locks ci eu-west-1
	assert_output 'locks/?Action=connect&User=ci&X-Amz-Expires=900'
}
