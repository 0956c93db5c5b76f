# For make -j: one target at a time uses the test database, in all checkouts on all machines.
#
#   make -j 8 -f parallel.mk
#
# Change the names and the commands. make runs each line of a recipe in a shell of its own: put `rlock run` into the line.
SUITES ?= api web jobs

.PHONY: all $(SUITES)
all: $(SUITES)

$(SUITES):
	prepare $@
	rlock run test-database -- check $@
