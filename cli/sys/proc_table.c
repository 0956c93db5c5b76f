/*
 * Lists processes and tells which of them are a command's: the command and its descendants, what a subreaper adopted
 * from it, and every process that was started after the command and carries the hold's id in its environment, whatever
 * group or session it moved to. probe.c reads the environments; proc_tree.c decides what the members are sent.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "lib/rlock.h"
#include "sys/os.h"
#include "sys/probe.h"
#include "sys/proc_table.h"

#define FIRST_CAPACITY 64

/* ---- list ---- */

static bool add(struct proc_table *table, const struct proc *proc)
{
	if (table->count == table->capacity) {
		size_t capacity = table->capacity == 0 ? FIRST_CAPACITY : table->capacity * 2;
		void *entries = realloc(table->entries, capacity * sizeof(*table->entries));

		if (entries == NULL)
			return false;
		table->entries = entries;
		table->capacity = capacity;
	}
	table->entries[table->count++] = (struct proc_entry){ .proc = *proc };
	return true;
}

/* A search among thousands of processes takes long: it is broken off when something else is due. */
static bool is_too_late(const struct proc_filter *filter)
{
	return filter->until_ms != 0 && rlock_now_ms() >= filter->until_ms;
}

static bool list_all(struct proc_table *table, const struct proc_filter *filter)
{
	DIR *dir = opendir("/proc");
	bool is_complete = true;

	if (dir == NULL)
		return false;
	while (is_complete) {
		enum proc_lookup lookup;
		struct dirent *entry;
		struct proc proc;
		int64_t pid;

		errno = 0;
		entry = readdir(dir);
		if (entry == NULL) {
			is_complete = errno == 0;
			break;
		}
		if (!number_parse(entry->d_name, &pid))
			continue;
		lookup = proc_look((pid_t)pid, &proc);
		is_complete = lookup == PROC_SEEN ? add(table, &proc) && !is_too_late(filter)
						  : lookup == PROC_GONE;
	}
	(void)closedir(dir);
	return is_complete;
}

/* The name alone can be any program's. */
static bool is_renewer(const struct proc *proc)
{
	return strcmp(proc->name, RENEWER_NAME) == 0 && proc->session == proc->pid &&
	       proc_runs_our_program(proc->pid);
}

/*
 * We are no member, nor is a renewer, which ends when what it protects has ended. Nor is a process in a session that
 * the filter does not ask for: its descendants cannot come back from there.
 */
static bool is_excluded(const struct proc_filter *filter, const struct proc *proc)
{
	if (filter->is_one_session && proc->session != filter->session)
		return true;
	if (proc->pid == getpid() || proc->pid == filter->adopter)
		return true;
	for (size_t i = 0; i < sizeof(filter->except) / sizeof(filter->except[0]); i++)
		if (filter->except[i] > 0 && proc->pid == filter->except[i])
			return true;
	return is_renewer(proc);
}

/* Lists the command, the adopter, the known processes, and all descendants of these. Some may be listed twice. */
static bool list_family(struct proc_table *table, const struct proc_filter *filter)
{
	size_t known_count = filter->known != NULL ? filter->known->count : 0;
	struct pid_list list = { 0 };
	struct proc proc;
	bool is_complete = true;

	if (filter->adopter > 0)
		is_complete = pid_list_add(&list, filter->adopter);
	/* A command that is the adopter's child is found as such. */
	if (filter->job > 0 && proc_read(filter->job, &proc) && proc.parent != filter->adopter)
		is_complete = pid_list_add(&list, filter->job) && is_complete;
	for (size_t i = 0; i < known_count; i++)
		is_complete = pid_list_add(&list, filter->known->members[i].pid) && is_complete;
	for (size_t i = 0; is_complete && i < list.count; i++) {
		enum proc_lookup lookup = proc_look(list.pids[i], &proc);

		if (lookup == PROC_GONE)
			continue;
		is_complete = lookup == PROC_SEEN && add(table, &proc) && !is_too_late(filter);
		if (is_complete && (proc.pid == filter->adopter || !is_excluded(filter, &proc)))
			(void)os_list_children(proc.pid, &list);
	}
	pid_list_free(&list);
	return is_complete;
}

static int by_pid(const void *left, const void *right)
{
	const struct proc_entry *a = left, *b = right;

	return (a->proc.pid > b->proc.pid) - (a->proc.pid < b->proc.pid);
}

/* Sorts the entries by pid, and drops the second one of each pid. */
static void sort(struct proc_table *table)
{
	size_t count = 0;

	qsort(table->entries, table->count, sizeof(*table->entries), by_pid);
	for (size_t i = 0; i < table->count; i++)
		if (count == 0 || table->entries[i].proc.pid != table->entries[count - 1].proc.pid)
			table->entries[count++] = table->entries[i];
	table->count = count;
}

/* ---- mark ---- */

const struct proc_entry *proc_table_parent(const struct proc_table *table,
					   const struct proc_entry *child)
{
	const struct proc_entry key = { .proc.pid = child->proc.parent };

	return bsearch(&key, table->entries, table->count, sizeof(*table->entries), by_pid);
}

/* Whether a process is a member for itself, not for its parent. */
static bool is_root(const struct proc_filter *filter, const struct proc_set *signaled,
		    const struct proc *proc)
{
	if (filter->job > 0 && proc->pid == filter->job &&
	    (filter->job_start == 0 || proc->start == filter->job_start))
		return true;
	if (filter->adopter > 0 && filter->counts_all_adopted && proc->parent == filter->adopter)
		return true;
	if (filter->known != NULL && proc_set_has(filter->known, proc))
		return true;
	return signaled != NULL && proc_set_has(signaled, proc);
}

static void mark_roots(struct proc_table *table, const struct proc_filter *filter,
		       const struct proc_set *signaled)
{
	for (size_t i = 0; i < table->count; i++) {
		const struct proc *proc = &table->entries[i].proc;

		table->entries[i].is_member =
			!is_excluded(filter, proc) && is_root(filter, signaled, proc);
	}
}

static void mark_descendants(struct proc_table *table, const struct proc_filter *filter)
{
	bool has_changed;

	do {
		has_changed = false;
		for (size_t i = 0; i < table->count; i++) {
			struct proc_entry *child = &table->entries[i];
			const struct proc_entry *parent;

			if (child->is_member || is_excluded(filter, &child->proc))
				continue;
			parent = proc_table_parent(table, child);
			if (parent != NULL && parent->is_member)
				child->is_member = has_changed = true;
		}
	} while (has_changed);
}

/* No process was given the hold id before the command was started. */
static bool may_carry_hold(const struct proc_filter *filter, const struct proc *proc)
{
	return filter->hold_id != NULL && !proc_is_gone(proc) &&
	       (filter->job_start == 0 || proc->start >= filter->job_start);
}

static size_t add_requests(struct proc_table *table, const struct proc_filter *filter,
			   bool probes_suspects, struct probe_request *out)
{
	size_t count = 0;

	for (size_t i = 0; i < table->count; i++) {
		const struct proc *proc = &table->entries[i].proc;

		if (table->entries[i].is_member || is_excluded(filter, proc) ||
		    !may_carry_hold(filter, proc))
			continue;
		if (!probes_suspects && probe_is_suspect(proc)) {
			table->undecided++;
			continue;
		}
		out[count].entry = i;
		out[count++].proc = proc;
	}
	return count;
}

static void use_result(struct proc_table *table, const struct probe_request *request)
{
	if (request->lookup == PROC_SEEN)
		table->entries[request->entry].is_member = true;
	else if (request->lookup == PROC_UNSEEN)
		table->undecided++;
	if (!request->is_abandoned)
		return;
	table->unreadable++;
	table->unreadable_one = *request->proc;
}

/* Marks the processes that carry the hold id, and their descendants. False without memory. */
static bool mark_carriers(struct proc_table *table, const struct proc_filter *filter,
			  bool probes_suspects)
{
	struct probe_request *requests = calloc(table->count, sizeof(*requests));
	size_t count;

	if (requests == NULL)
		return false;
	count = add_requests(table, filter, probes_suspects, requests);
	probe_run(requests, count, filter->hold_id, filter->until_ms);
	for (size_t i = 0; i < count; i++)
		use_result(table, &requests[i]);
	free(requests);
	mark_descendants(table, filter);
	return true;
}

/* ---- what the header names ---- */

bool proc_table_fill(struct proc_table *table, const struct proc_filter *filter,
		     enum proc_scope scope, const struct proc_set *signaled)
{
	bool is_complete =
		scope == SCOPE_FAMILY ? list_family(table, filter) : list_all(table, filter);

	table->listed_ms = rlock_now_ms();
	if (table->count == 0)
		return is_complete;
	sort(table);
	mark_roots(table, filter, signaled);
	mark_descendants(table, filter);
	if (scope != SCOPE_FAMILY)
		is_complete = mark_carriers(table, filter, scope == SCOPE_SUSPECTS) && is_complete;
	return is_complete;
}

void proc_table_free(struct proc_table *table)
{
	free(table->entries);
}
