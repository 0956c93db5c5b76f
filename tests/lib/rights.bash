# The rights that the manual gives a user of the server. Sourced after helpers.bash, by files whose server listens on PORT: a
# user can be named in the URL of a port alone.

SECRET=s3cr3t-w0rd

# The lines of the manual that make its user ci.
rights_in_manual() {
	sed -n '/^\.\\" acl: least rights/,/^\.Ed/p' "$BATS_TEST_DIRNAME/../../man/rlock.7" | sed -n "s/\\\\&//g; /^ACL /p"
}

# least_rights: makes the user ci as the manual has it, but with the password SECRET; sets CI_URL.
least_rights() {
	rights_in_manual | redis >replies
	run ! grep -vx OK replies
	redis acl setuser ci resetpass ">$SECRET" >/dev/null
	CI_URL=$(url_of ci)
}

# all_rights: sets RIGHTS, the rules of the manual one by one: commands, keys, channels.
all_rights() {
	mapfile -t RIGHTS < <(rights_in_manual | tr ' ' '\n' | grep '^[+~&]')
	assert [ ${#RIGHTS[@]} -gt 30 ]
}

# url_of USER
url_of() {
	echo "redis://$1:$SECRET@127.0.0.1:$PORT"
}
