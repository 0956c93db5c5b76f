# For make -j: of all targets, in whatever checkout on whatever machine, one at a time uses the test database.
#
#   make -j 8 -f parallel.mk
#
# Change the names and the commands. Each line of a recipe is a shell of its own: `rlock run` belongs into the line.
SUITES ?= api web jobs

.PHONY: all $(SUITES)
all: $(SUITES)

$(SUITES):
	prepare $@
	rlock run test-database -- check $@
