/*
 * A model in Promela of how `rlock run` holds a plain lock: two contenders, each with a front, a renewer and a COMMAND; the
 * server; and the network. spin explores every order of events. tests/spin/run.sh runs spin for each guarantee to CHECK, and for
 * each MUTANT. A mutant breaks one rule of the design, and spin must find that a guarantee fails.
 *
 * The renewer holds the lock, and is COMMAND's parent. When the renewer is dead, COMMAND's processes are children of the front,
 * which then holds the lock by the same code (Holder), over a connection of its own. Front and renewer know of each other only
 * what is in the lease, in shared memory. If a write must come before another step, it is a step of its own here, since the
 * process can be killed between the two. The phases have the names of enum hold_phase.
 *
 * Time passes in ticks. The client counts the lease from when it sent its last successful request, the server from when the
 * request arrived. The client's deadline is one tick before the earliest end of the lease. Before each tick, every process that
 * lives and is not stopped does all that is due, so a slow or hung process is modelled as a stopped one. A process can be killed
 * at any point. A request that is abandoned, or whose sender was killed, arrives at any later time or never, also after later
 * requests, which may use another connection (late_*: one of each sort for each hold).
 *
 * SCENARIO says what can fail. A contender fails if its processes are killed or its requests are abandoned.
 *
 *   contenders  both can fail
 *   nested      the second contender runs in the first one's COMMAND and inherits its owner; only the second can fail
 *   told        the first can fail, and gets SIGTERM, which its holder passes on
 *   leftovers   the first can fail, and runs with --wait-all
 *   stops       the first can fail, and its front and renewer can be stopped and continued
 *   alone       the only contender gets SIGTERM, is stopped, and loses its lock by force
 *
 * Not modelled: several names or servers, other kinds of locks, queues, how a waiter is woken, SIGTERM and --grace (at the
 * deadline there is SIGKILL only), --at-least, --max-run, --lease, --on-lost, --kill-child, locks without COMMAND, an attempt
 * that is undone and repeated (which needs another hold id), stops of COMMAND, messages and the log, children that the front had
 * before, and processes that COMMAND leaves in the background on purpose.
 *
 * Rules that the model brought to light, each with the mutant that breaks it:
 *
 * - The phase becomes HOLD_RELEASING before a release is sent, also before a release that only undoes an attempt
 *   (release_before_phase). After that, no other renewer is forked (another_after_undo): the release of a hold id may
 *   arrive later, so no process acquires with that id again.
 * - A renewer that follows a dead one finds another number for "not started" in job_pid. A process that the dead renewer
 *   forked as COMMAND finds its own number gone, and ends: it must not run before there is a lock
 *   (start_never_forbidden, start_not_forbidden).
 * - The process that finds the deadline passed records the loss before it kills, and reads the clock before it judges
 *   how COMMAND ended (killed_before_reason, end_read_before_clock).
 * - That COMMAND was asked to end is recorded before the signal is sent (told_after_signal).
 * - After a take-over in HOLD_RELEASING, a hold id that is missing means that the release has taken place, unless the
 *   lease may have ended (gone_is_lost). In a first release it means a lost lock (gone_is_done).
 */
mtype = { contenders, nested, told, leftovers, stops, alone, exclusion, late_renewals, counting, orphans, free_at_end,
	exit_status };
mtype = { none, acquire_without_id, release_without_id, renew_without_id, renew_takes_anew, acquire_without_lease,
	lease_from_reply, deadline_at_lease_end, holder_enforces_nothing, takes_over_nothing, leaves_stopped_renewer,
	front_adopts_nothing, renewer_adopts_nothing, release_before_all_gone, both_release, told_after_signal,
	loss_unseen_at_end, start_not_forbidden, start_never_forbidden, another_after_undo,
	another_hold_id, start_after_deadline, start_without_front, release_before_phase, blind_to_end, blind_to_front,
	reaped_before_written, end_read_before_clock, killed_before_reason, gone_is_lost, gone_is_done };
#ifndef CHECK
#define CHECK exclusion
#define SCENARIO contenders
#define MUTANT none
#endif
#define LEASE 3
#define DEADLINE (MUTANT == deadline_at_lease_end -> LEASE : LEASE - 1) /* lease.c: lease_kill_ms */
#define NO_OWNER 2
#define WAITS_FOR_ALL (SCENARIO == leftovers)

/* The phases of lease.h: enum hold_phase. */
mtype = { HOLD_WAITING, HOLD_STARTING, HOLD_RUNNING, HOLD_LEFTOVERS, HOLD_TERMINATING, HOLD_RELEASING, HOLD_ENDED };
/* State of a front or a renewer. A renewer that was killed is DEAD until the front reaps it, and then GONE. */
mtype = { LIVES, DEAD, GONE };
/* State of a COMMAND. LEFTOVERS: it has ended, and some of its processes run on. */
mtype = { NOT_YET, FORKED, KNOWN, RUNNING, LEFTOVERS, ENDED };
mtype = { JOB_NOT_STARTED, JOB_PID, JOB_NEVER };
/*
 * The state of the connection: a request (ACQUIRE, RENEW, RELEASE) or a reply (YES, NO) is on its way. QUIET: neither is. UNDONE:
 * a release was sent (for a mutant only).
 */
mtype = { QUIET, ACQUIRE, RENEW, RELEASE, YES, NO, UNDONE };

mtype front[2] = LIVES, renewer[2] = LIVES, command[2] = NOT_YET;
bit front_stopped[2], renewer_stopped[2];
/* is_zombie: COMMAND's own process has ended and is not reaped yet. is_signalled: SIGTERM was passed on to COMMAND. */
bit is_zombie[2], is_signalled[2];
/* The lease (lease.h). age: ticks since sent_ms. has_end: job_end was set. */
mtype phase[2] = HOLD_WAITING, job[2] = JOB_NOT_STARTED;
byte age[2]; bit is_lost[2], was_asked_to_end[2], has_end[2];
/*
 * wire: the holder's request or the reply to it. sent_ago: ticks since the request was sent. is_repeated: an earlier release of
 * this hold may have been carried out.
 */
mtype wire[2] = QUIET; byte sent_ago[2]; bit is_repeated[2];
bit late_acquire[2], late_renewal[2], late_release[2];
/* The server's data: the lock hash (owner, count), the hash of hold ids (held), and the TTL of both. */
byte owner = NO_OWNER, count, ttl;
bit held[2];
/*
 * Only for the checks. is_unprotected: neither front nor renewer protects this COMMAND any more. was_lost_running: the lock was
 * lost while COMMAND ran.
 */
bit is_unprotected[2], is_released[2], was_lost[2], was_lost_running[2]; byte over_for[2], idle_for;
/* Only for the mutant reaped_before_written. is_unwritten: COMMAND was reaped, but its end is not in the lease state yet. */
bit is_unwritten[2];

#define self (_pid % 2)
#define TAKES_PART(c) (SCENARIO != alone || c == 0)
#define MAY_FAIL (SCENARIO == contenders || self == (SCENARIO == nested -> 1 : 0))
#define MAY_STOP ((SCENARIO == stops || SCENARIO == alone) && self == 0)
#define FRONT_RUNS(c) (front[c] == LIVES && !front_stopped[c])
#define FRONT_IS_ALONE(c) (FRONT_RUNS(c) && renewer[c] == GONE)
#define RENEWER_RUNS(c) (renewer[c] == LIVES && !renewer_stopped[c])
#define HOLDER_RUNS(c) (RENEWER_RUNS(c) || FRONT_IS_ALONE(c) && (MUTANT != takes_over_nothing || phase[c] == HOLD_ENDED))
#define HAS_PROCESSES(c) (command[c] == FORKED || command[c] == KNOWN || command[c] == RUNNING || command[c] == LEFTOVERS)
#define IS_DUE(c) (age[c] >= DEADLINE && HAS_PROCESSES(c) && MUTANT != holder_enforces_nothing)
#define HAS_PASSED(c) (!is_lost[c] && age[c] >= DEADLINE && (IS_DUE(c) || !has_end[c] && MUTANT != end_read_before_clock && \
	MUTANT != holder_enforces_nothing))
#define IS_SETTLED(c) (front[c] == GONE && renewer[c] == GONE && !HAS_PROCESSES(c))
#define HOLDS(c) (phase[c] == HOLD_STARTING || phase[c] == HOLD_RUNNING || phase[c] == HOLD_LEFTOVERS || \
	phase[c] == HOLD_TERMINATING)
/* Whether COMMAND's processes are children of the holder, and what waitid then reports about them. */
#define HAS_ADOPTED(c) (renewer[c] == LIVES || MUTANT != front_adopts_nothing)
#define ALL_GONE(c) (!is_zombie[c] && !HAS_PROCESSES(c) || !HAS_ADOPTED(c) || \
	command[c] == LEFTOVERS && !is_zombie[c] && MUTANT == renewer_adopts_nothing)
/* Whether an event can happen now. */
#define HAS_COMMAND_ENDED(c) (job[c] == JOB_PID && (has_end[c] && !is_zombie[c] || ALL_GONE(c)) && MUTANT != blind_to_end)
#define ARE_ALL_GONE(c) (job[c] == JOB_PID && ALL_GONE(c) && MUTANT != blind_to_end || \
	has_end[c] && MUTANT == release_before_all_gone)
#define IS_FRONT_DEAD(c) (front[c] != LIVES && MUTANT != blind_to_front)
#define MAY_START(c) (renewer[c] == LIVES && command[c] == NOT_YET && job[c] == JOB_NOT_STARTED && \
	!was_asked_to_end[c] && (FRONT_RUNS(c) || MUTANT == start_without_front))
#define IS_NOT_TO_START(c) (job[c] != JOB_PID && command[c] != FORKED && !is_zombie[c] && \
	(is_lost[c] || was_asked_to_end[c] || has_end[c] || command[c] == NOT_YET && IS_FRONT_DEAD(c)))
#define MAY_FORK_ANOTHER(c) (FRONT_IS_ALONE(c) && job[c] != JOB_PID && !is_lost[c] && !was_asked_to_end[c] && !has_end[c] && \
	(phase[c] == HOLD_WAITING || phase[c] == HOLD_STARTING || MUTANT == another_after_undo && phase[c] == HOLD_RELEASING))

/* End a request: its reply has come, or it is abandoned. An abandoned request can still arrive at the server later. */
inline finish_request()
{
	late_acquire[self] = late_acquire[self] || wire[self] == ACQUIRE;
	late_renewal[self] = late_renewal[self] || wire[self] == RENEW;
	late_release[self] = late_release[self] || wire[self] == RELEASE;
	sent_ago[self] = 0; wire[self] = QUIET
}

/*
 * Enter HOLD_RELEASING. From here on only the exit status depends on the cause of the release. So clear the cause, unless the
 * exit status is checked: spin then has fewer states to explore.
 */
inline begin_release()
{
	if :: CHECK != exit_status -> has_end[self] = 0; is_lost[self] = 0; was_asked_to_end[self] = 0; is_signalled[self] = 0
	:: else fi;
	finish_request(); phase[self] = HOLD_RELEASING; forget(self)
}

/* Drop late requests that cannot change anything any more, so that there are fewer states. */
inline forget(c)
{
	if :: CHECK != late_renewals && CHECK != counting && !held[c] && !late_acquire[c] &&
		(phase[c] == HOLD_RELEASING || phase[c] == HOLD_ENDED) -> late_renewal[c] = 0; late_release[c] = 0
	:: else fi
}

/*
 * If both processes and COMMAND have ended, clear the variables that no process will read again, so that there are fewer states.
 */
inline settle(c)
{
	forget(c);
	if :: IS_SETTLED(c) -> job[c] = JOB_PID; command[c] = ENDED; phase[c] = HOLD_ENDED; age[c] = 0; is_lost[c] = 0;
		was_asked_to_end[c] = 0; has_end[c] = 0; is_zombie[c] = 0; is_signalled[c] = 0; is_repeated[c] = 0;
		is_unprotected[c] = 0; was_lost[c] = 0; was_lost_running[c] = 0; is_unwritten[c] = 0; over_for[c] = 0
	:: else fi
}

/*
 * job.c: one scan, which sends SIGKILL to each process that it finds. Processes that are forked during the scan can survive, as
 * LEFTOVERS.
 */
inline kill_processes()
{
	was_lost_running[self] = was_lost_running[self] || CHECK == exit_status && command[self] != LEFTOVERS;
	is_zombie[self] = is_zombie[self] || command[self] != LEFTOVERS;
	if :: command[self] == RUNNING -> command[self] = LEFTOVERS
	:: command[self] = ENDED fi;
	settle(self)
}

/* The code of renewer.c. The renewer runs it, or the front after the renewer has died. */
#define PHASE(state) (phase[self] == state && HOLDER_RUNS(self))
active [2] proctype Holder()
{
end:	do
	/* Send a request for the lock. If the lock was acquired, start COMMAND. If it is busy, or the request is abandoned, repeat the request. */
	:: atomic { PHASE(HOLD_WAITING) && wire[self] == QUIET && renewer[self] == LIVES && !IS_FRONT_DEAD(self) && TAKES_PART(self) &&
		(SCENARIO != nested || self == 0 || command[0] != NOT_YET) -> wire[self] = ACQUIRE }
	:: atomic { PHASE(HOLD_WAITING) && wire[self] != QUIET && wire[self] != UNDONE && (MAY_FAIL || wire[self] != ACQUIRE) ->
		if :: wire[self] == YES && sent_ago[self] <= LEASE / 3 -> age[self] = sent_ago[self]; phase[self] = HOLD_STARTING
		:: true fi;
		finish_request() }
	/*
	 * Stop waiting at any time: because of SIGTERM, the deadline of the wait, or the front's death. Then release, since the
	 * server may have granted the lock.
	 */
	:: atomic { PHASE(HOLD_WAITING) && TAKES_PART(self) && MUTANT == release_before_phase && wire[self] == QUIET ->
		late_release[self] = 1; wire[self] = UNDONE }
	:: atomic { PHASE(HOLD_WAITING) && TAKES_PART(self) && (front[self] == LIVES || IS_FRONT_DEAD(self)) &&
		(MUTANT != release_before_phase || wire[self] == UNDONE) ->
		begin_release() }
	/*
	 * Start COMMAND. Then either COMMAND has started; or the hold is released, because the lock was lost, COMMAND was asked
	 * to end or ended before its exec, or the front died.
	 */
	:: atomic { PHASE(HOLD_STARTING) && MAY_START(self) -> assert(FRONT_RUNS(self)); command[self] = FORKED }
	:: atomic { PHASE(HOLD_STARTING) && job[self] == JOB_PID -> phase[self] = HOLD_RUNNING }
	:: atomic { PHASE(HOLD_STARTING) && IS_NOT_TO_START(self) -> begin_release() }
	/* Send a renewal. Then either the lease is renewed, or the lock is lost, or the request is abandoned and repeated. */
	:: atomic { HOLDS(self) && HOLDER_RUNS(self) && wire[self] == QUIET && !is_lost[self] && age[self] > 0 && age[self] < DEADLINE ->
		wire[self] = RENEW }
	:: atomic { HOLDS(self) && HOLDER_RUNS(self) && wire[self] != QUIET && (MAY_FAIL || wire[self] != RENEW) ->
		if :: wire[self] == YES -> age[self] = (MUTANT == lease_from_reply -> 0 : sent_ago[self])
		:: wire[self] == NO -> is_lost[self] = 1
		:: wire[self] == RENEW fi;
		finish_request() }
	/*
	 * If the deadline has passed, record the loss before COMMAND's end is read, since COMMAND may have ended after the
	 * deadline.
	 */
	:: atomic { HOLDS(self) && HOLDER_RUNS(self) && HAS_PASSED(self) && MUTANT != killed_before_reason -> is_lost[self] = 1 }
	:: atomic { HOLDS(self) && HOLDER_RUNS(self) && IS_DUE(self) && HAS_ADOPTED(self) && MUTANT == killed_before_reason ->
		kill_processes() }
	/* If the lock was lost, or leftovers were asked to end, terminate the processes. */
	:: atomic { (PHASE(HOLD_RUNNING) || PHASE(HOLD_LEFTOVERS)) && is_lost[self] && !HAS_COMMAND_ENDED(self) -> phase[self] = HOLD_TERMINATING }
	:: atomic { PHASE(HOLD_LEFTOVERS) && (is_lost[self] || was_asked_to_end[self]) -> phase[self] = HOLD_TERMINATING }
	/* COMMAND has ended: read its end, write it into the lease, and only then reap it. */
	:: atomic { HOLDER_RUNS(self) && HAS_ADOPTED(self) && is_zombie[self] && !has_end[self] && job[self] != JOB_NEVER &&
		(!HOLDS(self) || !HAS_PASSED(self)) ->
		if :: MUTANT == reaped_before_written -> is_zombie[self] = 0; is_unwritten[self] = 1
		:: else -> has_end[self] = 1; is_zombie[self] = (CHECK == exit_status) fi }
	:: atomic { HOLDER_RUNS(self) && HAS_ADOPTED(self) && is_zombie[self] && (has_end[self] || job[self] == JOB_NEVER) -> is_zombie[self] = 0 }
	:: atomic { HOLDER_RUNS(self) && is_unwritten[self] -> has_end[self] = 1; is_unwritten[self] = 0 }
	:: atomic { PHASE(HOLD_RUNNING) && HAS_COMMAND_ENDED(self) && !is_unwritten[self] ->
		if :: is_lost[self] && MUTANT != loss_unseen_at_end || was_asked_to_end[self] -> phase[self] = HOLD_TERMINATING
		:: WAITS_FOR_ALL && !was_asked_to_end[self] && !is_lost[self] -> phase[self] = HOLD_LEFTOVERS
		:: else -> begin_release() fi }
	/* When the front got SIGTERM, record in the lease that COMMAND was asked to end. Then pass the signal on to COMMAND. */
	:: atomic { (SCENARIO == told || SCENARIO == alone) && self == 0 && HOLDER_RUNS(self) && HOLDS(self) && !was_asked_to_end[self] &&
		(MUTANT != told_after_signal || is_signalled[self]) -> was_asked_to_end[self] = 1 }
	:: atomic { (SCENARIO == told || SCENARIO == alone) && self == 0 && HOLDER_RUNS(self) && command[self] == RUNNING && !is_signalled[self] &&
		(was_asked_to_end[self] || MUTANT == told_after_signal) -> is_signalled[self] = 1 }
	/* Scan and kill processes again and again. When no process is left, release the lock. */
	:: atomic { PHASE(HOLD_TERMINATING) && HAS_PROCESSES(self) && HAS_ADOPTED(self) -> kill_processes() }
	:: atomic { (PHASE(HOLD_LEFTOVERS) || PHASE(HOLD_TERMINATING)) && ARE_ALL_GONE(self) && !is_unwritten[self] -> begin_release() }
	/*
	 * If COMMAND never ran, send the release once, and do not wait for the reply. Otherwise repeat the release until a reply
	 * comes or the lease has ended.
	 */
	:: atomic { PHASE(HOLD_RELEASING) && job[self] != JOB_PID && MUTANT == another_after_undo && wire[self] == QUIET ->
		late_release[self] = 1; wire[self] = UNDONE }
	:: atomic { PHASE(HOLD_RELEASING) && job[self] != JOB_PID && (MUTANT != another_after_undo || wire[self] == UNDONE) ->
		late_release[self] = 1; phase[self] = HOLD_ENDED; forget(self) }
	:: atomic { PHASE(HOLD_RELEASING) && job[self] == JOB_PID && wire[self] == QUIET -> wire[self] = RELEASE }
	:: atomic { PHASE(HOLD_RELEASING) && job[self] == JOB_PID && wire[self] != QUIET && (MAY_FAIL || wire[self] != RELEASE) ->
		is_lost[self] = is_lost[self] || job[self] == JOB_PID && wire[self] == NO && MUTANT != gone_is_done &&
			(!is_repeated[self] || age[self] >= LEASE || MUTANT == gone_is_lost);
		phase[self] = (wire[self] != RELEASE || age[self] >= LEASE -> HOLD_ENDED : HOLD_RELEASING);
		is_repeated[self] = is_repeated[self] || CHECK == exit_status && wire[self] == RELEASE; finish_request(); forget(self) }
	/* A renewer whose front has died ends by itself. */
	:: atomic { phase[self] == HOLD_ENDED && RENEWER_RUNS(self) && front[self] != LIVES -> renewer[self] = GONE; settle(self) }
	/* The renewer is killed. Or it is stopped, or continued. */
	:: atomic { renewer[self] == LIVES && MAY_FAIL -> renewer[self] = (front[self] == LIVES -> DEAD : GONE);
		renewer_stopped[self] = 0; is_unwritten[self] = 0; finish_request();
		is_repeated[self] = is_repeated[self] || CHECK == exit_status && phase[self] == HOLD_RELEASING; settle(self) }
	:: atomic { renewer[self] == LIVES && MAY_STOP -> renewer_stopped[self] = 1 - renewer_stopped[self] }
	od
}

/* front.c */
active [2] proctype Front()
{
end:	do
	/*
	 * If the deadline has passed while the renewer exists, record the loss, then kill the processes: the renewer may do
	 * nothing, although it may also be just about to act. Kill a stopped renewer at any time.
	 */
	:: atomic { FRONT_RUNS(self) && renewer[self] != GONE && IS_DUE(self) && HOLDS(self) && !is_lost[self] && MUTANT != killed_before_reason ->
		is_lost[self] = 1 }
	:: atomic { FRONT_RUNS(self) && renewer[self] != GONE && IS_DUE(self) && HOLDS(self) && is_lost[self] -> kill_processes() }
	:: atomic { FRONT_RUNS(self) && renewer[self] == LIVES && renewer_stopped[self] && MUTANT != leaves_stopped_renewer ->
		renewer[self] = DEAD; renewer_stopped[self] = 0; finish_request();
		is_repeated[self] = is_repeated[self] || CHECK == exit_status && phase[self] == HOLD_RELEASING }
	/*
	 * If the renewer died, reap it. If it waited, fork another one. Otherwise, if COMMAND has not started, forbid that it
	 * starts.
	 */
	:: atomic { FRONT_RUNS(self) && renewer[self] == DEAD && phase[self] == HOLD_WAITING -> renewer[self] = LIVES;
		held[self] = held[self] && MUTANT != another_hold_id }
	:: atomic { FRONT_RUNS(self) && renewer[self] == DEAD && phase[self] != HOLD_WAITING -> renewer[self] = GONE;
		job[self] = (job[self] == JOB_NOT_STARTED && MUTANT != start_never_forbidden -> JOB_NEVER : job[self]) }
	/*
	 * If COMMAND did not run and now never will, fork another renewer with the same hold id. A process that the dead renewer
	 * forked as COMMAND ends, since the next renewer uses another number for JOB_NOT_STARTED.
	 */
	:: atomic { MAY_FORK_ANOTHER(self) ->
		command[self] = (command[self] == FORKED && (MUTANT == start_not_forbidden || MUTANT == start_never_forbidden) ->
			FORKED : NOT_YET);
		held[self] = held[self] && MUTANT != another_hold_id; is_zombie[self] = 0; finish_request();
		job[self] = JOB_NOT_STARTED; age[self] = 0; phase[self] = HOLD_WAITING; renewer[self] = LIVES }
	/* Only with the mutant both_release: when COMMAND has ended, the front also releases, although the renewer lives. */
	:: atomic { MUTANT == both_release && FRONT_RUNS(self) && renewer[self] == LIVES && has_end[self] && HOLDS(self) ->
		late_release[self] = 1 }
	/* The front exits: with 76 if the lock was lost, else as COMMAND ended. */
	:: atomic { FRONT_RUNS(self) && phase[self] == HOLD_ENDED ->
		assert(CHECK != exit_status || has_end[self] || job[self] != JOB_PID);
		assert(CHECK != exit_status || was_lost[self] || !is_lost[self] || age[self] >= LEASE);
		assert(CHECK != exit_status || is_lost[self] || !was_lost_running[self] || is_repeated[self]);
		front[self] = GONE; renewer[self] = GONE; settle(self) }
	/* The front is killed. Or it is stopped, or continued. */
	:: atomic { front[self] == LIVES && MAY_FAIL ->
		if :: renewer[self] == GONE -> finish_request() :: else fi;
		front[self] = GONE; front_stopped[self] = 0; renewer[self] = (renewer[self] == DEAD -> GONE : renewer[self]);
		over_for[self] = 0; settle(self) }
	:: atomic { front[self] == LIVES && MAY_STOP -> front_stopped[self] = 1 - front_stopped[self]; over_for[self] = 0 }
	od
}

active [2] proctype Command()
{
	/*
	 * First the steps of command.c: become_command. Later COMMAND ends by itself or is killed. All its processes end with it;
	 * or, in scenarios where that matters, some run on.
	 */
end:	do
	:: atomic { command[self] == FORKED && (job[self] == JOB_NOT_STARTED || MUTANT == start_not_forbidden) ->
		job[self] = (job[self] == JOB_NOT_STARTED -> JOB_PID : job[self]); command[self] = KNOWN }
	:: atomic { command[self] == FORKED && job[self] == JOB_NEVER -> command[self] = ENDED; is_zombie[self] = 1; settle(self) }
	:: atomic { command[self] == KNOWN ->
		if :: MUTANT == start_after_deadline || !is_lost[self] && age[self] < DEADLINE -> command[self] = RUNNING;
			was_lost_running[self] = was_lost_running[self] || CHECK == exit_status && !held[self]
		:: else -> command[self] = ENDED; is_zombie[self] = 1; settle(self) fi }
	:: atomic { command[self] == RUNNING && (is_signalled[self] || WAITS_FOR_ALL) -> command[self] = LEFTOVERS; is_zombie[self] = 1 }
	:: atomic { HAS_PROCESSES(self) -> is_zombie[self] = is_zombie[self] || command[self] != LEFTOVERS;
		command[self] = ENDED; settle(self) }
	od
}

#define IS_PROTECTED(c) ((command[c] == RUNNING || command[c] == LEFTOVERS) && !is_unprotected[c])
/* The server deletes the hold of a contender. Record whether the contender has lost its lock by this. */
inline lose(c)
{
	was_lost[c] = was_lost[c] || CHECK == exit_status && held[c] && !IS_SETTLED(c);
	was_lost_running[c] = was_lost_running[c] || CHECK == exit_status && held[c] && command[c] == RUNNING;
	held[c] = 0
}

/* The scripts lua/plain_acquire.lua, plain_release.lua and plain_renew.lua. */
#define REENTERS(c) (SCENARIO == nested && c == 1 && owner == 0)
inline acquire(c)
{
	if :: owner == NO_OWNER || !held[c] && REENTERS(c) || held[c] && MUTANT == acquire_without_id ->
		owner = (owner == NO_OWNER -> c : owner); count++; held[c] = 1; is_released[c] = 0
	:: else fi;
	ttl = (held[c] && MUTANT != acquire_without_lease -> LEASE : ttl); idle_for = 0
}

inline release(c)
{
	if :: held[c] || MUTANT == release_without_id && (owner == c || REENTERS(c)) ->
		held[c] = 0; count--; is_released[c] = (CHECK == late_renewals);
		assert(CHECK != counting || count > 0 || !held[1 - c]);
		if :: count == 0 -> owner = NO_OWNER; lose(1 - c); ttl = 0 :: else fi
	:: else fi
}

inline renew(c)
{
	if :: held[c] || MUTANT == renew_without_id && (owner == c || REENTERS(c)) ->
		assert(!is_released[c]); ttl = LEASE; idle_for = 0
	:: owner == NO_OWNER && MUTANT == renew_takes_anew -> assert(!is_released[c]); acquire(c)
	:: else fi
}

bit was_held;
active [2] proctype Server()
{
end:	do
	:: d_step { wire[self] == ACQUIRE -> acquire(self); wire[self] = (held[self] -> YES : NO) }
	:: d_step { wire[self] == RELEASE -> was_held = held[self]; release(self); wire[self] = (was_held -> YES : NO); was_held = 0; forget(0); forget(1) }
	:: d_step { wire[self] == RENEW -> renew(self); wire[self] = (held[self] -> YES : NO) }
	:: d_step { late_acquire[self] -> late_acquire[self] = 0; acquire(self); forget(0); forget(1) }
	:: d_step { late_release[self] -> late_release[self] = 0; release(self); forget(0); forget(1) }
	:: d_step { late_renewal[self] -> late_renewal[self] = 0; renew(self); forget(0); forget(1) }
	/*
	 * `rlock unlock --force` by another process. Not while an acquisition can still arrive: it would create the hold again,
	 * and no process could notice the loss.
	 */
	:: d_step { SCENARIO == alone && held[self] && !late_acquire[self] && wire[self] != ACQUIRE -> lose(self); owner = NO_OWNER; count = 0; ttl = 0 }
	od
}

/* Whether a process that lives and is not stopped has something to do before the next tick. */
#define HOLDER_IS_BUSY(c) (HOLDER_RUNS(c) && ( \
	phase[c] == HOLD_WAITING && IS_FRONT_DEAD(c) || \
	phase[c] == HOLD_STARTING && (MAY_START(c) || job[c] == JOB_PID || IS_NOT_TO_START(c)) || \
	HOLDS(c) && (IS_DUE(c) || HAS_PASSED(c)) || \
	phase[c] == HOLD_RUNNING && (is_lost[c] || HAS_COMMAND_ENDED(c)) || \
	phase[c] == HOLD_LEFTOVERS && (is_lost[c] || was_asked_to_end[c] || ARE_ALL_GONE(c)) || \
	phase[c] == HOLD_TERMINATING && ARE_ALL_GONE(c) || \
	is_zombie[c] || phase[c] == HOLD_RELEASING && (age[c] >= LEASE || job[c] != JOB_PID) || \
	phase[c] == HOLD_ENDED && front[c] != LIVES))
#define FRONT_IS_BUSY(c) (FRONT_RUNS(c) && (renewer[c] == DEAD || MAY_FORK_ANOTHER(c) || \
	renewer_stopped[c] && IS_DUE(c) && MUTANT != leaves_stopped_renewer || phase[c] == HOLD_ENDED))
#define IS_BUSY(c) (HOLDER_IS_BUSY(c) || FRONT_IS_BUSY(c) || command[c] == FORKED || command[c] == KNOWN)

/*
 * The effects of a tick on a contender. A command that runs past the deadline while front and renewer are dead or stopped is not
 * protected any more, unless both have ended by themselves.
 */
inline pass(c)
{
	is_unprotected[c] = is_unprotected[c] || age[c] >= DEADLINE && HAS_PROCESSES(c) && !FRONT_RUNS(c) && !RENEWER_RUNS(c) &&
		phase[c] != HOLD_ENDED;
	command[c] = (is_unprotected[c] && front[c] != LIVES && renewer[c] != LIVES -> ENDED : command[c]);
	settle(c);
	if :: (HOLDS(c) || phase[c] == HOLD_RELEASING && job[c] == JOB_PID) && age[c] < LEASE -> age[c]++;
		was_lost[c] = was_lost[c] || CHECK == exit_status && age[c] >= DEADLINE && HOLDS(c)
	:: else fi;
	if :: wire[c] != QUIET && wire[c] != RELEASE && phase[c] != HOLD_RELEASING && sent_ago[c] < LEASE - 1 -> sent_ago[c]++ :: else fi;
	if :: CHECK == orphans && HOLDER_RUNS(c) && phase[c] != HOLD_ENDED &&
		(command[c] == ENDED || command[c] == NOT_YET && front[c] != LIVES) ->
		assert(over_for[c] < LEASE);
		over_for[c]++
	:: else fi
}

active proctype Clock()
{
end:	do
	:: d_step { !IS_BUSY(0) && !IS_BUSY(1) ->
		pass(0); pass(1);
		if :: ttl == 1 -> owner = NO_OWNER; count = 0; lose(0); lose(1); forget(0); forget(1) :: else fi;
		ttl = (ttl > 0 -> ttl - 1 : 0);
		if :: CHECK == free_at_end && IS_SETTLED(0) && IS_SETTLED(1) && owner != NO_OWNER -> idle_for++
		:: else -> idle_for = 0 fi;
		assert(idle_for <= LEASE) }
	od
}

active proctype Checks()
{
end:	do
	:: d_step { CHECK == exclusion && IS_PROTECTED(0) && IS_PROTECTED(1) -> assert(false) }
	:: d_step { CHECK == counting && count != held[0] + held[1] -> assert(false) }
	od
}
