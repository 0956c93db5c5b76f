#!/usr/bin/env python3
"""Prints the measurements of bench.sh as one table, and as a line of JSON.

    report.py DIRECTORY

The goals are defined here. Whether they are met is printed, but does not change the exit status. Goals are ratios of times,
which depend on the machine and its load much less than the times.
"""

import json
import os
import statistics
import sys

NAMES = {
    "bare": "the command alone",
    "flock": "flock",
    "rlock": "rlock, unix socket",
    "rlock-tcp": "rlock, TCP on loopback",
    "rlock-tls": "rlock, TLS on loopback",
    "rlock-fair": "rlock fair, unix socket",
    "rlock-sem": "rlock sem, unix socket",
    "redis-cli": "SET NX PX, Lua DEL by redis-cli, bash",
    "etcdctl": "etcdctl lock",
}
WIDTH = 44


def read_samples(path):
    """{label: [[number, ...], ...]}, one list per column after the label."""
    columns = {}
    with open(path, encoding="ascii") as file:
        for line in file:
            label, *numbers = line.split()
            rows = columns.setdefault(label, [[] for _ in numbers])
            for column, number in zip(rows, numbers):
                column.append(None if number == "-" else int(number))
    return columns


def quantile(numbers, part):
    ordered = sorted(numbers)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


class Report:
    def __init__(self, directory):
        self.directory = directory
        self.result = {}
        with open(os.path.join(directory, "facts"), encoding="utf-8") as file:
            self.facts = dict(line.rstrip("\n").split(" ", 1) for line in file)

    def samples(self, name):
        return read_samples(os.path.join(self.directory, name))

    def medians_us(self, name):
        return {label: statistics.median(columns[0]) / 1000 for label, columns in self.samples(name).items()}

    def sizes(self, prefix):
        """The numbers at the end of the names of these files, sorted."""
        names = os.listdir(self.directory)
        return sorted(int(name.removeprefix(prefix)) for name in names if name.startswith(prefix))

    def number(self, name):
        return float(self.facts[name])

    def head(self, title, *columns):
        print(f"\n{title:{WIDTH}}" + "".join(f"{column:>10}" for column in columns) + "   goal")

    def row(self, name, *cells, goal=None, value=None, text=None):
        """goal: the largest value that meets the goal; shown: the value as text."""
        line = f"  {name:{WIDTH - 2}}" + "".join(f"{cell:>10}" for cell in cells)
        if goal is not None:
            line += f"   <= {text or goal}: " + ("met" if value <= goal else "missed")
        print(line.rstrip())

    def keep(self, **values):
        self.result |= {name: round(value, 3) for name, value in values.items()}

    # ---- the parts ----

    def title(self):
        facts = self.facts
        print(f"{facts['version']}, {facts['server']}, {facts['processors']} processors, "
              f"load {facts['load_before']} before and {facts['load_after']} after")
        if float(facts["load_before"]) > 0.5:
            print("Something else was running: that hits those most which start most processes.")

    def times_beside_flock(self, name, title, goals):
        samples = {label: columns[0] for label, columns in self.samples(name).items()}
        flock = quantile(samples["flock"], 0.5)
        self.head(f"{title} ({len(samples['flock'])} x)", "p50 us", "x flock", "p99 us")
        for label in sorted(samples, key=lambda label: quantile(samples[label], 0.5)):
            p50, p99 = (quantile(samples[label], part) for part in (0.5, 0.99))
            ratio = p50 / flock
            goal = goals.get(label)
            cells = (f"{p50 / 1000:.0f}", f"{ratio:.2f}", f"{p99 / 1000:.0f}")
            self.row(NAMES[label], *cells, goal=goal, value=ratio, text=goal and f"{goal:.2f} x flock, p50")
            self.keep(**{f"{name}_p50_us_{label}": p50 / 1000, f"{name}_p99_us_{label}": p99 / 1000,
                         f"{name}_p50_x_flock_{label}": ratio})

    def uncontended(self):
        self.times_beside_flock("uncontended", "uncontended: TOOL NAME true", {"rlock": 1.1, "rlock-tcp": 1.2})
        median = self.medians_us("uncontended")
        for label, goal in (("redis-cli", 0.20), ("etcdctl", 0.12)):
            if label in median:
                ratio = median["rlock"] / median[label]
                self.row(f"rlock, as a part of the time of {label}", "", f"{ratio:.3f}", goal=goal, value=ratio)
                self.keep(**{f"uncontended_x_{label}": ratio})
        more = median["rlock-tls"] - median["rlock-tcp"]
        self.row("what TLS adds to TCP", f"{more:.0f}", goal=6000, value=more)
        self.keep(uncontended_us_tls_adds=more)

    def crowds(self):
        for label, prefix, goal, goal_from in (("rlock", "crowd.", 4, 50), ("rlock-fair", "crowd.", 4, 1),
                                               ("rlock-sem", "permits.", 3, 1)):
            self.head(f"{NAMES[label]}: hand-over with many waiters", "requests", "commands", "p50 us", "x flock")
            for size in self.sizes(prefix):
                flock = self.medians_us(f"crowd.{size}")["flock"]
                took, asked, done = (statistics.median(column) for column in self.samples(f"{prefix}{size}")[label])
                cells = (f"{asked:.0f}", f"{done:.0f}", f"{took / 1000:.0f}", f"{took / 1000 / flock:.2f}")
                of_size = goal if size >= goal_from else None
                self.row(f"{size} waiting", *cells, goal=of_size, value=asked, text=f"{goal} requests")
                self.keep(**{f"{label}_requests_{size}_waiting": asked, f"{label}_handover_us_{size}_waiting": took / 1000})
        self.head("waiting, for each one, in a second", "requests", "commands")
        for size in self.sizes("crowd."):
            for label in ("rlock", "rlock-fair"):
                asked, done = (column[0] / 1000 for column in self.samples(f"crowd.{size}")[f"{label}-waiting"][:2])
                self.row(f"{NAMES[label]}, {size} waiting", f"{asked:.2f}", f"{done:.2f}", goal=0.5, value=asked)
                self.keep(**{f"{label}_waiting_requests_per_s_{size}": asked})
        self.head("others: hand-over with many waiters", "p50 us")
        for size in self.sizes("others."):
            for label, took_us in self.medians_us(f"others.{size}").items():
                self.row(f"{label}, {size} waiting", f"{took_us:.0f}")
                self.keep(**{f"{label}_handover_us_{size}_waiting": took_us})

    def far(self):
        """Print slopes: the waits for the network grow with the round trip time, the time to start processes does not."""
        for name, title in (("uncontended", "uncontended"), ("handover", "hand-over, two contenders")):
            times = self.sizes(f"far-{name}.")
            medians = {ms: self.medians_us(f"far-{name}.{ms}") for ms in times}
            self.head(f"{title}, by the round trip", *(f"{ms} ms: us" for ms in times), "trips")
            for label in medians[times[0]]:
                slope = (medians[times[-1]][label] - medians[times[0]][label]) / (times[-1] - times[0]) / 1000
                self.row(f"{label}, TCP", *(f"{medians[ms][label]:.0f}" for ms in times), f"{slope:.1f}")
                self.keep(**{f"far_{name}_round_trips_{label}": slope})

    def server_time(self):
        times = {}  # {(kind, action): [(holders, time), ...]}
        with open(os.path.join(self.directory, "server_time"), encoding="ascii") as lines:
            for line in lines:
                kind, action, *numbers = line.split()
                holders, nanoseconds = map(int, numbers)
                times.setdefault((kind, action), []).append((holders, nanoseconds / 1000))
        self.head("server: one holder more, of a lock that others hold", "few: us", "many: us", "ratio")
        for (kind, action), ((few, took_few), *many) in times.items():
            if not many:  # measured with one holder only
                self.keep(**{f"server_us_{kind}_{action}": took_few})
                self.row(f"{kind}, {action}", f"{took_few:.1f}")
            for count, took in many:
                ratio = took / took_few
                goal = 1.2 if count <= 1000 else 1.5
                cells = (f"{took_few:.1f}", f"{took:.1f}", f"{ratio:.2f}")
                text = f"{goal:.2f} x that with {few}"
                self.row(f"{kind}, {action}: {count} holders", *cells, goal=goal, value=ratio, text=text)
                self.keep(**{f"server_x_{kind}_{action}_{count}_holders": ratio})

    def idle(self):
        memory, waiter = self.number("pss_rlock"), self.number("pss_rlock_waiter")
        flock = self.number("pss_flock")
        self.head("an idle holder: memory", "PSS kB", "x flock")
        self.row("rlock, and its renewer", f"{memory:.0f}", f"{memory / flock:.2f}", goal=400, value=memory, text="400 kB")
        for label in ("flock", "etcdctl"):
            if f"pss_{label}" in self.facts:
                kilobytes = self.number(f"pss_{label}")
                self.row(NAMES[label], f"{kilobytes:.0f}", f"{kilobytes / flock:.2f}")
                self.keep(**{f"pss_kb_{label}": kilobytes})
        self.row("a waiter, and its renewer", f"{waiter:.0f}", f"{waiter / flock:.2f}", goal=400, value=waiter, text="400 kB")
        self.keep(pss_kb_rlock=memory, pss_kb_rlock_waiter=waiter)


    # ---- README.md ----

    def readme(self):
        """Print the section of README.md: times of flock, and for other tools their ratio to flock in this run."""
        facts, result = self.facts, self.result
        crowd = self.sizes("crowd.")[-1]
        crowd_us = self.medians_us(f"crowd.{crowd}")
        crowd_x = {label: took_us / crowd_us["flock"] for label, took_us in crowd_us.items()}
        tools = {"flock": "flock", "rlock": "`rlock run`", "rlock-tcp": "over TCP", "rlock-tls": "over TLS",
                 "rlock-fair": "`rlock fair`", "etcdctl": "etcdctl lock", "redis-cli": "`SET NX PX` in bash"}
        rows = [(title, result[f"{name}_p50_us_flock"], {tool: result.get(f"{name}_p50_x_flock_{tool}") for tool in tools})
                for name, title in (("uncontended", "a free lock, from start to exit"),
                                    ("busy", "a busy lock with `-n`, from start to exit"),
                                    ("handover", "hand-over, one waits"))]
        rows.append((f"hand-over, {crowd} wait", crowd_us["flock"], crowd_x))
        print(f"\nFor README.md, Performance: {facts['server']}, {facts['processors']} processors, {facts['date']}\n")
        print("| |", " | ".join(tools.values()), "|")
        print("|" + "---|" * (len(tools) + 1))
        for title, flock_us, ratios in rows:
            cells = [f"{flock_us / 1000:.1f} ms", *("" if ratios.get(tool) is None else f"{ratios[tool]:.2g} x"
                                                    for tool in list(tools)[1:])]
            print("|", " | ".join([title, *cells]), "|")
        print(f"\nRound trips: {result['far_uncontended_round_trips_rlock']:.1f} for a free lock, "
              f"{result['far_handover_round_trips_rlock']:.1f} to hand over. The server's time for a renewal: "
              f"{result['server_us_plain_renew']:.0f} us. Memory: {result['pss_kb_rlock']:.0f} kB for an idle holder, "
              f"{result['pss_kb_rlock_waiter']:.0f} kB for a waiter, {result['pss_kb_flock']:.0f} kB for flock.")


def main(argv):
    report = Report(argv[0])
    report.title()
    report.uncontended()
    report.times_beside_flock("busy", "a busy lock: TOOL -n NAME false", {})
    report.times_beside_flock("handover", "hand-over, two contenders", {"rlock": 1.2, "rlock-fair": 1.2})
    report.crowds()
    report.far()
    report.server_time()
    report.idle()
    report.readme()
    print()
    print(json.dumps(report.result))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
