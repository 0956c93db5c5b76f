/*
 * The terminal of rlock and its command: which of its signals reach both, and stops of the command alone.
 */
#ifndef JOB_CONTROL_H
#define JOB_CONTROL_H

#include <stdbool.h>

#include "hold/lease.h"
#include "sys/os.h"
#include "sys/proc.h"

/* A command that was stopped and continued together with rlock is seen running after this time. */
#define JOB_CONTROL_SETTLE_MS 30

/*
 * Whether the command has got this signal of rlock's already: the kernel sends a signal of the terminal to both, except
 * for SIGHUP, which only the leader of the session gets. False when only leftovers run: most of them ignore the signals
 * of the terminal, so these are passed on to them.
 */
bool job_control_has_reached_command(const struct lease *lease, const struct os_signal *signal);

/*
 * In rlock: if the command is stopped, and a shell is there to continue us, stop as well, until we are continued. False:
 * we did not stop.
 */
bool job_control_stop_with_command(struct lease *lease);

/*
 * In the renewer: a descriptor of the process that can continue a stopped command, the nearest one above rlock that is
 * in the same session and not in the command's process group, as a shell with job control is. PROC_GONE: there is none.
 */
enum proc_lookup job_control_open_shell(const struct lease *lease, int *fd_out);

#endif
