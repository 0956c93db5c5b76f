# Completion of rlock(1) for fish. The tables of verbs and options come before this.

function __rlock_needs_verb
    set -l words (commandline -opc)
    test (count $words) -eq 1; or begin
        test (count $words) -eq 2; and test "$words[2]" = help
    end
end

# Whether the verb is one of the arguments, and the word to complete is no part of COMMAND.
function __rlock_verb_is
    set -l words (commandline -opc)
    test (count $words) -ge 2; and contains -- $words[2] $argv; and not contains -- -- $words
end

function __rlock_is_command
    set -l words (commandline -opc)
    test (count $words) -ge 3; and contains -- $words[2] $__rlock_verbs_with_command; and contains -- -- $words
end

function __rlock_takes_names
    set -l words (commandline -opc)
    test (count $words) -ge 2; and not contains -- $words[2] flock help version; and not contains -- -- $words
end

# Complete COMMAND and its arguments, by the completion of COMMAND itself.
function __rlock_command
    set -l words (commandline -opc)
    set -l at (contains -i -- -- $words)
    set -l line
    if test $at -lt (count $words)
        set line (string escape -- $words[(math $at + 1)..-1])
    end
    complete -C (string join ' ' -- $line (commandline -ct))
end

# `rlock flock` is completed as flock(1) is.
function __rlock_is_flock
    set -l words (commandline -opc)
    test (count $words) -ge 2; and test $words[2] = flock
end

function __rlock_flock
    set -l words (commandline -opc)
    complete -C (string join ' ' -- (string escape -- $words[2..-1]) (commandline -ct))
end

# Print the names of the locks that are held on the servers of this line; none if the servers do not reply within 0.3 s. Leave out
# names that are not printable text, and names that begin with a dash, which need --name.
function __rlock_names
    set -l words (commandline -opc)
    set -l of_server
    set -l is_value 0
    for word in $words[3..-1]
        if test $is_value -eq 1
            set is_value 0
        else if string match -qr -- '^-[^-]*u$' $word
            set word -u
            set is_value 1
        else if contains -- $word $__rlock_server_options
            test $word = --insecure; or set is_value 1
        else if not contains -- (string replace -r '=.*' '' -- $word) $__rlock_server_options
            and not string match -q -- '-u?*' $word
            continue
        end
        # If only the shell can expand an option of the servers, we do not know which servers to query.
        string match -qr '[$(]' -- $word; and return
        set -a of_server $word
    end
    test $is_value -eq 0; or return
    begin
        timeout -k 0.1 0.3 $words[1] list -q --json --connect-timeout 250ms $of_server </dev/null |
            LC_ALL=C grep -oE '"name":"([^"\\\\-]|\\\\["\\\\])([^"\\\\]|\\\\["\\\\])*"(,"name_base64")?' |
            LC_ALL=C sed -e '/,"name_base64"$/d' -e 's/^"name":"//' -e 's/"$//' -e 's/\\\\\\(.\\)/\\1/g' | LC_ALL=C sort -u
    end 2>/dev/null
end

complete -c rlock -f
complete -c rlock -n __rlock_is_command -a '(__rlock_command)'
complete -c rlock -n __rlock_is_flock -a '(__rlock_flock)'
for verb in $__rlock_verbs_with_command
    # Offer --, which begins the command, if the word begins with a dash.
    complete -c rlock -n "__rlock_verb_is $verb; and string match -q -- '-*' (commandline -ct)" -a --
end
complete -c rlock -n __rlock_takes_names -a '(__rlock_names)'
