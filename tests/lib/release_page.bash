# A local server of files that stands for the page of a release. Sourced after usual.bash, which sets TOP.
# start_release_page, stop_release_page: start and stop the server. downloads: count the requests.

# start_release_page: serve the program under test as the static program and as the wheel of this version. Sets INSTALL_URL,
# PROGRAM_SHA256 and WHEEL_SHA256.
start_release_page() {
	local page=$BATS_FILE_TMPDIR/page version
	export INSTALL_URL PROGRAM_SHA256 WHEEL_SHA256 PAGE_PID
	version=$(sed -n 's/^.define RLOCK_VERSION "\(.*\)"/\1/p' "$TOP/lib/rlock.h")
	mkdir "$page"
	cp "$(realpath "$RLOCK_BIN")" "$page/rlock-$version-linux-x86_64"
	ln "$page/rlock-$version-linux-x86_64" "$page/rlock-$version-linux-aarch64"
	echo 'notices of a test' >"$page/rlock-$version-linux-$(uname -m).notices"
	SOURCE_DATE_EPOCH=1000000000 "$TOP/packaging/wheel.py" "$page/rlock-$version-linux-$(uname -m)"
	(cd "$page" && sha256sum -- * >SHA256SUMS)
	PROGRAM_SHA256=$(sed -n 's/ .*-linux-x86_64$//p' "$page/SHA256SUMS")
	WHEEL_SHA256=$(sed -n 's/ .*\.whl$//p' "$page/SHA256SUMS")
	# Use port 0, for which the kernel chooses a free one.
	python3 -u -m http.server --bind 127.0.0.1 --directory "$page" 0 >"$BATS_FILE_TMPDIR/page.log" 2>&1 3>&- &
	PAGE_PID=$!
	wait_until 30 grep -q '^Serving HTTP' "$BATS_FILE_TMPDIR/page.log"
	INSTALL_URL=http://127.0.0.1:$(sed -n 's/^Serving HTTP on .* port \([0-9]*\) .*/\1/p' "$BATS_FILE_TMPDIR/page.log")
}

stop_release_page() {
	kill "$PAGE_PID"
	wait "$PAGE_PID" || :
}

# downloads: print how many files were fetched from the page.
downloads() {
	grep -c '"GET ' "$BATS_FILE_TMPDIR/page.log" || :
}
