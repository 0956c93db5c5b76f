/*
 * Check whether a part is missing: the name of a lock, COMMAND, --permits, or who holds the lock. Look for it at another place of the
 * line, or put a placeholder there.
 */
#include <string.h>

#include "options/looks.h"
#include "options/missing.h"
#include "options/separator.h"
#include "options/table.h"

#define EMPTY_WHY " (was a variable empty?)"

static char any_name[] = "NAME", any_number[] = "N", any_command[] = "COMMAND", any_owner[] = "ID";
static char *template_command[] = { any_command, NULL };

/*
 * Find an option that may have taken the missing name as its value: the option takes any text, or refuses this value.
 */
static bool find_taken_name(const struct line *line, struct word *out)
{
	struct words from = line_words(line);
	char why[RLOCK_ERROR_MAX];

	while (words_next(&from, out)) {
		struct opts unwanted = { 0 };
		bool may_be_name = out->opt != NULL &&
				   (out->opt->type == TYPE_TEXT || out->opt->type == TYPE_LINE ||
				    out->opt->type == TYPE_LOG);

		if (out->kind != WORD_OPTION || out->span == 1 || out->value == NULL ||
		    out->value == any_number || looks_like_url(out->value))
			continue;
		may_be_name = may_be_name ||
			      table_store(&unwanted, out->opt, out->value, why) != RLOCK_OK;
		opts_free_urls(&unwanted);
		if (may_be_name)
			return true;
	}
	return false;
}

static enum verdict report_taken_name(const struct line *line, const struct word *taken,
				      char why[USAGE_WHY_MAX])
{
	const char *value = taken->value;
	/* -u of flock, and a name: neither a URL nor a user or password without the scheme of a URL */
	bool is_release = taken->opt == &opt_table[OPT_URL] && line->command == NULL &&
			  *value != '\0' && *value != '-' && strpbrk(value, ":@/") == NULL;
	char shown[USAGE_SHOWN_MAX];

	(void)usage_show_value(table_id(taken->opt), value, shown);
	return line_reject(why, UNCERTAIN,
			   "%s needs the name of a lock: '%s' is the value of --%s%s%s", line->verb,
			   shown, taken->opt->name,
			   !is_release             ? "; was a variable empty?"
			   : word_is_number(value) ? "; to release a lock: rlock flock -u "
						   : "; to release a lock: rlock unlock ",
			   is_release ? shown : "");
}

/* Whether the last word is the only name, and the path of a program: the name was forgotten, not the COMMAND. */
static bool is_program_alone(const struct line *line)
{
	struct words from = line_words(line);
	struct word word = { .kind = WORD_UNKNOWN };

	while (words_next(&from, &word))
		;
	return line->command == NULL && word.kind == WORD_NAME && line_count_names(line, 0) == 1 &&
	       (line->need == COMMAND_NEEDED || line_lacks_owner(line)) &&
	       looks_runnable_path(word.value);
}

/*
 * The number of words in COMMAND before a "--", if they are names: "-- sync -- ./job". The arguments of a program can
 * contain "--", so only one word may be the name of a program. 0: COMMAND is a command.
 */
static size_t count_before_dashes(char *const *command)
{
	size_t count = usage_count(command), at = 0;

	while (at < count && strcmp(command[at], "--") != 0)
		at++;
	return at + 1 < count && (at == 1 || (at > 1 && !looks_like_program(command[0]))) ? at : 0;
}

/* Correct "./job -- nightly", where the name and COMMAND have each other's place. */
static enum verdict mend_order(struct line *line, char why[USAGE_WHY_MAX])
{
	char *const *command = line->command;
	size_t last = line->count - 1;
	struct words from = line_words(line);
	struct word word = { .kind = WORD_UNKNOWN };
	char program[USAGE_SHOWN_MAX], name[USAGE_SHOWN_MAX], *first;

	while (words_next(&from, &word))
		;
	/* Ask last whether COMMAND is a program, because that searches PATH, and each call comes here. */
	if (command == NULL || usage_count(command) != 1 || word.kind != WORD_NAME ||
	    line_count_names(line, 0) != 1 || !looks_runnable_path(word.value) ||
	    looks_like_program(command[0]))
		return RIGHT;
	(void)line_reject(why, MENDED,
			  "'%s' is a program, and '%s' is none: the name stands before '--'",
			  usage_show(word.value, program), usage_show(command[0], name));
	/* command may be command_room. */
	first = command[0];
	line->command_room[0] = line->words[last];
	line->command_room[1] = NULL;
	line->words[last] = first;
	line->command = line->command_room;
	return MENDED;
}

/* Find the name of a line without one: it may be the value of an option, or stand after "--". */
static enum verdict find_name(struct line *line, char why[USAGE_WHY_MAX])
{
	struct word taken;
	size_t count = usage_count(line->command), names;

	if (find_taken_name(line, &taken))
		return report_taken_name(line, &taken, why);
	names = count_before_dashes(line->command);
	if (names == 0 &&
	    (line->command == NULL || count < 2 || looks_like_program(line->command[0])))
		return RIGHT;
	(void)line_reject(why, UNCERTAIN, "%s needs the name of a lock before '--'", line->verb);
	if (names > 0 && line_append(line, line->command, names)) {
		line->command += names + 1;
		return MENDED;
	}
	if (!looks_like_program(line->command[1]) || !line_append(line, line->command, 1))
		return UNCERTAIN;
	line->command++;
	return MENDED;
}

/* Report that COMMAND is missing, also after "--". */
static enum verdict check_command(struct line *line, char why[USAGE_WHY_MAX])
{
	const char *cause = line->command != NULL ? EMPTY_WHY : "";

	if (usage_count(line->command) > 0 ||
	    (line->command == NULL && line->prefix_count == 0 && line->need != COMMAND_NEEDED))
		return RIGHT;
	line->command = template_command;
	return line->need == COMMAND_NEEDED
		       ? line_reject(why, MENDED, "%s needs a command after '--'%s", line->verb,
				     cause)
		       : line_reject(why, MENDED, "%s: there is nothing after '--'%s", line->verb,
				     cause);
}

bool missing_is_placeholder(const char *word)
{
	return word == any_name || word == any_number || word == any_command || word == any_owner;
}

enum verdict missing_check(struct line *line, char why[USAGE_WHY_MAX])
{
	bool lacks_name = line_count_names(line, 0) == 0 &&
			  line->need != COMMAND_NONE_MAYBE_NAMES &&
			  line->need != COMMAND_NONE_BUT_PATTERN;
	enum verdict verdict = separator_mend_place(line, why);

	if (verdict == RIGHT)
		verdict = lacks_name ? find_name(line, why) : mend_order(line, why);
	if (verdict != RIGHT)
		return verdict;
	if (is_program_alone(line)) {
		line_cut_command(line, line->count - 1);
		line->has_marked_command = true;
		return line_reject(why, MENDED, "%s needs the name of a lock", line->verb);
	}
	verdict = check_command(line, why);
	if (verdict != RIGHT)
		return verdict;
	if (lacks_name) {
		bool is_marked = line->command != NULL && line->command != template_command;

		line_replace(line, line->count, 0, any_name, NULL);
		return line_reject(why, MENDED, "%s needs the name of a lock%s", line->verb,
				   line->need == COMMAND_NONE ? ", which 'rlock list' shows"
				   : is_marked                ? EMPTY_WHY
							      : "");
	}
	if (line->set == VERBS_SEM && !line_has_option(line, OPT_PERMITS)) {
		line_replace(line, 0, 0, line_option(OPT_PERMITS), any_number);
		return line_reject(why, MENDED, "sem needs --permits, how many there are in all");
	}
	/*
	 * A lock without a COMMAND must name its holder. The caller itself may be a wrapper or a subshell that ends
	 * immediately, so it is not the default holder. With a fixed lease an owner is more probable than a process.
	 */
	if (line->command == NULL && line_lacks_owner(line)) {
		line->may_be_for_process = line_has_option(line, OPT_LEASE);
		if (line->may_be_for_process)
			line_replace(line, 0, 0, line_option(OPT_OWNER), any_owner);
		else
			line_replace(line, 0, 0, line_option(OPT_PID), line->own_pid);
		return line_reject(why, MENDED, "%s without a COMMAND needs --pid or --owner",
				   line->verb);
	}
	return RIGHT;
}
