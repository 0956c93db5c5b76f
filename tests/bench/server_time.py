#!/usr/bin/env python3
"""Measures the server's time to add and remove one holder of a read lock and of a semaphore, with few and with many holders; and
to acquire, renew and release a plain lock.

    server_time.py SOCKET RLOCK COUNT

The requests are those that RLOCK sends. Prints a line "KIND ACTION HOLDERS NANOSECONDS" for each: the median of at least COUNT
measurements, from INFO commandstats.
"""

import itertools
import re
import statistics
import subprocess
import sys
import uuid

sys.dont_write_bytecode = True
from contend import Connection  # noqa: E402

DB = "9"  # other measurements use 0
HOLDERS = {"read": (10, 1000), "sem": (10, 1000, 10000)}
PERMITS, MANY_PERMITS = "3", "20000"
LEASE_MS, LONG_LEASE_MS = "30000", "600000"
NAME = "a-lock-that-is-measured"
VERBS = {"read": ["rlock"], "sem": ["sem", "--permits", PERMITS]}
ACTIONS = ("acquire", "release")
# Let the command run until one renewal was sent: the lease is renewed after a third of it.
PLAIN_VERB, PLAIN_COMMAND, PLAIN_ACTIONS = ["run", "-t", "3s"], ["sleep", "1.5"], ("acquire", "renew", "release")


def captured(server, path, rlock, verb, command, actions):
    """The arguments of the requests that rlock sends for one lock, by action."""
    monitor = Connection(path)
    monitor.ask("MONITOR")
    for _ in range(2):  # the first round loads the scripts
        subprocess.run([rlock, *verb, "-u", f"unix://{path}?db={DB}", NAME, "--", *command], check=True)
    server.ask("ECHO", "enough")
    requests = []
    while True:
        line = monitor.receive()
        if '"ECHO"' in line:
            return dict(zip(actions, requests[-len(actions):]))
        if '"EVALSHA"' in line and f'"{NAME}"' in line and " lua]" not in line:
            requests.append(re.findall(r'"((?:[^"\\]|\\.)*)"', line))


def of_another(template, lock, number):
    """The request with another lock, owner and hold id."""
    request = template[:3]  # the number of keys must not be replaced as a number of permits
    for word in template[3:]:
        if re.fullmatch("[0-9a-f]{32}", word):
            word = f"{number:032x}"
        elif re.fullmatch("[0-9a-f-]{36}:[0-9]+", word):
            word = f"{uuid.UUID(int=number)}:30"
        elif word == LEASE_MS:
            word = LONG_LEASE_MS
        elif word == PERMITS:
            word = MANY_PERMITS
        request.append(word.replace(NAME, f"{NAME}-{lock}"))
    return request


def time_of(server, request):
    server.ask("CONFIG", "RESETSTAT")
    server.ask(*request)
    stats = server.ask("INFO", "commandstats")
    return int(re.search(r"cmdstat_evalsha:calls=\d+,usec=(\d+)", stats)[1]) * 1000


def measure(server, path, rlock, kind, pieces, count):
    templates = captured(server, path, rlock, VERBS[kind], ["true"], ACTIONS)
    times = {}
    for _ in range(pieces):
        server.ask("FLUSHDB")
        for holders in HOLDERS[kind]:
            for number in range(holders):
                server.ask(*of_another(templates["acquire"], holders, number))
            if int(server.ask("HLEN", f"rlock_holds:{{{NAME}-{holders}}}")) < holders:
                sys.exit(f"server_time: fewer than {holders} hold the lock")
        # Acquire and release one by one, so that the number of holders stays the same. Alternate few and many holders, as a
        # repeated action makes the server faster.
        first = max(HOLDERS[kind])
        for number in range(first, first + count):
            for holders, action in itertools.product(HOLDERS[kind], ACTIONS):
                request = of_another(templates[action], holders, number)
                times.setdefault((action, holders), []).append(time_of(server, request))
    server.ask("FLUSHDB")
    for (action, holders), taken_ns in times.items():
        print(kind, action, holders, round(statistics.median(taken_ns)))


def measure_plain(server, path, rlock, count):
    requests = captured(server, path, rlock, PLAIN_VERB, PLAIN_COMMAND, PLAIN_ACTIONS)
    times = {action: [] for action in PLAIN_ACTIONS}
    for _ in range(count):
        for action in PLAIN_ACTIONS:
            times[action].append(time_of(server, requests[action]))
    server.ask("FLUSHDB")
    for action, taken_ns in times.items():
        print("plain", action, 1, round(statistics.median(taken_ns)))


def main():
    path, rlock, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    server = Connection(path)
    server.ask("SELECT", DB)
    measure_plain(server, path, rlock, count)
    # Use few pieces, since each of them sets up all holders again, which is slow.
    for kind, pieces in (("read", 20), ("sem", 4)):
        measure(server, path, rlock, kind, pieces, count // pieces)


main()
