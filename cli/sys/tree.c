/*
 * Walks from a process downwards, by the kernel's lists of children, or where it keeps none by the parents that /proc
 * names. Nothing of a process is read but its stat: no look can hang. What a signal is sent for is left to the callers.
 */
#include <errno.h>
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/array.h"
#include "base/units.h"
#include "sys/file_read.h"
#include "sys/os.h"
#include "sys/tree.h"

/* Processes that fork faster than a look finds them are found by the caller's next call. */
#define LOOKS_MAX 50

/* ---- sets ---- */

static bool set_has(const struct tree_set *set, pid_t pid, uint64_t start)
{
	for (size_t i = 0; i < set->count; i++)
		if (set->members[i].pid == pid && set->members[i].start == start)
			return true;
	return false;
}

/* False when out of memory. */
static bool set_add(struct tree_set *set, pid_t pid, uint64_t start)
{
	void *members = array_grow(set->members, set->count, sizeof(*set->members));

	if (members == NULL)
		return false;
	set->members = members;
	set->members[set->count++] = (struct tree_member){ pid, start };
	return true;
}

void tree_set_free(struct tree_set *set)
{
	free(set->members);
	*set = (struct tree_set){ 0 };
}

/* ---- one look ---- */

/* A process that was found, and whether one above it has had the signal. */
struct entry {
	struct proc proc;
	bool is_below_signalled;
};

/* Found processes, parents before their children. */
struct look {
	const struct tree *tree;
	const struct tree_set *signalled;
	struct entry *entries;
	size_t count;
	bool is_incomplete;
	/* All processes, where the kernel keeps no lists of children. */
	bool has_all;
	struct proc *all;
	size_t all_count;
};

static bool is_left_out(const struct tree *tree, const struct proc *proc)
{
	if (tree->has_session && proc->session != tree->session)
		return true;
	if (tree->except != NULL && set_has(tree->except, proc->pid, proc->start))
		return true;
	return tree->is_foreign != NULL && tree->is_foreign(proc);
}

/* parent: an index, or SIZE_MAX for what is directly below the root. */
static void look_add(struct look *look, const struct proc *proc, size_t parent)
{
	const struct entry *above = parent != SIZE_MAX ? &look->entries[parent] : NULL;
	bool is_below = above != NULL && !proc_is_gone(&above->proc) &&
			(above->is_below_signalled ||
			 (look->signalled != NULL &&
			  set_has(look->signalled, above->proc.pid, above->proc.start)));
	struct entry *entries = array_grow(look->entries, look->count, sizeof(*entries));

	if (entries == NULL) {
		look->is_incomplete = true;
		return;
	}
	look->entries = entries;
	look->entries[look->count++] = (struct entry){ *proc, is_below };
}

/* A child that /proc does not show (hidepid) runs all the same: only its pid is known, and that it is no zombie of ours. */
static bool read_child(pid_t pid, struct look *look, struct proc *out)
{
	enum proc_lookup lookup = proc_look(pid, out);

	if (lookup == PROC_UNSEEN)
		look->is_incomplete = true;
	if (lookup != PROC_GONE || !proc_is_hidden(pid))
		return lookup == PROC_SEEN;
	*out = (struct proc){ .pid = pid, .state = 'S', .threads = 1 };
	return true;
}

/* ---- without the kernel's lists ---- */

/* Once in a look. */
static void read_all(struct look *look)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	int64_t pid;

	look->has_all = true;
	look->is_incomplete = look->is_incomplete || dir == NULL;
	while (dir != NULL && (errno = 0, entry = readdir(dir)) != NULL) {
		struct proc *all = array_grow(look->all, look->all_count, sizeof(*all));

		if (all == NULL) {
			look->is_incomplete = true;
			break;
		}
		look->all = all;
		if (number_parse(entry->d_name, &pid))
			look->all_count += read_child((pid_t)pid, look, &all[look->all_count]);
	}
	look->is_incomplete = look->is_incomplete || is_transient_errno(errno);
	if (dir != NULL)
		(void)closedir(dir);
}

/* ---- all of them ---- */

static void add_child(struct look *look, const struct proc *child, size_t parent)
{
	if (!is_left_out(look->tree, child))
		look_add(look, child, parent);
}

static void add_children(struct look *look, pid_t pid, size_t parent)
{
	struct pid_list children = { 0 };
	struct proc proc;

	if (!look->has_all && !os_list_children(pid, &children)) {
		children.count = 0;
		read_all(look);
	}
	for (size_t i = 0; i < children.count; i++)
		if (read_child(children.pids[i], look, &proc))
			add_child(look, &proc, parent);
	for (size_t i = 0; i < look->all_count; i++)
		if (look->all[i].parent == pid)
			add_child(look, &look->all[i], parent);
	pid_list_free(&children);
}

static void look_fill(struct look *look)
{
	const struct tree *tree = look->tree;
	struct proc root;

	if (!tree->has_root)
		add_children(look, tree->root, SIZE_MAX);
	else if (read_child(tree->root, look, &root) &&
		 (tree->root_start == 0 || root.start == tree->root_start))
		look_add(look, &root, SIZE_MAX);
	for (size_t i = 0; i < look->count; i++)
		add_children(look, look->entries[i].proc.pid, i);
}

/* ---- signals ---- */

/* By a descriptor that was checked, so that a process that got the pid is never hit. 0, or errno. */
static int send_signal(const struct proc *proc, int signal)
{
	int fd = proc_open(proc->pid, proc->start), error;

	if (fd < 0)
		return errno;
	error = os_process_signal(fd, signal);
	if (error == 0 && signal == SIGKILL)
		os_raise_priority_of_killed(proc->pid);
	/* A stopped process handles SIGTERM only when it is continued. */
	if (error == 0 && signal == SIGTERM)
		(void)os_process_signal(fd, SIGCONT);
	(void)close(fd);
	return error;
}

/* It is added first, so that none gets the signal twice. */
static void signal_once(const struct proc *proc, int signal, struct tree_set *signalled,
			struct tree_report *report)
{
	int error;

	if (!set_add(signalled, proc->pid, proc->start)) {
		report->is_incomplete = true;
		return;
	}
	error = send_signal(proc, signal);
	report->signalled += error == 0;
	if (error == EPERM) {
		report->denied++;
		report->denied_one = *proc;
	}
	if (is_transient_errno(error)) {
		report->is_incomplete = true;
		signalled->count--;
	}
}

/* One look; signal 0: none is sent. Whether it found a process without the signal so far. */
static bool look_and_signal(const struct tree *tree, int signal, struct tree_set *signalled,
			    bool spares_clean_up, struct tree_report *report)
{
	struct look look = { .tree = tree, .signalled = signalled };
	bool has_found_new = false;

	look_fill(&look);
	report->running = report->spared = 0;
	report->is_incomplete = look.is_incomplete;
	for (size_t i = 0; i < look.count; i++) {
		const struct proc *proc = &look.entries[i].proc;
		bool is_spared;

		if (proc_is_gone(proc))
			continue;
		is_spared = tree->is_spared != NULL && tree->is_spared(proc);
		report->running++;
		report->spared += is_spared;
		if (signal == 0 || is_spared || set_has(signalled, proc->pid, proc->start) ||
		    (spares_clean_up && look.entries[i].is_below_signalled))
			continue;
		has_found_new = true;
		signal_once(proc, signal, signalled, report);
	}
	free(look.entries);
	free(look.all);
	return has_found_new;
}

bool tree_collect(const struct tree *tree, struct tree_set *out)
{
	struct look look = { .tree = tree };
	bool is_complete;

	look_fill(&look);
	is_complete = !look.is_incomplete;
	for (size_t i = 0; is_complete && i < look.count; i++)
		is_complete = set_add(out, look.entries[i].proc.pid, look.entries[i].proc.start);
	free(look.entries);
	free(look.all);
	if (!is_complete)
		errno = ENOMEM;
	return is_complete;
}

void tree_look(const struct tree *tree, struct tree_report *out)
{
	*out = (struct tree_report){ 0 };
	(void)look_and_signal(tree, 0, NULL, false, out);
}

void tree_signal(const struct tree *tree, int signal, struct tree_set *signalled,
		 struct tree_report *out)
{
	struct tree_set own = { 0 };
	bool spares_clean_up = signal == SIGTERM && signalled != NULL && signalled->count > 0;

	if (signalled == NULL)
		signalled = &own;
	*out = (struct tree_report){ 0 };
	for (int looks = 0; looks < LOOKS_MAX; looks++) {
		if (!look_and_signal(tree, signal, signalled, spares_clean_up, out))
			break;
		/* What the first look has missed of those that ran before is no clean-up, but its parents have had the signal. */
		spares_clean_up = signal == SIGTERM;
	}
	tree_set_free(&own);
}
