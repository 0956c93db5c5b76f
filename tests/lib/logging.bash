# The log for operators. Sourced after helpers.bash, by files whose tests write it to the file "log".
#
#   events             prints "EVENT NAME" of all lines in the order of their times, joined by commas. Each line is written by a process
#                      of its own, so a later event can have an earlier line. Of events with the same time, "waited" is first.
#   has_event EVENT    whether the log has such a line
#   field KEY EVENT    prints the value of KEY in the line of EVENT, with its quotes

events() {
	sed -n 's/^time=\([^ ]*\) event=\([a-z_]*\) name=\([^ ]*\) .*/\1 2 \2 \3/p' log | sed 's/ 2 waited / 1 waited /' |
		sort -s -k 1,2 | cut -d ' ' -f 3- | paste -sd ,
}

has_event() {
	file_contains log "event=$1 "
}

field() {
	sed -n "/ event=$2 /s/.* $1=\(\"[^\"]*\"\|[^ ]*\).*/\1/p" log
}
