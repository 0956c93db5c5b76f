/* A command line while it is corrected: its words, questions about it as a whole, and what a check of it finds. */
#ifndef LINE_H
#define LINE_H

#include <stdbool.h>
#include <stddef.h>

#include "options/opts.h"
#include "options/usage.h"
#include "options/words.h"

/* Number of mistakes that are corrected in one line. */
#define LINE_MENDS_MAX 12
#define LINE_PREFIX_MAX 12

struct line {
	const char *verb;
	unsigned set;
	enum command_need need;
	bool is_plain; /* the verb takes a plain lock */
	char **words;
	size_t count, room;   /* number of words, and how many the array can hold */
	char *const *command; /* NULL: the line has no COMMAND */
	/* array for a COMMAND that is cut from words */
	char **command_room;
	char *made[2 * LINE_MENDS_MAX];
	size_t made_count;
	bool has_marked_command;
	/* another line is possible, without COMMAND and with --pid */
	bool may_be_for_process;
	/* words before those of COMMAND, as of "env VAR=VALUE COMMAND" */
	char *prefix[LINE_PREFIX_MAX];
	size_t prefix_count;
	/* words before rlock, and after COMMAND; NULL: none */
	const char *outer;
	const char *last;
	bool is_of_timeout; /* the line has options of timeout(1) */
	/* which of two meanings of the line is printed; what the second one is for, NULL: there is only one */
	enum { FIRST_READING, SECOND_READING } reading;
	const char *second;
	/* the pid of the shell that the user types in, as a value of --pid */
	char own_pid[USAGE_PID_MAX];
};

/* Copy the words of opts, but not their texts. False: out of memory; else call line_free. */
bool line_init(struct line *line, const struct opts *opts);
/* Free the texts of line_make and the array of words. */
void line_free(struct line *line);

/* Print the line, with rlock before its verb. */
void line_print(const struct line *line, struct usage_line *out);

/* ---- what a check finds ---- */

/*
 * RIGHT: no mistake. MENDED: a mistake, which is corrected. UNCERTAIN: a mistake whose correction is not certain.
 */
enum verdict { RIGHT, MENDED, UNCERTAIN };

/* Print into why what is wrong. Returns verdict. */
__attribute__((format(printf, 3, 4))) enum verdict
line_reject(char why[USAGE_WHY_MAX], enum verdict verdict, const char *format, ...);

/* ---- words ---- */

/*
 * Replace the span words from index at on by first and second, of which each may be NULL: no word. The texts must live as long as the
 * line.
 */
void line_replace(struct line *line, size_t at, size_t span, char *first, char *second);

/* The word for OPT_PID, OPT_OWNER, OPT_PERMITS, OPT_URL or OPT_MAX_RUN in a corrected line. It must not be changed. */
char *line_option(enum opt_id id);

/* "sh" and "-c", the first words of a COMMAND that is a line for a shell. */
extern char *const line_shell[2];

/* Format a text, which line_free frees. NULL: out of memory, or too many texts. */
__attribute__((format(printf, 2, 3))) char *line_make(struct line *line, const char *format, ...);

/* Replace span words from index at on by text, which line_make returned. UNCERTAIN: text is NULL. */
enum verdict line_mend(struct line *line, size_t at, size_t span, char *text);

/* Append words of COMMAND to those before it. False: there is no room for so many. */
bool line_append(struct line *line, char *const *words, size_t count);

/* Move the words from index at on into line->command. */
void line_cut_command(struct line *line, size_t at);

/*
 * Replace the word at index at by its pieces between blanks. A piece "--" ends the names and options. False: these are too many
 * pieces, or none, or COMMAND would begin twice.
 */
bool line_replace_by_pieces(struct line *line, size_t at);

/* Put the words of text, and then value, before COMMAND. False: out of memory, or too many words. */
bool line_run_by(struct line *line, const char *text, char *value);

/* The words before COMMAND, to read them from the first one on. */
struct words line_words(const struct line *line);

/* Remove an option with its value. The option must have no letter: a word could contain more letters. */
void line_drop_option(struct line *line, enum opt_id id);

/* ---- questions about the line ---- */

bool line_has_option(const struct line *line, enum opt_id id);

/* The number of names whose word is at index at or later. A value of --name is a name as well. */
size_t line_count_names(const struct line *line, size_t at);

/* Whether the verb takes a COMMAND. */
bool line_may_have_command(const struct line *line);

/* Whether the line says who holds the lock without a COMMAND: by --pid or --owner. */
bool line_has_owner(const struct line *line);

/*
 * Whether the line needs a COMMAND, since it has neither --pid nor --owner. With --resize it needs none of the three.
 */
bool line_lacks_owner(const struct line *line);

/*
 * Whether a word belongs to the option before it: "-n 3 NAME", "--wait 5 min NAME", "list --watch 5". False if the word
 * is the only name, and the verb needs one.
 */
bool line_is_part_of_option(const struct line *line, const struct word *before,
			    const struct word *name);

/* ---- another verb ---- */

/* Replace the verb by sem. The need of a COMMAND stays. */
void line_use_sem(struct line *line);

/*
 * Correct "-n 3" of consul, or "3" of GNU sem, to sem --permits 3. The words to replace are span words from index at
 * on. UNCERTAIN: the verb cannot become sem, or the line has --permits, or the number is 0.
 */
enum verdict line_use_permits(struct line *line, size_t at, size_t span, char *number);

#endif
