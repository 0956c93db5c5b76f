/*
 * How the value of an option is checked and stored: what the rows of the option table point to.
 */
#ifndef VALUE_H
#define VALUE_H

#include "options/option.h"

/* The reason why a value is wrong. RLOCK_EINVAL. */
__attribute__((format(printf, 2, 3))) enum rlock_status value_reject(char why[RLOCK_ERROR_MAX],
								     const char *format, ...);

/* Each is for opt->apply. The first four store at opt->field: a bool, an int64_t, an int, a const char *. */
typedef enum rlock_status value_fn(struct opts *opts, const struct opt *opt, const char *value,
				   char why[RLOCK_ERROR_MAX]);
value_fn value_flag, value_duration, value_number, value_text;
value_fn value_watch, value_url, value_quorum, value_no_wait, value_wait, value_lease,
	value_on_lost, value_mode, value_note, value_log, value_log_format;

#endif
