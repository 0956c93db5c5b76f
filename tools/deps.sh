#!/bin/sh
# Install what is missing for some uses of this tree. What is already installed, from any source, stays as it is.
#
#   tools/deps.sh USE...
#
# USE is one of
#   build            compiler and libraries                 demo             also a server
#   check            also what tests need                   check-release    also curl, jq, promtool, rpmbuild, venv
#   chaos            as check, and full-screen programs     interop          as check, and Java and Maven
#   servers          what tools/servers.sh needs            model            spin
#   valgrind, bench, fuzz, lint                             container        what builds images
#   dist             what makes the source archive          packages         what builds Debian packages
#   static           archives of the libraries              static-ARCH      a cross compiler
#   release          all of the last four
#
# The compiler that is tried is $CC $CPPFLAGS $CFLAGS, for fuzz $FUZZ_CC. Root or sudo is needed only if something is
# missing.
set -eu

# The names of the packages by package manager; "-": not packaged there. CI tries apt-get only.
packages='
thing        apt-get              dnf                  apk            pacman
bash         bash                 bash                 bash           bash
compiler     gcc,libc6-dev        gcc,glibc-devel      gcc,musl-dev   gcc
c++          g++                  gcc-c++              g++            gcc
make         make                 make                 make           make
pkg-config   pkg-config           pkgconf-pkg-config   pkgconf        pkgconf
hiredis      libhiredis-dev       hiredis-devel        hiredis-dev    hiredis
argtable2    libargtable2-dev     argtable-devel       argtable2-dev  argtable
openssl-dev  libssl-dev           openssl-devel        openssl-dev    openssl
static-libraries libc6-dev,libhiredis-dev,libargtable2-dev,libssl-dev,zlib1g-dev,libzstd-dev - openssl-libs-static,hiredis-dev,argtable2-dev -
cross-aarch64 gcc-aarch64-linux-gnu,libc6-dev-arm64-cross - - -
cross-x86_64 gcc-x86-64-linux-gnu,libc6-dev-amd64-cross - - -
openssl      openssl              openssl              openssl        openssl
redis-server redis-server         redis                redis          valkey
redis-cli    redis-tools          redis                redis          valkey
coreutils    coreutils            coreutils            coreutils      coreutils
curl         curl                 curl                 curl           curl
jq           jq                   jq                   jq             jq
procps       procps               procps-ng            procps-ng      procps-ng
binutils     binutils             binutils             binutils       binutils
util-linux   util-linux,bsdutils  util-linux           util-linux     util-linux
python3      python3              python3              python3        python
venv         python3-venv         python3              python3        python
bats         bats                 bats                 bats           bats
bats-support bats-support         bats-support         bats-support   bats-support
bats-assert  bats-assert          bats-assert          bats-assert    bats-assert
yaml         python3-yaml         python3-pyyaml       py3-yaml       python-yaml
parallel     parallel             parallel             parallel       parallel
zsh          zsh                  zsh                  zsh            zsh
fish         fish                 fish                 fish           fish
vi           vim-tiny             vim-minimal          -              vi
less         less                 less                 less           less
busybox      busybox              busybox              busybox        busybox
jdk          default-jdk-headless java-devel           openjdk17      jdk-openjdk
maven        maven                maven                maven          maven
pip          python3-pip          python3-pip          py3-pip        python-pip
rpmbuild     rpm                  rpm-build            rpm-dev        rpm-tools
buildah      buildah              buildah              buildah        buildah
promtool     prometheus           golang-github-prometheus prometheus  prometheus
patchelf     patchelf             patchelf             patchelf       patchelf
spin         spin                 spin                 -              -
valgrind     valgrind             valgrind             valgrind       valgrind
git          git                  git                  git            git
gzip         gzip                 gzip                 gzip           gzip
clang        clang                clang                clang          clang
fuzzer       clang,libclang-rt-dev clang,compiler-rt   clang,compiler-rt clang,compiler-rt
clang-format clang-format         clang-tools-extra    clang-extra-tools clang
clang-tidy   clang-tidy           clang-tools-extra    clang-extra-tools clang
cppcheck     cppcheck             cppcheck             cppcheck       cppcheck
luacheck     lua-check            -                    luacheck       luacheck
shellcheck   shellcheck           ShellCheck           shellcheck     shellcheck
mandoc       mandoc               mandoc               mandoc         mandoc
debian-tools build-essential      -                    -              -
debhelper    debhelper            -                    -              -
lintian      lintian              -                    -              -
'

missing=

# need THING COMMAND...: THING is missing unless COMMAND succeeds.
need() {
	thing=$1
	shift
	case " $missing " in *" $thing "*) return ;; esac
	"$@" >/dev/null 2>&1 || missing="$missing $thing"
}

has() {
	command -v "$1"
}

# shellcheck disable=SC2086
includes() {
	echo | ${CC:-cc} ${CPPFLAGS-} ${CFLAGS-} -include "$1" -E -x c -
}

has_library() {
	includes "$2" || pkg-config --exists "$1"
}

# can_link_static: whether the static archives of all libraries of rlock can be linked into a position-independent program.
can_link_static() {
	probe=$(mktemp) || return 1
	status=0
	# shellcheck disable=SC2046,SC2086
	echo 'void redisReaderCreate(void); void arg_parse(void); void SSL_new(void);
		int main(void) { redisReaderCreate(); arg_parse(); SSL_new(); return 0; }' |
		${CC:-cc} -static-pie -fPIE ${CFLAGS-} -o "$probe" -x c - -x none -lhiredis -largtable2 \
			$(pkg-config --static --libs libssl || echo -lssl -lcrypto) -lm || status=1
	rm -f "$probe"
	return $status
}

# compiles_for ARCH: whether a cross compiler for ARCH and its C library are installed.
compiles_for() (
	CC=$1-linux-gnu-gcc CPPFLAGS='' CFLAGS=''
	includes stdlib.h
)

has_server() {
	has redis-server || has valkey-server
}

has_cli() {
	has redis-cli || has valkey-cli
}

has_bats_library() {
	for dir in $(echo "${BATS_LIB_PATH-}" | tr : ' ') /usr/lib/bats /usr/share/bats; do
		[ ! -e "$dir/$1/load.bash" ] || return 0
	done
	return 1
}

# can_fuzz: whether the compiler can link its fuzzer and its sanitizers.
can_fuzz() {
	probe=$(mktemp) || return 1
	status=0
	echo '#include <stdint.h>
		int LLVMFuzzerTestOneInput(const uint8_t *data, unsigned long size);
		int LLVMFuzzerTestOneInput(const uint8_t *data, unsigned long size) { return size && *data; }' |
		${FUZZ_CC:-clang} -fsanitize=fuzzer,address,undefined -o "$probe" -x c - || status=1
	rm -f "$probe"
	return $status
}

need_for() {
	case $1 in
	build)
		need compiler includes stdlib.h
		need make has make
		need pkg-config has pkg-config
		need hiredis has_library hiredis hiredis/hiredis.h
		need argtable2 has_library argtable2 argtable2.h
		need openssl-dev has_library libssl openssl/ssl.h
		;;
	demo)
		need_for build
		need bash has bash
		need redis-server has_server
		need redis-cli has_cli
		;;
	check)
		need_for demo
		need openssl has openssl
		need coreutils env --default-signal timeout 10 realpath -m /
		need procps has pgrep
		need binutils has readelf
		need binutils has nm
		need c++ has "${CXX:-c++}"
		need util-linux has setsid
		need util-linux has script
		need python3 python3 -c 'import pty'
		need yaml python3 -c 'import yaml'
		need parallel has parallel
		need_for dist
		# Only Debian packages the static archives. Elsewhere the tests of the static program are left out.
		! has apt-get >/dev/null || need_for static
		need zsh has zsh
		need fish has fish
		need bats has "${BATS:-bats}"
		need bats-support has_bats_library bats-support
		need bats-assert has_bats_library bats-assert
		;;
	check-release)
		need_for check
		need curl has curl
		need venv python3 -c 'import ensurepip'
		need jq has jq
		need promtool has promtool
		need rpmbuild has rpmbuild
		;;
	static)
		need_for build
		need static-libraries can_link_static
		;;
	static-aarch64 | static-x86_64)
		# Do not ask for the libraries, which tools/sysroot.sh fetches.
		need make has make
		need pkg-config has pkg-config
		need "cross-${1#static-}" compiles_for "${1#static-}"
		;;
	dist)
		need git has git
		need python3 has python3
		need gzip has gzip
		need coreutils realpath -m /
		;;
	release)
		need_for dist
		need_for packages
		need_for static
		case $(uname -m) in
		x86_64) need_for static-aarch64 ;;
		aarch64) need_for static-x86_64 ;;
		esac
		;;
	packages)
		need_for build
		need debian-tools dpkg -s build-essential
		need debhelper has dh
		need lintian has lintian
		;;
	container)
		need_for check
		need buildah has buildah
		;;
	chaos)
		need_for check
		need vi has vi
		need less has less
		need busybox busybox sh -c :
		;;
	interop)
		need_for check
		need jdk has javac
		need maven has mvn
		;;
	servers)
		need_for interop
		need pip python3 -m pip --version
		need patchelf has patchelf
		;;
	model)
		need bash has bash
		need compiler includes stdlib.h
		need spin has spin
		;;
	valgrind)
		need valgrind has valgrind
		;;
	fuzz)
		need_for build
		need bash has bash
		need coreutils timeout 10 realpath -m /
		need fuzzer can_fuzz
		;;
	bench)
		need_for check
		;;
	lint)
		need_for build
		need git has git
		need clang has clang
		need clang-format has clang-format
		need clang-tidy has clang-tidy
		need cppcheck has cppcheck
		need luacheck has luacheck
		need shellcheck has shellcheck
		need mandoc has mandoc
		;;
	*)
		echo "deps.sh: no such use: '$1'" >&2
		exit 64
		;;
	esac
}

look() {
	missing=
	for use; do
		need_for "$use"
	done
	missing=${missing# }
}

# names MANAGER THING...: print the packages of these things, each once.
names() {
	echo "$packages" | awk -v manager="$1" -v things="$*" '
		BEGIN { n = split(things, t); for (i = 2; i <= n; i++) wanted[t[i]] }
		$1 == "thing" { for (i = 2; i <= NF; i++) if ($i == manager) column = i }
		$1 in wanted { n = split($column, p, ","); for (i = 1; i <= n; i++) if (p[i] != "-" && !seen[p[i]]++)
			{ printf "%s%s", sep, p[i]; sep = " " } }'
}

as_root() {
	if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

can_be_root() {
	[ "$(id -u)" -eq 0 ] || { has sudo && { [ -t 0 ] || sudo -n true; }; } >/dev/null 2>&1
}

policy=/usr/sbin/policy-rc.d

# hold_back_services, keep_services_off: Debian would start a service when it is installed, and whenever the machine starts.
# Prevent both, since the tests and local: start servers of their own.
hold_back_services() {
	[ -e $policy ] || {
		trap 'as_root rm -f $policy' EXIT
		trap 'exit 1' HUP INT TERM
		printf '#!/bin/sh\nexit 101\n' | as_root tee $policy >/dev/null
		as_root chmod 755 $policy
	}
}

keep_services_off() {
	for service in redis-server prometheus; do
		! as_root update-rc.d $service disable >/dev/null 2>&1 ||
			echo "deps: the system's $service is installed, but neither started nor enabled"
	done
}

apt_install() {
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -y -qq -o DPkg::Lock::Timeout=120 \
		-o Acquire::Retries=3 install --no-install-recommends "$@" </dev/null
}

install_packages() {
	case $manager in
	apt-get)
		case " $* " in *" redis-server "* | *" prometheus "*) hold_back_services ;; esac
		log=$(mktemp)
		# If the installation fails, the package lists may be missing or out of date: update them.
		if ! apt_install "$@" >"$log" 2>&1; then
			as_root apt-get -qq -o Acquire::Retries=3 update </dev/null >"$log" 2>&1 || :
			apt_install "$@" >>"$log" 2>&1 || cat "$log" >&2
		fi
		rm -f "$log"
		case " $* " in *" redis-server "* | *" prometheus "*) keep_services_off ;; esac
		;;
	dnf) as_root dnf -y -q install "$@" ;;
	apk) as_root apk add -q "$@" ;;
	pacman) as_root pacman -S --noconfirm --needed "$@" ;;
	esac
}

look "$@"
if [ -z "$missing" ]; then
	echo "deps: nothing is missing for: $*"
	exit 0
fi

manager=
for candidate in apt-get dnf apk pacman; do
	! has "$candidate" >/dev/null || { manager=$candidate; break; }
done
case $manager in
'')
	echo "deps: missing: $missing; please install that, there is no package manager here that we know" >&2
	exit 1
	;;
apt-get | dnf) command="$manager install" ;;
apk) command='apk add' ;;
pacman) command='pacman -S' ;;
esac
# shellcheck disable=SC2086
wanted=$(names $manager $missing)
if ! can_be_root; then
	echo "deps: missing: $missing; to install that takes root: sudo $command $wanted" >&2
	exit 1
fi
echo "deps: missing: $missing; $manager installs: $wanted"
# shellcheck disable=SC2086
install_packages $wanted
look "$@"
[ -z "$missing" ] || {
	echo "deps: still missing: $missing" >&2
	exit 1
}
