# Locks for status and list to show, and readers of their output. Sourced after helpers.bash.
#
#   acquire VERB ID NAME [OPTION...]      the owner ID acquires the lock, with a lease of 60 s
#   json EXPRESSION                       prints a Python expression over the JSON document in $output
#   on_terminal COLUMNS COMMAND...        prints what COMMAND shows on a terminal of this width
#   make_older NAME MS [WORD]             changes the hold records, so that the lock has been held for MS longer

acquire() {
	rlock "$1" --owner "$2" --lease 60s "${@:4}" "$3"
}

# json EXPRESSION: the expression may use doc (the document), lock (its first lock), and members(doc) (the set of the names of all
# members).
json() {
	python3 -IS -c '
import json, sys
def members(value):
	if isinstance(value, dict):
		return {*value} | {name for part in value.values() for name in members(part)}
	if isinstance(value, list):
		return {name for part in value for name in members(part)}
	return set()
doc = json.loads(sys.stdin.read())
if "names" in doc:
	lock = doc["names"][0]["servers"][0]
elif doc["locks"]:
	lock = doc["locks"][0]
print(eval(sys.argv[1]))' "$1" <<<"$output"
}

# on_terminal COLUMNS COMMAND...: returns the exit status of COMMAND.
on_terminal() {
	script -qec "stty cols $1; exec $(printf '%q ' "${@:2}")" /dev/null </dev/null >shown || return
	sed 's/\r$//' shown
}

# make_older NAME MS [WORD]: with WORD, changes only hold records that contain it.
make_older() {
	redis eval '
		local listed = redis.call("HGETALL", KEYS[1])
		for i = 1, #listed, 2 do
			local owner, since_ms, rest = string.match(listed[i + 1], "^(%S+) (%d+) (.*)$")
			if owner and string.find(listed[i + 1], ARGV[2], 1, true) then
				redis.call("HSET", KEYS[1], listed[i], string.format("%s %.0f %s", owner, since_ms - ARGV[1], rest))
			end
		end' 1 "rlock_holds:{$1}" "$2" "${3-}" >/dev/null
}
