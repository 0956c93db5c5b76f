# Targets and programs of the tests; included by ../Makefile, which has the rules to compile and link.

BATS ?= bats
# FILES: test files to run instead of all. TEST: a regular expression for names of bats tests. JOBS: files at the same time.
FILES ?=
TEST ?=
JOBS ?=
SCALE ?=
# check-mutants: a regular expression for names and files of mutants; empty: all.
MUTANTS ?=
# Servers, by their names in tools/servers.sh: for check-servers instead of all, for sanitize instead of the system's server.
SERVERS ?=
# check-container: a base image, or a directory with the root file system of a Debian.
BASE ?=
SANITIZE_CFLAGS ?= -O1 -g -fno-omit-frame-pointer
# Only clang has a fuzzer.
FUZZ_CC ?= clang
# check-fuzz: seconds for each target, and the targets instead of all.
FUZZ_SECONDS ?= 20
FUZZ ?=
VALGRIND_FILES ?= $(bats)

NEEDS_check := check
NEEDS_check-chaos := chaos
NEEDS_check-container := container
NEEDS_check-interop := interop
NEEDS_check-model := model
NEEDS_check-mutants := check
NEEDS_check-release := check-release
NEEDS_check-servers := servers
NEEDS_sanitize := check $(if $(SERVERS),servers)
NEEDS_valgrind := check valgrind
NEEDS_fuzz := fuzz
NEEDS_check-fuzz := fuzz
NEEDS_bench := bench

# ---- programs ----

# Builds with sanitizers. Link them statically: only then do gcc's two sanitizer libraries use the same log path.
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all
$(BUILD)/sanitize/%: private TREE_CFLAGS = $(SANITIZE) $(CPPFLAGS) $(SANITIZE_CFLAGS)
$(BUILD)/sanitize/%: private TREE_LDFLAGS = $(SANITIZE) $(call try,-static-libasan -static-libubsan) \
	-Wl,--as-needed -pthread $(SANITIZE_CFLAGS) $(LDFLAGS)
$(BUILD)/sanitize/%.o: %.c $(BUILD)/sanitize/flags
	$(call compile,$(firstword $(subst /, ,$<)))

$(BUILD)/fuzz/%: private TREE_CC = $(FUZZ_CC)
$(BUILD)/fuzz/%: private TREE_CFLAGS = -fsanitize=fuzzer-no-link $(SANITIZE) $(CPPFLAGS) $(SANITIZE_CFLAGS)
$(BUILD)/fuzz/%: private TREE_LDFLAGS = -fsanitize=fuzzer $(SANITIZE) -Wl,--as-needed -pthread \
	$(SANITIZE_CFLAGS) $(LDFLAGS)
$(BUILD)/fuzz/%.o: %.c $(BUILD)/fuzz/flags
	$(call compile,$(firstword $(subst /, ,$<)))

# Compile main() of rlock under another name, so that the unit tests can call it.
$(TREES:%=%/unit/main.o): %/unit/main.o: cli/main.c %/flags
	$(call compile,cli) -Dmain=rlock_main -Wno-missing-prototypes
-include $(wildcard $(TREES:%=%/unit/main.d))

$(TREES:%=%/unit-tests): %/unit-tests: $(addprefix %/,$(filter tests/unit/%,$(OBJECTS))) %/unit/main.o %/cli.a %/librlock.a
	$(link) $(OPENSSL_LIBS)

$(TREES:%=%/property/model): %/property/model: $(addprefix %/,$(filter tests/property/%,$(OBJECTS))) %/librlock.a
	$(link)

FUZZERS := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
fuzz := $(FUZZERS:%=$(BUILD)/fuzz/%)
$(fuzz): $(BUILD)/fuzz/%: $(BUILD)/fuzz/tests/fuzz/fuzz_%.o $(addprefix $(BUILD)/fuzz/,tests/fuzz/fuzz.o cli.a librlock.a)
	$(link)

# Programs of one source file that tests and benchmarks use.
tools := $(patsubst tests/%.c,$(BUILD)/%,$(wildcard tests/tools/*.c))
bench := $(patsubst tests/%.c,$(BUILD)/%,$(wildcard tests/bench/*.c))
$(tools) $(bench): $(BUILD)/%: $(BUILD)/tests/%.o
	$(call step,LINK)$(CC) -pie $(TREE_LDFLAGS) -o $@ $^ $(PROGRAM_LIBS)

# A second name of the program "inside". Tests use it as the command of a lock, and find its process by this name.
tools += $(BUILD)/tools/run_until_ended
$(BUILD)/tools/run_until_ended: $(BUILD)/tools/inside
	$(Q)ln -f $< $@

# A builtin of bash that sends requests to a Redis server, so that tests do not start a process for each request.
tools += $(BUILD)/tools/ask_redis.so
$(BUILD)/tools/ask_redis.so: $(BUILD)/tests/tools/ask_redis.o
	$(call step,LINK)$(CC) -shared $(TREE_LDFLAGS) -o $@ $^ $(HIREDIS_LIBS)

# A script that runs the program under valgrind. The findings go to files, since tests check the output of the program. The names
# of the files contain the time, since pids are reused.
# run-libc-freeres=no: in a forked child a mutex can stay locked that another thread had locked to look up a name; freeing would hang.
# hiredis keeps pointers into the middle of its strings: after a signal or _exit valgrind would report these as possibly lost.
VALGRIND = valgrind --quiet --error-exitcode=98 --leak-check=full --show-leak-kinds=definite,indirect \
	--errors-for-leak-kinds=definite,indirect --read-inline-info=no --trace-children=no --run-libc-freeres=no \
	--log-file=$(abspath $(BUILD)/valgrind/findings)
watched_programs := $(BUILD)/valgrind/rlock $(BUILD)/valgrind/property/model
$(watched_programs): $(BUILD)/valgrind/%: $(BUILD)/valgrind/pidfd_signals.so FORCE
	$(call remember,'#!/bin/sh' '{ read -r since _ </proc/uptime; } 2>/dev/null' \
		'LD_PRELOAD=$(abspath $<) exec $(VALGRIND)/"$$since"-%p $(abspath $(BUILD)/$*) "$$@"')
	@chmod +x $@

$(BUILD)/valgrind/pidfd_signals.so: $(BUILD)/tests/valgrind/pidfd_signals.o
	$(call step,LINK)$(CC) -shared $(TREE_LDFLAGS) -o $@ $^

# ---- runs ----

bats := $(wildcard tests/bats/*.bats)
release_bats := $(wildcard tests/release/*.bats)
run_tests = $(Q)TOOLS_DIR=$(BUILD)/tools BATS='$(BATS)' JOBS='$(JOBS)' TEST='$(TEST)'
# Let a file of tests run for an hour, since tests are slow under valgrind and sanitizers.
watched = TESTS_UNDER=$1 FINDINGS=$(BUILD)/$1/findings LIMIT=3600
on_servers = SERVERS='$(SERVERS)' SERVERS_DIR=$(BUILD)/servers tests/servers.sh

other_checks = These were the tests of the program. Documents and packages: make check-release. All others: make help.
# What `make check` needs to be built.
checked := all $(BUILD)/unit-tests $(BUILD)/property/model $(tools)

.PHONY: check
check: $(checked) ## run all tests of the program, or FILES; installs what is missing
	$(run_tests) RLOCK_BIN=$(BUILD)/rlock $(if $(FILES),,CONCLUSION='echo $(other_checks)') tests/run.sh $(or $(FILES),$(BUILD)/unit-tests $(bats))

.PHONY: check-release
check-release: all $(tools) ## run the tests of packages, completions, recipes, examples and documents
	$(run_tests) RLOCK_BIN=$(BUILD)/rlock tests/run.sh $(or $(FILES),$(release_bats))

.PHONY: unit
unit: $(BUILD)/unit-tests ## run the tests that need no server
	$(run_tests) RLOCK_BIN=$(BUILD)/rlock tests/run.sh $<

.PHONY: check-packages
check-packages: ## build, install, upgrade and purge the Debian packages, on a bare Debian that is thrown away afterwards
	$(Q)tests/packages/debian.sh --on-a-machine-to-throw-away

.PHONY: check-container
check-container: all $(tools) ## build and run the image of packaging/container with buildah, as root; BASE: its base, or a Debian's root
	$(run_tests) RLOCK_BIN=$(BUILD)/rlock BASE='$(BASE)' tests/run.sh tests/packages/container.bats

.PHONY: check-interop
check-interop: all $(tools) ## run the tests against real Redisson clients, or FILES of tests/interop
	$(run_tests) RLOCK_BIN=$(BUILD)/rlock INTEROP_DIR=$(BUILD)/interop tests/interop/run.sh $(FILES)

.PHONY: check-servers
check-servers: $(checked) ## run all tests, or FILES, on each server of tools/servers.sh, or SERVERS
	$(run_tests) RLOCK_BIN=$(BUILD)/rlock $(on_servers) $(FILES)

# check-mutants runs tests of `make check` in copies of this tree.
.PHONY: check-mutants
check-mutants: | prepare ## break the source in places that matter, or MUTANTS, and fail unless tests find each; an hour
	$(Q)BUILD='$(BUILD)' MUTANTS_DIR=$(BUILD)/mutants BATS='$(BATS)' JOBS='$(JOBS)' MUTANTS='$(MUTANTS)' \
		CHECKED='$(patsubst $(BUILD)/%,build/%,$(checked))' tests/mutants/run.py

# check-chaos takes a quarter of an hour with SCALE=1, and a night with SCALE=10.
.PHONY: check-chaos
check-chaos: all $(tools) ## count how often each guarantee holds under faults: SCALE times as often, or FILES of tests/chaos
	$(run_tests) RLOCK_BIN=$(BUILD)/rlock CHAOS_TABLE=$(BUILD)/chaos.table SCALE='$(SCALE)' \
		tests/chaos/run.sh $(FILES)

# The spin model of holding a lock. (tests/property compares the library with another model, written in C.)
.PHONY: check-model
check-model: | prepare ## have spin go through the model of how a lock is held, tests/spin/holding.pml
	$(Q)SPIN_DIR=$(BUILD)/spin CC='$(CC)' $(if $(JOBS),JOBS=$(JOBS)) tests/spin/run.sh

.PHONY: sanitize
sanitize: all $(addprefix $(BUILD)/sanitize/,rlock property/model unit-tests) $(tools) ## run all tests with sanitizers, on the system's server or on SERVERS
	$(run_tests) RLOCK_BIN=$(BUILD)/sanitize/rlock $(call watched,sanitize) \
		$(if $(SERVERS),$(on_servers),tests/run.sh) $(or $(FILES),$(BUILD)/sanitize/unit-tests $(bats))

# Old versions of valgrind (3.19 of Debian 12) do not know pidfd_open(2): under these run only the unit tests.
knows_pidfds = $(shell echo 'int main(void) { return syscall(SYS_pidfd_open, getpid(), 0) < 0; }' \
	| $(CC) -D_GNU_SOURCE -include unistd.h -include sys/syscall.h -o $(BUILD)/valgrind/probe -x c - \
	&& valgrind --log-file=/dev/null $(BUILD)/valgrind/probe && echo yes)
valgrind_files = $(if $(knows_pidfds),$(VALGRIND_FILES),$(info valgrind is too old for all but unit tests))

.PHONY: valgrind
valgrind: all $(watched_programs) $(BUILD)/unit-tests $(BUILD)/property/model $(tools) ## unit tests and VALGRIND_FILES under valgrind
	$(run_tests) RLOCK_BIN=$(BUILD)/valgrind/rlock $(call watched,valgrind) UNIT_WRAPPER='env LD_PRELOAD=$(abspath $(BUILD))/valgrind/pidfd_signals.so $(VALGRIND)/unit-%p' \
		tests/run.sh $(or $(FILES),$(BUILD)/unit-tests $(valgrind_files))

.PHONY: fuzz
fuzz: $(fuzz) ## build the fuzz targets, with clang

.PHONY: check-fuzz
check-fuzz: $(fuzz) ## fuzz each target, or FUZZ, for FUZZ_SECONDS; installs what is missing
	$(Q)FUZZ_DIR=$(BUILD)/fuzz FUZZ_SECONDS='$(FUZZ_SECONDS)' tests/fuzz/run.sh $(or $(FUZZ),$(FUZZERS))

.PHONY: bench
bench: all $(bench) $(tools) ## compare rlock with other programs for locks; QUICK=1 for a minute and a half
	$(Q)RLOCK_BIN=$(BUILD)/rlock BENCH_DIR=$(BUILD)/bench TOOLS_DIR=$(BUILD)/tools QUICK='$(QUICK)' tests/bench/bench.sh
