# Extract and run the examples of README.md and of the manual. Sourced after helpers.bash and leftovers.bash, by files that set TOP,
# the directory of the project.
#
#   show_example FILE NAME           prints the example after the mark NAME in FILE
#   run_example FILE NAME            runs it by sh under bats' run, with standard error in $stderr
#   assert_done OUTPUT [REGEXP]      the example exited with 0 and printed OUTPUT; standard error matches REGEXP, or is empty
#   nothing_is_held                  whether no key and no hold file is left

show_example() {
	case $1 in
	*.md)
		awk -v mark="<!-- example: $2 -->" '
			$0 == mark { is_near = 1; next }
			is_near && /^    / { print substr($0, 5); is_in = 1; next }
			is_near && /./ { exit }
			is_in' "$TOP/$1"
		;;
	*)
		sed -n '/^\.\\" example: '"$2"'$/,/^\.Ed/p' "$TOP/$1" |
			sed '/^\./d; s/\\&//g; s/\\-/-/g; s/\\e/\\/g'
		;;
	esac
}

run_example() {
	show_example "$1" "$2" >script
	assert [ -s script ]
	run --separate-stderr sh ./script
}

assert_done() {
	assert_equal "$status" 0
	assert_output "$1"
	output=$stderr
	if [ $# -gt 1 ]; then
		assert_output --regexp "$2"
	else
		assert_output ''
	fi
}

nothing_is_held() {
	no_keys && no_hold_files
}
