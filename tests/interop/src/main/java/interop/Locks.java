package interop;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

import org.redisson.Redisson;
import org.redisson.RedissonMultiLock;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;

/**
 * Redisson's locks by kind and name, on one server or several, each a URL as rlock has them.
 *
 * KIND is plain, fair, read, write or fenced. Where there is more than one name or server, the lock is a
 * MultiLock of all names on all servers. "majority" is a RedLock of plain ones. Semaphores are expirable (an
 * RPermitExpirableSemaphore), or semaphore (an RSemaphore).
 */
final class Locks {
	private final List<RedissonClient> clients = new ArrayList<>();

	Locks(long watchdogMs, List<String> urls) {
		for (String url : urls) {
			Config config = new Config();
			config.setCodec(StringCodec.INSTANCE);
			config.setLockWatchdogTimeout(watchdogMs);
			config.setThreads(8).setNettyThreads(4);
			connect(config, url);
			clients.add(Redisson.create(config));
		}
	}

	private static void connect(Config config, String url) {
		if (url.startsWith("redis+sentinel://")) {
			int slash = url.lastIndexOf('/');
			config.useSentinelServers().setMasterName(url.substring(slash + 1))
					.addSentinelAddress(addresses(url.substring(0, slash)));
		} else if (url.startsWith("redis+cluster://")) {
			config.useClusterServers().addNodeAddress(addresses(url));
		} else {
			config.useSingleServer().setAddress(url);
		}
	}

	/** The hosts of "redis+WORD://HOST,HOST", each as a URL for Redisson. */
	private static String[] addresses(String url) {
		return Arrays.stream(url.substring(url.indexOf("://") + 3).split(","))
				.map(host -> "redis://" + host).toArray(String[]::new);
	}

	/** A new object at each call: Redisson's object would remember a lease that it was given once. */
	@SuppressWarnings("deprecation")
	RLock find(String kind, String... names) {
		List<RLock> all = new ArrayList<>();
		for (RedissonClient client : clients) {
			for (String name : names) {
				all.add(single(client, kind, name));
			}
		}
		if (all.size() == 1) {
			return all.get(0);
		}
		RLock[] array = all.toArray(new RLock[0]);
		return kind.equals("majority") ? clients.get(0).getRedLock(array) : new RedissonMultiLock(array);
	}

	/** The first lock, which can be inspected: a MultiLock cannot. */
	RLock first(String kind, String... names) {
		return single(clients.get(0), kind, names[0]);
	}

	private static RLock single(RedissonClient client, String kind, String name) {
		switch (kind) {
		case "plain":
		case "majority":
			return client.getLock(name);
		case "fair":
			return client.getFairLock(name);
		case "read":
			return client.getReadWriteLock(name).readLock();
		case "write":
			return client.getReadWriteLock(name).writeLock();
		case "fenced":
			return (RLock) call(client, RedissonClient.class, "getFencedLock", name);
		default:
			throw new IllegalArgumentException(kind);
		}
	}

	/** The owner id of the calling thread on the first server. */
	String owner() {
		return clients.get(0).getId() + ":" + Thread.currentThread().getId();
	}

	RPermitExpirableSemaphore permits(String name) {
		return clients.get(0).getPermitExpirableSemaphore(name);
	}

	RSemaphore semaphore(String name) {
		return clients.get(0).getSemaphore(name);
	}

	static Object lockAndGetToken(RLock lock) {
		return call(lock, lock.getClass(), "lockAndGetToken");
	}

	/** Call a method that old versions of Redisson lack. */
	private static Object call(Object object, Class<?> type, String method, String... args) {
		try {
			Class<?>[] types = new Class<?>[args.length];
			Arrays.fill(types, String.class);
			return type.getMethod(method, types).invoke(object, (Object[]) args);
		} catch (ReflectiveOperationException e) {
			throw new UnsupportedOperationException(e);
		}
	}
}
