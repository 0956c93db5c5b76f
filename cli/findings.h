/*
 * What `rlock check` finds: one line each, or a JSON document; and the exit code that follows from all of them.
 */
#ifndef FINDINGS_H
#define FINDINGS_H

#include "base/json.h"

enum finding_level {
	FINDING_OK,
	FINDING_NOTE, /* locks are sound, with a limit that is worth knowing */
	FINDING_BAD,  /* they are not */
};

struct findings {
	int code;          /* the worst so far; 0: all is sound */
	struct json json;  /* out is NULL: lines for people */
	bool has_part;     /* that is still open in the document */
	int subject_width; /* of the column in text */
};

void findings_begin(struct findings *findings, bool is_json);
/*
 * What the findings up to the next call are about: a server or the like, or NULL for this machine; and a remark, maybe
 * empty.
 */
void findings_about(struct findings *findings, const char *server, const char *remark);
/* A finding about a subject, one word. code counts where it is bad. */
__attribute__((format(printf, 5, 6))) void findings_add(struct findings *findings,
							enum finding_level level, int code,
							const char *subject, const char *format,
							...);
/* After the last part: further members of the document may follow. */
void findings_end_parts(struct findings *findings);
/* The end of the document. */
void findings_end(struct findings *findings);

#endif
