/*
 * Show the user's words in messages; build command lines to copy; print the help.
 */
#ifndef USAGE_H
#define USAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/rlock.h"
#include "options/opts.h"

/* Size of the longest text of usage_show, with its NUL. */
#define USAGE_SHOWN_MAX 256

/*
 * Hide secrets in one of the user's words, in place: the password of a URL, and the value of each option or variable of
 * usage_is_secret. The word may be a whole line, as for sh -c. before: the preceding word, or NULL. In the value of -u
 * and --url also hide "SECRET@host"; elsewhere such a word may be the name of a lock.
 */
void usage_hide_secret(char *word, const char *before);

/*
 * Whether a long option of that name has a password as its value. Options of any program count, also if they are
 * mistyped.
 */
bool usage_is_password(const char *name);
/*
 * Whether no message may show the value of an option or variable of that name, which ends at a '=' or NUL:
 * "sentinel-password", "REDISCLI_AUTH". Any name with such a word counts: better hide too much than too little.
 */
bool usage_is_secret(const char *name);

/*
 * Print text as a message may show it: without passwords and control characters, and shortened. Returns out.
 */
char *usage_show(const char *text, char out[USAGE_SHOWN_MAX]);
/* Print it as a word after before, as in usage_hide_secret. Returns out. */
char *usage_show_after(const char *before, const char *text, char out[USAGE_SHOWN_MAX]);
/* Print the value of an option in the same way, without the secret of "SECRET@host" in a URL as well. Returns out. */
char *usage_show_value(enum opt_id id, const char *text, char out[USAGE_SHOWN_MAX]);

#define USAGE_WHERE_MAX (USAGE_SHOWN_MAX + 64)
/*
 * Print where the value that counts was given: "--quorum", "RLOCK_URL", "FILE:3: quorum". Returns out.
 */
char *usage_where(const struct opts *opts, enum opt_id id, char out[USAGE_WHERE_MAX]);
/*
 * Print "FILE:3", a line of the configuration file, or with a name "FILE:3: quorum". Returns out.
 */
char *usage_where_in_file(const struct opts *opts, size_t line, const char *name,
			  char out[USAGE_WHERE_MAX]);

/* Size of the reason why a command line is wrong, with its NUL. */
#define USAGE_WHY_MAX 600

/* Call table_give, and report a wrong value: "WHERE 'value': why". Returns 0, or the exit code. */
int usage_give(struct opts *opts, struct given given);

/* A command line for a message, cut if it is too long. */
struct usage_line {
	char text[1024];
	size_t len;
	bool is_cut;
	/* start of the last word that was added, which may be an option with a password */
	char before[32];
};

/*
 * A part of such a line. plain: a text that is added unchanged (NULL: none). words: words of the user, which are quoted
 * for a shell if needed.
 */
struct line_part {
	const char *plain;
	char *const *words;
	size_t count;
};

#define PLAIN(text)                                                                                \
	{                                                                                          \
		(text), NULL, 0                                                                    \
	}

/* Build the line from these parts, with blanks between them. */
void usage_line_make(struct usage_line *line, const struct line_part *parts, size_t count);
#define usage_line(line, ...)                                                                      \
	usage_line_make((line), (const struct line_part[]){ __VA_ARGS__ },                         \
			sizeof((const struct line_part[]){ __VA_ARGS__ }) /                        \
				sizeof(struct line_part))

/* Add a part. The pid of usage_own_pid, after --pid, is printed as "$$". */
void usage_line_add(struct usage_line *line, const struct line_part *part);
void usage_line_add_names(struct usage_line *line, const struct rlock_name *names, size_t count);

#define USAGE_PID_MAX 16
/* Store which process started this one. Call this before the first fork. */
void usage_remember_shell(void);
/* Print the pid of that process, which is usually the shell that the user types in. */
void usage_own_pid(char out[USAGE_PID_MAX]);

/* The number of words before the NULL; 0 if words is NULL. */
size_t usage_count(char *const *words);

/* ---- the help of a verb, and the exit codes, which the help of rlock as a whole prints as well ---- */

enum help_extent {
	HELP_NONE,
	HELP_SHORT, /* -h: the options used most, on one screen */
	HELP_FULL,  /* --help: all of them, the examples and the exit codes */
};

/* Print the help of the verb to standard output. */
void help_print(const struct verb *verb, enum help_extent extent);

/* Print the exit codes to standard output. */
void help_print_exit_codes(void);

#endif
