#!/usr/bin/env bash
# Builds the Debian packages twice, and then installs, uses, upgrades and purges them on a machine without a compiler,
# which it makes of this one: for a Debian that is thrown away afterwards, as root. Its output is TAP, and the totals.
#
#   tests/packages/debian.sh --on-a-machine-to-throw-away
# Functions are called by their names. In single quotes stand whole scripts.
# shellcheck disable=SC2016,SC2317,SC2329
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 71

if [ "${1-}" != --on-a-machine-to-throw-away ] || [ "$(id -u)" != 0 ]; then
	sed -n '2,5s/^# \{0,1\}//p' "$0" >&2
	exit 64
fi

export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; wait; rm -rf "$work"' EXIT
count=0 failed=0

# check CLAIM COMMAND...
check() {
	count=$((count + 1))
	if "${@:2}" >"$work/output" 2>&1; then
		echo "ok $count $1"
	else
		failed=$((failed + 1))
		echo "not ok $count $1"
		tail -n 20 "$work/output" | sed 's/^/# /'
	fi
}

finish() {
	echo "1..$count"
	echo "$((count - failed)) passed, $failed failed"
	[ "$failed" = 0 ]
	exit
}

install() {
	apt-get install -y -q --no-install-recommends "$@"
}

packages() {
	dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' | sed -n 's/^ii *//p' | sort
}

# ---- build ----

sums() {
	(cd "$1" && sha256sum -- *.deb)
}

# Elsewhere, later, with another umask, locale, time zone and number of processors.
build_again() {
	local tree=$work/another/place/with/a/longer/name
	mkdir -p "$tree"
	git archive HEAD | tar -x -C "$tree"
	(umask 077 && cd "$tree" && TZ=Asia/Kathmandu LC_ALL=C DEB_BUILD_OPTIONS='nocheck parallel=1' \
		packaging/deb.sh "$work/again")
}

is_built_the_same() {
	diff <(sums build/deb) <(sums "$work/again")
}

packages >"$work/before"
check 'the packages are built, and lintian finds nothing' make deb
[ "$failed" = 0 ] || finish
check 'the packages are built in another place' build_again
check 'both builds have the same bytes' is_built_the_same

# ---- a machine without a compiler ----

remove_what_builds() {
	packages | comm -13 "$work/before" - | xargs apt-get purge -y -q --allow-remove-essential
	apt-get autoremove -y -q --purge
	! command -v cc && ! command -v gcc && ! command -v dpkg-buildpackage
}

check 'the machine has no compiler any more' remove_what_builds

# ---- use ----

has_files() {
	local file
	for file in /usr/bin/rlock /usr/share/man/man1/rlock.1.gz /usr/share/man/man7/rlock-protocol.7.gz \
		/usr/lib/tmpfiles.d/rlock.conf /usr/share/bash-completion/completions/rlock \
		/usr/share/zsh/vendor-completions/_rlock /usr/share/fish/vendor_completions.d/rlock.fish; do
		dpkg -S "$file" && [ -s "$file" ] || return
	done
	zcat /usr/share/man/man1/rlock.1.gz | grep -F /usr/lib/tmpfiles.d/rlock.conf
}

ends_with() {
	local status=0
	"${@:2}" || status=$?
	[ "$status" = "$1" ] || { echo "exit status $status"; false; }
}

check 'apt installs the program' install ./build/deb/rlock_*.deb redis-server
check 'the program runs' rlock --version
check 'its files are where Debian looks for them' has_files
check 'a command runs with a lock of the private server' ends_with 0 rlock run -u local: x -- true
check 'its exit status gets through' ends_with 7 rlock run -u local: x -- sh -c 'exit 7'
check 'apt installs what the tests of the package take' install redis-tools bash-completion
for test in local contend completion; do
	check "the test of the package passes: $test" "packaging/debian/tests/$test"
done
check 'apt installs the libraries' install ./build/deb/librlock0_*.deb ./build/deb/librlock-dev_*.deb

# ---- upgrade ----

# newer PACKAGE: the same files, as version 99.
newer() {
	local tree=$work/newer
	rm -rf "$tree"
	dpkg-deb -R build/deb/"$1"_[0-9]*.deb "$tree"
	sed -i 's/^Version: .*/Version: 99/' "$tree/DEBIAN/control"
	dpkg-deb -b "$tree" "$work/$1_99.deb"
}

renewed_ms() {
	rlock status -u local: --json held | grep -o '"ttl_ms": *[0-9]*' | head -n 1 | grep -o '[0-9]*$'
}

# Its TTL goes down to 2 s and up again each second.
is_renewed() {
	local before after deadline=$((SECONDS + 10))
	before=$(renewed_ms)
	while ((SECONDS < deadline)); do
		after=$(renewed_ms)
		((after <= before)) || return 0
		before=$after
	done
	echo "no renewal, TTL $after"
	return 1
}

upgrade() {
	newer rlock && install "$work/rlock_99.deb" && [ "$(dpkg-query -W -f '${Version}' rlock)" = 99 ]
}

ends_well() {
	echo >"$work/go"
	wait "$holder"
}

mkfifo "$work/go"
rlock run -u local: -t 3s held -- sh -c 'read -r _ <"$0"' "$work/go" &
holder=$!
until rlock status -u local: held >/dev/null; do kill -0 $holder || break; done
check 'the program is upgraded while it holds a lock' upgrade
check 'the lock is held all the while' ends_with 75 rlock run -n -u local: held -- true
check 'the lock is renewed after that' is_renewed
check 'its command ends as always' ends_well

# ---- a program of a user's own ----

check 'apt installs a compiler' install gcc libc6-dev pkgconf
check 'a program is compiled with the library, and acquires a lock' packaging/debian/tests/library

# ---- purge ----

purge() {
	apt-get purge -y -q rlock librlock0 librlock-dev
}

# All but what it was told to keep while it runs, in /run.
leaves_nothing() {
	local left
	left=$(find / -xdev \( -path /proc -o -path /sys -o -path /run -o -path /var/log -o -path "$PWD" -o -path "$work" \
		-o -path "${PWD%/*}/shared" \) -prune -o -name '*rlock*' -print)
	[ -z "$left" ] || { echo "$left"; false; }
}

check 'the packages are purged' purge
check 'nothing of them is left' leaves_nothing
finish
