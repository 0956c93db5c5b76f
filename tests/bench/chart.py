"""Charts as SVG: lines on two logarithmic scales, and boxes of quantiles on one. What they show is report_html.py's.

Colours are those of a tool, by its class in STYLE, in light and in dark. Each line has its label at its end, so that a
chart needs neither a legend nor colours to be read.
"""

import dataclasses
import html
import math

# Not by var(): programs that make a picture of an SVG do not know it.
COLOURS = {
    "rlock": ("#0b5fd0", "#79b8ff"),
    "fair": ("#0b7a6b", "#4fd6bc"),
    "plain": ("#59636e", "#a9b4c0"),
    "etcd": ("#ad5700", "#ffab66"),
    "idiom": ("#b01f77", "#ff92d2"),
}
PAPER, INK, GRID = ("#ffffff", "#0d1117"), ("#1f2328", "#e6edf3"), ("#d5dbe1", "#30363d")


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
.chart .box {{ fill-opacity: .25; stroke-width: 1.2 }}
.chart .median {{ stroke-width: 3 }}
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
    low_us: float = None  # of the bar around it
    high_us: float = None


@dataclasses.dataclass
class Line:
    label: str
    colour: str  # a key of COLOURS
    points: list
    is_measured: bool = True  # what is not has neither points nor a whole line


@dataclasses.dataclass
class Box:
    label: str
    colour: str
    quantiles_us: tuple  # the ends of the line, those of the box, and the median between


def picture(height, title, parts, notes, is_alone):
    """An SVG; in a page, STYLE is in its head."""
    parts = [
        element("title", html.escape(title)),
        *([element("style", STYLE)] if is_alone else []),
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


def line_chart(title, x_title, y_title, lines, notes, is_alone=False, x_text="{:g}"):
    """Both scales are logarithmic; each value of x has a tick, as there are few."""
    height, left_px, top_px = 400 + 16 * len(notes), 74, 62
    right_px = WIDTH - 40 - TEXT_PX * max(len(line.label) for line in lines)
    bottom_px = height - 58 - 16 * len(notes)
    points = [point for line in lines for point in line.points]
    ends_us = [end for p in points for end in (p.y_us, p.low_us, p.high_us) if end is not None]
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
        parts.append(text(across.at(x), bottom_px + 19, x_text.format(x), anchor="middle"))
    parts.append(text(16, top_px - 14, y_title))
    parts.append(text((left_px + right_px) / 2, bottom_px + 39, x_title, anchor="middle"))
    lines_px, bars_px = [], []
    for line in lines:
        line_px = [(across.at(p.x), up.at(p.y_us)) for p in line.points]
        lines_px.append(line_px)
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in line_px)
        dashes = {} if line.is_measured else {"stroke_dasharray": "2 4"}
        parts.append(element("polyline", points=path, class_=f"line {line.colour}", **dashes))
        for point, (x, y) in zip(line.points, line_px) if line.is_measured else ():
            if point.low_us is not None:
                low_px, high_px = up.at(point.low_us), up.at(point.high_us)
                bars_px.append([(x, low_px), (x, high_px)])
                parts.append(element("line", x1=x, y1=low_px, x2=x, y2=high_px, class_=f"bar {line.colour}"))
            words = element("title", html.escape(f"{line.label}, {x_text.format(point.x)}: {time_text(point.y_us)}"))
            parts.append(element("circle", words, cx=x, cy=y, r=3.5, class_=line.colour))
    parts += _end_labels(lines, lines_px, bars_px, right_px, bottom_px)
    return picture(height, title, parts, notes, is_alone)


def box_chart(title, x_title, boxes, notes, is_alone=False):
    """A row for each box, the label to its left and the median to its right."""
    row_px, top_px = 28, 46
    left_px, right_px = 26 + TEXT_PX * max(len(box.label) for box in boxes), WIDTH - 84
    bottom_px = top_px + row_px * len(boxes)
    height = bottom_px + 58 + 16 * len(notes)
    ticks, labelled = ticks_around([us for box in boxes for us in box.quantiles_us])
    across = LogScale(ticks[0], ticks[-1], left_px, right_px)
    parts = [text((left_px + right_px) / 2, bottom_px + 37, x_title, anchor="middle")]
    for tick in ticks:
        parts.append(grid_line(across.at(tick), top_px, across.at(tick), bottom_px + 4))
        if tick in labelled:
            parts.append(text(across.at(tick), bottom_px + 19, time_text(tick), anchor="middle"))
    for i, box in enumerate(boxes):
        y = top_px + row_px * (i + 0.5)
        low, begin, median, end, high = (across.at(us) for us in box.quantiles_us)
        parts += [
            text(16, y + 4, box.label, f"label {box.colour}"),
            element("line", x1=low, y1=y, x2=high, y2=y, class_=f"bar {box.colour}"),
            element("rect", x=begin, y=y - 8, width=max(end - begin, 1.0), height=16, class_=f"box {box.colour}"),
            element("line", x1=median, y1=y - 8, x2=median, y2=y + 8, class_=f"median {box.colour}"),
            text(right_px + 12, y + 4, time_text(box.quantiles_us[2])),
        ]
    return picture(height, title, parts, notes, is_alone)
