# Users of the server with the rights that the manual lists. Sourced after helpers.bash, by files whose server listens on PORT: only
# a URL with a port can name a user.
#
#   rights_in_manual   prints the ACL lines of rlock(7) that create the user ci
#   create_limited_user       creates that user with the password SECRET; sets CI_URL
#   read_all_rights         sets RIGHTS, an array of the manual's rules for commands, keys and channels
#   url_of USER        prints the URL that logs in as USER

SECRET=s3cr3t-w0rd

rights_in_manual() {
	sed -n '/^\.\\" acl: least rights/,/^\.Ed/p' "$BATS_TEST_DIRNAME/../../man/rlock.7" | sed -n "s/\\\\&//g; /^ACL /p"
}

create_limited_user() {
	rights_in_manual | redis >replies
	run ! grep -vx OK replies
	redis acl setuser ci resetpass ">$SECRET" >/dev/null
	CI_URL=$(url_of ci)
}

read_all_rights() {
	mapfile -t RIGHTS < <(rights_in_manual | tr ' ' '\n' | grep '^[+~&]')
	assert [ ${#RIGHTS[@]} -gt 30 ]
}

url_of() {
	echo "redis://$1:$SECRET@127.0.0.1:$PORT"
}
