/*
 * How `rlock run` holds a plain lock: a model in Promela of two contenders, each with a keeper, a renewer and a
 * COMMAND, of the server, and of the network. spin goes through every course of events; tests/spin/run.sh has it do so
 * for each thing to CHECK, and for each MUTANT, which breaks one rule and has to be found out.
 *
 * Time passes in ticks. The client counts them from when it sent its last good request, the server from when that
 * arrived; the client's deadline comes a tick before the lease can end. Before a tick the processes that live, and are
 * not stopped, do all that is due: a slow process is one that was stopped. A process may be killed at any point. A
 * request that is abandoned arrives at any later time or never (late_*: of each sort one a hold).
 *
 * Keeper and renewer look at the clock and the lease state in one step, and act in another one, and the other process
 * may act between them. What the keeper made of its last look is its phase; the names are those of enum hold_phase.
 *
 * SCENARIO: contenders; nested: the second runs in the first one's COMMAND, and inherits its owner; stops: the
 * keeper and the renewer of the first may be stopped and continued as well, and those of the second live; leftovers:
 * with --wait-all. In all others a COMMAND that leaves processes running was told to end.
 *
 * Not modelled: several names or servers, other kinds of locks, queues, how a waiter is woken, SIGTERM and --grace
 * (at the deadline there is SIGKILL only), --at-least, --max-run, --lease, --on-lost, --kill-child, locks without
 * COMMAND, unlock --force, a renewer that is forked before the lock is held (it begins when it is), a server that
 * loses the lock, and what COMMAND left in the background on purpose.
 */
mtype = { contenders, nested, stops, leftovers, exclusion, late_renewals, counting, orphans, free_at_end };
mtype = { none, acquire_without_id, release_without_id, renew_without_id, renew_takes_anew, acquire_without_lease,
	lease_from_reply, deadline_at_lease_end, keeper_enforces_nothing, renewer_enforces_nothing, both_release,
	leftovers_run_on, renewer_blind_to_leftovers, start_not_forbidden, start_never_forbidden, start_after_deadline,
	renewer_blind_to_command, renews_for_stopped_keeper, lease_state_read_twice };
#ifndef CHECK
#define CHECK exclusion
#define SCENARIO contenders
#define MUTANT none
#endif
#define LEASE 3
#define DEADLINE (MUTANT == deadline_at_lease_end -> LEASE : LEASE - 1) /* lease_state.c: lease_state_kill_ms */
#define NO_OWNER 2
#define WAITS_FOR_ALL (SCENARIO == leftovers)

/* RUNNING, LEFTOVERS, TERMINATING: it holds the lock. GONE: ended, or killed */
mtype = { IDLE, ACQUIRING, ACQUIRED, STARTING, RUNNING, LEFTOVERS, TERMINATING, ENDED, RELEASING, GONE };
mtype = { NONE, SLEEPING, RENEWING }; /* a renewer, which also is RELEASING, and GONE when it ended by itself */
mtype = { NOT_YET, FORKED, KNOWN }; /* a command, which also is RUNNING; LEFTOVERS: some of its processes run on; ENDED */
mtype = { NOT_STARTED, PID, NEVER, QUIET, ACQUIRE, RENEW, RELEASE, YES, NO };

mtype keeper[2] = IDLE, renewer[2] = NONE, command[2] = NOT_YET;
bit keeper_stopped[2], renewer_stopped[2];
/* The lease state that they share, lease_state.h. age: since sent_ms. is_terminating: there is a reason. */
mtype job[2] = NOT_STARTED;
byte age[2]; bit is_lost[2], is_terminating[2];
/* A request on its way, or its reply. */
mtype keeper_wire[2] = QUIET, renewer_wire[2] = QUIET;
byte sent_ago[2]; bit late_acquire[2], late_renewal[2], late_release[2];
/* The server: the lock hash (owner, count), the hash of hold ids (held), the time to live of both. */
byte owner = NO_OWNER, count, ttl;
bit held[2];
/* For the checks alone. */
bit is_released[2]; byte over_for[2], idle_for;

#define self (_pid % 2)
#define MAY_DIE (SCENARIO != stops || self == 0)
#define MAY_STOP (SCENARIO == stops && self == 0)
#define KEEPER_LIVES(c) (keeper[c] != GONE)
#define KEEPER_RUNS(c) (KEEPER_LIVES(c) && !keeper_stopped[c])
#define RENEWER_LIVES(c) (renewer[c] != NONE && renewer[c] != GONE)
#define RENEWER_RUNS(c) (RENEWER_LIVES(c) && !renewer_stopped[c])
#define RENEWER_WATCHES(c) ((renewer[c] == SLEEPING || renewer[c] == RENEWING) && RENEWER_RUNS(c))
#define HAS_PROCESSES(c) (command[c] == KNOWN || command[c] == RUNNING || command[c] == LEFTOVERS)
#define IS_DUE(c) (age[c] >= DEADLINE && HAS_PROCESSES(c))
#define IS_SETTLED(c) (!KEEPER_LIVES(c) && !RENEWER_LIVES(c) && !HAS_PROCESSES(c) && command[c] != FORKED)
/* What keeper and renewer find in the loops of keeper.c and renewer_loop.c. HOLDS: the keeper is in its loop. */
#define KEEPER(state) (keeper[self] == state && KEEPER_RUNS(self))
#define HOLDS(c) (keeper[c] == RUNNING || keeper[c] == LEFTOVERS || keeper[c] == TERMINATING)
#define KEEPER_ENFORCES(c) (HOLDS(c) && KEEPER_RUNS(c) && IS_DUE(c) && MUTANT != keeper_enforces_nothing)
#define KEEPER_TERMINATES(c) (keeper[c] == TERMINATING && KEEPER_RUNS(c) && HAS_PROCESSES(c) && \
	(!IS_DUE(c) || KEEPER_ENFORCES(c)))
#define RENEWER(state) (renewer[self] == state && RENEWER_RUNS(self))
#define RENEWER_ENFORCES(c) (RENEWER_WATCHES(c) && IS_DUE(c) && MUTANT != renewer_enforces_nothing)
#define RENEWER_TERMINATES(c) (RENEWER_WATCHES(c) && is_terminating[c] && HAS_PROCESSES(c) && \
	(!IS_DUE(c) || RENEWER_ENFORCES(c)))
#define RENEWER_FORBIDS(c) (RENEWER_WATCHES(c) && !KEEPER_LIVES(c) && job[c] == NOT_STARTED && \
	MUTANT != start_never_forbidden)
#define RENEWER_WAITS_FOR_ALL (WAITS_FOR_ALL && MUTANT != renewer_blind_to_leftovers)
#define HAS_JOB_ENDED(c) (job[c] == NEVER || job[c] == PID && (command[c] == LEFTOVERS && !RENEWER_WAITS_FOR_ALL || \
	command[c] == ENDED) && MUTANT != renewer_blind_to_command)
#define RENEWER_IS_OVER(c) (RENEWER_WATCHES(c) && HAS_JOB_ENDED(c) && (MUTANT == both_release || \
	!KEEPER_LIVES(c) && !(command[c] == LEFTOVERS && is_terminating[c])))
#define IS_POINTLESS(c) (HAS_JOB_ENDED(c) && keeper_stopped[c] && MUTANT != renews_for_stopped_keeper)

/* The reply came, or the request was abandoned: it may arrive yet. */
inline finish_request(wire)
{
	late_acquire[self] = late_acquire[self] || wire == ACQUIRE;
	late_renewal[self] = late_renewal[self] || wire == RENEW;
	late_release[self] = late_release[self] || wire == RELEASE;
	sent_ago[self] = (wire == QUIET -> sent_ago[self] : 0); wire = QUIET
}

/* The leftovers of a COMMAND that ended by itself are not protected, but with --wait-all; without a keeper no process
 * knows that it did not. What no process will read again is cleared, which makes for fewer states. */
inline settle(c)
{
	command[c] = (command[c] == LEFTOVERS && !KEEPER_LIVES(c) && !is_terminating[c] && !WAITS_FOR_ALL || IS_SETTLED(c) ->
		ENDED : command[c]);
	if :: command[c] == ENDED && !HOLDS(c) -> job[c] = PID; is_lost[c] = 0; is_terminating[c] = 0
	:: else fi;
	if :: IS_SETTLED(c) -> renewer[c] = GONE; age[c] = 0; over_for[c] = 0 :: else fi
}

active [2] proctype Keeper()
{
	/* lib/acquire.c: wait_loop, try_until_fresh. lib/acquire_try.c: rlock__acquire_try, rlock__acquire_try_leave. */
end:	do
	:: atomic { KEEPER(IDLE) && (SCENARIO != nested || self == 0 || command[0] != NOT_YET) ->
		keeper_wire[self] = ACQUIRE; keeper[self] = ACQUIRING }
	:: atomic { KEEPER(ACQUIRING) ->
		if :: keeper_wire[self] == YES && sent_ago[self] <= LEASE / 3 -> age[self] = sent_ago[self]; keeper[self] = ACQUIRED
		:: keeper[self] = IDLE fi; finish_request(keeper_wire[self]) }
	:: atomic { KEEPER(IDLE) -> late_release[self] = 1; keeper[self] = GONE; settle(self) }
	/* keeper.c: run. */
	:: atomic { KEEPER(ACQUIRED) -> renewer[self] = SLEEPING; keeper[self] = STARTING }
	:: atomic { KEEPER(STARTING) -> command[self] = FORKED; keeper[self] = RUNNING }
	/* look: look_at_clock. */
	:: atomic { (KEEPER(RUNNING) || KEEPER(LEFTOVERS)) && (KEEPER_ENFORCES(self) || is_terminating[self] && !IS_DUE(self)) ->
		is_lost[self] = is_lost[self] || IS_DUE(self); is_terminating[self] = 1; keeper[self] = TERMINATING }
	/* look: read_signals, find_end, and the lease state again. hold_state.c: next_phase. */
	:: atomic { (KEEPER(RUNNING) || KEEPER(LEFTOVERS) && !is_terminating[self]) && command[self] == LEFTOVERS &&
		MUTANT != leftovers_run_on && (MUTANT != lease_state_read_twice || !is_terminating[self]) ->
		is_terminating[self] = 1; keeper[self] = TERMINATING }
	:: atomic { KEEPER(RUNNING) && command[self] == LEFTOVERS && WAITS_FOR_ALL && !is_terminating[self] ->
		keeper[self] = LEFTOVERS }
	/* terminate_step, replace_renewer. */
	:: atomic { KEEPER_TERMINATES(self) -> command[self] = ENDED }
	:: atomic { HOLDS(self) && KEEPER_RUNS(self) && renewer[self] == NONE && !is_lost[self] -> renewer[self] = SLEEPING }
	/* hold returns, and keeper_run kills the renewer. With the mutant the keeper has nothing to terminate, as the lease
	 * state said when it looked, and takes the end for a termination, as the lease state says now: this was a fault once. */
	:: atomic { HOLDS(self) && KEEPER_RUNS(self) && (command[self] == ENDED ||
		keeper[self] == RUNNING && command[self] == LEFTOVERS && (MUTANT == leftovers_run_on || MUTANT == lease_state_read_twice && is_terminating[self])) ->
		renewer[self] = NONE; renewer_stopped[self] = 0; finish_request(renewer_wire[self]);
		keeper[self] = ENDED; settle(self) }
	/* finish.c: finish_hold. lib/release.c: deliver. */
	:: atomic { KEEPER(ENDED) -> keeper_wire[self] = RELEASE; keeper[self] = RELEASING }
	:: atomic { KEEPER(RELEASING) -> keeper[self] = (keeper_wire[self] == YES || age[self] >= LEASE -> GONE : ENDED);
		finish_request(keeper_wire[self]); settle(self) }
	/* It is killed, or stopped, or continued. */
	:: atomic { KEEPER_LIVES(self) && MAY_DIE -> keeper[self] = GONE; keeper_stopped[self] = 0;
		finish_request(keeper_wire[self]); over_for[self] = 0; settle(self) }
	:: atomic { KEEPER_LIVES(self) && MAY_STOP -> keeper_stopped[self] = 1 - keeper_stopped[self]; over_for[self] = 0 }
	od
}

active [2] proctype Renewer()
{
	/* observer.c: observer_find_job. renewer_loop.c: check_deadlines, terminate_step. */
end:	do
	:: atomic { RENEWER_FORBIDS(self) -> job[self] = NEVER }
	:: atomic { RENEWER_ENFORCES(self) && !is_lost[self] -> is_lost[self] = 1; is_terminating[self] = 1 }
	:: atomic { RENEWER_TERMINATES(self) -> command[self] = ENDED }
	/* renewal.c: renewal_run; after a failure the same again. */
	:: atomic { RENEWER(SLEEPING) && !RENEWER_IS_OVER(self) && !IS_POINTLESS(self) && !is_lost[self] && age[self] > 0 &&
		age[self] < DEADLINE -> assert(over_for[self] <= LEASE); renewer_wire[self] = RENEW; renewer[self] = RENEWING }
	:: atomic { RENEWER(RENEWING) ->
		if :: renewer_wire[self] == YES -> age[self] = (MUTANT == lease_from_reply -> 0 : sent_ago[self])
		:: renewer_wire[self] == NO -> is_lost[self] = 1; is_terminating[self] = 1
		:: renewer_wire[self] != NO fi;
		renewer[self] = SLEEPING; finish_request(renewer_wire[self]) }
	/* finish.c: finish_release_or_keep. */
	:: atomic { RENEWER(SLEEPING) && RENEWER_IS_OVER(self) -> renewer_wire[self] = RELEASE; renewer[self] = RELEASING }
	:: atomic { RENEWER(RELEASING) ->
		renewer[self] = (renewer_wire[self] == YES || age[self] >= LEASE -> GONE : SLEEPING);
		finish_request(renewer_wire[self]); settle(self) }
	/* It is killed, or stopped, or continued. */
	:: atomic { RENEWER_LIVES(self) && MAY_DIE -> renewer[self] = NONE; renewer_stopped[self] = 0;
		finish_request(renewer_wire[self]); settle(self) }
	:: atomic { RENEWER_LIVES(self) && MAY_STOP -> renewer_stopped[self] = 1 - renewer_stopped[self] }
	od
}

active [2] proctype Command()
{
	/* command.c: become_command. Then it ends, whole or not, by itself or killed. */
end:	do
	:: atomic { command[self] == FORKED && (job[self] == NOT_STARTED || MUTANT == start_not_forbidden) ->
		job[self] = PID; command[self] = KNOWN }
	:: atomic { command[self] == FORKED && job[self] != NOT_STARTED -> command[self] = ENDED; settle(self) }
	:: atomic { command[self] == KNOWN -> command[self] = (MUTANT == start_after_deadline ||
			!is_terminating[self] && age[self] < DEADLINE -> RUNNING : ENDED); settle(self) }
	:: atomic { command[self] == RUNNING -> command[self] = LEFTOVERS; settle(self) }
	:: atomic { HAS_PROCESSES(self) -> command[self] = ENDED; settle(self) }
	od
}

/* lua/plain_acquire.lua, plain_release.lua, plain_renew.lua */
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
		if :: count == 0 -> owner = NO_OWNER; held[1 - c] = 0; ttl = 0 :: else fi
	:: else fi
}

inline renew(c)
{
	if :: held[c] || MUTANT == renew_without_id && (owner == c || REENTERS(c)) ->
		assert(!is_released[c]); ttl = LEASE; idle_for = 0
	:: owner == NO_OWNER && MUTANT == renew_takes_anew -> assert(!is_released[c]); acquire(c)
	:: else fi
}

active [2] proctype Server()
{
end:	do
	:: d_step { keeper_wire[self] == ACQUIRE -> acquire(self); keeper_wire[self] = (held[self] -> YES : NO) }
	:: d_step { keeper_wire[self] == RELEASE -> release(self); keeper_wire[self] = YES }
	:: d_step { renewer_wire[self] == RENEW -> renew(self); renewer_wire[self] = (held[self] -> YES : NO) }
	:: d_step { renewer_wire[self] == RELEASE -> release(self); renewer_wire[self] = YES }
	:: d_step { late_acquire[self] -> late_acquire[self] = 0; acquire(self) }
	:: d_step { late_release[self] -> late_release[self] = 0; release(self) }
	:: d_step { late_renewal[self] -> late_renewal[self] = 0; renew(self) }
	od
}

/* What has to be done before the next tick. */
#define KEEPER_IS_BUSY(c) (KEEPER_ENFORCES(c) || KEEPER_RUNS(c) && (keeper[c] == ACQUIRED || keeper[c] == STARTING || \
	keeper[c] == ENDED || keeper[c] == RELEASING && age[c] >= LEASE || HOLDS(c) && \
	(command[c] == ENDED || command[c] == LEFTOVERS && !is_terminating[c] && !WAITS_FOR_ALL)))
#define RENEWER_IS_BUSY(c) (RENEWER_ENFORCES(c) || RENEWER_FORBIDS(c) || RENEWER_IS_OVER(c) || \
	RENEWER_RUNS(c) && renewer[c] == RELEASING && age[c] >= LEASE)
#define IS_BUSY(c) (KEEPER_IS_BUSY(c) || RENEWER_IS_BUSY(c) || command[c] == FORKED || command[c] == KNOWN)

/* A command that runs past the deadline, without keeper and renewer, is not protected any more; unless the renewer has
 * just ended by itself. */
inline pass(c)
{
	command[c] = (IS_DUE(c) && !KEEPER_RUNS(c) && !RENEWER_RUNS(c) && renewer[c] != GONE -> ENDED : command[c]);
	settle(c);
	if :: keeper[c] != IDLE && keeper[c] != ACQUIRING && !IS_SETTLED(c) && age[c] < LEASE -> age[c]++ :: else fi;
	if :: (keeper[c] == ACQUIRING || renewer[c] == RENEWING) && sent_ago[c] < LEASE - 1 -> sent_ago[c]++ :: else fi;
	if :: CHECK == orphans && RENEWER_RUNS(c) && (command[c] == ENDED || command[c] == NOT_YET && !KEEPER_LIVES(c)) ->
		assert(over_for[c] < LEASE || keeper_stopped[c]);
		over_for[c] = (over_for[c] <= LEASE -> over_for[c] + 1 : over_for[c])
	:: else fi
}

active proctype Clock()
{
end:	do
	:: d_step { !IS_BUSY(0) && !IS_BUSY(1) ->
		pass(0); pass(1);
		if :: ttl == 1 -> owner = NO_OWNER; count = 0; held[0] = 0; held[1] = 0 :: else fi;
		ttl = (ttl > 0 -> ttl - 1 : 0);
		if :: CHECK == free_at_end && IS_SETTLED(0) && IS_SETTLED(1) && owner != NO_OWNER -> idle_for++
		:: else -> idle_for = 0 fi;
		assert(idle_for <= LEASE) }
	od
}

#define IS_PROTECTED(c) (command[c] == RUNNING || command[c] == LEFTOVERS)
active proctype Checks()
{
end:	do
	:: d_step { CHECK == exclusion && IS_PROTECTED(0) && IS_PROTECTED(1) -> assert(false) }
	:: d_step { CHECK == counting && count != held[0] + held[1] -> assert(false) }
	od
}
