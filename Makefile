# Build rlock into build/. `make help` lists the targets; tests/tests.mk has the targets that run tests.

PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
LIBEXECDIR ?= $(PREFIX)/libexec
MANDIR ?= $(PREFIX)/share/man
TMPFILESDIR ?= $(PREFIX)/lib/tmpfiles.d
EXAMPLESDIR ?= $(PREFIX)/share/doc/rlock/examples
# Directories in which bash, zsh and fish search for completions.
BASHCOMPDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHCOMPDIR ?= $(PREFIX)/share/zsh/site-functions
FISHCOMPDIR ?= $(PREFIX)/share/fish/vendor_completions.d
DESTDIR ?=

CC ?= cc
AR ?= ar
STRIP ?= strip
CPPFLAGS ?=
CFLAGS ?= -O2 -g
LDFLAGS ?=
PKG_CONFIG ?= pkg-config

BUILD ?= build
# static: link the program with the archives of hiredis and argtable2 if they are installed, since each
# shared library adds 100-200 us to every start. dynamic: link shared libraries, as distributions want.
LINK ?= static
# load: the program loads OpenSSL when a connection needs TLS, since linking OpenSSL makes each start 1 ms longer.
# linked: link OpenSSL, for a static program, which cannot load libraries.
TLS ?= load
# WERROR=1: warnings are errors. V=1: show the commands.
WERROR ?=
V ?=

VERSION := $(shell sed -n 's/^.define RLOCK_VERSION "\(.*\)"/\1/p' lib/rlock.h)
# The first number of the version changes when programs must be compiled again for the library.
SONAME := librlock.so.$(firstword $(subst ., ,$(VERSION)))

STATIC := $(BUILD)/static
# ARCH=aarch64 or ARCH=x86_64: `make static` builds for that machine, with Debian's cross compiler and the libraries that
# tools/sysroot.sh fetches. A variable of the environment does not count, since it may be meant for another make.
ifeq ($(origin ARCH),command line)
STATIC := $(BUILD)/static-$(ARCH)
SYSROOT := $(abspath $(BUILD))/sysroot-$(ARCH)
CC = $(ARCH)-linux-gnu-gcc -isystem $(SYSROOT)/usr/include -isystem $(SYSROOT)/usr/include/$(ARCH)-linux-gnu \
	-L$(SYSROOT)/usr/lib/$(ARCH)-linux-gnu
AR = $(ARCH)-linux-gnu-ar
STRIP = $(ARCH)-linux-gnu-strip
PKG_CONFIG = PKG_CONFIG_LIBDIR=$(SYSROOT)/usr/lib/$(ARCH)-linux-gnu/pkgconfig PKG_CONFIG_SYSROOT_DIR=$(SYSROOT) pkg-config
endif

# ---- flags ----

# $(call once,NAME,VALUE): evaluate VALUE at the first use of the variable NAME, and keep the result. An earlier evaluation
# would fail: the compiler and the libraries may be missing until `prepare` has run.
once = $(eval $1 := $2)$($1)

pkg_cflags = $(shell $(PKG_CONFIG) --cflags $1 2>/dev/null)
pkg_libs = $(or $(shell $(PKG_CONFIG) --libs $1 2>/dev/null),-l$1)
# Remove "/hiredis" from the path: our sources include <hiredis/hiredis.h>, which also works without pkg-config.
HIREDIS_CFLAGS ?= $(call once,HIREDIS_CFLAGS,$(patsubst -I%/hiredis,-I%,$(call pkg_cflags,hiredis)))
HIREDIS_LIBS ?= $(call once,HIREDIS_LIBS,$(call pkg_libs,hiredis))
# Flags for the headers only: the program loads the library at run time.
OPENSSL_CFLAGS ?= $(call once,OPENSSL_CFLAGS,$(call pkg_cflags,libssl))
OPENSSL_LIBS = $(call pkg_libs,libssl) -lcrypto
TLS_LIBS = $(if $(filter linked,$(TLS)),$(OPENSSL_LIBS),-ldl)
ARGTABLE_CFLAGS ?= $(call once,ARGTABLE_CFLAGS,$(call pkg_cflags,argtable2))
ARGTABLE_LIBS ?= $(call once,ARGTABLE_LIBS,$(call pkg_libs,argtable2))

# The version in the header that we compile with; empty if the compiler does not find the header.
hiredis_version = $(shell echo 'VERSION HIREDIS_MAJOR.HIREDIS_MINOR.HIREDIS_PATCH' \
	| $(CC) $(HIREDIS_CFLAGS) $(ARGTABLE_CFLAGS) $(CPPFLAGS) $(CFLAGS) -E -P -x c \
	  -include argtable2.h -include hiredis/hiredis.h - 2>/dev/null | sed -n 's/^VERSION//p' | tr -d ' ')
HIREDIS_VERSION = $(call once,HIREDIS_VERSION,$(or $(hiredis_version),$(error \
	no C compiler, or no headers of hiredis or argtable2: 'make deps' installs what is missing)))

# $(call try,FLAG): FLAG if the compiler accepts it together with the user's flags, else nothing.
try = $(shell $(CC) -Werror $1 $(CPPFLAGS) $(CFLAGS) -include stdlib.h -S -o /dev/null -x c /dev/null \
	2>/dev/null && echo '$1')
# Ask the compiler before _FORTIFY_SOURCE is set: the headers of the C library warn without -O, and if it is set twice.
HARDEN = $(call once,HARDEN,-fstack-protector-strong $(call try,-fstack-clash-protection) \
	$(or $(call try,-D_FORTIFY_SOURCE=3),$(call try,-D_FORTIFY_SOURCE=2)))

# Call functions of shared libraries by their addresses, without the table of jumps: the page of that table and its neighbours
# would stay in the memory of each sleeping process.
DIRECT = $(call once,DIRECT,$(call try,-fno-plt))

# $(call choose,LIBS,FUNCTION): LIBS, linked from the archive if LINK=static and a test program with FUNCTION links with it.
static = -Wl,-Bstatic $1 -Wl,-Bdynamic
choose = $(if $(filter static,$(LINK)),$(or $(shell mkdir -p $(BUILD); \
	echo 'void $2(void); int main(void) { $2(); return 0; }' \
	| $(CC) -pie -fPIE $(CFLAGS) $(LDFLAGS) -o $(BUILD)/probe.$2 -x c - -x none $(call static,$1) -lm \
	  2>/dev/null && rm $(BUILD)/probe.$2 && echo '$(call static,$1)'),$1),$1)
PROGRAM_LIBS = $(call once,PROGRAM_LIBS,$(call choose,$(HIREDIS_LIBS),redisReaderCreate) \
	$(call choose,$(ARGTABLE_LIBS),arg_parse) $(TLS_LIBS) -lm)
# Pack the relocations of the static program: OpenSSL brings 20,000 of them. The program is then 8 % smaller, and starts 2 to 3 %
# sooner. The C library must apply them (glibc 2.36). A linker that does not know the option ignores it, with a warning.
PACKED = $(call once,PACKED,$(shell mkdir -p $(BUILD); \
	echo '_Static_assert(__GLIBC_PREREQ(2, 36), ""); int main(void) { return 0; }' | $(CC) -static-pie -fPIE \
	  -Wl,--fatal-warnings,-z,pack-relative-relocs -o $(BUILD)/probe.packed -include stdlib.h -x c - \
	  2>/dev/null && rm $(BUILD)/probe.packed && echo '-Wl,-z,pack-relative-relocs'))
# Libraries of the static program, and the libraries that their archives need.
STATIC_LIBS = $(call once,STATIC_LIBS,$(foreach name,hiredis argtable2 libssl,$(or $(shell \
	$(PKG_CONFIG) --static --libs $(name) 2>/dev/null),-l$(name:lib%=%))) -lcrypto -lm)

WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes \
	-Wvla -Wformat=2 $(if $(WERROR),-Werror)
LANGUAGE := -std=c11 -D_GNU_SOURCE

# Flags by the directory of the source. The objects of lib/ go into the archive and into the shared library: hence -fPIC.
FLAGS_lib = -iquote lib -fPIC -fvisibility=hidden $(HIREDIS_CFLAGS) $(OPENSSL_CFLAGS) \
	$(if $(filter linked,$(TLS)),-DRLOCK_TLS_LINKED)
FLAGS_cli = -iquote . -iquote cli -fPIE $(ARGTABLE_CFLAGS) -DHIREDIS_VERSION_TEXT='"$(HIREDIS_VERSION)"'
FLAGS_packaging = $(FLAGS_cli)
FLAGS_tests = -iquote . -iquote lib -iquote cli -fPIC $(HIREDIS_CFLAGS) $(OPENSSL_CFLAGS)
# Settings by the tree of objects: build/, the static program, and two of tests.mk. The user's flags come last and win.
TREE_CC = $(CC)
TREE_PIE = -pie
TREE_LIBS = $(PROGRAM_LIBS)
TREE_LINKED =
TREE_CFLAGS = $(HARDEN) $(DIRECT) $(CPPFLAGS) $(CFLAGS)
TREE_LDFLAGS = -Wl,-z,relro,-z,now -Wl,--as-needed -pthread $(CFLAGS) $(LDFLAGS)

# ---- files ----

SOURCES := $(wildcard lib/*.c lib/*/*.c cli/*.c cli/*/*.c packaging/*/*.c tests/*/*.c tests/tools/*/*.c)
HEADERS := $(wildcard lib/*.h lib/*/*.h cli/*.h cli/*/*.h tests/*/*.h tests/tools/*/*.h)
CXX_SOURCES := $(wildcard tests/*/*.cpp)
OBJECTS := $(SOURCES:.c=.o) lib/scripts.gen.o
LIB_OBJECTS := $(filter lib/%,$(OBJECTS))
CLI_OBJECTS := $(filter cli/%,$(OBJECTS))
PAGES := $(wildcard man/*.[1-9])
RECIPES := $(wildcard packaging/recipes/*)
# Each function of the library gets a manual page of its name, which is librlock(3).
FUNCTIONS = $(shell sed -n 's/^[.]Nm \(rlock_[a-z_]*\).*/\1/p' man/librlock.3)
COMPLETIONS := $(addprefix $(BUILD)/completions/,rlock.bash rlock.zsh rlock.fish)
PRODUCTS := $(addprefix $(BUILD)/,rlock librlock.a $(SONAME) librlock.pc) $(COMPLETIONS)
TREES := $(BUILD) $(STATIC) $(BUILD)/sanitize $(BUILD)/fuzz

# ---- how things are made ----

Q := $(if $(V),,@)
# $(call step,WORD): print WORD and $@, and make the directory of $@. Write it before the command that makes $@.
step = $(Q)$(if $(V),,printf '  %-5s %s\n' $1 $@; )mkdir -p $(@D) &&
# $(call remember,LINES): write quoted lines to $@, but leave $@ and its time alone if it has these lines already.
remember = @mkdir -p $(@D); printf '%s\n' $1 >$@.new; cmp -s $@.new $@ && rm $@.new || mv $@.new $@
quote = '$(subst ','\'',$1)'
# $(call compile,DIRECTORY): compile $< to $@ with the flags of DIRECTORY: lib, cli, packaging or tests.
compile = $(call step,CC)$(TREE_CC) $(LANGUAGE) $(WARNINGS) $(FLAGS_$1) $(TREE_CFLAGS) -MMD -MP -c -o $@ $<
link = $(call step,LINK)$(TREE_CC) $(TREE_PIE) $(TREE_LDFLAGS) -o $@ $^ $(TREE_LIBS) $(TREE_LINKED)
archive = $(call step,AR)rm -f $@ && $(AR) rcs $@ $^

.PHONY: all
all: $(PRODUCTS) ## the program, the library, its .pc file and completions (the default)

# flags changes with the compile commands and the list of sources: all objects of the tree are then compiled again.
$(TREES:%=%/flags): FORCE | prepare
	$(call remember,$(call quote,$(TREE_CC) $(LANGUAGE) $(WARNINGS) $(FLAGS_lib) $(FLAGS_cli) $(TREE_CFLAGS)) \
		$(call quote,$(TREE_LDFLAGS) $(TREE_LIBS)) $(LIB_OBJECTS) $(CLI_OBJECTS))

ifdef SYSROOT
$(STATIC)/flags: | $(SYSROOT)/complete
$(SYSROOT)/complete: | prepare
	$(call step,FETCH)tools/sysroot.sh $(ARCH) $(@D)
endif

# The linker warns of each function of glibc that may load a library at run time. Replace these warnings by the one fact that
# matters to users: rlock does not call the functions of OpenSSL among them. All other warnings are printed.
STATIC_NOTE := static: host names come from /etc/hosts and DNS; another service of nsswitch.conf needs the glibc of this machine
$(STATIC)/%: private TLS = linked
# No build id, which would depend on the directory of the build: the stripped program has the same bytes in every directory.
$(STATIC)/%: private TREE_PIE = -static-pie $(PACKED) -Wl,--build-id=none -Wl,-Map=$@.map
$(STATIC)/%: private TREE_LIBS = $(STATIC_LIBS)
$(STATIC)/%: private TREE_LINKED = 2>$@.said || { cat $@.said >&2; exit 1; }; \
	if grep -q "'getaddrinfo' in statically" $@.said; then echo '$(STATIC_NOTE)'; fi; \
	grep -vE ": in function|'(getaddrinfo|gethostbyname|dlopen)' in statically" $@.said >&2; rm -f $@.said
$(STATIC)/%.o: %.c $(STATIC)/flags
	$(call compile,$(firstword $(subst /, ,$<)))

$(BUILD)/%.o: %.c $(BUILD)/flags
	$(call compile,$(firstword $(subst /, ,$<)))

$(TREES:%=%/lib/scripts.gen.o): %/lib/scripts.gen.o: $(BUILD)/scripts.gen.c %/flags
	$(call compile,lib) -Wno-overlength-strings

# The directories are prerequisites so that a removed script is noticed.
$(BUILD)/scripts.gen.c: lua/embed.sh lua/expand.awk $(wildcard lua/*.lua lua/inc/*.lua) lua lua/inc
	$(call step,LUA)lua/embed.sh $@

$(TREES:%=%/librlock.a): %/librlock.a: $(addprefix %/,$(LIB_OBJECTS))
	$(archive)

$(TREES:%=%/rlock): %/rlock: $(addprefix %/,$(CLI_OBJECTS)) %/librlock.a
	$(link)

$(BUILD)/$(SONAME): $(addprefix $(BUILD)/,$(LIB_OBJECTS))
	$(call step,LINK)$(CC) -shared -Wl,-soname,$(SONAME) -Wl,-z,defs $(TREE_LDFLAGS) -o $@ $^ $(HIREDIS_LIBS) $(TLS_LIBS)

$(BUILD)/librlock.pc: FORCE
	$(call remember,'libdir=$(LIBDIR)' 'includedir=$(INCLUDEDIR)' '' 'Name: librlock' \
		'Description: locks on Redis or Valkey that Redisson shares' 'Version: $(VERSION)' \
		'Requires.private: hiredis' 'Libs: -L$${libdir} -lrlock' 'Libs.private: $(TLS_LIBS) -pthread' 'Cflags: -I$${includedir}')

# All of cli/ but main(): the tables of the completions, the unit tests and the fuzz targets are linked with it.
$(TREES:%=%/cli.a): %/cli.a: $(addprefix %/,$(filter-out cli/main.o,$(CLI_OBJECTS)))
	$(archive)

# A completion is the tables of verbs and options, printed by a program from the tables of the source, then the file of its shell.
$(BUILD)/completions/table: $(addprefix $(BUILD)/,packaging/completions/table.o cli.a librlock.a)
	$(link)

$(COMPLETIONS): $(BUILD)/completions/rlock.%: packaging/completions/rlock.% $(BUILD)/completions/table
	$(call step,SHELL){ $(BUILD)/completions/table $* && cat $<; } >$@

-include $(wildcard $(foreach tree,$(TREES),$(OBJECTS:%.o=$(tree)/%.d)))

.PHONY: FORCE
FORCE:

# ---- what a person asks for ----

# Install what the goals need, before anything is compiled or run. A plain `make` installs nothing. NEEDS_GOAL has the uses
# of tools/deps.sh that a goal needs.
NEEDS_deps := build
NEEDS_demo := demo
NEEDS_deb := packages
NEEDS_dist := dist
NEEDS_release := release
NEEDS_static := static$(STATIC:$(BUILD)/static%=%)
NEEDS_lint := lint
NEEDS = $(sort $(foreach goal,$(MAKECMDGOALS),$(NEEDS_$(goal))))
.PHONY: prepare
prepare:
	$(if $(NEEDS),$(Q)CC='$(CC)' FUZZ_CC='$(FUZZ_CC)' CPPFLAGS='$(CPPFLAGS)' CFLAGS='$(CFLAGS)' tools/deps.sh $(NEEDS))

.PHONY: deps
deps: prepare ## install what is missing to build (needs root or sudo)

# The manual names the default directories. Replace them by the directories of this installation.
INSTALLED_PATHS = $(foreach pair,$(LIBEXECDIR)=libexec $(TMPFILESDIR)=lib/tmpfiles.d $(BASHCOMPDIR)=share/bash-completion/completions \
	$(EXAMPLESDIR)=share/doc/rlock/examples $(ZSHCOMPDIR)=share/zsh/site-functions $(FISHCOMPDIR)=share/fish/vendor_completions.d,\
	-e 's|/usr/local/$(lastword $(subst =, ,$(pair)))|$(firstword $(subst =, ,$(pair)))|')

.PHONY: static
static: $(STATIC)/rlock ## a program that needs no library, with TLS, and its notices, in BUILD/dist; ARCH=aarch64: for another machine
	$(Q)program=$(BUILD)/dist/rlock-$(VERSION)-linux-$(firstword $(subst -, ,$(shell $(CC) -dumpmachine))) && \
		mkdir -p $(BUILD)/dist && $(STRIP) -o "$$program" $< && \
		{ packaging/notices.sh $<.map $(SYSROOT) >"$$program.notices" || \
		{ rm "$$program.notices"; echo "static: do not publish $$program without the licences of its libraries"; }; }

.PHONY: install
install: all ## copy everything to its place below DESTDIR and PREFIX
	$(Q)install -D -m 755 $(BUILD)/rlock $(DESTDIR)$(BINDIR)/rlock
	$(Q)mkdir -p $(DESTDIR)$(LIBEXECDIR)/rlock && ln -sf $(BINDIR)/rlock $(DESTDIR)$(LIBEXECDIR)/rlock/flock
	$(Q)install -D -m 644 lib/rlock.h $(DESTDIR)$(INCLUDEDIR)/rlock.h
	$(Q)install -D -m 644 $(BUILD)/librlock.a $(DESTDIR)$(LIBDIR)/librlock.a
	$(Q)install -D -m 755 $(BUILD)/$(SONAME) $(DESTDIR)$(LIBDIR)/librlock.so.$(VERSION)
	$(Q)ln -sf librlock.so.$(VERSION) $(DESTDIR)$(LIBDIR)/$(SONAME)
	$(Q)ln -sf $(SONAME) $(DESTDIR)$(LIBDIR)/librlock.so
	$(Q)install -D -m 644 $(BUILD)/librlock.pc $(DESTDIR)$(LIBDIR)/pkgconfig/librlock.pc
	$(Q)install -D -m 644 packaging/rlock.tmpfiles.conf $(DESTDIR)$(TMPFILESDIR)/rlock.conf
	$(Q)install -D -m 644 $(BUILD)/completions/rlock.bash $(DESTDIR)$(BASHCOMPDIR)/rlock
	$(Q)install -D -m 644 $(BUILD)/completions/rlock.zsh $(DESTDIR)$(ZSHCOMPDIR)/_rlock
	$(Q)install -D -m 644 $(BUILD)/completions/rlock.fish $(DESTDIR)$(FISHCOMPDIR)/rlock.fish
	$(Q)install -d $(DESTDIR)$(EXAMPLESDIR) && install -p -m 644 $(RECIPES) $(DESTDIR)$(EXAMPLESDIR)
	$(Q)for page in $(PAGES); do \
		to=$(DESTDIR)$(MANDIR)/man$${page##*.}/$${page##*/}; mkdir -p "$${to%/*}" && \
		sed $(INSTALLED_PATHS) $$page >"$$to" && chmod 644 "$$to" || exit; done
	$(Q)for name in $(FUNCTIONS); do \
		to=$(DESTDIR)$(MANDIR)/man3/$$name.3; echo .so man3/librlock.3 >"$$to" && chmod 644 "$$to" || exit; done

.PHONY: uninstall
uninstall: ## take away what install has put there
	$(Q)rm -f $(addprefix $(DESTDIR),$(BINDIR)/rlock $(LIBEXECDIR)/rlock/flock $(INCLUDEDIR)/rlock.h $(LIBDIR)/librlock.a \
		$(LIBDIR)/librlock.so.$(VERSION) $(LIBDIR)/$(SONAME) $(LIBDIR)/librlock.so \
		$(LIBDIR)/pkgconfig/librlock.pc $(TMPFILESDIR)/rlock.conf $(BASHCOMPDIR)/rlock \
		$(ZSHCOMPDIR)/_rlock $(FISHCOMPDIR)/rlock.fish $(addprefix $(EXAMPLESDIR)/,$(notdir $(RECIPES))) \
		$(foreach page,$(PAGES),$(MANDIR)/man$(subst .,,$(suffix $(page)))/$(notdir $(page))) \
		$(addprefix $(MANDIR)/man3/,$(addsuffix .3,$(FUNCTIONS))))

.PHONY: deb
deb: | prepare ## Debian packages of what is committed, checked by lintian, in BUILD/deb
	$(Q)packaging/deb.sh $(BUILD)/deb

.PHONY: demo
demo: $(BUILD)/rlock ## play two contenders on a private server; installs what is missing
	$(Q)RLOCK_BIN=$(BUILD)/rlock tests/demo.sh

LINTS := lint-format lint-header lint-includes lint-tidy lint-cppcheck lint-lua lint-shell lint-man lint-mutants lint-paths
.PHONY: lint $(LINTS)
lint: $(LINTS) ## clang-format, clang-tidy, cppcheck, luacheck, shellcheck, mandoc
$(LINTS): | prepare

lint-format:
	$(Q)clang-format --dry-run -Werror $(SOURCES) $(HEADERS) $(CXX_SOURCES)

# The public header must compile alone, as C11 and as C++.
lint-header:
	$(Q)clang -std=c11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -x c lib/rlock.h
	$(Q)clang -std=c++11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -x c++ lib/rlock.h

lint-includes:
	$(Q)tools/includes.sh

# Print the output of clang-tidy only if it fails: it always prints something. max-nodes: the default of 225000 paths of a
# function takes three times as long.
lint-tidy:
	$(Q)printf '%s\n' $(SOURCES) | xargs -P "$$(nproc)" -n 1 sh -c 'out=$$(clang-tidy --quiet "$$1" -- \
		$(LANGUAGE) $(WARNINGS) $(FLAGS_tests) $(ARGTABLE_CFLAGS) -DHIREDIS_VERSION_TEXT=\"\" \
		-Xclang -analyzer-config -Xclang max-nodes=75000 2>&1) || { printf "%s\n" "$$out"; exit 1; }' sh

lint-cppcheck:
	$(Q)cppcheck --quiet --std=c11 --enable=warning,performance,portability --inline-suppr \
		--error-exitcode=1 --suppress=missingIncludeSystem -D_GNU_SOURCE -I. -Ilib -Icli $(SOURCES)

# A script that lacks an include has a global variable, which luacheck reports. The line numbers count in the script as it is sent.
lint-lua:
	$(Q)for script in lua/*.lua; do out=$$(awk -f lua/expand.awk "$$script" | luacheck --no-color --no-config --std lua51 \
		--read-globals redis KEYS ARGV --only 0 1 --filename "$$script" -) || { printf '%s\n' "$$out" >&2; exit 1; }; done

# Some commands of the tests are Python: check those with a shell in their first line.
lint-shell:
	$(Q)shellcheck $(wildcard .ci/run lua/*.sh tools/*.sh packaging/*.sh packaging/*/*.sh packaging/*/*.bash tests/*.sh tests/*/*.sh \
		tests/*/*.bash tests/*/*.bats) \
		$$(grep -lE '^#!.*[ /](ba)?sh$$' tests/bin/* tests/interop/commands/* tests/mutants/* packaging/debian/tests/*) packaging/alpine/APKBUILD

lint-man:
	$(Q)mandoc -T lint -W warning $(PAGES)
	$(Q)for page in man/rlock.1 man/rlock.7; do \
		[ $$(mandoc -T ascii -O width=80 "$$page" | sed 's/.\x08//g' | wc -L) -le 80 ] || \
		{ echo "$$page: a line of more than 80 columns" >&2; exit 1; }; done

# Each mutant must still find the text that it changes: a change of the source may have removed it.
lint-mutants:
	$(Q)tests/mutants/run.py --check

# No file may name a path of the machine where it was written.
lint-paths:
	$(Q)! git grep --untracked -n -e '[/]work[/]' -e '[.][.][/]shared' -- . ':!.ci/run'

.PHONY: format
format: ## lay out the C code as .clang-format says
	$(Q)clang-format -i $(SOURCES) $(HEADERS) $(CXX_SOURCES)

.PHONY: dist
dist: | prepare ## the source archive of what is committed, and its SBOM, in BUILD/dist
	$(Q)packaging/dist.sh $(BUILD)/dist

.PHONY: release
release: | prepare ## all files of a release, of what is committed, in BUILD/release; on Debian, x86-64 or arm64
	$(Q)packaging/release.sh $(BUILD)/release

.PHONY: clean
clean: ## remove what was built
	$(Q)rm -rf $(BUILD)

.PHONY: help
help: ## this list
	@sed -n 's/^\([a-z-]*\):.* ## \(.*\)/\1\t\2/p' Makefile tests/tests.mk | expand -t 17

.DELETE_ON_ERROR:

include tests/tests.mk
