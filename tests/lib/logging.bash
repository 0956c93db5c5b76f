# The log for operators. Sourced after helpers.bash, by files whose tests write it to the file "log".
#
#   events             prints "EVENT NAME" of all lines in the order of their times, joined by commas. Each line is written by a process
#                      of its own, so a later event can have an earlier line; of the same time, "waited" is the first one.
#   has_event EVENT    whether the log has such a line
#   field KEY EVENT    prints the value of KEY in the line of EVENT, with its quotes

events() {
	sed 's/^\(time=[^ ]*\) event=waited /\1 event= waited /' log | sort -s -k 1,1 -k 2,2 | sed 's/ event= / event=/' | sed -n 's/^time=[^ ]* event=\([a-z_]*\) name=\([^ ]*\) .*/\1 \2/p' | paste -sd ,
}

has_event() {
	file_contains log "event=$1 "
}

field() {
	sed -n "/ event=$2 /s/.* $1=\(\"[^\"]*\"\|[^ ]*\).*/\1/p" log
}
