/* Words of other programs, verbs and options, and what to type instead. */
#ifndef HINTS_H
#define HINTS_H

#include "options/opts.h"

/* Size of an option's name, with its dashes. */
#define OPTION_MAX 64

/* texts that other messages have as well */
#define WAIT_WHY "how long to wait is --wait"
#define LEASE_WHY "the new lease is --lease"
#define PERMITS_WHY "the number of permits is --permits"
#define PASSWORD_WHY                                                                               \
	"a password is read by --password-file or --password-command, or from REDISCLI_AUTH"

/* What to do with an option of another program to get the right line. */
enum remedy {
	/* replace it by the option in hint.instead; no line is certain if that is OPT_COUNT */
	REPLACE,
	NO_LINE,
	LEAVE_OUT,
	AS_NAME,    /* its value is the name of a lock */
	AS_COMMAND, /* its value is COMMAND, or a line for a shell */
	AS_PERMITS, /* its value is a number of permits */
	AS_SERVER,  /* its value is a URL, or a host with or without a port */
	AS_PORT,    /* its value is the port of that host */
	USE_VERB,   /* hint.text is the verb */
	RUN_BY,     /* hint.text and its value are the first words of COMMAND */
	PUT_FIRST,  /* hint.text and its value stand before rlock */
	PUT_LAST,   /* hint.text stands after COMMAND */
};

/* The values for which a hint is right. */
enum value_class {
	ANY_VALUE,
	VARIABLE_VALUE, /* VARIABLE=VALUE */
	LIMIT_VALUE,    /* RuntimeMaxSec=DUR, a property of systemd */
	NUMBER_VALUE,
	SIGNAL_VALUE,
	PATH_VALUE,
	FORMAT_VALUE, /* of a document, but not JSON */
};

/* the start of a value of LIMIT_VALUE, before the duration */
#define RUN_LIMIT "RuntimeMaxSec="

/* An option of another program, or of another verb, and what replaces it in these verbs. */
struct hint {
	const char *words; /* separated by '|' */
	unsigned verbs;
	enum opt_id instead; /* OPT_COUNT: no option replaces the words */
	const char *why;
	enum remedy remedy;
	const char *text;
	enum value_class value;
	/* another option that may have been meant; 0: none */
	enum opt_id otherwise;
	/* an option of timeout(1), which has the longest run of COMMAND as a word of its own */
	bool is_of_timeout;
	/* for LEAVE_OUT: in other programs, an option of that name takes a value */
	bool may_have_value;
};

/*
 * The hint for an option, with or without "=VALUE". value: the value of a word without one, which may be the next word; NULL: none.
 * Returns NULL if there is no hint.
 */
const struct hint *hints_find(unsigned verbs, const char *word, const char *value);

/*
 * A hint for a word that is a verb of another program; NULL: the word is not known. *verb_out: the verb with which the rest of the
 * line may be right; NULL: none.
 */
const char *hints_find_verb(const char *typed, const char **verb_out);

#endif
