# The examples of README.md and of the manual, and what they leave. Sourced after helpers.bash and leftovers.bash, by
# files that set TOP, the directory of the project.

# show_example FILE NAME: what stands there, after the mark of that name.
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

# run_example FILE NAME: run has run it by sh, as a file.
run_example() {
	show_example "$1" "$2" >script
	assert [ -s script ]
	run --separate-stderr sh ./script
}

# assert_done OUTPUT [MESSAGE]: the example ended well, and said this and nothing else; MESSAGE is a regular
# expression.
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
