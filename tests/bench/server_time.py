#!/usr/bin/env python3
"""What a script takes on the server, beside Redisson's own of the same kind.

    server_time.py SOCKET RLOCK COUNT

Each of COUNT locks is acquired, renewed and released, by the requests that RLOCK sends for one, and by Redisson's
scripts. The two take turns in pieces, so that whatever else the machine does hits both alike. Prints a line "KIND ACTION
TOOL NANOSECONDS" for each, the median of the pieces, by INFO commandstats. Then the same of one read lock, and of
one semaphore, that few hold, and many: "KIND ACTION rlock-HOLDERS NANOSECONDS".
"""

import itertools
import re
import statistics
import subprocess
import sys
import time
import uuid

sys.dont_write_bytecode = True
from contend import Connection  # noqa: E402

DB = "9"
PIECES = 20
HOLDERS = {"read": (10, 1000), "sem": (10, 1000, 10000)}
PERMITS, MANY_PERMITS = "3", "20000"
LEASE_MS, LONG_LEASE_MS = "30000", "600000"
FAR_MS, NEVER_MS = "9000000000000", "922337203685477"
NAME = "a-lock-that-is-measured"

# As Redisson 4.7.0 has them (tryLockInnerAsync and unlockInnerAsync of RedissonLock, RedissonFairLock and RedissonReadLock;
# buildChunk of LockTask and ReadLockTask; tryAcquireAsync and tryReleaseAsync of RedissonPermitExpirableSemaphore).
# The head of a fair queue, once the waiters in front whose time is over are removed.
PRUNE = (
    "while true do local firstThreadId2 = redis.call('lindex', KEYS[2], 0);if firstThreadId2 == false then break;end;"
    "local timeout = redis.call('zscore', KEYS[3], firstThreadId2);"
    "if timeout ~= false and tonumber(timeout) <= tonumber(ARGV[4]) then "
    "redis.call('zrem', KEYS[3], firstThreadId2);redis.call('lpop', KEYS[2]);else break;end;end;"
)
ACQUIRE = {
    "plain": (
        "if ((redis.call('exists', KEYS[1]) == 0) or (redis.call('hexists', KEYS[1], ARGV[2]) == 1)) then "
        "redis.call('hincrby', KEYS[1], ARGV[2], 1); redis.call('pexpire', KEYS[1], ARGV[1]); return nil; end; "
        "return redis.call('pttl', KEYS[1]);"
    ),
    "fair": (
        PRUNE + "if (redis.call('exists', KEYS[1]) == 0) and ((redis.call('exists', KEYS[2]) == 0) or "
        "(redis.call('lindex', KEYS[2], 0) == ARGV[2])) then "
        "redis.call('lpop', KEYS[2]);redis.call('zrem', KEYS[3], ARGV[2]);"
        "local keys = redis.call('zrange', KEYS[3], 0, -1);for i = 1, #keys, 1 do "
        "redis.call('zincrby', KEYS[3], -tonumber(ARGV[3]), keys[i]);end;redis.call('hset', KEYS[1], ARGV[2], 1);"
        "redis.call('pexpire', KEYS[1], ARGV[1]);return nil;end;return redis.call('pttl', KEYS[1]);"
    ),
    "read": (
        "local mode = redis.call('hget', KEYS[1], 'mode'); if (mode == false) then "
        "redis.call('hset', KEYS[1], 'mode', 'read'); redis.call('hset', KEYS[1], ARGV[2], 1); "
        "redis.call('set', KEYS[2] .. ':1', 1); redis.call('pexpire', KEYS[2] .. ':1', ARGV[1]); "
        "redis.call('pexpire', KEYS[1], ARGV[1]); return nil; end; return redis.call('pttl', KEYS[1]);"
    ),
    "sem": (
        "local expiredIds = redis.call('zrangebyscore', KEYS[2], 0, ARGV[3], 'limit', 0, ARGV[1]); "
        "if #expiredIds > 0 then redis.call('zrem', KEYS[2], unpack(expiredIds)); "
        "local value = redis.call('incrby', KEYS[1], #expiredIds); if tonumber(value) > 0 then "
        "redis.call(ARGV[5], KEYS[3], value); end;end; local value = redis.call('get', KEYS[1]); "
        "if (value ~= false and tonumber(value) >= tonumber(ARGV[1])) then redis.call('decrby', KEYS[1], ARGV[1]); "
        "for i = 6, #ARGV, 1 do redis.call('zadd', KEYS[2], ARGV[2], ARGV[i]); end; "
        "local ttl = redis.call('pttl', KEYS[1]); if ttl > 0 then redis.call('pexpire', KEYS[2], ttl); end; "
        "return 'OK'; end; local v = redis.call('zrange', KEYS[2], 0, 0, 'WITHSCORES'); "
        "if v[1] ~= nil and v[2] ~= ARGV[4] then return ':' .. tostring(v[2]); end return nil;"
    ),
}
RENEW_READ = (
    "local result = {} local argIdx = 2 for i = 1, #KEYS, 2 do local anyAlive = false; "
    "local lockNamesCount = tonumber(ARGV[argIdx]); argIdx = argIdx + 1; for k = 1, lockNamesCount do "
    "local counter = redis.call('hget', KEYS[i], ARGV[argIdx]); if (counter ~= false) then anyAlive = true; "
    "for c=counter, 1, -1 do redis.call('pexpire', KEYS[i+1] .. ':' .. ARGV[argIdx] .. ':rwlock_timeout:' .. c, ARGV[1]); "
    "end; end; argIdx = argIdx + 1; end; if (anyAlive) then redis.call('pexpire', KEYS[i], ARGV[1]); "
    "table.insert(result, 1); else table.insert(result, 0); end; end; return result;"
)
RENEW = (
    "local result = {} for i = 1, #KEYS, 1 do if (redis.call('hexists', KEYS[i], ARGV[i + 1]) == 1) then "
    "redis.call('pexpire', KEYS[i], ARGV[1]); table.insert(result, 1); else table.insert(result, 0); end; end; "
    "return result;"
)
RELEASE = {
    "plain": (
        "local val = redis.call('get', KEYS[3]); if val ~= false then return tonumber(val);end; "
        "if (redis.call('hexists', KEYS[1], ARGV[3]) == 0) then return nil;end; "
        "local counter = redis.call('hincrby', KEYS[1], ARGV[3], -1); if (counter > 0) then "
        "redis.call('pexpire', KEYS[1], ARGV[2]); redis.call('set', KEYS[3], 0, 'px', ARGV[5]); return 0; else "
        "redis.call('del', KEYS[1]); redis.call(ARGV[4], KEYS[2], ARGV[1]); "
        "redis.call('set', KEYS[3], 1, 'px', ARGV[5]); return 1; end;"
    ),
    "fair": (
        "local val = redis.call('get', KEYS[5]); if val ~= false then return tonumber(val);end; " + PRUNE +
        "if (redis.call('exists', KEYS[1]) == 0) then return 1;end;"
        "if (redis.call('hexists', KEYS[1], ARGV[3]) == 0) then return nil;end; "
        "local counter = redis.call('hincrby', KEYS[1], ARGV[3], -1); if (counter > 0) then "
        "redis.call('pexpire', KEYS[1], ARGV[2]); redis.call('set', KEYS[5], 0, 'px', ARGV[6]); return 0; end; "
        "redis.call('del', KEYS[1]); redis.call('set', KEYS[5], 1, 'px', ARGV[6]); "
        "local nextThreadId = redis.call('lindex', KEYS[2], 0); if nextThreadId ~= false then "
        "redis.call(ARGV[5], KEYS[4] .. ':' .. nextThreadId, ARGV[1]); end; return 1; "
    ),
    "read": (
        "local val = redis.call('get', KEYS[5]); if val ~= false then return tonumber(val);end; "
        "local mode = redis.call('hget', KEYS[1], 'mode'); if (mode == false) then return nil; end; "
        "local lockExists = redis.call('hexists', KEYS[1], ARGV[2]); if (lockExists == 0) then return nil;end; "
        "local counter = redis.call('hincrby', KEYS[1], ARGV[2], -1); if (counter == 0) then "
        "redis.call('hdel', KEYS[1], ARGV[2]); end;redis.call('del', KEYS[3] .. ':' .. (counter+1)); "
        "if (redis.call('hlen', KEYS[1]) > 1) then return 0; end; redis.call('del', KEYS[1]); "
        "redis.call(ARGV[3], KEYS[2], ARGV[1]); redis.call('set', KEYS[5], 1, 'px', ARGV[4]); return 1; "
    ),
    "sem": (
        "local expire = redis.call('zscore', KEYS[3], ARGV[1]);"
        "local removed = redis.call('zrem', KEYS[3], ARGV[1]);if tonumber(removed) ~= 1 then return 0;end;"
        "local value = redis.call('incrby', KEYS[1], ARGV[2]); redis.call(ARGV[4], KEYS[2], value); "
        "if tonumber(expire) <= tonumber(ARGV[3]) then return 0;end;return 1;"
    ),
}
VERBS = {"plain": ["run"], "fair": ["fair"], "read": ["rlock"], "sem": ["sem", "--permits", PERMITS]}
ACTIONS = ("acquire", "renew", "release")
LOST = {"rlock": ["1"], "redisson": ["0"]}  # the reply to a renewal that found no hold: it took no time
SHORT_LEASE = "1s"  # with one renewal ...
HOLD_S = "0.5"  # ... in this time


def captured(server, path, rlock, kind):
    """The words of the requests that it sends for one lock, by action. What Redisson does not do is left out."""
    server.ask("FLUSHDB")
    monitor = Connection(path)
    monitor.ask("MONITOR")
    command = [rlock, *VERBS[kind], "-u", f"unix://{path}?db={DB}", "-t", SHORT_LEASE, NAME, "--", "sleep", HOLD_S]
    for _ in range(2):  # the first time the server does not know the scripts
        subprocess.run(command, check=True)
    server.ask("ECHO", "enough")
    requests = []
    while True:
        line = monitor.receive()
        if '"ECHO"' in line:
            by_action = dict(zip(ACTIONS, requests[-len(ACTIONS):]))
            return {action: by_action[action] for action in ACTIONS if kind != "sem" or action != "renew"}
        if '"EVALSHA"' in line and f'"{NAME}"' in line and " lua]" not in line:  # others may use the server
            requests.append(re.findall(r'"((?:[^"\\]|\\.)*)"', line))


def of_rlock(template, lock, number, lease_ms=LEASE_MS, permits=PERMITS):
    """That request for another lock, of another owner, with another hold id."""
    request = template[:3]  # how many keys there are is no number of permits
    for word in template[3:]:
        if re.fullmatch("[0-9a-f]{32}", word):
            word = f"{number:032x}"
        elif re.fullmatch("[0-9a-f-]{36}:[0-9]+", word):
            word = f"{uuid.UUID(int=number)}:30"
        elif word == "1000":
            word = lease_ms
        elif word == PERMITS:
            word = permits
        request.append(word.replace(NAME, f"{NAME}-{lock}"))
    return request


def of_redisson(kind, action, shas, number):
    lock, owner = f"{NAME}-{number}", f"{uuid.UUID(int=number)}:30"
    queue = [f"redisson_lock_queue:{{{lock}}}", f"redisson_lock_timeout:{{{lock}}}"]
    now_ms, wait_ms = str(round(time.time() * 1000)), "300000"
    latch, channel = f"redisson_unlock_latch:{{{lock}}}:{number}", f"redisson_lock__channel:{{{lock}}}"
    timeouts = f"{{{lock}}}:{owner}:rwlock_timeout"
    if kind == "sem":
        permits, channel, id = f"{{{lock}}}:timeout", f"redisson_sc:{{{lock}}}", f"{number:016x}"
        now_ms = str(int(time.time() * 1000))
        if action == "acquire":
            keys, args = [lock, permits, channel], ["1", FAR_MS, now_ms, NEVER_MS, "publish", id]
        else:
            keys, args = [lock, channel, permits], [id, "1", now_ms, "publish"]
        return ["EVALSHA", shas[action], str(len(keys))] + keys + args
    if action == "acquire":
        more_keys = {"read": [timeouts], "fair": queue}
        more_args = {"read": [owner + ":write"], "fair": [wait_ms, now_ms]}
        keys, args = [lock] + more_keys.get(kind, []), [LEASE_MS, owner] + more_args.get(kind, [])
    elif action == "renew":
        keys = [lock, f"{{{lock}}}"] if kind == "read" else [lock]
        args = [LEASE_MS, "1", owner] if kind == "read" else [LEASE_MS, owner]
    elif kind == "fair":
        keys, args = [lock, *queue, channel, latch], ["0", LEASE_MS, owner, now_ms, "publish", "13500"]
    elif kind == "read":
        keys = [lock, channel, timeouts, f"{{{lock}}}", latch]
        args = ["0", owner, "publish", "13500"]
    else:
        keys, args = [lock, channel, latch], ["0", LEASE_MS, owner, "publish", "13500"]
    return ["EVALSHA", shas[action], str(len(keys))] + keys + args


def time_of(server, requests, failure=()):
    server.ask("CONFIG", "RESETSTAT")
    for request in requests:
        if server.ask(*request) == failure:
            sys.exit(f"server_time: {failure} is the reply to {request}")
    stats = server.ask("INFO", "commandstats")
    return int(re.search(r"cmdstat_evalsha:calls=\d+,usec=(\d+)", stats)[1]) * 1000 / len(requests)


def measure(server, path, rlock, kind, count):
    templates = captured(server, path, rlock, kind)
    shas = {
        "acquire": server.ask("SCRIPT", "LOAD", ACQUIRE[kind]),
        "renew": server.ask("SCRIPT", "LOAD", RENEW_READ if kind == "read" else RENEW),
        "release": server.ask("SCRIPT", "LOAD", RELEASE.get(kind, RELEASE["plain"])),
    }
    tools = {
        "rlock": lambda action, number: of_rlock(templates[action], number, number),
        "redisson": lambda action, number: of_redisson(kind, action, shas, number),
    }
    times = {}
    for piece in range(PIECES):
        numbers = range(piece * count, (piece + 1) * count)
        for tool, request_of in tools.items():
            # A semaphore is there already, and is not deleted by a release.
            for number in numbers if kind == "sem" else ():
                server.ask("SET", f"{NAME}-{number}", "3")
                server.ask("SET", f"rlock_total:{{{NAME}-{number}}}", "3")
            for action in templates:
                requests = [request_of(action, number) for number in numbers]
                failure = LOST[tool] if action == "renew" else ()
                times.setdefault((action, tool), []).append(time_of(server, requests, failure))
            server.ask("FLUSHDB")
    server.ask("FLUSHDB")
    for (action, tool), pieces in times.items():
        print(kind, action, tool, round(statistics.median(pieces)))


def measure_holders(server, path, rlock, kind, pieces, count):
    """What one more costs that comes and goes while so many hold the lock."""
    templates = captured(server, path, rlock, kind)
    templates.pop("renew", None)
    times = {}
    for _ in range(pieces):
        server.ask("FLUSHDB")
        for holders in HOLDERS[kind]:
            for number in range(holders):
                server.ask(*of_rlock(templates["acquire"], holders, number, LONG_LEASE_MS, MANY_PERMITS))
            if int(server.ask("HLEN", f"rlock_holds:{{{NAME}-{holders}}}")) < holders:
                sys.exit(f"server_time: fewer than {holders} hold the lock")
        # One by one, since acquisitions in a row would change the number of holders; and few and many in turn, since
        # what was done just before makes the server quicker.
        first = max(HOLDERS[kind])
        for number in range(first, first + count):
            for holders, action in itertools.product(HOLDERS[kind], templates):
                request = of_rlock(templates[action], holders, number, LONG_LEASE_MS, MANY_PERMITS)
                times.setdefault((action, holders), []).append(time_of(server, [request]))
    server.ask("FLUSHDB")
    for (action, holders), taken_ns in times.items():
        print(kind, action, f"rlock-{holders}", round(statistics.median(taken_ns)))


def main():
    path, rlock, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    server = Connection(path)
    server.ask("SELECT", DB)  # others have theirs in 0
    for kind in VERBS:
        measure(server, path, rlock, kind, max(count // PIECES, 1))
    # So many of them are slow to set up.
    for kind, pieces in (("read", PIECES), ("sem", 4)):
        measure_holders(server, path, rlock, kind, pieces, max(count // pieces // 5, 1))


main()
