"""report.py - figures of versus.py as lines, Markdown and a page with bars."""

import html as escape
import math
import statistics

BEGIN, END = "<!-- versus: begin -->", "<!-- versus: end -->"


def machine():
    """The processor's name, as the system tells it."""
    try:
        with open("/proc/cpuinfo") as f:
            return next(line.split(":", 1)[1].strip() for line in f if line.startswith("model name"))
    except (OSError, StopIteration):
        return "unknown processor"


def duration(us):
    if us < 100:
        return "%.2f us" % us
    return "%.1f us" % us if us < 1000 else "%.2f ms" % (us / 1e3) if us < 1e5 else "%.0f ms" % (us / 1e3)


def good(figures, name):
    f = figures.get(name)
    return f if f and "failed" not in f else None


def ratio(figures, first, other, key="min_us"):
    """How many times quicker `first` is; None where one of them has no figure."""
    a, b = good(figures, first), good(figures, other)
    return b[key] / a[key] if a and b and a[key] > 0 else None


def of_peak(data, row, threads, name):
    f = good(row[str(threads)], name)
    if not f or not row["macs"]:
        return None
    return 2 * row["macs"] / f["min_us"] / 1e3 / data["peaks"][str(threads)]["gflops"]


def line(data, label, row, threads):
    figures = row[str(threads)]
    first, *others = data["engines"]
    parts = ["%-26s %dT" % (label, threads)]
    for name in data["engines"]:
        f = good(figures, name)
        if not f:
            parts.append("%s: %s" % (name, figures.get(name, {}).get("failed", "-")[:60]))
            continue
        share = of_peak(data, row, threads, name)
        text = "%s %s/%s" % (name, duration(f["min_us"]), duration(f["median_us"]))
        text += " %.0f%%" % (100 * share) if share else ""
        text += " load %.0f+%.0f ms %.0f MB" % (f["session_ms"], f["first_ms"], f["peak_mb"])
        text += " diff %.0e" % f["difference"]
        parts.append(text)
    for name in others:
        r = ratio(figures, first, name)
        parts.append("x%.2f" % r if r else "x-")
    return " | ".join(parts)


def geometric(values):
    values = [v for v in values if v]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def means(data, table):
    """One line with the geometric means of all ratios."""
    first, *others = data["engines"]
    parts = []
    for t in data["threads"]:
        for name in others:
            m = geometric(ratio(row[str(t)], first, name) for row in table.values())
            l = geometric(ratio(row[str(t)], first, name, "session_ms") for row in table.values())
            b = geometric(ratio(row[str(t)], first, name, "peak_mb") for row in table.values())
            if m:
                parts.append("%s at %d thread%s: %.2f (load %.1f, memory %.2f)" % (name, t, "s"[t == 1 :], m, l, b))
    return "geometric means against " + "; ".join(parts)


def spread(data, label, threads, other):
    """The ratio of every run of the table, sorted."""
    first = data["engines"][0]
    found = [ratio(table[label][str(threads)], first, other) for table in data["runs"]]
    return sorted(r for r in found if r)


def cell(data, label, threads, name):
    """Least time and share of peak in the middle run."""
    rows = [t[label] for t in data["runs"] if good(t[label][str(threads)], name)]
    if not rows:
        return "-"
    best = sorted(rows, key=lambda r: r[str(threads)][name]["min_us"])[len(rows) // 2]
    share = of_peak(data, best, threads, name)
    return duration(best[str(threads)][name]["min_us"]) + (" (%.0f %%)" % (100 * share) if share else "")


def ratio_cell(found):
    if not found:
        return "-"
    middle = statistics.median(found)
    return "**%.2f**" % middle + (" (%.2f-%.2f)" % (found[0], found[-1]) if len(found) > 1 else "")


def figure(data, label, threads, name, key):
    found = [f[key] for t in data["runs"] if (f := good(t[label][str(threads)], name))]
    return statistics.median(found) if found else None


def pair(a, b, form):
    return "%s / %s" % (form % a if a is not None else "-", form % b if b is not None else "-")


def times_table(data):
    first, *others = data["engines"]
    head = ["model"]
    for t in data["threads"]:
        head += ["%s, %dT" % (n, t) for n in data["engines"]] + ["x %s, %dT" % (n, t) for n in others]
    rows = [head, ["---"] * len(head)]
    for label in data["runs"][0]:
        row = [label]
        for t in data["threads"]:
            row += [cell(data, label, t, n) for n in data["engines"]]
            row += [ratio_cell(spread(data, label, t, n)) for n in others]
        rows.append(row)
    return rows


def load_table(data):
    first = data["engines"][0]
    other = data["engines"][1] if len(data["engines"]) > 1 else first
    t = data["threads"][0]
    rows = [["model", "session, ms", "session and first run, ms", "peak memory, MB", "difference from PyTorch"], ["---"] * 5]
    for label in data["runs"][0]:
        get = lambda n, key: figure(data, label, t, n, key)
        total = lambda n: get(n, "session_ms") + get(n, "first_ms") if get(n, "session_ms") is not None else None
        rows.append([
            label, pair(get(first, "session_ms"), get(other, "session_ms"), "%.1f"), pair(total(first), total(other), "%.1f"),
            pair(get(first, "peak_mb"), get(other, "peak_mb"), "%.0f"),
            pair(get(first, "difference"), get(other, "difference"), "%.0e"),
        ])
    return rows


def markdown(data):
    first, *others = data["engines"]
    text = ["%s; peak of this machine:" % data["machine"]]
    for t, p in data["peaks"].items():
        text.append("%s thread%s %.0f GFLOP/s (%s), %.0f GB/s;" % (t, "s"[t == "1" :], p["gflops"], p["isa"], p["gbytes"]))
    lines = [" ".join(text)[:-1] + ".", ""]
    lines.append("Least time (share of peak), and how many times quicker %s is%s:" % (
        first, ", the middle of %d runs with the smallest and largest" % len(data["runs"]) if len(data["runs"]) > 1 else ""))
    lines += ["", *("| " + " | ".join(r) + " |" for r in times_table(data)), ""]
    lines += ["- %s." % means(data, table) for table in data["runs"]]
    if others:
        lines += ["", "Loading and memory at %d thread, %s / %s:" % (data["threads"][0], first, others[0]), ""]
        lines += ["| " + " | ".join(r) + " |" for r in load_table(data)]
    return "\n".join(lines) + "\n"


def put_between(path, marks, text):
    """Replaces what stands between two marks of a file; what comes after the second one stays."""
    with open(path) as f:
        before, first, rest = f.read().partition(marks[0])
    _, second, after = rest.partition(marks[1])
    if not first or not second:
        raise SystemExit("%s has no marks %s" % (path, " and ".join(marks)))
    with open(path, "w") as f:
        f.write(before + first + "\n" + text + second + after)


def write_markdown(data, path):
    put_between(path, (BEGIN, END), markdown(data))


# ---- The page ----

COLOURS = ["#2f6db3", "#b8860b", "#8a8f98", "#5a9367"]
STYLE = """body{font:14px/1.45 system-ui,sans-serif;margin:2em auto;max-width:1100px;padding:0 1em;color:#222}
h1{font-size:20px}h2{font-size:16px;margin-top:2em}svg text{font:12px system-ui,sans-serif;fill:#333}
table{border-collapse:collapse;font-size:12px}td,th{border-bottom:1px solid #e4e4e4;padding:2px 7px;text-align:right}
td:first-child,th:first-child{text-align:left}"""


def bars(data, threads):
    """One group of bars for each model: how many times quicker than the second engine each one is."""
    engines = data["engines"]
    base = engines[1] if len(engines) > 1 else engines[0]
    shown = [n for n in engines if n != base]
    table = data["runs"][0]
    widest = max([ratio(r[str(threads)], n, base) or 0 for r in table.values() for n in shown] + [1.0]) * 1.1
    left, width, bar, gap = 190, 640, 13, 8
    group = bar * len(shown) + gap
    height = group * len(table) + 40
    scale = width / min(widest, 12)
    out = ['<svg width="%d" height="%d" viewBox="0 0 %d %d">' % (left + width + 230, height, left + width + 230, height)]
    for i, (label, row) in enumerate(table.items()):
        y = 20 + i * group
        out.append('<text x="%d" y="%d" text-anchor="end">%s</text>' % (left - 8, y + group / 2, escape.escape(label)))
        for j, name in enumerate(shown):
            r = ratio(row[str(threads)], name, base)
            top = y + j * bar
            if not r:
                out.append('<text x="%d" y="%d">%s: no figure</text>' % (left + 4, top + 11, escape.escape(name)))
                continue
            w = min(r * scale, width)
            colour = COLOURS[engines.index(name) % len(COLOURS)]
            own, other = good(row[str(threads)], name), good(row[str(threads)], base)
            out.append('<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>' % (left, top, w, bar - 2, colour))
            out.append('<text x="%.1f" y="%d">x %.2f: %s, not %s</text>' % (
                left + w + 5, top + 10, r, duration(own["min_us"]), duration(other["min_us"])))
    one = left + scale
    out.append('<path d="M%.1f 10V%d" stroke="#b33" stroke-dasharray="4 3"/>' % (one, height - 15))
    out.append('<text x="%.1f" y="%d" text-anchor="middle">%s = 1</text></svg>' % (one, height - 2, escape.escape(base)))
    return "\n".join(out)


def html_table(rows):
    out = ["<table>"]
    for i, row in enumerate(r for r in rows if r[0] != "---"):
        tag = "th" if i == 0 else "td"
        cells = "".join("<%s>%s</%s>" % (tag, escape.escape(c.replace("**", "")), tag) for c in row)
        out.append("<tr>%s</tr>" % cells)
    return "\n".join([*out, "</table>"])


def html(data):
    parts = ["<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Engines side by side</title>",
             "<style>%s</style></head><body><h1>Engines side by side</h1>" % STYLE,
             "<p>%s</p>" % escape.escape(data["machine"])]
    for table in data["runs"]:
        parts.append("<p>%s</p>" % escape.escape(means(data, table)))
    for t in data["threads"]:
        legend = " ".join('<b style="color:%s">%s</b>' % (COLOURS[i % len(COLOURS)], escape.escape(n))
                          for i, n in enumerate(data["engines"]))
        parts.append("<h2>%d thread%s</h2><p>Times quicker than %s (longer is better), with the least time of both: %s</p>"
                     % (t, "s"[t == 1 :], escape.escape(data["engines"][min(1, len(data["engines"]) - 1)]), legend))
        parts.append(bars(data, t))
    parts += ["<h2>All figures</h2>", html_table(times_table(data)), "<h2>Loading and memory</h2>", html_table(load_table(data))]
    return "\n".join(parts) + "</body></html>\n"
