# rlock: `make` builds into build/, `make help` lists the targets.

PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
MANDIR ?= $(PREFIX)/share/man
TMPFILESDIR ?= $(PREFIX)/lib/tmpfiles.d
DESTDIR ?=

CC ?= cc
AR ?= ar
CPPFLAGS ?=
CFLAGS ?= -O2 -g
LDFLAGS ?=
SANITIZE_CFLAGS ?= -O1 -g -fno-omit-frame-pointer
# Only clang has a fuzzer.
FUZZ_CC ?= clang
PKG_CONFIG ?= pkg-config
BATS ?= bats

BUILD ?= build
# static: link the program with the archives of hiredis and argtable2 where there are any, since each
# shared library adds 100-200 us to every start. dynamic: what a distribution wants.
LINK ?= static
# WERROR=1: warnings are errors. V=1: show the commands.
WERROR ?=
V ?=
# Test files to run instead of all of them, and how many at a time (default: as many as there are processors).
FILES ?=
JOBS ?=
SCALE ?=
# How long check-fuzz tries new inputs on each target, and which targets instead of all of them.
FUZZ_SECONDS ?= 20
FUZZ ?=
VALGRIND_FILES ?= $(wildcard tests/bats/*.bats)

VERSION := $(shell sed -n 's/^.define RLOCK_VERSION "\(.*\)"/\1/p' lib/rlock.h)
SONAME := librlock.so.0

# What each goal needs beyond what is linked; tools/deps.sh installs it before anything is compiled.
NEEDS_deps := build
NEEDS_demo := demo
NEEDS_check := check
NEEDS_check-chaos := chaos
NEEDS_check-interop := check
NEEDS_check-model := model
NEEDS_sanitize := check
NEEDS_valgrind := check valgrind
NEEDS_lint := lint
NEEDS_fuzz := fuzz
NEEDS_check-fuzz := fuzz
NEEDS_bench := bench
NEEDS := $(sort $(foreach goal,$(MAKECMDGOALS),$(NEEDS_$(goal))))

# ---- flags ----

# $(call once,NAME,VALUE): a variable that is worked out when it is first used, and kept. Not before:
# the compiler and the libraries may be missing until `prepare` has run.
once = $(eval $1 := $2)$($1)

pkg_cflags = $(shell $(PKG_CONFIG) --cflags $1 2>/dev/null)
pkg_libs = $(or $(shell $(PKG_CONFIG) --libs $1 2>/dev/null),-l$1)
# We write <hiredis/hiredis.h>, which also works without pkg-config.
HIREDIS_CFLAGS ?= $(call once,HIREDIS_CFLAGS,$(patsubst -I%/hiredis,-I%,$(call pkg_cflags,hiredis)))
HIREDIS_LIBS ?= $(call once,HIREDIS_LIBS,$(call pkg_libs,hiredis))
ARGTABLE_CFLAGS ?= $(call once,ARGTABLE_CFLAGS,$(call pkg_cflags,argtable2))
ARGTABLE_LIBS ?= $(call once,ARGTABLE_LIBS,$(call pkg_libs,argtable2))

# From the header, which is what we compile with; empty when that can't be found.
hiredis_version = $(shell echo 'VERSION HIREDIS_MAJOR.HIREDIS_MINOR.HIREDIS_PATCH' \
	| $(CC) $(HIREDIS_CFLAGS) $(ARGTABLE_CFLAGS) $(CPPFLAGS) $(CFLAGS) -E -P -x c \
	  -include argtable2.h -include hiredis/hiredis.h - 2>/dev/null | sed -n 's/^VERSION//p' | tr -d ' ')
HIREDIS_VERSION = $(call once,HIREDIS_VERSION,$(or $(hiredis_version),$(error \
	no C compiler, or no headers of hiredis or argtable2: 'make deps' installs what is missing)))

# $(call try,FLAG): FLAG if the compiler takes it together with the user's, else nothing.
try = $(shell $(CC) -Werror $1 $(CPPFLAGS) $(CFLAGS) -include stdlib.h -S -o /dev/null -x c /dev/null \
	2>/dev/null && echo '$1')
# The C library's headers know whether _FORTIFY_SOURCE will do: not without -O, not twice.
HARDEN = $(call once,HARDEN,-fstack-protector-strong $(call try,-fstack-clash-protection) \
	$(or $(call try,-D_FORTIFY_SOURCE=3),$(call try,-D_FORTIFY_SOURCE=2)))

# $(call choose,LIBS,FUNCTION): LIBS, from the archive if that is wanted, there, and fit for us.
static = -Wl,-Bstatic $1 -Wl,-Bdynamic
choose = $(if $(filter static,$(LINK)),$(or $(shell mkdir -p $(BUILD); \
	echo 'void $2(void); int main(void) { $2(); return 0; }' \
	| $(CC) -pie -fPIE $(CFLAGS) $(LDFLAGS) -o $(BUILD)/probe.$2 -x c - -x none $(call static,$1) -lm \
	  2>/dev/null && rm $(BUILD)/probe.$2 && echo '$(call static,$1)'),$1),$1)
PROGRAM_LIBS = $(call once,PROGRAM_LIBS,$(call choose,$(HIREDIS_LIBS),redisReaderCreate) \
	$(call choose,$(ARGTABLE_LIBS),arg_parse) -lm)

WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes \
	-Wvla -Wformat=2 $(if $(WERROR),-Werror)
LANGUAGE := -std=c11 -D_GNU_SOURCE

# By the directory of the source. lib's objects go into the archive and into the shared library.
FLAGS_lib = -iquote lib -fPIC -fvisibility=hidden $(HIREDIS_CFLAGS)
FLAGS_cli = -iquote . -iquote cli -fPIE $(ARGTABLE_CFLAGS) -DHIREDIS_VERSION_TEXT='"$(HIREDIS_VERSION)"'
FLAGS_tests = -iquote . -iquote lib -iquote cli -fPIC $(HIREDIS_CFLAGS)
# By the tree that it is built into; the user's come last and win.
CC_main = $(CC)
FLAGS_main = $(HARDEN) $(CPPFLAGS) $(CFLAGS)
LDFLAGS_main = -Wl,-z,relro,-z,now -Wl,--as-needed -pthread $(CFLAGS) $(LDFLAGS)
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all
CC_sanitize = $(CC)
FLAGS_sanitize = $(SANITIZE) $(CPPFLAGS) $(SANITIZE_CFLAGS)
# gcc's two libraries share where to write reports only when both are linked in.
LDFLAGS_sanitize = $(SANITIZE) $(call try,-static-libasan -static-libubsan) -Wl,--as-needed -pthread \
	$(SANITIZE_CFLAGS) $(LDFLAGS)
CC_fuzz = $(FUZZ_CC)
FLAGS_fuzz = -fsanitize=fuzzer-no-link $(FLAGS_sanitize)
LDFLAGS_fuzz = -fsanitize=fuzzer $(SANITIZE) -Wl,--as-needed -pthread $(SANITIZE_CFLAGS) $(LDFLAGS)

# ---- files ----

SCRIPTS := $(wildcard lua/*.lua lua/inc/*.lua)
LIB_OBJECTS := $(patsubst %.c,%.o,$(wildcard lib/*.c lib/*/*.c)) lib/scripts.gen.o
CLI_OBJECTS := $(patsubst %.c,%.o,$(wildcard cli/*.c cli/*/*.c))
UNIT_OBJECTS := $(patsubst %.c,%.o,$(wildcard tests/unit/*.c))
FUZZERS := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_SHARED := $(patsubst %.c,%.o,$(filter-out tests/fuzz/fuzz_%,$(wildcard tests/fuzz/*.c)))
MODEL_OBJECTS := $(patsubst %.c,%.o,$(wildcard tests/property/*.c))
# The programs of one file that tests and benchmarks use: tools/x, bench/x.
HELPERS := $(patsubst tests/%.c,%,$(wildcard tests/tools/*.c tests/bench/*.c))
PAGES := $(wildcard man/*.[1-9])

PRODUCTS := $(addprefix $(BUILD)/,rlock librlock.a $(SONAME) librlock.pc)

# Our own C for the tools that read it.
SOURCES := $(wildcard $(addsuffix /*.c,lib lib/* cli cli/* tests/unit tests/fuzz tests/property tests/tools tests/valgrind \
	tests/bench))
HEADERS := $(wildcard $(addsuffix /*.h,lib lib/* cli cli/* tests/unit tests/fuzz tests/property tests/tools tests/valgrind \
	tests/bench))
# Of the tests' commands only those that are shell: some are Python.
SHELL_FILES := $(wildcard .ci/run lua/*.sh tools/*.sh tests/*.sh tests/lib/*.bash tests/bats/*.bats tests/spin/*.sh \
	tests/bench/*.sh tests/fuzz/*.sh $(addprefix tests/interop/,*.sh *.bash *.bats commands/*) \
	$(addprefix tests/chaos/,*.sh *.bash *.bats)) \
	$(shell grep -lE '^\#!.*[ /](ba)?sh$$' tests/bin/*)

# ---- how things are made ----

Q := $(if $(V),,@)
# $(call step,WORD): goes before a command that makes $@.
step = $(Q)$(if $(V),,printf '  %-5s %s\n' $1 $@; )mkdir -p $(@D) &&
# $(call remember,LINES): writes quoted lines to $@, unless they stand there already.
remember = @mkdir -p $(@D); printf '%s\n' $1 >$@.new; cmp -s $@.new $@ && rm $@.new || mv $@.new $@
quote = '$(subst ','\'',$1)'

.PHONY: all
all: $(PRODUCTS) ## the program, the library and its .pc file (the default)

# One tree of objects and what is linked from them: $1 is its directory, $2 the flags to use.
define tree
# Changes when the commands do, or the list of files: all of the tree is made anew then.
$1/flags: FORCE | prepare
	$$(call remember,$$(call quote,$$(CC_$2) $$(LANGUAGE) $$(WARNINGS) $$(FLAGS_lib) $$(FLAGS_cli) \
		$$(FLAGS_$2)) $$(call quote,$$(LDFLAGS_$2) $$(PROGRAM_LIBS)) $$(LIB_OBJECTS) $$(CLI_OBJECTS))

$1/%.o: %.c $1/flags
	$$(call step,CC)$$(CC_$2) $$(LANGUAGE) $$(WARNINGS) $$(FLAGS_$$(firstword $$(subst /, ,$$*))) \
		$$(FLAGS_$2) -MMD -MP -c -o $$@ $$<

$1/lib/scripts.gen.o: $(BUILD)/scripts.gen.c $1/flags
	$$(call step,CC)$$(CC_$2) $$(LANGUAGE) $$(WARNINGS) -Wno-overlength-strings $$(FLAGS_lib) \
		$$(FLAGS_$2) -MMD -MP -c -o $$@ $$<

$1/librlock.a: $$(addprefix $1/,$$(LIB_OBJECTS))
	$$(call step,AR)rm -f $$@ && $$(AR) rcs $$@ $$^

# All of cli but main(), of which the unit tests and each fuzz target take what they need.
$1/cli.a: $$(addprefix $1/,$$(filter-out cli/main.o,$$(CLI_OBJECTS)))
	$$(call step,AR)rm -f $$@ && $$(AR) rcs $$@ $$^

$1/rlock: $$(addprefix $1/,$$(CLI_OBJECTS)) $1/librlock.a
	$$(call step,LINK)$$(CC_$2) -pie $$(LDFLAGS_$2) -o $$@ $$^ $$(PROGRAM_LIBS)

$1/unit-tests: $$(addprefix $1/,$$(UNIT_OBJECTS)) $1/cli.a $1/librlock.a
	$$(call step,LINK)$$(CC_$2) -pie $$(LDFLAGS_$2) -o $$@ $$^ $$(PROGRAM_LIBS)

$$(addprefix $1/,$$(FUZZERS)): $1/%: $1/tests/fuzz/fuzz_%.o \
		$$(addprefix $1/,$$(FUZZ_SHARED)) $1/cli.a $1/librlock.a
	$$(call step,LINK)$$(CC_$2) -pie $$(LDFLAGS_$2) -o $$@ $$^ $$(PROGRAM_LIBS)

$1/property/model: $$(addprefix $1/,$$(MODEL_OBJECTS)) $1/librlock.a
	$$(call step,LINK)$$(CC_$2) -pie $$(LDFLAGS_$2) -o $$@ $$^ $$(PROGRAM_LIBS)

-include $$(patsubst %.o,$1/%.d,$$(LIB_OBJECTS) $$(CLI_OBJECTS) $$(UNIT_OBJECTS) $$(MODEL_OBJECTS) \
		$$(FUZZ_SHARED) $$(FUZZERS:%=tests/fuzz/fuzz_%.o))
endef

$(eval $(call tree,$(BUILD),main))
$(eval $(call tree,$(BUILD)/sanitize,sanitize))
$(eval $(call tree,$(BUILD)/fuzz,fuzz))

# The directories stand for scripts that were taken away.
$(BUILD)/scripts.gen.c: lua/embed.sh lua/expand.awk $(SCRIPTS) lua lua/inc
	$(call step,LUA)lua/embed.sh $@

$(BUILD)/$(SONAME): $(addprefix $(BUILD)/,$(LIB_OBJECTS))
	$(call step,LINK)$(CC) -shared -Wl,-soname,$(SONAME) -Wl,-z,defs $(LDFLAGS_main) -o $@ $^ \
		$(HIREDIS_LIBS)

$(BUILD)/librlock.pc: FORCE
	$(call remember,'libdir=$(LIBDIR)' 'includedir=$(INCLUDEDIR)' '' 'Name: librlock' \
		'Description: locks on Redis or Valkey that Redisson shares' 'Version: $(VERSION)' \
		'Requires.private: hiredis' 'Libs: -L$${libdir} -lrlock' 'Cflags: -I$${includedir}')

$(HELPERS:%=$(BUILD)/%): $(BUILD)/%: $(BUILD)/tests/%.o
	$(call step,LINK)$(CC) -pie $(LDFLAGS_main) -o $@ $^

-include $(HELPERS:%=$(BUILD)/tests/%.d)

# Stands in for a program where it is to be watched. What it finds goes to files of its own, because
# the tests look at what the program prints; with the time in their names, because so many processes come
# and go that their numbers are used again.
# It is not to have libc free everything at the end: in a child of a fork, what a name look-up in another
# thread had locked stays locked.
# hiredis knows its strings by pointers into them, so that those of a process that a signal ends, or that
# leaves by _exit, count as possibly lost.
VALGRIND = valgrind --quiet --error-exitcode=98 --leak-check=full --show-leak-kinds=definite,indirect \
	--errors-for-leak-kinds=definite,indirect --read-inline-info=no --trace-children=no --run-libc-freeres=no \
	--log-file=$(abspath $(BUILD)/valgrind/findings)
watched_programs := rlock property/model
$(watched_programs:%=$(BUILD)/valgrind/%): $(BUILD)/valgrind/%: $(BUILD)/valgrind/pidfd_signals.so FORCE
	$(call remember,'#!/bin/sh' '{ read -r since _ </proc/uptime; } 2>/dev/null' \
		'LD_PRELOAD=$(abspath $<) exec $(VALGRIND)/"$$since"-%p $(abspath $(BUILD)/$*) "$$@"')
	@chmod +x $@

$(BUILD)/valgrind/pidfd_signals.so: $(BUILD)/tests/valgrind/pidfd_signals.o
	$(call step,LINK)$(CC) -shared $(LDFLAGS_main) -o $@ $^

.PHONY: FORCE
FORCE:

# ---- what a person asks for ----

# Comes before everything that is compiled or run, and does nothing for a plain `make`.
.PHONY: prepare
prepare:
	$(if $(NEEDS),$(Q)CC='$(CC)' FUZZ_CC='$(FUZZ_CC)' CPPFLAGS='$(CPPFLAGS)' CFLAGS='$(CFLAGS)' tools/deps.sh $(NEEDS))

.PHONY: deps
deps: prepare ## install what is missing to build (needs root or sudo)

# $(call page_path,man/rlock.1): MANDIR/man1/rlock.1
page_path = $(MANDIR)/man$(patsubst .%,%,$(suffix $1))/$(notdir $1)
define newline


endef

.PHONY: install
install: all ## copy everything to its place below DESTDIR and PREFIX
	$(Q)install -D -m 755 $(BUILD)/rlock $(DESTDIR)$(BINDIR)/rlock
	$(Q)install -D -m 644 lib/rlock.h $(DESTDIR)$(INCLUDEDIR)/rlock.h
	$(Q)install -D -m 644 $(BUILD)/librlock.a $(DESTDIR)$(LIBDIR)/librlock.a
	$(Q)install -D -m 755 $(BUILD)/$(SONAME) $(DESTDIR)$(LIBDIR)/librlock.so.$(VERSION)
	$(Q)ln -sf librlock.so.$(VERSION) $(DESTDIR)$(LIBDIR)/$(SONAME)
	$(Q)ln -sf $(SONAME) $(DESTDIR)$(LIBDIR)/librlock.so
	$(Q)install -D -m 644 $(BUILD)/librlock.pc $(DESTDIR)$(LIBDIR)/pkgconfig/librlock.pc
	$(Q)install -D -m 644 misc/rlock.tmpfiles.conf $(DESTDIR)$(TMPFILESDIR)/rlock.conf
	$(foreach page,$(PAGES),$(Q)install -D -m 644 $(page) $(DESTDIR)$(call page_path,$(page))$(newline))

.PHONY: uninstall
uninstall: ## take away what install has put there
	$(Q)rm -f $(addprefix $(DESTDIR),$(BINDIR)/rlock $(INCLUDEDIR)/rlock.h $(LIBDIR)/librlock.a \
		$(LIBDIR)/librlock.so.$(VERSION) $(LIBDIR)/$(SONAME) $(LIBDIR)/librlock.so \
		$(LIBDIR)/pkgconfig/librlock.pc $(TMPFILESDIR)/rlock.conf $(foreach page,$(PAGES),$(call page_path,$(page))))

.PHONY: demo
demo: $(BUILD)/rlock ## play two contenders on a private server; installs what is missing
	$(Q)RLOCK_BIN=$(BUILD)/rlock tests/demo.sh

tools := $(addprefix $(BUILD)/,$(filter tools/%,$(HELPERS)))
bench := $(addprefix $(BUILD)/,$(filter bench/%,$(HELPERS)))
unit := $(BUILD)/unit-tests
unit_sanitize := $(BUILD)/sanitize/unit-tests
bats := $(wildcard tests/bats/*.bats)
run_tests = $(Q)TOOLS_DIR=$(BUILD)/tools BATS='$(BATS)' JOBS='$(JOBS)'
# Tests are slow when they are watched.
watched = TESTS_UNDER=$1 FINDINGS=$(BUILD)/$1/findings LIMIT=3600

.PHONY: check
check: all $(unit) $(BUILD)/property/model $(tools) ## run all tests, or FILES; installs what is missing
	$(run_tests) RLOCK_BIN=$(BUILD)/rlock tests/run.sh $(or $(FILES),$(unit) $(bats))

# Builds with Maven; without one, or without Java, it says so and tries nothing.
.PHONY: check-interop
check-interop: all $(tools) ## run the tests against real Redisson clients, or FILES of tests/interop
	$(run_tests) RLOCK_BIN=$(BUILD)/rlock INTEROP_DIR=$(BUILD)/interop tests/interop/run.sh $(FILES)

# What fits in a quarter of an hour; SCALE=10 for a night.
.PHONY: check-chaos
check-chaos: all $(tools) ## count how often each guarantee holds under faults: SCALE times as often, or FILES of tests/chaos
	$(run_tests) RLOCK_BIN=$(BUILD)/rlock CHAOS_TABLE=$(BUILD)/chaos.table SCALE='$(SCALE)' \
		tests/chaos/run.sh $(FILES)

# The model of how a lock is held; tests/property compares the library with one of another sort.
.PHONY: check-model
check-model: | prepare ## have spin go through the model of how a lock is held, tests/spin/holding.pml
	$(Q)SPIN_DIR=$(BUILD)/spin CC='$(CC)' $(if $(JOBS),JOBS=$(JOBS)) tests/spin/run.sh

.PHONY: unit
unit: $(unit) ## run the tests that need no server
	$(run_tests) RLOCK_BIN=$(BUILD)/rlock tests/run.sh $(unit)

.PHONY: sanitize
sanitize: all $(BUILD)/sanitize/rlock $(BUILD)/sanitize/property/model $(unit_sanitize) $(tools) ## run all tests with sanitizers
	$(run_tests) RLOCK_BIN=$(BUILD)/sanitize/rlock $(call watched,sanitize) \
		tests/run.sh $(or $(FILES),$(unit_sanitize) $(bats))

# The program can't be run where valgrind (3.19 of Debian 12, say) does not know pidfd_open.
knows_pidfds = $(shell echo 'int main(void) { return syscall(SYS_pidfd_open, getpid(), 0) < 0; }' \
	| $(CC) -D_GNU_SOURCE -include unistd.h -include sys/syscall.h -o $(BUILD)/valgrind/probe -x c - \
	&& valgrind --log-file=/dev/null $(BUILD)/valgrind/probe && echo yes)
valgrind_files = $(if $(knows_pidfds),$(VALGRIND_FILES),$(info valgrind is too old for all but unit tests))

.PHONY: valgrind
valgrind: all $(watched_programs:%=$(BUILD)/valgrind/%) $(unit) $(BUILD)/property/model $(tools) ## unit tests and VALGRIND_FILES under valgrind
	$(run_tests) RLOCK_BIN=$(BUILD)/valgrind/rlock $(call watched,valgrind) UNIT_WRAPPER='$(VALGRIND)/unit-%p' \
		tests/run.sh $(or $(FILES),$(unit) $(valgrind_files))

fuzz := $(FUZZERS:%=$(BUILD)/fuzz/%)
.PHONY: fuzz
fuzz: $(fuzz) ## build the fuzz targets, with clang

.PHONY: check-fuzz
check-fuzz: $(fuzz) ## fuzz each target, or FUZZ, for FUZZ_SECONDS; installs what is missing
	$(Q)FUZZ_DIR=$(BUILD)/fuzz FUZZ_SECONDS='$(FUZZ_SECONDS)' tests/fuzz/run.sh $(or $(FUZZ),$(FUZZERS))

.PHONY: bench
bench: all $(bench) $(tools) ## measure, beside what one would otherwise take; QUICK=1 for a minute
	$(Q)$(MAKE) --no-print-directory install DESTDIR=$(abspath $(BUILD))/installed PREFIX=/usr
	$(Q)RLOCK_BIN=$(BUILD)/installed/usr/bin/rlock BENCH_DIR=$(BUILD)/bench \
		TOOLS_DIR=$(BUILD)/tools QUICK='$(QUICK)' tests/bench/bench.sh

# ---- reading ----

LINTS := lint-format lint-header lint-includes lint-tidy lint-cppcheck lint-shell lint-man lint-paths
.PHONY: lint $(LINTS)
lint: $(LINTS) ## clang-format, clang-tidy, cppcheck, shellcheck, mandoc
$(LINTS): | prepare

lint-format:
	$(Q)clang-format --dry-run -Werror $(SOURCES) $(HEADERS)

# The public header stands alone, in C11 and in C++.
lint-header:
	$(Q)clang -std=c11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -x c lib/rlock.h
	$(Q)clang -std=c++11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -x c++ lib/rlock.h

lint-includes:
	$(Q)tools/includes.sh

# It always says something; only a failure is worth reading.
lint-tidy:
	$(Q)printf '%s\n' $(SOURCES) | xargs -P "$$(nproc)" -n 1 sh -c 'out=$$(clang-tidy --quiet "$$1" -- \
		$(LANGUAGE) $(FLAGS_tests) $(ARGTABLE_CFLAGS) -DHIREDIS_VERSION_TEXT=\"\" \
		2>&1) || { printf "%s\n" "$$out"; exit 1; }' sh

lint-cppcheck:
	$(Q)cppcheck --quiet --std=c11 --enable=warning,performance,portability --inline-suppr \
		--error-exitcode=1 --suppress=missingIncludeSystem -D_GNU_SOURCE -I. -Ilib -Icli $(SOURCES)

lint-shell:
	$(Q)shellcheck $(SHELL_FILES)

lint-man:
	$(Q)mandoc -T lint -W warning $(PAGES)

# What is published must not depend on where it was written.
lint-paths:
	$(Q)! git grep --untracked -n -e '[/]work[/]' -e '[.][.][/]shared' -- . ':!.ci/run'

# ---- the rest ----

.PHONY: format
format: ## lay out the C code as .clang-format says
	$(Q)clang-format -i $(SOURCES) $(HEADERS)

.PHONY: dist
dist: ## a source archive of what is committed
	$(Q)mkdir -p $(BUILD)
	$(Q)git archive --format=tar.gz --prefix=rlock-$(VERSION)/ -o $(BUILD)/rlock-$(VERSION).tar.gz HEAD

.PHONY: clean
clean: ## remove what was built
	$(Q)rm -rf $(BUILD)

.PHONY: help
help: ## this list
	@sed -n 's/^\([a-z-]*\):.* ## \(.*\)/\1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 15

.DELETE_ON_ERROR:
