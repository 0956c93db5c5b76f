# What most test files need: helpers.bash, leftovers.bash and watching.bash; a server per file, a directory per test, and a check
# that no rlock runs after a test. A test file can define its own setup_file, setup, teardown and teardown_file after loading this.
# TOP is the directory of the sources.

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching

TOP=$BATS_TEST_DIRNAME/../..

setup_file() { start_server; }
teardown_file() { stop_server; }
setup() { directory_setup; }
teardown() { teardown_and_check_processes; }
