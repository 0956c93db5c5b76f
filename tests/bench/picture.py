#!/usr/bin/env python3
"""Makes the picture for README.md of what bench.sh has measured: how long a hand-over takes, by how many wait.

    picture.py DIRECTORY FILE

DIRECTORY has the measurements, FILE becomes an SVG of lines on two logarithmic scales. What was not measured, as etcdctl
without an etcd, is left out. Each line has its label at its end, so that the picture needs neither a legend nor colours to be
read. Colours are those of a tool, by its class in STYLE, in light and in dark.
"""

import dataclasses
import html
import math
import statistics
import sys

sys.dont_write_bytecode = True
import report  # noqa: E402

# Not by var(): programs that make a picture of an SVG do not know it.
COLOURS = {
    "rlock": ("#0b5fd0", "#79b8ff"),
    "fair": ("#0b7a6b", "#4fd6bc"),
    "plain": ("#59636e", "#a9b4c0"),
    "etcd": ("#ad5700", "#ffab66"),
    "idiom": ("#b01f77", "#ff92d2"),
}
PAPER, INK, GRID = ("#ffffff", "#0d1117"), ("#1f2328", "#e6edf3"), ("#d5dbe1", "#30363d")

CLASSES = {"rlock-fair": "fair", "etcdctl": "etcd", "redis-cli": "idiom"}
# Short enough for the end of a line; what the idiom is, a note says.
LABELS = {"rlock": "rlock", "rlock-fair": "rlock fair", "flock": "flock", "etcdctl": "etcdctl lock", "redis-cli": "redis-cli"}
IDIOM = "redis-cli: a shell script that tries SET NX PX every 0.1 s, and deletes the key by a script."


def _colours(scheme):
    rules = [
        f".paper {{ fill: {PAPER[scheme]} }}",
        f".chart text {{ fill: {INK[scheme]} }}",
        f".chart .grid {{ stroke: {GRID[scheme]} }}",
    ]
    for name, colours in COLOURS.items():
        rules.append(f".chart .{name} {{ stroke: {colours[scheme]}; fill: {colours[scheme]} }}")
        rules.append(f".chart text.{name} {{ stroke: {PAPER[scheme]} }}")
    return "\n".join(rules)


STYLE = f"""
.chart text {{ font: 13px system-ui, sans-serif }}
.chart text.title {{ font-size: 16px; font-weight: 600 }}
.chart text.small {{ font-size: 12px }}
.chart text.label {{ font-weight: 600; stroke-width: 4; stroke-linejoin: round; paint-order: stroke }}
.chart polyline.line {{ fill: none; stroke-width: 2 }}
.chart .bar {{ stroke-width: 1.2 }}
.chart .leader {{ stroke-width: .8; stroke-dasharray: 2 2 }}
{_colours(0)}
@media (prefers-color-scheme: dark) {{
{_colours(1)}
}}
"""

WIDTH = 760
TEXT_PX = 7.4  # of a letter, on average and rather too much
LINE_PX = 17  # from one label to the next


def time_text(time_us):
    """Three digits are more than a measurement is good for."""
    for unit, size_us in (("s", 1e6), ("ms", 1e3)):
        if time_us >= size_us:
            return f"{float(f'{time_us / size_us:.3g}'):g} {unit}"
    return f"{float(f'{time_us:.3g}'):g} µs"


def element(name, content=None, **attributes):
    """Attributes without their trailing underscore, since class is a word of Python's."""
    words = []
    for key, value in attributes.items():
        text = f"{value:.1f}" if isinstance(value, float) else str(value)
        words.append(f' {key.rstrip("_").replace("_", "-")}="{html.escape(text)}"')
    return f"<{name}{''.join(words)}/>" if content is None else f"<{name}{''.join(words)}>{content}</{name}>"


def text(x, y, words, class_="small", anchor="start"):
    return element("text", html.escape(words), x=float(x), y=float(y), class_=class_, text_anchor=anchor)


class LogScale:
    """Where on a picture a value is."""

    def __init__(self, low, high, low_px, high_px):
        self.low, self.low_px = math.log10(low), low_px
        # A scale of a single value has it at its begin.
        self.px_per_decade = (high_px - low_px) / ((math.log10(high) - self.low) or 1)

    def at(self, value):
        return self.low_px + (math.log10(value) - self.low) * self.px_per_decade


def ticks_around(values):
    """From one of 1, 2 and 5 times a power of ten to another, with all values between; and those with a label."""
    steps = [digit * 10.0**power for power in range(-3, 13) for digit in (1, 2, 5)]
    low, high = min(values), max(values)
    first = max(step for step in steps if step <= low)
    last = min(step for step in steps if step >= high and step > first)
    ticks = [step for step in steps if first <= step <= last]
    # Where there are many of them, the powers of ten say enough.
    labelled = ticks if len(ticks) <= 8 else [step for step in ticks if math.isclose(math.log10(step) % 1, 0)]
    return ticks, labelled


@dataclasses.dataclass
class Point:
    x: float
    y_us: float
    low_us: float  # of the bar around it
    high_us: float


@dataclasses.dataclass
class Line:
    label: str
    colour: str  # a key of COLOURS
    points: list


def picture(height, title, parts, notes):
    parts = [
        element("title", html.escape(title)),
        element("style", STYLE),
        element("rect", width=WIDTH, height=height, class_="paper"),
        text(16, 26, title, "title"),
        *parts,
        *(text(16, height - 12 - 16 * (len(notes) - 1 - i), note) for i, note in enumerate(notes)),
    ]
    return element(
        "svg",
        "\n" + "\n".join(parts) + "\n",
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {height}",
        class_="chart",
        role="img",
    )


def grid_line(x1, y1, x2, y2):
    return element("line", x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2), class_="grid")


def _crosses(box, lines_px):
    """How many pieces of lines, or points, are in that rectangle."""
    left, top, right, bottom = box
    found = 0
    for line in lines_px:
        for (x1, y1), (x2, y2) in zip(line, line[1:] or line):
            steps = (((x1 + (x2 - x1) * i / 20), (y1 + (y2 - y1) * i / 20)) for i in range(21))
            found += any(left <= x <= right and top <= y <= bottom for x, y in steps)
    return found


def _end_labels(lines, lines_px, bars_px, right_px, bottom_px):
    """A label at the end of each line: in the margin, one below the other, or where the line ends earlier."""
    taken_px = lines_px + bars_px
    parts, margin = [], []
    for line, line_px in zip(lines, lines_px):
        x, y = line_px[-1]
        if x > right_px - 1:
            margin.append([y, line, y])
            continue
        # Above the end, beside it or below it: where the other lines are not.
        width = len(line.label) * TEXT_PX
        spots = [(x + dx, y + dy) for dx, dy in ((6, -10), (10, 4), (6, 20), (-width, -14), (-width, 24))]
        spots = [(min(left, right_px - width), base) for left, base in spots]
        left, base = min(spots, key=lambda at: _crosses((at[0], at[1] - 13, at[0] + width, at[1] + 4), taken_px))
        parts.append(text(left, base, line.label, f"label {line.colour}"))
    margin.sort(key=lambda entry: entry[0])
    for above, entry in zip(margin, margin[1:]):
        entry[0] = max(entry[0], above[0] + LINE_PX)
    for below, entry in zip([[bottom_px + LINE_PX], *margin[::-1]], margin[::-1]):
        entry[0] = min(entry[0], below[0] - LINE_PX)
    for label_y, line, y in margin:
        if abs(label_y - y) > 3:
            leader = element("line", x1=right_px + 5.0, y1=y, x2=right_px + 16.0, y2=label_y, class_=f"leader {line.colour}")
            parts.append(leader)
        parts.append(text(right_px + 19, label_y + 4, line.label, f"label {line.colour}"))
    return parts


def line_chart(title, x_title, y_title, lines, notes):
    """Both scales are logarithmic; each value of x has a tick, as there are few."""
    height, left_px, top_px = 400 + 16 * len(notes), 74, 62
    right_px = WIDTH - 40 - TEXT_PX * max(len(line.label) for line in lines)
    bottom_px = height - 58 - 16 * len(notes)
    points = [point for line in lines for point in line.points]
    ends_us = [end for p in points for end in (p.y_us, p.low_us, p.high_us)]
    ticks, labelled = ticks_around(ends_us)
    xs = sorted({point.x for point in points})
    across = LogScale(xs[0], xs[-1], left_px, right_px)
    up = LogScale(ticks[0], ticks[-1], bottom_px, top_px)
    parts = []
    for tick in ticks:
        parts.append(grid_line(left_px, up.at(tick), right_px, up.at(tick)))
        if tick in labelled:
            parts.append(text(left_px - 8, up.at(tick) + 4, time_text(tick), anchor="end"))
    for x in xs:
        parts.append(grid_line(across.at(x), top_px, across.at(x), bottom_px + 4))
        parts.append(text(across.at(x), bottom_px + 19, f"{x:g}", anchor="middle"))
    parts.append(text(16, top_px - 14, y_title))
    parts.append(text((left_px + right_px) / 2, bottom_px + 39, x_title, anchor="middle"))
    lines_px, bars_px = [], []
    for line in lines:
        line_px = [(across.at(p.x), up.at(p.y_us)) for p in line.points]
        lines_px.append(line_px)
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in line_px)
        parts.append(element("polyline", points=path, class_=f"line {line.colour}"))
        for point, (x, y) in zip(line.points, line_px):
            low_px, high_px = up.at(point.low_us), up.at(point.high_us)
            bars_px.append([(x, low_px), (x, high_px)])
            parts.append(element("line", x1=x, y1=low_px, x2=x, y2=high_px, class_=f"bar {line.colour}"))
            words = element("title", html.escape(f"{line.label}, {point.x:g}: {time_text(point.y_us)}"))
            parts.append(element("circle", words, cx=x, cy=y, r=3.5, class_=line.colour))
    parts += _end_labels(lines, lines_px, bars_px, right_px, bottom_px)
    return picture(height, title, parts, notes)


def colour_of(label):
    return CLASSES.get(label, "rlock" if label.startswith("rlock") else "plain")


def origin(facts):
    names = ("version", "server", "etcd", "flock")
    versions = ", ".join(facts[name].split(" (", 1)[0] for name in names if facts.get(name))
    machine = f"{facts['processors']} processors ({facts['machine']}), load {facts['load_before']} before, {facts['date']}"
    return f"{machine}. {versions}."


def handover_chart(measured):
    """The half in the middle is shown beside each median: with few turns, a median alone promises too much."""
    points = {label: [] for label in LABELS}
    for prefix in ("crowd.", "others."):
        for size in measured.sizes(prefix):
            for label, columns in measured.samples(f"{prefix}{size}").items():
                if label in points:
                    low, high = (report.quantile(columns[0], part) / 1000 for part in (0.25, 0.75))
                    median = statistics.median(columns[0]) / 1000
                    points[label].append(Point(size, median, min(low, median), max(high, median)))
    lines = [Line(LABELS[label], colour_of(label), of_label) for label, of_label in points.items() if of_label]
    return line_chart(
        "Handing a lock over, by how many wait for it",
        "waiters, all on one machine (log scale)",
        "from the end of the holder's command to the start of the next (log scale)",
        lines,
        ["Point: the median. Bar: the half in the middle.", IDIOM, origin(measured.facts)],
    )


def main(argv):
    if len(argv) != 2:
        print(__doc__, file=sys.stderr)
        return 64
    with open(argv[1], "w", encoding="utf-8") as file:
        file.write(handover_chart(report.Report(argv[0])) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
