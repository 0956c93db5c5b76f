# Completion of rlock(1) for zsh. The tables of verbs and options come before this.

# Offer the names of the locks that are held on the servers of this line; none if the servers do not reply within 0.3 s. Leave out
# names that are not printable text, and names that begin with a dash, which need --name.
_rlock_names() {
	local -a of_server names
	local word i expl
	for ((i = 3; i < CURRENT; i++)); do
		word=${words[i]}
		if [[ $word = -[^-]#u ]]; then
			word=-u${words[++i]}
		elif [[ $word != --insecure ]] && (( ${server_options[(Ie)$word]} )); then
			word="$word=${words[++i]}"
		elif [[ $word != -u?* ]] && (( ! ${server_options[(Ie)${word%%=*}]} )); then
			continue
		fi
		# If only the shell can expand an option of the servers, we do not know which servers to query.
		[[ $word != *[\$\`]* ]] || return 1
		of_server+=("${(Q)word}")
	done
	names=(${(f)"$(
		{
			timeout -k 0.1 0.3 ${(Q)words[1]} list -q --json --connect-timeout 250ms "${of_server[@]}" </dev/null |
				LC_ALL=C grep -oE '"name":"([^"\\-]|\\["\\])([^"\\]|\\["\\])*"(,"name_base64")?' |
				LC_ALL=C sed -e '/,"name_base64"$/d' -e 's/^"name":"//' -e 's/"$//' -e 's/\\\(.\)/\1/g' |
				LC_ALL=C sort -u
		} 2>/dev/null
	)"})
	_wanted locks expl 'lock that is held' compadd -a names
}

_rlock() {
	local -a verbs verbs_with_command server_options options
	local verb=${words[2]} at
	_rlock_tables $verb
	if (( CURRENT == 2 )); then
		[[ $PREFIX != -* ]] || { compadd -- --help --version; return }
		_describe -t verbs verb verbs
		return
	elif [[ $verb = help ]]; then
		(( CURRENT > 3 )) || _describe -t verbs verb verbs
		return
	fi
	if [[ $verb = flock ]]; then
		shift words
		(( CURRENT -= 1 ))
		_normal
		return
	fi
	(( $#options )) || return 1
	at=${words[(i)--]}
	if (( at < CURRENT )); then
		(( ${verbs_with_command[(Ie)$verb]} )) || return 1
		words=("${(@)words[at+1,-1]}")
		(( CURRENT -= at ))
		_normal
		return
	fi
	[[ $PREFIX != -* ]] || (( ! ${verbs_with_command[(Ie)$verb]} )) || compadd -- --
	_arguments -s $options '1: :' '*:lock:_rlock_names'
}

_rlock "$@"
