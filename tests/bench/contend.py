#!/usr/bin/env python3
"""Measures how long it takes to hand a lock over from one command to the next, which waits for it.

    contend.py [--redis SOCKET] TURN WAITERS ROUNDS LABEL PAUSE-MS WORD... [::: LABEL ...]

WORD... is a tool that runs the command after it under a lock. That command is TURN (bench/turn), which
records when it starts and ends. At each hand-over there are one holder and WAITERS waiters of each tool;
the tools alternate, so that other load of the machine affects all alike. PAUSE-MS is the minimum time for a
waiter to begin its wait.

Prints a line "LABEL NANOSECONDS REQUESTS COMMANDS" for each hand-over: the time from the end of the
holder's command to the start of the next one; the requests of clients to the server at SOCKET; all commands
that the server has run, including those in scripts; "-" without a server. With a server also a line
"LABEL-waiting REQUESTS COMMANDS -": for each waiter in 1,000 seconds. Exits with 1 when a tool let two commands
run at the same time, or did not hand over.
"""

import mmap
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

PAIR = struct.Struct("qq")
HAND_OVER_S = 60  # after this time a tool counts as hanging
QUIET_S = 0.06  # a hand-over is complete when the server was idle for this time, or SETTLE_S have passed
SETTLE_S = 5
RATE_S = 5  # how long the cost of waiting is measured, which is then subtracted
# If the waiters send more requests per second than this, the server is never idle. A hand-over is then complete after
# HAND_OVER_DONE_S.
BUSY_RATE = 5
HAND_OVER_DONE_S = 0.05

# Commands that only clients send: the counts of all others include calls by scripts.
ASKED = ("auth", "hello", "select", "client", "script", "eval", "evalsha", "ping", "subscribe", "unsubscribe")


class Connection:
    """A connection to a server."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.file = self.socket.makefile("rb")

    def receive(self):
        line = self.file.readline()
        if line[:1] == b"$":
            return None if line == b"$-1\r\n" else self.file.read(int(line[1:]) + 2)[:-2].decode()
        if line[:1] == b"*":
            return [self.receive() for _ in range(int(line[1:]))]
        if line[:1] == b"-":
            sys.exit(f"bench: {line.decode().strip()}")
        return line[1:-2].decode()

    def ask(self, *words):
        encoded = [word.encode() for word in words]
        self.socket.sendall(
            b"*%d\r\n" % len(encoded) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in encoded))
        return self.receive()


class Server(Connection):
    """The server's command counters, without our own requests."""

    def subscribers(self):
        return sum(" sub=0 " not in line for line in self.ask("client", "list").splitlines())

    def counts(self):
        """(requests of clients, commands in all)"""
        asked = done = 0
        for line in self.ask("info", "commandstats").splitlines()[1:]:
            name, rest = line.removeprefix("cmdstat_").split(":calls=", 1)
            if name in ("info", "client|list"):
                continue
            calls = int(rest.split(",", 1)[0])
            done += calls
            if name.split("|")[0] in ASKED:
                asked += calls
        return asked, done

    def settle(self, rate=0):
        """The counters, once they do not change for a while; rate: requests per second of the waiters."""
        if rate > BUSY_RATE:
            time.sleep(HAND_OVER_DONE_S)
            return self.counts()
        limit = time.monotonic() + SETTLE_S
        last, since = self.counts(), time.monotonic()
        while time.monotonic() - since < QUIET_S and time.monotonic() < limit:
            time.sleep(QUIET_S / 4)
            now = self.counts()
            if now != last:
                last, since = now, time.monotonic()
        return last


class Queue:
    """The holder of one tool's lock, and its waiters. size: the number of processes that are ever started."""

    def __init__(self, directory, turn, size, label, pause_ms, *words):
        self.label = label
        self.pause_s = int(pause_ms) / 1000
        path, self.fifo = (os.path.join(directory, label + end) for end in (".turns", ".fifo"))
        self.command = [*words, turn, path]
        self.processes = {}  # by index, until they were reaped
        self.count = 0  # the number of indices in use
        self.end = None  # the write end of the FIFO: closing it ends the holder's command
        # Print these messages only after a failure: some tools print one when they are terminated.
        self.errors = open(os.path.join(directory, label + ".errors"), "w+b")
        os.mkfifo(self.fifo)
        with open(path, "w+b") as file:
            file.truncate(size * PAIR.size)
            self.pairs = mmap.mmap(file.fileno(), size * PAIR.size)

    def pair(self, index):
        return PAIR.unpack_from(self.pairs, index * PAIR.size)

    def add(self):
        command = [*self.command, str(self.count), self.fifo]
        self.processes[self.count] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=self.errors)
        self.count += 1

    def await_turn(self):
        """Wait until the next command runs, and make it the holder. Sleeps instead of polling, which would disturb the measurement."""
        self.end = os.open(self.fifo, os.O_WRONLY)
        return self.holder()

    def holder(self):
        running = [i for i in self.processes if self.pair(i)[0] != 0]
        if len(running) != 1:
            sys.exit(f"contend: {self.label}: {len(running)} commands run at once")
        return running[0]

    def hand_over(self):
        """Hand over once. Returns the nanoseconds."""
        before = self.holder()
        signal.alarm(HAND_OVER_S)
        os.close(self.end)
        self.end = None
        if self.processes.pop(before).wait() != 0:
            sys.exit(f"contend: {self.label}: the exit status of a holder was not 0")
        holder = self.await_turn()
        signal.alarm(0)
        return self.pair(holder)[0] - self.pair(before)[1]

    def close(self):
        """End the holder and all waiters; no waiter may acquire the lock any more."""
        waiting = [process for index, process in self.processes.items() if self.pair(index)[0] == 0]
        for process in waiting:
            process.terminate()
        for process in waiting:
            process.wait()
        if self.end is not None:
            os.close(self.end)
        for process in self.processes.values():
            process.wait()


def read_queues(directory, turn, size, words):
    while words:
        end = words.index(":::") if ":::" in words else len(words)
        yield Queue(directory, turn, size, *words[:end])
        words = words[end + 1:]


def fill(queues, waiters, server):
    """Start a holder and all waiters for each queue, and return when they wait."""
    for queue in queues:
        queue.add()
        signal.alarm(HAND_OVER_S)
        queue.await_turn()
        for _ in range(waiters):
            queue.add()
    # Wait until all waiters are queued: first pause; then, if there is a server, poll its number of subscribers.
    time.sleep(max(queue.pause_s for queue in queues))
    while server and server.subscribers() < waiters:
        time.sleep(0.05)
    signal.alarm(0)


def contend(queues, waiters, rounds, server):
    fill(queues, waiters, server)
    rate = (0, 0)
    if server:
        before = server.settle()
        time.sleep(RATE_S)
        rate = tuple((a - b) / RATE_S for a, b in zip(server.counts(), before))
        print(f"{queues[0].label}-waiting", *(round(1000 * r / waiters / len(queues)) for r in rate), "-")
    for _ in range(rounds):
        for queue in queues:
            spent = ("-", "-")
            before, since = server and server.counts(), time.monotonic()
            took_ns = queue.hand_over()
            if server:
                after = server.settle(rate[0])
                seconds = time.monotonic() - since
                spent = [round(a - b - r * seconds) for a, b, r in zip(after, before, rate)]
            print(queue.label, took_ns, *spent, flush=True)
            queue.add()
            # Vary this time, so that each hand-over comes at another point of the interval in which a tool polls.
            time.sleep(queue.pause_s * random.uniform(1, 2))


def hang(_signal, _frame):
    sys.exit(f"contend: no hand-over within {HAND_OVER_S} s")


def main(argv):
    server = None
    signal.signal(signal.SIGALRM, hang)
    if argv[0] == "--redis":
        server, argv = Server(argv[1]), argv[2:]
    turn, waiters, rounds = argv[0], int(argv[1]), int(argv[2])
    with tempfile.TemporaryDirectory() as directory:
        queues = list(read_queues(directory, turn, waiters + 1 + rounds, argv[3:]))
        try:
            contend(queues, waiters, rounds, server)
        except SystemExit:
            for queue in queues:
                queue.errors.seek(0)
                sys.stderr.write(queue.errors.read(10000).decode(errors="replace"))
            raise
        finally:
            for queue in queues:
                queue.close()


if __name__ == "__main__":
    main(sys.argv[1:])
