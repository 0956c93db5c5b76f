/*
 * Looks at the command's family first, which the kernel tells at once; then, for those who are not found so,
 * walks /proc: from the command to its descendants, from a subreaper to what it adopted, and to all that were
 * started after the command and carry the hold's id in their environment, whatever group or session they moved to.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/number.h"
#include "lib/rlock.h"
#include "sys/children.h"
#include "sys/priority.h"
#include "sys/probe.h"
#include "sys/proc_tree.h"
#include "sys/transient_errno.h"

/* Processes that fork as fast as they are found are met again at the caller's next call. */
#define WALKS_MAX 50

struct table {
	struct proc *procs;
	bool *is_member;
	size_t count, capacity;
	size_t unasked;         /* of these it is not known yet whether they are members */
	size_t unread;          /* of these it will not be */
	struct proc unread_one; /* one of these */
};

/*
 * What a look takes on most machines is had from the start: where memory has run out a command has to be
 * found and stopped all the same. There is one look at a time.
 */
#define PROC_TREE_USUAL 1024
static struct proc usual_procs[PROC_TREE_USUAL];
static bool usual_members[PROC_TREE_USUAL];
static struct probe_question usual_questions[PROC_TREE_USUAL];

static struct table table_new(void)
{
	return (struct table){ .procs = usual_procs, .capacity = PROC_TREE_USUAL };
}

/* ---- those that had a signal ---- */

void proc_set_free(struct proc_set *set)
{
	free(set->members);
	*set = (struct proc_set){ 0 };
}

static bool set_has(const struct proc_set *set, const struct proc *proc)
{
	for (size_t i = 0; i < set->count; i++)
		if (set->members[i].pid == proc->pid && set->members[i].start == proc->start)
			return true;
	return false;
}

static bool set_add(struct proc_set *set, const struct proc *proc)
{
	if (set->count == set->capacity) {
		size_t capacity = set->capacity == 0 ? 32 : set->capacity * 2;
		void *members = realloc(set->members, capacity * sizeof(*set->members));

		if (members == NULL)
			return false;
		set->members = members;
		set->capacity = capacity;
	}
	set->members[set->count].pid = proc->pid;
	set->members[set->count].start = proc->start;
	set->count++;
	return true;
}

/* ---- all processes ---- */

static bool table_grow(struct table *table)
{
	size_t capacity = table->capacity * 2;
	struct proc *procs = calloc(capacity, sizeof(*procs));

	if (procs == NULL)
		return false;
	memcpy(procs, table->procs, table->count * sizeof(*procs));
	if (table->procs != usual_procs)
		free(table->procs);
	table->procs = procs;
	table->capacity = capacity;
	return true;
}

static bool table_add(struct table *table, const struct proc *proc)
{
	if (table->count == table->capacity && !table_grow(table))
		return false;
	table->procs[table->count++] = *proc;
	return true;
}

/* A look at thousands of processes takes long: it is broken off when something else is due. */
static bool is_too_late(const struct proc_filter *filter)
{
	return filter->until_ms != 0 && rlock_now_ms() >= filter->until_ms;
}

static bool table_read(const struct proc_filter *filter, struct table *table)
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
		is_complete = lookup == PROC_SEEN ? table_add(table, &proc) && !is_too_late(filter)
						  : lookup == PROC_GONE;
	}
	(void)closedir(dir);
	return is_complete;
}

static void table_free(struct table *table)
{
	if (table->procs != usual_procs)
		free(table->procs);
	if (table->is_member != usual_members)
		free(table->is_member);
}

static bool table_add_members(struct table *table)
{
	if (table->count <= PROC_TREE_USUAL) {
		memset(usual_members, 0, sizeof(usual_members));
		table->is_member = usual_members;
	} else {
		table->is_member = calloc(table->count, sizeof(*table->is_member));
	}
	return table->is_member != NULL;
}

/* Its name alone can be any program's. */
static bool is_renewer(const struct proc *proc)
{
	return strcmp(proc->name, RENEWER_NAME) == 0 && proc->session == proc->pid &&
	       proc_runs_our_program(proc->pid);
}

/*
 * Neither ourselves, nor a watchdog: one ends when what it protects has ended. Nor a session that is not asked for: its
 * processes never come back from there.
 */
static bool is_left_aside(const struct proc_filter *filter, const struct proc *proc)
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

/* Known for one of the command's without a look into it. signaled: who was found to be one before; or NULL. */
static bool is_root(const struct proc_filter *filter, const struct proc_set *signaled,
		    const struct proc *proc)
{
	if (filter->job > 0 && proc->pid == filter->job &&
	    (filter->job_start == 0 || proc->start == filter->job_start))
		return true;
	if (filter->adopter > 0 && filter->adopts_strangers && proc->parent == filter->adopter)
		return true;
	if (filter->known != NULL && set_has(filter->known, proc))
		return true;
	return signaled != NULL && set_has(signaled, proc);
}

/* Nobody was given a hold id before there was a command. */
static bool may_carry_hold(const struct proc_filter *filter, const struct proc *proc)
{
	return filter->hold_id != NULL && !proc_is_gone(proc) &&
	       (filter->job_start == 0 || proc->start >= filter->job_start);
}

/* The command, the adopter, those who are known, and all below them. Some may be met twice. */
static bool table_read_family(const struct proc_filter *filter, struct table *table)
{
	size_t known_count = filter->known != NULL ? filter->known->count : 0;
	struct pid_list list = { 0 };
	struct proc proc;
	bool is_complete = true;

	if (filter->adopter > 0)
		is_complete = pid_list_add(&list, filter->adopter);
	/* Else it is met as a child. */
	if (filter->job > 0 && proc_read(filter->job, &proc) && proc.parent != filter->adopter)
		is_complete = pid_list_add(&list, filter->job) && is_complete;
	for (size_t i = 0; i < known_count; i++)
		is_complete = pid_list_add(&list, filter->known->members[i].pid) && is_complete;
	for (size_t i = 0; is_complete && i < list.count; i++) {
		enum proc_lookup lookup = proc_look(list.pids[i], &proc);

		if (lookup == PROC_GONE)
			continue;
		is_complete =
			lookup == PROC_SEEN && table_add(table, &proc) && !is_too_late(filter);
		if (is_complete && (proc.pid == filter->adopter || !is_left_aside(filter, &proc)))
			children_add(proc.pid, &list);
	}
	pid_list_free(&list);
	return is_complete;
}

static int by_pid(const void *left, const void *right)
{
	const struct proc *a = left, *b = right;

	return (a->pid > b->pid) - (a->pid < b->pid);
}

/* By pid, each once. */
static void table_sort(struct table *table)
{
	size_t count = 0;

	qsort(table->procs, table->count, sizeof(*table->procs), by_pid);
	for (size_t i = 0; i < table->count; i++)
		if (count == 0 || table->procs[i].pid != table->procs[count - 1].pid)
			table->procs[count++] = table->procs[i];
	table->count = count;
}

/* In a table that is sorted; NULL when it isn't in there. */
static const struct proc *parent_of(const struct table *table, const struct proc *child)
{
	const struct proc key = { .pid = child->parent };

	return bsearch(&key, table->procs, table->count, sizeof(*table->procs), by_pid);
}

static bool has_member_parent(const struct table *table, const struct proc *child)
{
	const struct proc *parent = parent_of(table, child);

	return parent != NULL && table->is_member[parent - table->procs];
}

static void mark_roots(const struct proc_filter *filter, const struct proc_set *signaled,
		       struct table *table)
{
	for (size_t i = 0; i < table->count; i++)
		table->is_member[i] = !is_left_aside(filter, &table->procs[i]) &&
				      is_root(filter, signaled, &table->procs[i]);
}

static void mark_descendants(const struct proc_filter *filter, struct table *table)
{
	bool has_changed;

	do {
		has_changed = false;
		for (size_t i = 0; i < table->count; i++) {
			const struct proc *child = &table->procs[i];

			if (table->is_member[i] || is_left_aside(filter, child) ||
			    !has_member_parent(table, child))
				continue;
			table->is_member[i] = has_changed = true;
		}
	} while (has_changed);
}

/* Those that ancestry tells: nobody's environment is read for them. False without memory. */
static bool mark_family(const struct proc_filter *filter, const struct proc_set *signaled,
			struct table *table)
{
	if (table->count == 0)
		return true;
	if (!table_add_members(table))
		return false;
	table_sort(table);
	mark_roots(filter, signaled, table);
	mark_descendants(filter, table);
	return true;
}

static size_t add_questions(const struct proc_filter *filter, bool asks_suspects,
			    struct table *table, struct probe_question *out)
{
	size_t count = 0;

	for (size_t i = 0; i < table->count; i++) {
		const struct proc *proc = &table->procs[i];

		if (table->is_member[i] || is_left_aside(filter, proc) ||
		    !may_carry_hold(filter, proc))
			continue;
		if (!asks_suspects && probe_is_suspect(proc))
			table->unasked++;
		else
			out[count++].proc = proc;
	}
	return count;
}

static void use_answer(struct table *table, const struct probe_question *question)
{
	if (question->lookup == PROC_SEEN)
		table->is_member[question->proc - table->procs] = true;
	else if (question->lookup == PROC_UNSEEN)
		table->unasked++;
	if (!question->is_given_up)
		return;
	table->unread++;
	table->unread_one = *question->proc;
}

/* And those that carry the hold id. False without memory. */
static bool mark_carriers(const struct proc_filter *filter, bool asks_suspects, struct table *table)
{
	struct probe_question *questions = usual_questions;
	size_t count;

	if (table->count > PROC_TREE_USUAL)
		questions = calloc(table->count, sizeof(*questions));
	if (questions == NULL)
		return false;
	count = add_questions(filter, asks_suspects, table, questions);
	probe_ask(questions, count, filter->hold_id, filter->until_ms);
	for (size_t i = 0; i < count; i++)
		use_answer(table, &questions[i]);
	if (questions != usual_questions)
		free(questions);
	mark_descendants(filter, table);
	return true;
}

/* ---- signals ---- */

/* By a descriptor that was checked, so that a reused number is never hit. 0, or errno. */
static int send_signal(const struct proc *proc, int signal)
{
	int fd = proc_open(proc->pid, proc->start), error = 0;

	if (fd < 0)
		return errno;
	if (signal == SIGKILL)
		priority_raise_for(proc->pid);
	if (syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0) != 0)
		error = errno;
	else if (signal == SIGTERM)
		/* A stopped process hears nothing else. */
		(void)syscall(SYS_pidfd_send_signal, fd, SIGCONT, NULL, 0);
	(void)close(fd);
	return error;
}

/*
 * What a program starts after it was told to end is its way of ending: it is left to it for as long as
 * it runs itself.
 */
static bool is_clean_up(const struct table *table, const struct proc_set *signaled,
			const struct proc *child)
{
	const struct proc *above = parent_of(table, child);

	/* Up to a member that was told; a pid is never its own ancestor. */
	while (above != NULL && table->is_member[above - table->procs] && !proc_is_gone(above)) {
		if (set_has(signaled, above))
			return true;
		above = parent_of(table, above);
	}
	return false;
}

/* Whom a walk looks at. */
enum scope {
	SCOPE_FAMILY,   /* those that ancestry tells, by the kernel's lists of children */
	SCOPE_ALL,      /* all processes; those whose environment hung before are not asked */
	SCOPE_SUSPECTS, /* these, too */
};

/* False when it has to be tried again. Known as signaled from before it is, so that nobody is twice. */
static bool signal_once(const struct proc *proc, int signal, struct proc_set *signaled,
			struct proc_report *report)
{
	int error;

	if (!set_add(signaled, proc))
		return false;
	error = send_signal(proc, signal);
	if (error == EPERM) {
		report->refused++;
		report->refused_one = *proc;
	}
	if (!is_transient_errno(error))
		return true;
	signaled->count--;
	return false;
}

static bool mark_members(const struct proc_filter *filter, enum scope scope,
			 const struct proc_set *signaled, struct table *table)
{
	return mark_family(filter, signaled, table) &&
	       (scope == SCOPE_FAMILY || mark_carriers(filter, scope == SCOPE_SUSPECTS, table));
}

/* One walk. *met_new: somebody was found who had not had the signal yet. */
static bool walk(const struct proc_filter *filter, enum scope scope, int signal,
		 struct proc_set *signaled, struct proc_report *report, bool *met_new)
{
	struct table table = table_new();
	bool is_complete = (scope == SCOPE_FAMILY ? table_read_family : table_read)(filter, &table);
	bool spares_clean_up = signal == SIGTERM && signaled->count > 0, is_of_use;
	int64_t at_ms = rlock_now_ms();

	*met_new = false;
	is_complete = mark_members(filter, scope, signaled, &table) && is_complete;
	*report = (struct proc_report){ .at_ms = at_ms,
					.unasked = table.unasked,
					.unread = table.unread,
					.unread_one = table.unread_one };
	/* Who may be somebody's clean-up can't be told among a part of them; who is to be killed can. */
	is_of_use = table.is_member != NULL && (is_complete || signal == SIGKILL);
	for (size_t i = 0; is_of_use && i < table.count; i++) {
		const struct proc *proc = &table.procs[i];

		if (!table.is_member[i] || proc_is_gone(proc))
			continue;
		report->running++;
		report->running_one = *proc;
		/* Without memory they are found by looking, as at first. */
		if (filter->known != NULL && !set_has(filter->known, proc))
			(void)set_add(filter->known, proc);
		if (set_has(signaled, proc) ||
		    (spares_clean_up && is_clean_up(&table, signaled, proc)))
			continue;
		*met_new = true;
		is_complete = signal_once(proc, signal, signaled, report) && is_complete;
	}
	table_free(&table);
	return is_complete;
}

/* Where /proc can't be read nobody can be found but the command itself, by its number. */
static bool signal_job_only(const struct proc_filter *filter, int signal, struct proc_set *signaled,
			    struct proc_report *out)
{
	const struct proc job = { .pid = filter->job, .start = filter->job_start };

	*out = (struct proc_report){ 0 };
	if (job.pid <= 0)
		return true;
	if (signaled != NULL && set_has(signaled, &job))
		signal = 0;
	if (kill(job.pid, signal) != 0)
		return errno == ESRCH;
	if (signal == SIGTERM)
		(void)kill(job.pid, SIGCONT);
	out->running = 1;
	out->running_one = job;
	return signaled == NULL || signal == 0 || set_add(signaled, &job);
}

static bool is_last(enum scope scope, bool met_new, const struct proc_report *report)
{
	if (scope == SCOPE_FAMILY || met_new)
		return false;
	return scope == SCOPE_SUSPECTS || report->unasked == 0;
}

/* Those that may hang come last, when all others have had their signal. */
static enum scope next_scope(enum scope scope, bool met_new)
{
	return scope == SCOPE_FAMILY || met_new ? SCOPE_ALL : SCOPE_SUSPECTS;
}

bool proc_tree_signal(const struct proc_filter *filter, int signal, struct proc_set *signaled,
		      struct proc_report *out)
{
	struct proc_set own = { 0 };
	struct proc_report report = { 0 };
	bool is_complete = true, met_new = true;
	enum scope scope = SCOPE_ALL;
	size_t refused = 0;

	*out = report;
	if (access("/proc/self/stat", R_OK) != 0 && !is_transient_errno(errno))
		return signal_job_only(filter, signal, signaled, out);
	if (signaled == NULL)
		signaled = &own;
	/* Without children_add only the command would be met, and what it has started before taken for clean-up. */
	if (signal != 0 && children_are_told())
		scope = SCOPE_FAMILY;
	for (int walks = 0; walks < WALKS_MAX; walks++) {
		is_complete = walk(filter, scope, signal, signaled, &report, &met_new);
		refused += report.refused;
		if (report.refused > 0)
			out->refused_one = report.refused_one;
		if (!is_complete || is_last(scope, met_new, &report))
			break;
		scope = next_scope(scope, met_new);
	}
	out->at_ms = report.at_ms;
	out->running = report.running;
	out->running_one = report.running_one;
	out->refused = refused;
	out->unasked = report.unasked;
	out->unread = report.unread;
	out->unread_one = report.unread_one;
	proc_set_free(&own);
	/* A child of ours keeps its number until we let it go. */
	if (!is_complete && report.running == 0 && filter->adopter == getpid())
		(void)signal_job_only(filter, signal, signaled, out);
	return is_complete && report.unasked == 0;
}

bool proc_tree_family_runs(const struct proc_filter *filter, struct proc *out)
{
	struct table table = table_new();
	bool runs = false;

	if (children_are_told() && table_read_family(filter, &table) &&
	    mark_family(filter, NULL, &table))
		for (size_t i = 0; i < table.count && !runs; i++) {
			runs = table.is_member[i] && !proc_is_gone(&table.procs[i]);
			if (runs && out != NULL)
				*out = table.procs[i];
		}
	table_free(&table);
	return runs;
}

bool proc_tree_find_running(const struct proc_filter *filter, struct proc *out)
{
	struct proc_report report;
	bool is_complete;

	if (proc_tree_family_runs(filter, out))
		return true;
	is_complete = proc_tree_signal(filter, 0, NULL, &report);
	*out = report.running_one;
	return report.running > 0 || !is_complete;
}
