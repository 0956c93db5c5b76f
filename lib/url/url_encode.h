/*
 * Percent-encoding for a URL.
 */
#ifndef RLOCK_URL_URL_ENCODE_H
#define RLOCK_URL_URL_ENCODE_H

/* The percent-encoded text, malloc'ed; NULL when out of memory. */
char *rlock__url_encode(const char *text, const char *keep);

#endif
