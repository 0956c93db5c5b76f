# shellcheck shell=bash
# Completion of rlock(1) for bash 4 and later. The tables of verbs and options come before this.
# It works without bash-completion. If that is loaded, it completes the COMMAND after --.

# The tables set some variables, and callers use the variables that the functions below set: shellcheck does not see that.
# shellcheck disable=SC2154,SC2034

# _rlock_split LINE: split LINE into words, and set these variables of the caller:
#   words    the words without quotes; the last one is to be completed
#   quote    the quote that is open in the last word; empty: none
#   rest     the part of the last word that readline replaces: what follows its last character of COMP_WORDBREAKS
#   unknown  unknown[N] is 1 if only the shell can expand word N, which has a $ or a backquote
_rlock_split() {
	local line=$1 char word='' is_word='' i
	words=() unknown=() quote='' rest=''
	for ((i = 0; i < ${#line}; i++)); do
		char=${line:i:1}
		if [[ $char = "$quote" ]]; then
			quote='' rest=''
			continue
		elif [[ -z $quote && $char = [\'\"] ]]; then
			quote=$char rest='' is_word=1
			continue
		elif [[ -z $quote && $char = [[:space:]] ]]; then
			[[ -z $is_word ]] || words+=("$word")
			word='' rest='' is_word=''
			continue
		elif [[ $quote != "'" && $char = \\ ]]; then
			((i += 1))
			# In double quotes most bytes keep their backslash.
			[[ -z $quote || ${line:i:1} = [\"\\\$\`] ]] || word+=$char rest+=$char
			char=${line:i:1}
		elif [[ $quote != "'" && $char = [\$\`] ]]; then
			unknown[${#words[@]}]=1
		elif [[ -z $quote && $COMP_WORDBREAKS = *"$char"* ]]; then
			word+=$char rest='' is_word=1
			continue
		fi
		word+=$char rest+=$char is_word=1
	done
	words+=("$word")
}

# _rlock_offer CANDIDATE...: offer the candidates with which the last word can continue, quoted as that word is. head: the
# part of the word before the candidate, such as --url=.
_rlock_offer() {
	local candidate shown
	for candidate; do
		candidate=$head$candidate
		[[ $candidate = "$current"* ]] || continue
		shown=${candidate#"${current%"$rest"}"}
		case $quote in
		\') shown=${shown//\'/\'\\\'\'} ;;
		\")
			shown=${shown//\\/\\\\} shown=${shown//\"/\\\"}
			shown=${shown//\$/\\\$} shown=${shown//\`/\\\`}
			;;
		*) printf -v shown %q "$shown" ;;
		esac
		COMPREPLY+=("$shown")
	done
}

# Print the names of the locks that are held on the servers of this line, one a line; nothing if the servers do not reply
# within 0.3 s. Leave out names that are not printable text, and names that begin with a dash, which need --name.
_rlock_held() {
	timeout -k 0.1 0.3 "$rlock" list -q --json --connect-timeout 250ms "${of_server[@]}" </dev/null |
		LC_ALL=C grep -oE '"name":"([^"\\-]|\\["\\])([^"\\]|\\["\\])*"(,"name_base64")?' |
		LC_ALL=C sed -e '/,"name_base64"$/d' -e 's/^"name":"//' -e 's/"$//' -e 's/\\\(.\)/\1/g' | LC_ALL=C sort -u
} 2>/dev/null

_rlock_offer_held() {
	local names
	# If only the shell can expand an option of the servers, we do not know which servers to query.
	[[ -z $is_unknown ]] || return
	mapfile -t names < <(_rlock_held)
	_rlock_offer "${names[@]}"
}

# _rlock_offer_files ACTION: offer files, or what else compgen -A ACTION finds. Do not quote them: -o filenames has readline do that.
_rlock_offer_files() {
	local file
	compopt -o filenames
	while IFS= read -r file; do
		file=$head$file
		COMPREPLY+=("${file#"${current%"$rest"}"}")
	done < <(compgen -A "$1" -- "${current#"$head"}")
}

# _rlock_offer_value KIND: offer values of an option. KIND is that of _rlock_table: a word, or "=" and the possible values.
_rlock_offer_value() {
	local known
	case $1 in
	=*)
		IFS=' ' read -ra known <<<"${1#=}"
		_rlock_offer "${known[@]}"
		;;
	file) _rlock_offer_files file ;;
	dir) _rlock_offer_files directory ;;
	command) _rlock_offer_files command ;;
	process)
		known=(/proc/[0-9]*)
		_rlock_offer "${known[@]#/proc/}"
		;;
	lock) _rlock_offer_held ;;
	esac
}

# _rlock_find OPTION: set option to OPTION or, if that is an abbreviation, to the only option that begins with it. Fail if there is
# no such option, or more than one.
_rlock_find() {
	local name found=()
	option=$1
	[[ -z ${options[$1]} ]] || return 0
	[[ $1 = --?* ]] || return 1
	for name in "${!options[@]}"; do
		[[ $name != "$1"* ]] || found+=("$name")
	done
	option=${found[0]}
	((${#found[@]} == 1))
}

# _rlock_pass OPTION [VALUE]: if the option says which servers to use, add it to of_server, the options for `rlock list`.
_rlock_pass() {
	[[ " $_rlock_server_options " = *" $1 "* ]] || return 0
	if (($# == 1)); then
		of_server+=("$1")
	elif [[ $1 = --* ]]; then
		of_server+=("$1=${2/#~\//$HOME/}")
	else
		of_server+=("$1${2/#~\//$HOME/}")
	fi
	[[ -z ${unknown[i]} ]] || is_unknown=1
}

# _rlock_read_words: read the words before the last one, and set these variables of the caller:
#   pending     the kind of the value, if the last word is the value of an option
#   command_at  the index of COMMAND, if the last word is COMMAND or one of its arguments
#   of_server   the options that say which servers to use
#   is_unknown  1 if only the shell can expand one of these options
_rlock_read_words() {
	local i word option letters
	for ((i = 2; i < last; i++)); do
		word=${words[i]} pending=''
		case $word in
		--)
			command_at=$((i + 1))
			return
			;;
		--*=*)
			! _rlock_find "${word%%=*}" || _rlock_pass "$option" "${word#*=}"
			continue
			;;
		--*) _rlock_find "$word" || continue ;;
		-?*)
			for ((letters = 1; letters < ${#word}; letters++)); do
				option=-${word:letters:1}
				[[ ${options[$option]:-none} = none ]] || break
				_rlock_pass "$option"
			done
			((letters < ${#word})) || continue
			if ((letters < ${#word} - 1)); then
				_rlock_pass "$option" "${word:letters+1}"
				continue
			fi
			;;
		*) continue ;;
		esac
		if [[ ${options[$option]} = none ]]; then
			_rlock_pass "$option"
		elif ((++i < last)); then
			_rlock_pass "$option" "${words[i]}"
		else
			pending=${options[$option]}
		fi
	done
}

# Complete COMMAND and its arguments: with bash-completion by the completion of COMMAND itself, else by names of commands and files.
_rlock_offer_command() {
	local i
	for ((i = 2; i < COMP_CWORD; i++)); do
		[[ ${COMP_WORDS[i]} != -- ]] || break
	done
	if declare -F _comp_command_offset >/dev/null; then
		_comp_command_offset $((i + 1))
	elif declare -F _command_offset >/dev/null; then
		_command_offset $((i + 1))
	elif ((last == command_at)); then
		_rlock_offer_files command
	else
		_rlock_offer_files file
	fi
}

# Complete the line of flock(1): with bash-completion by the completion of flock, else by names of files.
_rlock_offer_flock() {
	if declare -F _comp_command_offset >/dev/null; then
		_comp_command_offset 1
	elif declare -F _command_offset >/dev/null; then
		_command_offset 1
	else
		_rlock_offer_files file
	fi
}

_rlock() {
	local words unknown quote rest head='' current last verb rlock IFS=$' \t\n'
	local pending='' command_at='' of_server=() is_unknown=''
	local -A options=()

	COMPREPLY=()
	_rlock_split "${COMP_LINE:0:COMP_POINT}"
	last=$((${#words[@]} - 1)) rlock=${words[0]/#~\//$HOME/} verb=${words[1]}
	current=${words[last]}
	if ((last == 1)); then
		# shellcheck disable=SC2086
		_rlock_offer $_rlock_verbs
		[[ $current != -* ]] || _rlock_offer --help --version
		return
	elif [[ $verb = help ]]; then
		# shellcheck disable=SC2086
		((last > 2)) || _rlock_offer $_rlock_verbs
		return
	elif [[ $verb = flock ]]; then
		_rlock_offer_flock
		return
	fi
	_rlock_table "$verb"
	((${#options[@]})) || return
	_rlock_read_words
	if [[ -n $command_at && " $_rlock_verbs_with_command " = *" $verb "* ]]; then
		_rlock_offer_command
	elif [[ -n $command_at ]]; then
		return
	elif [[ -n $pending ]]; then
		_rlock_offer_value "$pending"
	elif [[ $current = --*=* ]]; then
		local option
		! _rlock_find "${current%%=*}" || {
			head=${current%%=*}=
			_rlock_offer_value "${options[$option]}"
		}
	elif [[ $current = -* ]]; then
		_rlock_offer "${!options[@]}"
		[[ " $_rlock_verbs_with_command " != *" $verb "* ]] || _rlock_offer --
	else
		_rlock_offer_held
	fi
}

complete -F _rlock rlock
