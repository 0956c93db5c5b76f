#!/usr/bin/env python3
"""Turns what bench.sh has measured into one table, and a line of JSON.

    report.py DIRECTORY

The goals stand here. Whether they are met is said, and changes nothing: times depend on the
machine and on what else it does; their ratios do so much less.
"""

import json
import os
import statistics
import sys

NAMES = {
    "bare": "the command alone",
    "flock": "flock",
    "setlock": "setlock",
    "rlock": "rlock, unix socket",
    "rlock-tcp": "rlock, TCP on loopback",
    "rlock-tls": "rlock, TLS on loopback",
    "rlock-fair": "rlock fair, unix socket",
    "rlock-sem": "rlock sem, unix socket",
    "redis-cli": "SET NX PX, Lua DEL by redis-cli, bash",
    "etcdctl": "etcdctl lock",
}
SHORT_NAMES = NAMES | {"redis-cli": "redis-cli, in bash"}
FAR_NAMES = {"rlock": "rlock, TCP", "etcdctl": "etcdctl lock"}
WIDTH = 44


def read_samples(path):
    """{label: [[number, ...], ...]}, one list for each column behind the label."""
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

    def sizes(self, prefix):
        """The numbers at the ends of the names of such files, in order."""
        names = os.listdir(self.directory)
        return sorted(int(name.removeprefix(prefix)) for name in names if name.startswith(prefix))

    def number(self, name):
        return float(self.facts[name])

    def head(self, title, *columns):
        print(f"\n{title:{WIDTH}}" + "".join(f"{column:>10}" for column in columns) + "   goal")

    def row(self, name, *cells, goal=None, value=None, text=None):
        """goal: the largest value that meets it, shown as text."""
        line = f"  {name:{WIDTH - 2}}" + "".join(f"{cell:>10}" for cell in cells)
        if goal is not None:
            line += f"   <= {text or goal}: " + ("met" if value <= goal else "missed")
        print(line.rstrip())

    def keep(self, name, value):
        self.result[name] = round(value, 3)

    # ---- the parts ----

    def title(self):
        facts = self.facts
        print(
            f"{facts['version']}, {facts['server']}, "
            f"{facts['processors']} processors, load {facts['load_before']} before and "
            f"{facts['load_after']} after"
        )
        if float(facts["load_before"]) > 0.5:
            print("Something else was running: that hits those most which start most processes.")

    def uncontended(self):
        samples = self.samples("uncontended")
        median = {label: statistics.median(columns[0]) for label, columns in samples.items()}
        # What else runs on the machine has touched the quick quarter least.
        quick = {label: quantile(columns[0], 0.25) for label, columns in samples.items()}
        flock, rlock = median["flock"], median["rlock"]
        self.head(
            f"uncontended: TOOL NAME true ({self.facts['rounds']} x)",
            "median us",
            "x flock",
            "p25 us",
            "x flock",
            "faults",
        )
        for label in sorted(median, key=median.get):
            goals = {}
            ratio = median[label] / flock
            if label == "rlock":
                goals = {"goal": 1.10, "value": ratio, "text": "1.10 x flock"}
            self.row(
                NAMES[label],
                f"{median[label] / 1000:.0f}",
                f"{ratio:.2f}",
                f"{quick[label] / 1000:.0f}",
                f"{quick[label] / quick['flock']:.2f}",
                f"{statistics.median(samples[label][1]):.0f}",
                **goals,
            )
            self.keep(f"uncontended_us_{label}", median[label] / 1000)
            self.keep(f"uncontended_x_flock_{label}", ratio)
            self.keep(f"uncontended_p25_x_flock_{label}", quick[label] / quick["flock"])
        for label, goal in (("redis-cli", 0.20), ("etcdctl", 0.12)):
            if label not in median:
                continue
            ratio = rlock / median[label]
            name = f"rlock, as a part of the time of {label}"
            cells = ("", f"{ratio:.3f}", "", f"{quick['rlock'] / quick[label]:.3f}", "")
            self.row(name, *cells, goal=goal, value=ratio, text=f"{goal:.2f}")
            self.keep(f"uncontended_x_{label}", ratio)

        more = (median["rlock-tls"] - median["rlock-tcp"]) / 1000
        more_quick = (quick["rlock-tls"] - quick["rlock-tcp"]) / 1000
        cells = (f"{more:.0f}", "", f"{more_quick:.0f}", "", "")
        self.row("what TLS adds to TCP", *cells, goal=6000, value=more)
        self.keep("uncontended_us_tls_adds", more)

    def round_trips(self):
        trips = self.number("round_trips")
        self.head("on the wire: user, password, db, client name", "number")
        self.row("round trips of an uncontended run", f"{trips:.0f}", goal=2, value=trips)
        self.row("connections", self.facts["connections"])
        self.row("requests in them", self.facts["requests"])
        self.keep("round_trips", trips)

    def handovers(self):
        samples = {label: columns[0] for label, columns in self.samples("handover").items()}
        flock = {part: quantile(samples["flock"], part) for part in (0.25, 0.5)}
        count = len(samples["flock"])
        self.head(
            f"hand-over, two contenders ({count} x)",
            "p50 us",
            "x flock",
            "p25 us",
            "x flock",
            "p99 us",
        )
        for label in sorted(samples, key=lambda label: quantile(samples[label], 0.5)):
            p25, p50, p99 = (quantile(samples[label], part) for part in (0.25, 0.5, 0.99))
            ratio = p50 / flock[0.5]
            goals = {}
            if label in ("rlock", "rlock-fair"):
                goals = {"goal": 1.2, "value": ratio, "text": "1.20 x flock, p50"}
            self.row(
                NAMES[label],
                f"{p50 / 1000:.0f}",
                f"{ratio:.2f}",
                f"{p25 / 1000:.0f}",
                f"{p25 / flock[0.25]:.2f}",
                f"{p99 / 1000:.0f}",
                **goals,
            )
            self.keep(f"handover_p50_us_{label}", p50 / 1000)
            self.keep(f"handover_p99_us_{label}", p99 / 1000)
            self.keep(f"handover_p50_x_flock_{label}", ratio)
            self.keep(f"handover_p25_x_flock_{label}", p25 / flock[0.25])

    def crowds(self):
        sizes = self.sizes("crowd.")
        for label, goal_from in (("rlock", 50), ("rlock-fair", 1)):
            self.head(
                f"{NAMES[label]}: hand-over with many waiters",
                "requests",
                "commands",
                "p50 us",
                "x flock",
            )
            for size in sizes:
                samples = self.samples(f"crowd.{size}")
                times, asked, done = (statistics.median(column) for column in samples[label])
                flock = statistics.median(samples["flock"][0])
                self.row(
                    f"{size} waiting",
                    f"{asked:.0f}",
                    f"{done:.0f}",
                    f"{times / 1000:.0f}",
                    f"{times / flock:.2f}",
                    **({"goal": 4, "value": asked, "text": "4 requests"} if size >= goal_from else {}),
                )
                self.keep(f"{label}_requests_{size}_waiting", asked)
                self.keep(f"{label}_handover_us_{size}_waiting", times / 1000)
        self.head("others: hand-over with many waiters", "p50 us")
        for size in self.sizes("others."):
            for label, columns in self.samples(f"others.{size}").items():
                took = statistics.median(columns[0]) / 1000
                self.row(f"{SHORT_NAMES[label]}, {size} waiting", f"{took:.0f}")
                self.keep(f"{label}_handover_us_{size}_waiting", took)
        self.head("waiting, for each one, in a second", "requests", "commands")
        for size in sizes:
            samples = self.samples(f"crowd.{size}")
            for label in ("rlock", "rlock-fair"):
                asked, done = (column[0] / 1000 for column in samples[f"{label}-waiting"][:2])
                self.row(
                    f"{NAMES[label]}, {size} waiting",
                    f"{asked:.2f}",
                    f"{done:.2f}",
                    goal=0.5,
                    value=asked,
                )
                self.keep(f"{label}_waiting_requests_per_s_{size}", asked)

    def permits(self):
        self.head(f"{NAMES['rlock-sem']}: hand-over of a permit", "requests", "commands", "p50 us")
        for size in self.sizes("permits."):
            times, asked, done = (statistics.median(column) for column in self.samples(f"permits.{size}")["rlock-sem"])
            cells = (f"{asked:.0f}", f"{done:.0f}", f"{times / 1000:.0f}")
            self.row(f"{size} waiting", *cells, goal=3, value=asked, text="3 requests")
            self.keep(f"rlock-sem_requests_{size}_waiting", asked)
            self.keep(f"rlock-sem_handover_us_{size}_waiting", times / 1000)

    def far_medians_us(self, name):
        """{label: {ms of the round trip: median}}"""
        medians = {}
        for ms in self.sizes(f"far-{name}."):
            for label, columns in self.samples(f"far-{name}.{ms}").items():
                medians.setdefault(label, {})[ms] = statistics.median(columns[0]) / 1000
        return medians

    def far(self):
        """Slopes leave out what processes cost to start: only what waits for the network grows with the round trip."""
        for name, title in (("uncontended", "uncontended"), ("handover", "hand-over, two contenders")):
            medians = self.far_medians_us(name)
            times = sorted(next(iter(medians.values())))
            self.head(f"{title}, by the round trip", *(f"{ms} ms: us" for ms in times), "trips")
            for label, of_label in medians.items():
                first, last = times[0], times[-1]
                slope = (of_label[last] - of_label[first]) / (last - first) / 1000
                self.row(FAR_NAMES[label], *(f"{of_label[ms]:.0f}" for ms in times), f"{slope:.1f}")
                multiples = {ms: of_label[ms] / ms / 1000 for ms in times}
                self.row("  as a multiple of the round trip", *(f"{x:.1f}" for x in multiples.values()))
                self.keep(f"far_{name}_round_trips_{label}", slope)
                for ms in times:
                    self.keep(f"far_{name}_us_{label}_{ms}ms", of_label[ms])
                    self.keep(f"far_{name}_x_round_trip_{label}_{ms}ms", multiples[ms])

    def readers(self):
        count, asked = self.number("readers"), self.number("readers_requests")
        took, bare = self.number("readers_all_in_us"), self.number("readers_bare_us")
        self.head(f"{count:.0f} readers let in by one writer's release", "number", "x bare")
        self.row("requests for each, the release shared", f"{asked / count:.2f}")
        self.row("until all commands run, us", f"{took:.0f}", f"{took / bare:.2f}")
        self.keep("readers_requests_each", asked / count)
        self.keep("readers_x_bare", took / bare)

    def server_times_us(self):
        """{(kind, action, tool): time}"""
        times = {}
        with open(os.path.join(self.directory, "server_time"), encoding="ascii") as lines:
            for line in lines:
                kind, action, tool, nanoseconds = line.split()
                times[kind, action, tool] = int(nanoseconds) / 1000
        return times

    def holders_times_us(self):
        """{(kind, action): {how many hold the lock: time}}"""
        times = {}
        for (kind, action, tool), took in self.server_times_us().items():
            if tool.startswith("rlock-"):
                times.setdefault((kind, action), {})[int(tool.removeprefix("rlock-"))] = took
        return times

    def server_time(self):
        self.head("time of a script on the server", "us", "x Redisson's")
        times = self.server_times_us()
        for (kind, action, tool), took in times.items():
            if tool == "rlock":
                ratio = took / times[kind, action, "redisson"]
                self.row(
                    f"{kind}, {action}", f"{took:.1f}", f"{ratio:.2f}", goal=2, value=ratio, text="2.00 x Redisson's"
                )
                self.keep(f"server_us_{kind}_{action}", took)
                self.keep(f"server_x_redisson_{kind}_{action}", ratio)

    def one_holder_more(self):
        self.head("one holder more, of a lock that others hold", "few: us", "many: us", "ratio")
        for (kind, action), times in self.holders_times_us().items():
            few, *many = sorted(times)
            for count in many:
                ratio = times[count] / times[few]
                goal = 1.2 if count <= 1000 else 1.5
                self.row(
                    f"{kind}, {action}: {count} holders",
                    f"{times[few]:.1f}",
                    f"{times[count]:.1f}",
                    f"{ratio:.2f}",
                    goal=goal,
                    value=ratio,
                    text=f"{goal:.2f} x that with {few}",
                )
                self.keep(f"server_us_{kind}_{action}_{count}_holders", times[count])
                self.keep(f"server_x_{kind}_{action}_{count}_holders", ratio)
            self.keep(f"server_us_{kind}_{action}_{few}_holders", times[few])

    def idle(self):
        seconds = self.number("idle_s")
        memory = self.number("pss_rlock")
        self.head("an idle holder: memory, and wake-ups", "PSS kB", "x flock", "in 10 s")
        shares = ("rlock", "renewer")
        switches = {
            f"{ttl} {share}": self.number(
                f"switches_rlock-{ttl}" + ("-renewer" if share == "renewer" else "")
            )
            * 10
            / seconds
            for ttl in ("30s", "3s")
            for share in shares
        }
        flock = self.number("pss_flock")
        self.row(
            "rlock -t 30s, and its renewer",
            f"{memory:.0f}",
            f"{memory / flock:.2f}",
            f"{switches['30s rlock']:.0f} + {switches['30s renewer']:.0f}",
            goal=400,
            value=memory,
            text="400 kB",
        )
        self.row("  of that rlock", self.facts["pss_rlock_front"])
        self.row("  of that the renewer", self.facts["pss_rlock_renewer"])
        self.row(
            "rlock -t 3s: ten renewals in 10 s",
            "",
            "",
            f"{switches['3s rlock']:.0f} + {switches['3s renewer']:.0f}",
        )
        for label in ("flock", "etcdctl"):
            if f"pss_{label}" in self.facts:
                kilobytes = self.number(f"pss_{label}")
                self.row(
                    NAMES[label],
                    f"{kilobytes:.0f}",
                    f"{kilobytes / flock:.2f}",
                    f"{self.number(f'switches_{label}') * 10 / seconds:.0f}",
                )
                self.keep(f"pss_kb_{label}", kilobytes)
        self.keep("pss_kb_rlock", memory)
        for name, value in switches.items():
            self.keep("switches_10s_" + name.replace(" ", "_"), value)
        rate = self.number("waiter_requests") / seconds
        self.head("a waiting waiter", "number")
        self.row("requests a second", f"{rate:.2f}", goal=0.5, value=rate)
        self.keep("waiter_requests_per_s", rate)
        waiter = self.number("pss_rlock_waiter")
        self.row(
            "PSS kB, of rlock and its renewer", f"{waiter:.0f}", goal=400, value=waiter, text="400 kB"
        )
        self.keep("pss_kb_rlock_waiter", waiter)


def main(argv):
    if len(argv) != 1:
        print(__doc__, file=sys.stderr)
        return 64
    report = Report(argv[0])
    report.title()
    report.uncontended()
    report.round_trips()
    report.handovers()
    report.crowds()
    report.permits()
    report.far()
    report.readers()
    report.server_time()
    report.one_holder_more()
    report.idle()
    print()
    print(json.dumps(report.result))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
