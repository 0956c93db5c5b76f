# Shells with job control on a terminal. Sourced after helpers.bash.

# in_terminal SHELL: standard input is what happens there; see ptyrun. The output is what was shown.
in_terminal() {
	case $1 in
	bash) set -- bash --norc --noprofile --noediting -i ;;
	*) set -- "$1" -i ;;
	esac
	run -0 ptyrun "$@"
}
