/*
 * Prints findings. What is looked at is for cmd_check.c and check_server.c.
 */
#include <stdarg.h>
#include <stdio.h>

#include "findings.h"

/* Of one finding; all rights that there are fit into it. */
#define TEXT_MAX 8192
#define SUBJECT_WIDTH 11

void findings_begin(struct findings *findings, bool is_json)
{
	*findings = (struct findings){ .subject_width = SUBJECT_WIDTH };
	if (!is_json)
		return;
	findings->json.out = stdout;
	json_open(&findings->json, NULL, '{');
	json_open(&findings->json, "parts", '[');
}

static void end_part(struct findings *findings)
{
	if (!findings->has_part)
		return;
	json_close(&findings->json, ']');
	json_close(&findings->json, '}');
}

void findings_about(struct findings *findings, const char *server, const char *remark)
{
	if (findings->json.out == NULL) {
		(void)printf("%s%s%s\n", server != NULL ? server : "this machine",
			     remark[0] != '\0' ? ": " : "", remark);
		return;
	}
	end_part(findings);
	findings->has_part = true;
	json_open(&findings->json, NULL, '{');
	json_text(&findings->json, "server", server != NULL ? server : "");
	json_open(&findings->json, "findings", '[');
}

static void print(struct findings *findings, enum finding_level level, const char *subject,
		  const char *text)
{
	static const char *const shown[] = {
		[FINDING_OK] = "ok", [FINDING_NOTE] = "note", [FINDING_BAD] = "BAD"
	};
	static const char *const names[] = {
		[FINDING_OK] = "ok", [FINDING_NOTE] = "note", [FINDING_BAD] = "bad"
	};

	if (findings->json.out == NULL) {
		(void)printf("%-4s  %-*s  %s\n", shown[level], findings->subject_width, subject,
			     text);
		return;
	}
	json_open(&findings->json, NULL, '{');
	json_text(&findings->json, "level", names[level]);
	json_text(&findings->json, "subject", subject);
	json_text(&findings->json, "text", text);
	json_close(&findings->json, '}');
}

void findings_add(struct findings *findings, enum finding_level level, int code,
		  const char *subject, const char *format, ...)
{
	char text[TEXT_MAX];
	va_list args;

	/* The highest code counts: settings have to be mended before rights. */
	if (level == FINDING_BAD && code > findings->code)
		findings->code = code;
	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	print(findings, level, subject, text);
}

void findings_end_parts(struct findings *findings)
{
	if (findings->json.out == NULL)
		return;
	end_part(findings);
	json_close(&findings->json, ']');
}

void findings_end(struct findings *findings)
{
	if (findings->json.out == NULL)
		return;
	json_bool(&findings->json, "sound", findings->code == 0);
	json_close(&findings->json, '}');
	(void)putchar('\n');
}
