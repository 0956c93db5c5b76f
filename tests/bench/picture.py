#!/usr/bin/env python3
"""Makes the picture for README.md of what bench.sh has measured: how long a hand-over takes, by how many wait.

    picture.py DIRECTORY FILE

DIRECTORY has the measurements, FILE becomes an SVG of lines on two logarithmic scales. What was not measured, as etcdctl
without an etcd, is left out. Each line has its label at its end, so that the picture needs neither a legend nor colours to be
read. Colours are those of a tool, by its class in STYLE, in light and in dark.
"""

import html
import math
import statistics
import sys

sys.dont_write_bytecode = True
import report  # noqa: E402

# Label, class and colours of each tool. Not by var(): programs that make a picture of an SVG do not know it.
TOOLS = {
    "rlock": ("rlock", "rlock", "#0b5fd0", "#79b8ff"),
    "rlock-fair": ("rlock fair", "fair", "#0b7a6b", "#4fd6bc"),
    "flock": ("flock", "plain", "#59636e", "#a9b4c0"),
    "etcdctl": ("etcdctl lock", "etcd", "#ad5700", "#ffab66"),
    "redis-cli": ("redis-cli", "idiom", "#b01f77", "#ff92d2"),
}
IDIOM = "redis-cli: a shell script that tries SET NX PX every 0.1 s, and deletes the key by a script."


def _colours(paper, ink, grid, scheme):
    rules = [f".paper {{ fill: {paper} }}", f".chart text {{ fill: {ink} }}", f".chart .grid {{ stroke: {grid} }}"]
    for _, name, *colours in TOOLS.values():
        rules.append(f".chart .{name} {{ stroke: {colours[scheme]}; fill: {colours[scheme]} }}")
        rules.append(f".chart text.{name} {{ stroke: {paper} }}")
    return "\n".join(rules)


STYLE = f"""
.chart text {{ font: 13px system-ui, sans-serif }}
.chart text.title {{ font-size: 16px; font-weight: 600 }}
.chart text.small {{ font-size: 12px }}
.chart text.label {{ font-weight: 600; stroke-width: 4; stroke-linejoin: round; paint-order: stroke }}
.chart polyline.line {{ fill: none; stroke-width: 2 }}
.chart .bar {{ stroke-width: 1.2 }}
{_colours("#ffffff", "#1f2328", "#d5dbe1", 0)}
@media (prefers-color-scheme: dark) {{
{_colours("#0d1117", "#e6edf3", "#30363d", 1)}
}}
"""

WIDTH, HEIGHT = 760, 448
LEFT, RIGHT, TOP, BOTTOM = 74, 630, 62, 342
LINE_PX = 17  # from one label to the next


def time_text(time_us):
    """Three digits are more than a measurement is good for."""
    for unit, size_us in (("s", 1e6), ("ms", 1e3), ("µs", 1)):
        if time_us >= size_us:
            break
    return f"{float(f'{time_us / size_us:.3g}'):g} {unit}"


def element(name, content=None, **attributes):
    """Attributes without their trailing underscore, since class is a word of Python's."""
    words = []
    for key, value in attributes.items():
        text = f"{value:.1f}" if isinstance(value, float) else str(value)
        words.append(f' {key.rstrip("_").replace("_", "-")}="{html.escape(text)}"')
    return f"<{name}{''.join(words)}/>" if content is None else f"<{name}{''.join(words)}>{content}</{name}>"


def text(x, y, words, class_="small", anchor="start"):
    return element("text", html.escape(words), x=float(x), y=float(y), class_=class_, text_anchor=anchor)


def line(x1, y1, x2, y2, class_="grid"):
    return element("line", x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2), class_=class_)


def log_scale(low, high, low_px, high_px):
    """Where on a picture a value is."""
    px_per_decade = (high_px - low_px) / math.log10(high / low)
    return lambda value: low_px + math.log10(value / low) * px_per_decade


def ticks_around(values):
    """From one of 1, 2 and 5 times a power of ten to another, with all values between."""
    steps = [digit * 10.0**power for power in range(-3, 13) for digit in (1, 2, 5)]
    first = max(step for step in steps if step <= min(values))
    last = min(step for step in steps if step > max(values))
    return [step for step in steps if first <= step <= last]


def end_labels(ends):
    """ends: (x, y, tool) of each line. Where several end at the same x, one label is below the other."""
    parts, above = [], {}
    for x, y, tool in sorted(ends):
        label, name, *_ = TOOLS[tool]
        above[x] = max(y + 4, above.get(x, 0) + LINE_PX)
        parts.append(text(x + 9, above[x], label, f"label {name}"))
    return parts


def chart(points, notes):
    """points: {tool: [(waiters, low, median, high), ...]}, in microseconds."""
    xs = sorted({point[0] for line in points.values() for point in line})
    ticks = ticks_around([time_us for line in points.values() for point in line for time_us in point[1:]])
    across = log_scale(xs[0], max(xs[-1], xs[0] + 1), LEFT, RIGHT)
    up = log_scale(ticks[0], ticks[-1], BOTTOM, TOP)
    parts = [
        element("title", "Handing a lock over, by how many wait for it"),
        element("style", STYLE),
        element("rect", width=WIDTH, height=HEIGHT, class_="paper"),
        text(16, 26, "Handing a lock over, by how many wait for it", "title"),
        text(16, TOP - 14, "from the end of the holder's command to the start of the next (log scale)"),
        text((LEFT + RIGHT) / 2, BOTTOM + 39, "waiters, all on one machine (log scale)", anchor="middle"),
    ]
    for tick in ticks:
        parts.append(line(LEFT, up(tick), RIGHT, up(tick)))
        # Where there are many of them, the powers of ten say enough.
        if len(ticks) <= 8 or math.isclose(math.log10(tick) % 1, 0):
            parts.append(text(LEFT - 8, up(tick) + 4, time_text(tick), anchor="end"))
    for x in xs:
        parts.append(line(across(x), TOP, across(x), BOTTOM + 4))
        parts.append(text(across(x), BOTTOM + 19, f"{x:g}", anchor="middle"))
    for tool, of_tool in points.items():
        label, name, *_ = TOOLS[tool]
        path = " ".join(f"{across(x):.1f},{up(median):.1f}" for x, _, median, _ in of_tool)
        parts.append(element("polyline", points=path, class_=f"line {name}"))
        for x, low, median, high in of_tool:
            parts.append(line(across(x), up(low), across(x), up(high), f"bar {name}"))
            words = element("title", html.escape(f"{label}, {x:g}: {time_text(median)}"))
            parts.append(element("circle", words, cx=across(x), cy=up(median), r=3.5, class_=name))
    parts += end_labels([(across(of_tool[-1][0]), up(of_tool[-1][2]), tool) for tool, of_tool in points.items()])
    parts += [text(16, HEIGHT - 12 - 16 * i, note) for i, note in enumerate(reversed(notes))]
    size = {"xmlns": "http://www.w3.org/2000/svg", "viewBox": f"0 0 {WIDTH} {HEIGHT}"}
    return element("svg", "\n" + "\n".join(parts) + "\n", **size, class_="chart", role="img")


def origin(facts):
    names = ("version", "server", "etcd", "flock")
    versions = ", ".join(facts[name].split(" (", 1)[0] for name in names if facts.get(name))
    machine = f"{facts['processors']} processors ({facts['machine']}), load {facts['load_before']} before, {facts['date']}"
    return f"{machine}. {versions}."


def main(argv):
    measured = report.Report(argv[0])
    points = {}
    for prefix in ("crowd.", "others."):
        for size in measured.sizes(prefix):
            for tool, columns in measured.samples(f"{prefix}{size}").items():
                if tool in TOOLS:
                    # With few turns, a median alone promises too much.
                    low, high = (report.quantile(columns[0], part) / 1000 for part in (0.25, 0.75))
                    median = statistics.median(columns[0]) / 1000
                    points.setdefault(tool, []).append((size, min(low, median), median, max(high, median)))
    notes = ["Point: the median. Bar: the half in the middle.", IDIOM, origin(measured.facts)]
    with open(argv[1], "w", encoding="utf-8") as file:
        file.write(chart(points, notes) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
