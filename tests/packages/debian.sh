#!/usr/bin/env bash
# Make a release twice and compare the two. Then remove the compiler from this machine, and install, use, upgrade and purge the
# packages. Run it as root on a bare Debian that is thrown away afterwards. The output is TAP, and the totals.
#
#   tests/packages/debian.sh --on-a-machine-to-throw-away
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 71

if [ "${1-}" != --on-a-machine-to-throw-away ] || [ "$(id -u)" != 0 ]; then
	sed -n '2,6s/^# \{0,1\}//p' "$0" >&2
	exit 64
fi
# A machine with a compiler or rlock is in use. This script would remove packages that its user needs.
if command -v cc || command -v gcc || command -v rlock; then
	echo 'debian.sh: this is no bare machine: it has that; nothing was changed' >&2
	exit 64
fi >&2

export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
work=$(mktemp -d)
# The release of this version, and the packages of the next version.
first=$work/first/release newer=$work/newer/deb
version=$(sed -n 's/^.define RLOCK_VERSION "\(.*\)"/\1/p' lib/rlock.h)
count=0 failed=0

stop_local_server() {
	local pid
	[ -e /run/rlock/local.pid ] || return 0
	pid=$(cat /run/rlock/local.pid)
	# Wait until the server has ended. Otherwise a later call could still connect to it, and would exit with 69 when it ends.
	kill "$pid" && timeout 10 tail --pid="$pid" -f /dev/null
}

# shellcheck disable=SC2046
clean_up() {
	kill $(jobs -p)
	wait
	stop_local_server
	rm -rf "$work"
} 2>/dev/null
trap clean_up EXIT

# check CLAIM COMMAND...: report CLAIM as a passed test if COMMAND succeeds, else as a failed one, with the output.
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

ends_with() {
	local status=0
	"${@:2}" || status=$?
	[ "$status" = "$1" ] || { echo "exit status $status"; false; }
}

install() {
	apt-get install -y -q --no-install-recommends "$@"
}

packages() {
	dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' | sed -n 's/^ii *//p' | sort
}

# ---- build ----

# copy_tree FOLDER: copy the last commit to FOLDER, outside of any repository.
copy_tree() {
	mkdir -p "$1" && git archive HEAD | tar -x -C "$1"
}

# build: make the release with variables that a user may give to make. None of them may change the release.
build() {
	make release BUILD="$work/first" CFLAGS=-O0 LINK=dynamic PREFIX=/nowhere
}

# build_again: make the release again, in another place, later, with another umask, locale, time zone and number of processors.
build_again() {
	local tree=$work/another/place/with/a/longer/name
	git clone -q . "$tree" && (umask 077 && cd "$tree" &&
		TZ=Asia/Kathmandu LC_ALL=C DEB_BUILD_OPTIONS='nocheck parallel=1' packaging/release.sh "$work/again")
}

is_built_the_same() {
	(cd "$first" && ls && sha256sum --check --strict SHA256SUMS) && diff -r "$first" "$work/again"
}

next_version() {
	copy_tree "$work/next" && sed -i "s/^\(.define RLOCK_VERSION\) .*/\1 \"$version.1\"/" "$work/next/lib/rlock.h"
	ends_with 78 "$work/next/packaging/deb.sh" "$newer"
}

build_newer() {
	local log=$work/next/packaging/debian/changelog
	{
		printf 'rlock (%s.1) unstable; urgency=medium\n\n  * The next version.\n\n' "$version"
		printf ' -- The rlock authors <maintainers@rlock.invalid>  %s\n\n' "$(date -R)"
		cat packaging/debian/changelog
	} >"$log"
	DEB_BUILD_OPTIONS=nocheck "$work/next/packaging/deb.sh" "$newer"
}

packages >"$work/before"
check 'the release is made, and lintian finds nothing in its packages' build
[ "$failed" = 0 ] || finish
check 'the release is made in another place' build_again
check 'both builds have the same bytes' is_built_the_same
check 'a version without an entry in the changelog is not built' next_version
check 'the next version is built with such an entry' build_newer

# ---- a machine without a compiler ----

remove_what_builds() {
	packages | comm -13 "$work/before" - | xargs apt-get purge -y -q --allow-remove-essential
	apt-get autoremove -y -q --purge
	! command -v cc && ! command -v gcc && ! command -v dpkg-buildpackage
}

# files: list all files and directories, except those of apt and dpkg, and those that programs keep while they run.
files() {
	find / -xdev \( -path "$work" -o -path "$PWD" -o -path /proc -o -path /sys -o -path /dev -o -path /run \
		-o -path /var/cache -o -path /var/log -o -path /var/lib/apt -o -path /var/lib/dpkg -o -path /etc/ld.so.cache \) -prune \
		-o -type d -printf '%p %m %u:%g\n' -o -printf '%p %m %u:%g %s %l\n' | sort
	find /var/lib/dpkg/info -name '*rlock*'
}

remember_files() {
	files >"$work/files"
}

# purges CLAIM PACKAGE...: purge these packages and those that were installed for them. No file may be left.
purges() {
	check "apt purges $1" purge "${@:2}"
	check "nothing is left of $1" leaves_nothing
}

purge() {
	apt-get purge -y -q "$@" && apt-get autoremove -y -q --purge &&
		! dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' "$@" | grep '^[^u]'
}

leaves_nothing() {
	diff "$work/files" <(files)
}

check 'the machine has no compiler any more' remove_what_builds

# ---- install ----

# install_first: install the packages as users do, with recommended packages.
install_first() {
	apt-get install -y -q "$first"/rlock_[0-9]*.deb "$first"/librlock1_[0-9]*.deb
}

is_version() {
	rlock --version | grep -F "rlock $1 (" && [ "$(dpkg-query -W -f '${Version} ' rlock librlock1)" = "$1 $1 " ]
}

has_files() {
	local file
	for file in /usr/bin/rlock /usr/share/man/man{1/rlock.1,7/rlock-protocol.7}.gz /usr/lib/tmpfiles.d/rlock.conf \
		/usr/share/{bash-completion/completions/rlock,zsh/vendor-completions/_rlock,fish/vendor_completions.d/rlock.fish} \
		/usr/share/doc/rlock/examples/crontab /usr/lib/*/librlock.so.1; do
		dpkg -S "$file" && [ -s "$file" ] || return
	done
	# The manual must name these paths, and none of /usr/local.
	for file in /usr/lib/tmpfiles.d/rlock.conf /usr/share/zsh/vendor-completions/_rlock; do
		zcat /usr/share/man/man1/rlock.1.gz | grep -F "$file" || return
	done
	! zcat /usr/share/man/man1/rlock.1.gz | grep -E '/usr/local/(lib|share)'
}

# has_libraries: whether the package depends on hiredis and argtable2, and recommends the package with the OpenSSL that the
# program loads.
has_libraries() {
	local loaded
	loaded=$(dpkg -S "*/$(grep -ao -m 1 'libssl\.so\.[0-9]*' /usr/bin/rlock | head -n 1)" | sed -n '1s/:.*//p')
	dpkg-query -W -f '${Depends} recommends ${Recommends}\n' rlock | grep "libargtable2-0.*libhiredis.* recommends $loaded\$"
}

check 'apt installs what the tests of the package take' \
	install redis-server redis-tools bash-completion zsh fish openssl
check 'all files of the machine are remembered' remember_files
check 'apt installs the program and the library' install_first
check 'the installed program has the right version' is_version "$version"
check 'its files are in the directories of Debian' has_files
check 'it depends on the packages of its libraries' has_libraries

# ---- use ----

# test_of_package NAME: run that test of packaging/debian/tests as autopkgtest does.
test_of_package() {
	mkdir "$work/$1" && AUTOPKGTEST_TMP=$work/$1 "packaging/debian/tests/$1"
}

check 'a command runs with a lock of the private server' ends_with 0 rlock run -u local: x -- true
check 'rlock exits with the status of the command' ends_with 7 rlock run -u local: x -- sh -c 'exit 7'
for test in local contend tls completion; do
	check "the test of the package passes: $test" test_of_package "$test"
done

# ---- upgrade ----

# await REGEXP: wait until the JSON of rlock status matches.
await() {
	local deadline=$((SECONDS + 10))
	until rlock status -u local: --json held | grep -E "$1"; do
		((SECONDS < deadline)) || { echo "never $1"; return 1; }
	done
}

# is_renewed: the lease is 3 s, and is renewed each second. So the TTL must fall below 2.5 s, and then rise above that again.
is_renewed() {
	await '"ttl_ms": *2[0-4]' && await '"ttl_ms": *2[5-9]'
}

hold() {
	rlock run -u local: -t 3s held -- sh -c 'read -r _ <"$0"; echo holder >>"$1"' "$work/go" "$work/order" &
	holder=$!
	await '"held":true' || return
	rlock run -u local: -w 10m held -- sh -c 'echo waiter >>"$0"' "$work/order" &
	waiter=$!
	await '"waiter_count":1' && rlock lock -u local: --pid $$ script
}

ends_well() {
	kill -0 "$holder" && kill -0 "$waiter" && echo >"$work/go" && wait "$holder" && wait "$waiter" &&
		[ "$(cat "$work/order")" = $'holder\nwaiter' ]
}

mkfifo "$work/go"
check 'a command holds a lock, another one waits for it, a script holds one' hold
check 'the packages are upgraded while these run' install "$newer"/rlock_[0-9]*.deb "$newer"/librlock1_[0-9]*.deb
check 'the installed program has the next version' is_version "$version.1"
check 'the lock is still held' ends_with 75 rlock run -n -u local: held -- true
check 'the lock is renewed after that' is_renewed
check 'its command ends as without an upgrade, and then the waiter runs' ends_well
check 'the next version releases the lock of the script' rlock unlock -u local: script
check 'the script then holds no lock' ends_with 1 rlock unlock -u local: script
check 'the private server is stopped' stop_local_server
purges 'the upgraded packages' rlock librlock1

# ---- a program of a user's own ----

check 'apt installs a compiler' install gcc libc6-dev pkgconf
check 'all files are remembered, with the compiler' remember_files
check 'apt installs what is needed to compile with the library' install "$first"/librlock{1,-dev}_[0-9]*.deb
check 'a program is compiled with the library, and acquires a lock' test_of_package library
purges 'the library' librlock1 librlock-dev

# ---- the wheel and the static programs ----

install_wheel() {
	python3 -m venv "$work/venv" && "$work/venv/bin/pip" install --no-index "$first"/*"$(uname -m).whl" &&
		ends_with 7 "$work/venv/bin/rlock" run -u local: x -- sh -c 'exit 7' && stop_local_server
}

other=aarch64
[ "$(uname -m)" != $other ] || other=x86_64

# Use --owner: the emulator of Debian 12 lacks a flag of clone(2), without which the program cannot start a renewer.
emulated() {
	local program=("qemu-$other" "$first/rlock-$version-linux-$other")
	rlock_here run -u local: x -- true && "${program[@]}" lock -u local: --owner me --lease 10s x &&
		ends_with 75 rlock_here run -n -u local: x -- true && "${program[@]}" unlock -u local: --owner me x || return
	[ "$(sed -n 's/^VERSION_ID=//p' /etc/os-release)" = '"12"' ] ||
		ends_with 7 "${program[@]}" run -u local: x -- sh -c 'exit 7'
}

rlock_here() {
	"$first/rlock-$version-linux-$(uname -m)" "$@"
}

check 'apt installs an emulator and venv' install qemu-user python3-venv
check 'pip installs the wheel without a network, and its program runs a command with a lock' install_wheel
check 'the program of the other architecture acquires and releases a lock in the emulator' emulated
finish
