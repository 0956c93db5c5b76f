# What stands in the log for operators. Sourced after helpers.bash, by files whose tests write the log to the file
# "log".

# Another file is named by tests alone.
# shellcheck disable=SC2119,SC2120

# events [FILE]: prints "EVENT NAME" for each line, in one line.
events() {
	sed -n 's/^time=[^ ]* event=\([a-z_]*\) name=\([^ ]*\) .*/\1 \2/p' "${1-log}" | paste -sd ,
}

# has_events EVENTS: as events prints them.
has_events() {
	[ "$(events)" = "$1" ]
}

has_event() {
	file_has log "event=$1 "
}

# field KEY EVENT: prints the value in the line of that event, bare or in its quotes.
field() {
	sed -n "/ event=$2 /s/.* $1=\(\"[^\"]*\"\|[^ ]*\).*/\1/p" log
}

# all_json [FILE]: each line is an object; prints them all as Python does, sorted by key, without the time.
all_json() {
	python3 -IS - "${1-log}" <<-'END'
		import datetime, json, re, sys
		for line in open(sys.argv[1], encoding="ascii", errors="strict"):
		    event = json.loads(line)
		    time = event.pop("time")
		    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d", time), time
		    age = datetime.datetime.now(datetime.timezone.utc) - datetime.datetime.fromisoformat(time)
		    assert abs(age) < datetime.timedelta(minutes=1), time
		    print(" ".join(f"{key}={event[key]!r}" for key in event))
	END
}
