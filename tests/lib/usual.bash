# What most files of tests have: a server, the test's own directory, and that nothing of rlock's runs after a test. A file that
# wants it otherwise has a function of its own. TOP is where the sources are.

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching

TOP=$BATS_TEST_DIRNAME/../..

setup_file() { start_server; }
teardown_file() { stop_server; }
setup() { directory_setup; }
teardown() { teardown_and_check_processes; }
