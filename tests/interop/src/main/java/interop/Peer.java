package interop;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

import org.redisson.api.RLock;

/**
 * A Java service that takes locks by Redisson as its standard input says: one line in, one line out.
 *
 * <pre>
 *   java interop.Peer WATCHDOG_MS URL...
 *
 *   THREAD VERB...          does VERB in that thread, made at its first use: a lock belongs to a thread
 *   start THREAD VERB...    the same, but answers "started" at once
 *   await THREAD MS         what came of that; "pending" when it is not over within so long
 *   idle                    "idle" when no thread has anything to do, else "busy"
 *   die                     ends this process at once, as a kill would; no answer
 *
 *   VERB is one of          and answers
 *   lock KIND NAMES [LEASE_MS]          "ok"
 *   fence KIND NAMES                    the token: as lock, by lockAndGetToken()
 *   try KIND NAMES [WAIT_MS [LEASE_MS]] "true" or "false"; without WAIT_MS it is tryLock()
 *   unlock KIND NAMES                   "ok"
 *   force KIND NAMES                    "true" or "false"
 *   held, locked, count KIND NAMES      what the first lock on the first server says of itself
 *   owner                               the thread's owner id, of the first server
 *   permits KIND NAME NUMBER            trySetPermits(): "true" or "false"
 *   acquire, release KIND NAME          "ok"; a permit of a semaphore
 *   available KIND NAME                 how many permits are free
 *   stress KIND NAMES DIR PAUSE_MS THREADS  see {@link Stress}
 * </pre>
 *
 * An exception is the answer "error NAME: MESSAGE". KIND and NAMES are explained at {@link Locks}.
 */
public final class Peer {
	/** No test waits for as long as this. */
	private static final int PATIENCE_MS = 20_000;

	private final Locks locks;
	private final ThreadLocal<String> ids = new ThreadLocal<>(); // of the permits that expire
	private final Map<String, ExecutorService> threads = new LinkedHashMap<>();
	private final Map<String, Future<String>> tasks = new LinkedHashMap<>();

	private Peer(Locks locks) {
		this.locks = locks;
	}

	public static void main(String[] args) throws Exception {
		Peer peer = new Peer(new Locks(Long.parseLong(args[0]), Arrays.asList(args).subList(1, args.length)));
		BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));

		System.out.println("ready");
		for (String line = in.readLine(); line != null; line = in.readLine()) {
			String answer;
			try {
				answer = peer.answer(line.trim().split(" +"));
			} catch (RuntimeException e) {
				answer = "error: " + e;
			}
			System.out.println(answer);
		}
		Runtime.getRuntime().halt(0);
	}

	private String answer(String[] words) throws InterruptedException {
		switch (words[0]) {
		case "start":
			begin(words[1], tail(words, 2));
			return "started";
		case "await":
			return await(words[1], Long.parseLong(words[2]));
		case "idle":
			return tasks.isEmpty() ? "idle" : "busy";
		case "die":
			Runtime.getRuntime().halt(137);
			return "";
		default:
			begin(words[0], tail(words, 1));
			return await(words[0], PATIENCE_MS);
		}
	}

	private void begin(String thread, String[] words) {
		ExecutorService executor = threads.computeIfAbsent(thread, name -> Executors.newSingleThreadExecutor());
		if (tasks.containsKey(thread)) {
			throw new IllegalStateException(thread + " has not answered yet");
		}
		tasks.put(thread, executor.submit(() -> act(words)));
	}

	private String await(String thread, long timeoutMs) throws InterruptedException {
		Future<String> task = tasks.get(thread);
		if (task == null) {
			return "error: nothing was started in " + thread;
		}
		String answer;
		try {
			answer = task.get(timeoutMs, TimeUnit.MILLISECONDS);
		} catch (TimeoutException e) {
			return "pending";
		} catch (ExecutionException e) {
			Throwable cause = e.getCause();
			String text = "error " + cause.getClass().getSimpleName() + ": " + cause.getMessage();
			answer = text.replace('\n', ' ');
		}
		tasks.remove(thread);
		return answer;
	}

	/** Runs in the thread that the lock is to belong to. */
	private String act(String[] words) throws InterruptedException, IOException {
		if (words[0].equals("owner")) {
			return locks.owner(0);
		}
		String kind = words[1];
		String[] names = words[2].split(",");
		if (words[0].equals("stress")) {
			return new Stress(locks, kind, names, words[3], Integer.parseInt(words[4]))
					.run(Integer.parseInt(words[5]));
		}

		if (kind.equals("expirable") || kind.equals("semaphore")) {
			return actPermit(words[0], kind.equals("expirable"), names[0], tail(words, 3));
		}
		RLock lock = locks.find(kind, names);
		long[] numbers = Arrays.stream(tail(words, 3)).mapToLong(Long::parseLong).toArray();
		switch (words[0]) {
		case "lock":
			if (numbers.length == 0) {
				lock.lock();
			} else {
				lock.lock(numbers[0], TimeUnit.MILLISECONDS);
			}
			return "ok";
		case "fence":
			return String.valueOf(Locks.lockAndGetToken(lock));
		case "try":
			return String.valueOf(
					numbers.length == 0 ? lock.tryLock()
					: numbers.length == 1 ? lock.tryLock(numbers[0], TimeUnit.MILLISECONDS)
					: lock.tryLock(numbers[0], numbers[1], TimeUnit.MILLISECONDS));
		case "unlock":
			lock.unlock();
			return "ok";
		case "force":
			return String.valueOf(lock.forceUnlock());
		case "held":
			return String.valueOf(locks.first(kind, names).isHeldByCurrentThread());
		case "locked":
			return String.valueOf(locks.first(kind, names).isLocked());
		case "count":
			return String.valueOf(locks.first(kind, names).getHoldCount());
		default:
			throw new IllegalArgumentException(words[0]);
		}
	}

	/** The permit of the calling thread, of whichever sort. */
	private String actPermit(String verb, boolean expires, String name, String[] numbers) throws InterruptedException {
		switch (verb) {
		case "permits":
			int permits = Integer.parseInt(numbers[0]);
			return String.valueOf(expires ? locks.permits(name).trySetPermits(permits)
					: locks.semaphore(name).trySetPermits(permits));
		case "available":
			return String.valueOf(expires ? locks.permits(name).availablePermits()
					: locks.semaphore(name).availablePermits());
		case "acquire":
			if (expires) {
				ids.set(locks.permits(name).acquire(30, TimeUnit.SECONDS));
			} else {
				locks.semaphore(name).acquire();
			}
			return "ok";
		case "release":
			if (expires) {
				locks.permits(name).release(ids.get());
			} else {
				locks.semaphore(name).release();
			}
			return "ok";
		default:
			throw new IllegalArgumentException(verb);
		}
	}

	private static String[] tail(String[] words, int from) {
		return Arrays.copyOfRange(words, Math.min(from, words.length), words.length);
	}
}
