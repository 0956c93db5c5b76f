#!/usr/bin/env bats
# bats file_tags=long
# The complete files of rlock.conf(5): rlock reads each without a complaint, and connects to the server that it names. The tests
# replace hosts and paths; tls.bats, sentinel.bats and others test what follows a connection.

load ../lib/usual
load ../lib/certificates

setup_file() { start_server_at_port; }
setup() {
	directory_setup
	unset RLOCK_URL
}

# write_file MARK: write the block of the manual with that mark, with paths in this directory.
write_file() {
	sed -n '/^\.\\" file: '"$1"'$/,/^\.Ed/{/^\./d; s/\\&//g; s/\\e/\\/g; p}' "$BATS_TEST_DIRNAME/../../man/rlock.conf.5" |
		sed "s|/etc/|$PWD/|" >rlock.conf
	assert [ -s rlock.conf ]
	mkdir -p rlock
	echo SECRET >rlock.password
	echo SECRET >rlock.sentinel-password
	chmod 600 rlock.conf rlock.password rlock.sentinel-password
}

@test "rlock.conf(5): the files for a password and for a token of IAM work" {
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

@test "rlock.conf(5): the files for TLS, Sentinel, a cluster, several servers and ElastiCache work" {
	local mark
	create_certificates certificates
	for mark in tls sentinel cluster several elasticache; do
		write_file "$mark"
		cp certificates/ca.crt rlock/ca.pem
		cp certificates/client.crt rlock/client.pem
		cp certificates/client.key rlock
		# Replace the hosts by ports of this machine without a listener.
		sed -i -E 's/[a-z0-9.]+\.(example|amazonaws\.com)(:[0-9]+)?/127.0.0.1:1/; s/[a-z0-9]+\.example(:[0-9]+)?/127.0.0.1:2/; s/[a-z0-9]+\.example(:[0-9]+)?/127.0.0.1:3/' rlock.conf
		run -69 --separate-stderr rlock run --config rlock.conf nightly -- true
		assert_regex "$mark: $stderr" 'cannot reach redis.*127\.0\.0\.1:[123]'
	done
}

@test "rlock.conf(5): the program makes a token of IAM" {
	write_file elasticache-token
	# Replace botocore by a mock with the functions that the program calls.
	run -0 python3 - <<-'END'
		import runpy, sys
		from unittest.mock import MagicMock
		botocore = MagicMock()
		sign = botocore.RequestSigner.return_value.generate_presigned_url
		sign.side_effect = lambda request, operation, expires_in, region_name: request['url'] + '&X-Amz-Expires=%d' % expires_in
		sys.modules.update((name, botocore) for name in ('botocore.model', 'botocore.session', 'botocore.signers'))
		sys.argv[1:] = 'locks', 'ci', 'eu-west-1'
		runpy.run_path('rlock.conf')
		assert botocore.RequestSigner.call_args[0][1:4] == ('eu-west-1', 'elasticache', 'v4')
	END
	assert_output 'locks/?Action=connect&User=ci&X-Amz-Expires=900'
}
