#!/usr/bin/env python3
"""Makes a page, and a picture for README.md, of what bench.sh has measured.

    report_html.py DIRECTORY REPORT OUT

DIRECTORY has the measurements, REPORT is the file with what report.py says of them. Writes OUT/report.html, which needs
no other file, and OUT/handover.svg. What was not measured, as etcdctl without an etcd, is left out.
"""

import html
import os
import statistics
import sys

sys.dont_write_bytecode = True
import chart  # noqa: E402
import report  # noqa: E402

COLOURS = {"rlock-fair": "fair", "etcdctl": "etcd", "redis-cli": "idiom"}
# Short enough for the end of a line; what the idiom is, a note says.
LABELS = {"rlock": "rlock", "rlock-fair": "rlock fair", "flock": "flock", "etcdctl": "etcdctl lock", "redis-cli": "redis-cli"}
IDIOM = "redis-cli: a shell script that tries SET NX PX every 0.1 s, and deletes the key by a script."
BOXES = "Line: 1 to 99 % of all runs. Box: the half in the middle. Right: the median."

PAGE_STYLE = """
body { margin: 2em auto; padding: 0 1em; max-width: 780px; font: 15px/1.5 system-ui, sans-serif; color: #1f2328; background: #fff }
figure { margin: 2em 0 }
svg { width: 100%; height: auto }
table { border-collapse: collapse }
th, td { padding: .2em .8em; border-bottom: 1px solid #d5dbe1; text-align: right }
th:first-child, td:first-child { text-align: left }
pre { overflow-x: auto; font-size: 12px; line-height: 1.35 }
@media (prefers-color-scheme: dark) {
body { color: #e6edf3; background: #0d1117 }
th, td { border-color: #30363d }
}
"""


def colour_of(label):
    return COLOURS.get(label, "rlock" if label.startswith("rlock") else "plain")


def quantiles_us(numbers_ns, *parts):
    return tuple(report.quantile(numbers_ns, part) / 1000 for part in parts)


def machine(measured):
    facts = measured.facts
    return f"{facts['processors']} processors ({facts['machine']}), load {facts['load_before']} before, {facts['date']}"


def versions(measured):
    facts = measured.facts
    names = ("version", "server", "etcd", "flock")
    return ", ".join(facts[name].split(" (", 1)[0] for name in names if facts.get(name))


def origin(measured):
    return f"{machine(measured)}. {versions(measured)}."


def handover_chart(measured, is_alone):
    """The half in the middle is shown beside each median: with few turns, a median alone promises too much."""
    points = {label: [] for label in LABELS}
    for prefix in ("crowd.", "others."):
        for size in measured.sizes(prefix):
            for label, columns in measured.samples(f"{prefix}{size}").items():
                if label in points:
                    low, high = quantiles_us(columns[0], 0.25, 0.75)
                    median = statistics.median(columns[0]) / 1000
                    points[label].append(chart.Point(size, median, min(low, median), max(high, median)))
    lines = [chart.Line(LABELS[label], colour_of(label), of_label) for label, of_label in points.items() if of_label]
    return chart.line_chart(
        "Handing a lock over, by how many wait for it",
        "waiters, all on one machine (log scale)",
        "from the end of the holder's command to the start of the next (log scale)",
        lines,
        ["Point: the median. Bar: the half in the middle.", IDIOM, origin(measured)],
        is_alone,
    )


def boxes_of(samples):
    boxes = []
    for label, columns in samples.items():
        box_us = quantiles_us(columns[0], 0.01, 0.25, 0.5, 0.75, 0.99)
        boxes.append(chart.Box(report.SHORT_NAMES[label], colour_of(label), box_us))
    return sorted(boxes, key=lambda box: box.quantiles_us[2])


def uncontended_chart(measured):
    return chart.box_chart(
        f"A lock that nothing else holds: {measured.facts['rounds']} runs of TOOL NAME true",
        "from start to exit (log scale)",
        boxes_of(measured.samples("uncontended")),
        [BOXES],
    )


def two_contenders_chart(measured):
    return chart.box_chart(
        "Two contenders: handing the lock from one to the other",
        "from the end of the holder's command to the start of the next (log scale)",
        boxes_of(measured.samples("handover")),
        [BOXES, IDIOM],
    )


def far_chart(title, y_title, medians_us):
    lines = []
    for label, of_label in medians_us.items():
        points = [chart.Point(ms, time_us) for ms, time_us in of_label.items()]
        lines.append(chart.Line(LABELS[label], colour_of(label), points))
    times = sorted(next(iter(medians_us.values())))
    lines.append(chart.Line("one round trip", "plain", [chart.Point(ms, ms * 1000) for ms in times], False))
    return chart.line_chart(title, "round trip to the server (log scale)", y_title, lines, [], x_text="{:g} ms")


def table(head, rows):
    def row(cells, tag):
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    return "\n".join(["<table>", row(head, "th"), *(row(cells, "td") for cells in rows), "</table>"])


def far_table(parts):
    """parts: {title: what Report.far_medians_us has}"""
    rows, times = [], []
    for title, medians_us in parts.items():
        for label, of_label in medians_us.items():
            times = sorted(of_label)
            shown = (f"{chart.time_text(of_label[ms])} = {of_label[ms] / ms / 1000:.1f} ×" for ms in times)
            rows.append((f"{LABELS[label]}, {title}", *shown))
    return table(("median, and as a multiple of the round trip", *(f"{ms} ms" for ms in times)), rows)


def holders_table(measured):
    rows = []
    for (kind, action), times_us in measured.holders_times_us().items():
        few, *_, most = sorted(times_us)
        shown = (f"{chart.time_text(times_us[count])} ({count} holders)" for count in (few, most))
        rows.append((f"{kind}, {action}", *shown, f"{times_us[most] / times_us[few]:.2f}"))
    return table(("server time of one holder more", "few", "most", "ratio"), rows)


def page(measured, text):
    far = {name: measured.far_medians_us(name) for name in ("uncontended", "handover")}
    figures = [
        handover_chart(measured, False),
        uncontended_chart(measured),
        two_contenders_chart(measured),
        far_chart("A lock that nothing else holds, on a server far away", "from start to exit (log scale)", far["uncontended"]),
        far_chart(
            "Two contenders, with a server far away",
            "from the end of the holder's command to the start of the next (log scale)",
            far["handover"],
        ),
    ]
    tables = [
        far_table({"uncontended": far["uncontended"], "hand-over": far["handover"]}),
        holders_table(measured),
    ]
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        '<head><meta charset="utf-8"/><title>rlock: benchmark</title>',
        '<meta name="viewport" content="width=device-width"/><meta name="color-scheme" content="light dark"/>',
        f"<style>{PAGE_STYLE}{chart.STYLE}</style></head>",
        "<body><h1>rlock beside what one would otherwise use</h1>",
        f"<p>{html.escape(origin(measured))} Times are good for that machine and that hour; their ratios carry over better.</p>",
        *(f"<figure>{figure}</figure>" for figure in figures),
        *(f"<figure>{each}</figure>" for each in tables),
        f"<h2>All numbers</h2><pre>{html.escape(text)}</pre>",
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def main(argv):
    if len(argv) != 3:
        print(__doc__, file=sys.stderr)
        return 64
    directory, text_path, out = argv
    measured = report.Report(directory)
    with open(text_path, encoding="utf-8") as file:
        text = file.read()
    pages = {"report.html": page(measured, text), "handover.svg": handover_chart(measured, True) + "\n"}
    for name, content in pages.items():
        with open(os.path.join(out, name), "w", encoding="utf-8") as file:
            file.write(content)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
