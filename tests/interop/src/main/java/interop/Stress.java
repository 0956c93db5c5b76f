package interop;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

import org.redisson.api.RLock;

/**
 * Threads that take turns with other contenders until a file "stop" exists: the Java half of tests/interop/stress.bash, which
 * describes the files that show who is inside. KIND "readwrite" is mostly a read lock and sometimes a write lock. KIND "sem" is a
 * permit, by turns of RPermitExpirableSemaphore and of RSemaphore.
 */
final class Stress {
	private static final int WAIT_S = 60, LEASE_S = 30;

	private final Locks locks;
	private final String kind;
	private final String[] names;
	private final Path dir;
	private final int pauseMs;

	Stress(Locks locks, String kind, String[] names, String dir, int pauseMs) {
		this.locks = locks;
		this.kind = kind;
		this.names = names;
		this.dir = Path.of(dir);
		this.pauseMs = pauseMs;
	}

	String run(int count) throws InterruptedException {
		List<Thread> threads = new ArrayList<>();
		for (int i = 1; i <= count; i++) {
			String contender = "java" + i;
			threads.add(new Thread(() -> turns(contender)));
		}
		for (Thread thread : threads) {
			thread.start();
		}
		for (Thread thread : threads) {
			thread.join();
		}
		return "done";
	}

	private void turns(String contender) {
		try {
			while (!Files.exists(dir.resolve("stop"))) {
				turn(contender);
				Thread.sleep(ThreadLocalRandom.current().nextInt(pauseMs));
			}
		} catch (Exception e) {
			append("wrong", contender + " " + e);
		}
	}

	private void turn(String contender) throws Exception {
		boolean shares = kind.equals("readwrite") && ThreadLocalRandom.current().nextInt(4) != 0;
		long start = System.nanoTime();
		Runnable release = kind.equals("sem") ? acquirePermit() : acquire(shares);
		if (release == null) {
			append("wrong", contender + " was not let in within " + WAIT_S + " s");
			return;
		}
		try {
			append("log", contender + " " + (System.nanoTime() - start) / 1_000_000);
			inside(contender, shares);
		} finally {
			release.run();
		}
	}

	/** Acquire the lock, and return a function that releases it; null: not acquired. */
	private Runnable acquire(boolean shares) throws InterruptedException {
		RLock lock = locks.find(!kind.equals("readwrite") ? kind : shares ? "read" : "write", names);
		return lock.tryLock(WAIT_S, TimeUnit.SECONDS) ? lock::unlock : null;
	}

	@SuppressWarnings("deprecation")
	private Runnable acquirePermit() throws InterruptedException {
		String name = names[0];
		if (ThreadLocalRandom.current().nextBoolean()) {
			return locks.semaphore(name).tryAcquire(WAIT_S, TimeUnit.SECONDS)
					? () -> locks.semaphore(name).release() : null;
		}
		String id = locks.permits(name).tryAcquire(WAIT_S, LEASE_S, TimeUnit.SECONDS);
		return id != null ? () -> locks.permits(name).release(id) : null;
	}

	private void inside(String contender, boolean shares) throws Exception {
		String[] marks = kind.equals("sem") ? new String[] { "slot.1", "slot.2", "slot.3" }
				: new String[] { shares ? "reader." + contender : "writer" };
		Path mark = null;
		for (int i = 0; i < marks.length && mark == null; i++) {
			try {
				mark = Files.createFile(dir.resolve(marks[i]));
			} catch (FileAlreadyExistsException e) {
				continue;
			}
		}
		if (mark == null) {
			append("wrong", contender + " met " + String.join(" ", marks));
			return;
		}
		try (DirectoryStream<Path> others = Files.newDirectoryStream(dir, shares ? "writer" : "reader.*")) {
			for (Path other : others) {
				append("wrong", contender + " met " + other);
			}
		}
		Thread.sleep(1);
		Files.delete(mark);
	}

	private void append(String file, String line) {
		try {
			Files.writeString(dir.resolve(file), line + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
		} catch (IOException e) {
			throw new java.io.UncheckedIOException(e);
		}
	}
}
