package interop;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
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
 * Threads that take turns with others until a file "stop" is there; the Java half of tests/interop/stress.bats.
 *
 * Whether another one is inside beside us is seen by files alone, as commands/turn does it: an exclusive one makes
 * "writer", a shared one "reader.PARTY", and each looks for the other only after that, so that of two that
 * meet one at least sees the other. KIND "readwrite" is a write lock now and then, and a read lock else. KIND "sem" is a
 * permit, now of RPermitExpirableSemaphore and then of RSemaphore: each that is inside has one of the files "slot.N".
 */
final class Stress {
	private static final int WAIT_S = 60, LEASE_S = 30;
	/** As many as the shells of commands/turns say. */
	private static final int SLOTS = 3;

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
			String party = "java" + i;
			threads.add(new Thread(() -> turns(party)));
		}
		for (Thread thread : threads) {
			thread.start();
		}
		for (Thread thread : threads) {
			thread.join();
		}
		return "done";
	}

	private void turns(String party) {
		try {
			while (!Files.exists(dir.resolve("stop"))) {
				if (kind.equals("sem")) {
					permitTurn(party);
				} else {
					turn(party);
				}
			}
		} catch (Exception e) {
			append("wrong", party + " " + e);
		}
	}

	private void turn(String party) throws Exception {
		ThreadLocalRandom random = ThreadLocalRandom.current();
		boolean shares = kind.equals("readwrite") && random.nextInt(4) != 0;
		RLock lock = locks.find(!kind.equals("readwrite") ? kind : shares ? "read" : "write", names);

		long start = System.nanoTime();
		if (!lock.tryLock(WAIT_S, TimeUnit.SECONDS)) {
			append("wrong", party + " was not let in within " + WAIT_S + " s");
			return;
		}
		try {
			inside(party, shares, (System.nanoTime() - start) / 1_000_000);
		} finally {
			lock.unlock();
		}
		Thread.sleep(random.nextInt(pauseMs));
	}

	private void permitTurn(String party) throws Exception {
		ThreadLocalRandom random = ThreadLocalRandom.current();
		boolean expires = random.nextBoolean();

		long start = System.nanoTime();
		String id = expires ? locks.permits(names[0]).tryAcquire(WAIT_S, LEASE_S, TimeUnit.SECONDS) : null;
		if (expires ? id == null : !tryAcquire(names[0])) {
			append("wrong", party + " was not let in within " + WAIT_S + " s");
			return;
		}
		try {
			insideSlot(party, (System.nanoTime() - start) / 1_000_000);
		} finally {
			if (expires) {
				locks.permits(names[0]).release(id);
			} else {
				locks.semaphore(names[0]).release();
			}
		}
		Thread.sleep(random.nextInt(pauseMs));
	}

	@SuppressWarnings("deprecation")
	private boolean tryAcquire(String name) throws InterruptedException {
		return locks.semaphore(name).tryAcquire(WAIT_S, TimeUnit.SECONDS);
	}

	private void insideSlot(String party, long waitedMs) throws Exception {
		Path mark = null;
		for (int slot = 1; slot <= SLOTS && mark == null; slot++) {
			try {
				mark = Files.createFile(dir.resolve("slot." + slot));
			} catch (FileAlreadyExistsException e) {
				continue;
			}
		}
		if (mark == null) {
			append("wrong", party + " met " + SLOTS);
		}
		append("log", "enter " + party + " " + waitedMs + " -");
		Thread.sleep(1);
		append("log", "leave " + party);
		if (mark != null) {
			Files.deleteIfExists(mark);
		}
	}

	private void inside(String party, boolean shares, long waitedMs) throws Exception {
		Path mark = dir.resolve(shares ? "reader." + party : "writer");
		try {
			Files.createFile(mark);
		} catch (FileAlreadyExistsException e) {
			append("wrong", party + " met " + mark);
		}
		if (shares) {
			complainOf(party, "writer");
		} else {
			complainOf(party, "reader.*");
		}
		String queue = kind.equals("fair") ? " " + String.join(" ", locks.queue(names[0])) : "";
		append("log", "enter " + party + " " + waitedMs + " " + locks.owner(0) + queue);
		if (!shares) {
			count();
		}
		append("log", "leave " + party);
		Files.deleteIfExists(mark);
	}

	private void complainOf(String party, String pattern) throws IOException {
		try (DirectoryStream<Path> found = Files.newDirectoryStream(dir, pattern)) {
			for (Path mark : found) {
				append("wrong", party + " met " + mark);
			}
		}
	}

	/** Read, add one, write: two at a time would lose some. */
	private void count() throws IOException {
		Path file = dir.resolve("count");
		int seen = Integer.parseInt(Files.readString(file).trim());
		Files.writeString(file, (seen + 1) + "\n");
	}

	private void append(String file, String line) {
		try {
			Files.write(dir.resolve(file), (line + "\n").getBytes(StandardCharsets.UTF_8),
					StandardOpenOption.CREATE, StandardOpenOption.APPEND);
		} catch (IOException e) {
			throw new java.io.UncheckedIOException(e);
		}
	}
}
