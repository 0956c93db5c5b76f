# What stands in the log for operators. Sourced after helpers.bash, by files whose tests write the log to the file "log".

# events: prints "EVENT NAME" for each line, in one line.
events() {
	sed -n 's/^time=[^ ]* event=\([a-z_]*\) name=\([^ ]*\) .*/\1 \2/p' log | paste -sd ,
}

has_event() {
	file_contains log "event=$1 "
}

# field KEY EVENT: prints the value in the line of that event, bare or in its quotes.
field() {
	sed -n "/ event=$2 /s/.* $1=\(\"[^\"]*\"\|[^ ]*\).*/\1/p" log
}
