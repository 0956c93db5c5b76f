/*
 * A command for `rlock run` that runs until its test says so by the file "let-go".
 */
#include <limits.h>

#include "staying.h"

int main(void)
{
	const char *directory = go_to_test();
	char let_go[PATH_MAX];

	(void)snprintf(let_go, sizeof(let_go), "%s/let-go", directory);
	stay_until(directory, let_go, let_go);
	return 0;
}
