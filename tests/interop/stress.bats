#!/usr/bin/env bats
# Four Java threads and four shells take turns, 2000 of them or $TURNS: see stress.bash.

load interop
load stress

# A shell starts processes for each turn, so its share is smaller on a busy machine. The longest wait does not depend on that.
# Without pauses, the share depends on rlock: some of its releases give the next turn to Java.
@test "those that exclude each other are inside one at a time, and each side has its share" {
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
