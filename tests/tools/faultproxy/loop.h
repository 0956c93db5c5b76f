/*
 * The proxy at work.
 */
#ifndef FAULTPROXY_LOOP_H
#define FAULTPROXY_LOOP_H

struct endpoint;

struct loop {
	int listener, control_listener;
	const struct endpoint *target;
};

/* Until a command asks for the end. No connection is left then. */
void loop_run(const struct loop *loop);

#endif
