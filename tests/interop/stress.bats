#!/usr/bin/env bats
# Four Java threads and four shells take turns, 2000 of them or $TURNS: see stress.bash.

load interop
load stress

# A turn of a shell begins processes, so that its share is smaller the busier the machine; how long none waits is not.
@test "those that exclude each other are inside one at a time, and each side has its share" {
	local kind names pause_ms
	while read -r kind names pause_ms; do
		play "$kind" "$names" "$pause_ms" 16
	done <<-'END'
		plain a 50
		plain a 5
		fair a 10
		readwrite a 50
		readwrite a 5
		plain a,b 50
	END
}
