#!/usr/bin/env bats
# Four Java threads and four shells compete for a lock until they have had 2000 turns together, or $TURNS: see stress.bash.

load interop
load stress

# A row is KIND NAMES PAUSE_MS [SHARE], as for play. SHARE is 16 by default, so a side may get few turns: a shell starts processes
# for each turn, and so rlock gets fewer turns on a busy machine. With pauses of at most 1 ms, SHARE is 4: there rlock itself
# makes the turns fair, since some of its releases give the next turn to Java.
@test "holders that exclude each other never run at the same time, and Java and rlock each get a share of the turns" {
	local kind names pause_ms share
	while read -r kind names pause_ms share; do
		play "$kind" "$names" "$pause_ms" "${share:-16}"
	done <<-'END'
		plain a 50
		plain a 5
		plain a 1 4
		write a 1 4
		fair a 10
		readwrite a 50
		readwrite a 5
		plain a,b 50
	END
}
