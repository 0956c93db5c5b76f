package interop;

import java.io.BufferedReader;
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
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RSemaphore;

/**
 * A Java service that acquires locks by Redisson. It reads commands from standard input: one line in, one line out.
 *
 * <pre>
 *   java interop.Peer WATCHDOG_MS URL...
 *
 *   THREAD VERB...          runs VERB in this thread, since a lock belongs to a thread; the first use creates the thread
 *   start THREAD VERB...    the same, but answers "started" immediately
 *   await THREAD MS         the result of that; "pending": not complete within MS
 *   asleep THREAD           "true": the thread sleeps until a message wakes it
 *   idle                    "idle": no thread runs a VERB; else "busy"
 *   die                     ends this process immediately, as a kill would; no answer
 *
 *   VERB is one of          and answers
 *   lock KIND NAMES                     "ok"
 *   fence KIND NAMES                    the token: as lock, by lockAndGetToken()
 *   try KIND NAMES [WAIT_MS]            "true" or "false"
 *   unlock KIND NAMES                   "ok"
 *   force KIND NAMES                    "true" or "false"
 *   held KIND NAMES                     whether this thread holds the first lock on the first server
 *   owner                               the thread's owner id on the first server
 *   permits KIND NAME NUMBER            trySetPermits(): "true" or "false"
 *   acquire, release KIND NAME          "ok"; a permit of a semaphore
 *   available KIND NAME                 the number of free permits
 *   stress KIND NAMES DIR PAUSE_MS THREADS  see {@link Stress}
 * </pre>
 *
 * After an exception the answer begins with "error". {@link Locks} explains KIND and NAMES.
 */
public final class Peer {
	/* * The limit for calls that are not begun by "start". No such call of a test takes this long. */
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
			System.out.println(peer.answer(line.split(" ")));
		}
		Runtime.getRuntime().halt(0);
	}

	private String answer(String[] words) throws InterruptedException {
		switch (words[0]) {
		case "start":
			begin(words[1], Arrays.copyOfRange(words, 2, words.length));
			return "started";
		case "await":
			return await(words[1], Long.parseLong(words[2]));
		case "asleep":
			return String.valueOf(isAsleep(words[1]));
		case "idle":
			return tasks.isEmpty() ? "idle" : "busy";
		case "die":
			Runtime.getRuntime().halt(137);
			return "";
		default:
			begin(words[0], Arrays.copyOfRange(words, 1, words.length));
			return await(words[0], PATIENCE_MS);
		}
	}

	private void begin(String thread, String[] words) {
		ExecutorService executor = threads.computeIfAbsent(thread,
				name -> Executors.newSingleThreadExecutor(task -> new Thread(task, name)));
		tasks.put(thread, executor.submit(() -> act(words)));
	}

	private String await(String thread, long timeoutMs) throws InterruptedException {
		String answer;
		try {
			answer = tasks.get(thread).get(timeoutMs, TimeUnit.MILLISECONDS);
		} catch (TimeoutException e) {
			return "pending";
		} catch (ExecutionException e) {
			answer = ("error " + e.getCause()).replace('\n', ' ');
		}
		tasks.remove(thread);
		return answer;
	}

	/* * Whether the thread sleeps until a message comes: it then waits in Redisson's latch, which is a semaphore. */
	private static boolean isAsleep(String thread) {
		return Thread.getAllStackTraces().entrySet().stream()
				.filter(trace -> trace.getKey().getName().equals(thread))
				.filter(trace -> trace.getKey().getState().name().endsWith("WAITING"))
				.flatMap(trace -> Arrays.stream(trace.getValue()))
				.anyMatch(frame -> frame.getClassName().equals("java.util.concurrent.Semaphore"));
	}

	/** Run a VERB. Called in the thread that the lock belongs to. */
	private String act(String[] words) throws InterruptedException {
		if (words[0].equals("owner")) {
			return locks.owner();
		}
		String kind = words[1];
		String[] names = words[2].split(",");
		if (words[0].equals("stress")) {
			return new Stress(locks, kind, names, words[3], Integer.parseInt(words[4]))
					.run(Integer.parseInt(words[5]));
		}
		int number = words.length > 3 ? Integer.parseInt(words[3]) : 0;
		if (kind.equals("expirable") || kind.equals("semaphore")) {
			return actPermit(words[0], kind.equals("expirable"), names[0], number);
		}
		RLock lock = locks.find(kind, names);
		switch (words[0]) {
		case "lock":
			lock.lock();
			return "ok";
		case "fence":
			return String.valueOf(Locks.lockAndGetToken(lock));
		case "try":
			return String.valueOf(number == 0 ? lock.tryLock() : lock.tryLock(number, TimeUnit.MILLISECONDS));
		case "unlock":
			lock.unlock();
			return "ok";
		case "force":
			return String.valueOf(lock.forceUnlock());
		case "held":
			return String.valueOf(locks.first(kind, names).isHeldByCurrentThread());
		default:
			throw new IllegalArgumentException(words[0]);
		}
	}

	/** Acquire or release a permit of either semaphore for the calling thread. */
	private String actPermit(String verb, boolean expires, String name, int number) throws InterruptedException {
		RPermitExpirableSemaphore permits = locks.permits(name);
		RSemaphore semaphore = locks.semaphore(name);
		switch (verb) {
		case "permits":
			return String.valueOf(expires ? permits.trySetPermits(number) : semaphore.trySetPermits(number));
		case "available":
			return String.valueOf(expires ? permits.availablePermits() : semaphore.availablePermits());
		case "acquire":
			if (expires) {
				ids.set(permits.acquire(30, TimeUnit.SECONDS));
			} else {
				semaphore.acquire();
			}
			return "ok";
		case "release":
			if (expires) {
				permits.release(ids.get());
			} else {
				semaphore.release();
			}
			return "ok";
		default:
			throw new IllegalArgumentException(verb);
		}
	}
}
