# shellcheck shell=bash
# Completion of rlock(1) for bash 4 and later. The tables of verbs and options come before this.
# It needs nothing of bash-completion, but where that is there, it completes the COMMAND after --.

# The tables, and what the functions below set for their callers.
# shellcheck disable=SC2154,SC2034

# _rlock_split LINE: sets words, without quotes, of which the final one is to be completed; quote, the quote that is open
# there; rest, what of that word is readline's to replace; and unknown[N] for a word that only the shell can expand.
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

# _rlock_offer CANDIDATE...: those that begin as the word in question does, quoted as the line is. head is what of the word stands
# before the candidates.
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

# The names of the locks that are held on the servers of this line, one a line; none when they do not reply soon.
# Names that are not printable text are not among them, nor those with a dash in front, which rlock refuses.
_rlock_held() {
	timeout -k 0.1 0.3 "$rlock" list -q --json --connect-timeout 250ms "${of_server[@]}" </dev/null |
		LC_ALL=C grep -oE '"name":"([^"\\-]|\\["\\])([^"\\]|\\["\\])*"(,"name_base64")?' |
		LC_ALL=C sed -e '/,"name_base64"$/d' -e 's/^"name":"//' -e 's/"$//' -e 's/\\\(.\)/\1/g' | LC_ALL=C sort -u
} 2>/dev/null

_rlock_offer_held() {
	local names
	# What the shell would expand is not known here: neither are the servers, then.
	[[ -z $is_unknown ]] || return
	mapfile -t names < <(_rlock_held)
	_rlock_offer "${names[@]}"
}

# _rlock_offer_files ACTION: readline quotes what are names of files.
_rlock_offer_files() {
	local file
	compopt -o filenames
	while IFS= read -r file; do
		file=$head$file
		COMPREPLY+=("${file#"${current%"$rest"}"}")
	done < <(compgen -A "$1" -- "${current#"$head"}")
}

# _rlock_offer_value KIND
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

# _rlock_find OPTION: sets option to it, or to the only one that begins so.
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

# _rlock_pass OPTION [VALUE]: to rlock list, when it says which servers these are.
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

# _rlock_read_words: sets pending, the kind of the value that is to be completed, if it is one; command_at, the index of
# the COMMAND if the word is part of that; of_server and is_unknown.
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

# The command and its arguments, as that completes them itself where bash-completion is there.
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

# The words of flock(1), as its own completion has them; without that the files among them.
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
