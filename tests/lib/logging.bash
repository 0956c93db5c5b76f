# The log for operators. Sourced after helpers.bash, by files whose tests write it to the file "log".
#
#   events             prints "EVENT NAME" of all lines, joined by commas
#   has_event EVENT    whether the log has such a line
#   field KEY EVENT    prints the value of KEY in the line of EVENT, with its quotes

events() {
	sed -n 's/^time=[^ ]* event=\([a-z_]*\) name=\([^ ]*\) .*/\1 \2/p' log | paste -sd ,
}

has_event() {
	file_contains log "event=$1 "
}

field() {
	sed -n "/ event=$2 /s/.* $1=\(\"[^\"]*\"\|[^ ]*\).*/\1/p" log
}
