# The rights that the manual gives a user of the server, and users that have all of them but one. Sourced
# behind helpers.bash, by files whose server listens on PORT: a user can be named in the URL of a port alone.

# CI_URL and URL are for the tests.
# shellcheck disable=SC2034

SECRET=s3cr3t-w0rd

# The lines of the manual that make its user ci.
rights_in_manual() {
	sed -n '/^\.\\" acl: least rights/,/^\.Ed/p' "$BATS_TEST_DIRNAME/../../man/rlock.7" |
		sed -n "s/\\\\&//g; /^ACL /p"
}

# least_rights: makes the user ci as the manual has it, but with the password SECRET; sets CI_URL.
least_rights() {
	local words
	words=$(rights_in_manual)
	assert [ -n "$words" ]
	redis <<<"$words" >replies
	run -0 grep -cvx OK replies || :
	assert_output 0
	redis acl setuser ci resetpass ">$SECRET" >/dev/null
	CI_URL=$(url_of ci)
}

# all_rights: sets RIGHTS, the rules of the manual one by one: commands, keys, channels.
all_rights() {
	mapfile -t RIGHTS < <(rights_in_manual | tr ' ' '\n' | grep '^[+~&]')
	assert [ ${#RIGHTS[@]} -gt 30 ]
}

# make_users: for each of RIGHTS, "user-N" that has all but that one. N counts from 0.
make_users() {
	local row
	for row in "${!RIGHTS[@]}"; do
		echo "acl setuser user-$row on >$SECRET resetkeys resetchannels -@all $(rights_but "$row")"
	done | redis >replies
	run -0 grep -cvx OK replies || :
	assert_output 0
}

# rights_but ROW: all of RIGHTS but that one.
rights_but() {
	echo "${RIGHTS[@]:0:$1}" "${RIGHTS[@]:$1+1}"
}

# url_of USER
url_of() {
	echo "redis://$1:$SECRET@127.0.0.1:$PORT"
}
