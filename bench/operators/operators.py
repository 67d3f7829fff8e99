#!/usr/bin/python3
"""operators.py [--threads N[,N...]] [--only TEXT]... [FAMILY...] - single operators beside ONNX Runtime.

Writes a model of one node for each case of cases.py, runs it in this build and in the real ONNX Runtime in
turns (as bench/versus does) and prints least times, their ratio and whether the results agree. Ratios below
1 are where this build is slower. --markdown puts a table by families between the marks of a file.
"""

import argparse
import collections
import math
import os
import sys
import tempfile

import numpy as np
import onnx
from onnx import helper, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(TOP, "bench", "versus"))
import cases  # noqa: E402
import report  # noqa: E402
import versus  # noqa: E402

MARKS = "<!-- operators: begin -->", "<!-- operators: end -->"

TYPES = onnx.mapping.NP_TYPE_TO_TENSOR_TYPE


def write(case, folder):
    """Writes model.onnx and test_data_set_0 of a case."""
    os.makedirs(folder + "/test_data_set_0")
    count = len(case.inputs) + len(case.constants)
    names, given, weights = [], iter(case.inputs), []
    inputs = []
    for i in range(count):
        value = case.constants.get(i)
        if value is None:
            value = next(given)
            with open("%s/test_data_set_0/input_%d.pb" % (folder, len(inputs)), "wb") as f:
                f.write(numpy_helper.from_array(value, "x%d" % i).SerializeToString())
            inputs.append(helper.make_tensor_value_info("x%d" % i, TYPES[value.dtype], value.shape))
        else:
            weights.append(numpy_helper.from_array(value, "x%d" % i))
        names.append("x%d" % i)
    first = case.inputs[1 if case.op == "Where" else 0]
    kinds = case.outtypes or [first.dtype] * case.outputs
    outputs = [helper.make_tensor_value_info("y%d" % i, TYPES[np.dtype(t)], None) for i, t in enumerate(kinds)]
    node = helper.make_node(case.op, names, [o.name for o in outputs], domain=case.domain, **case.attrs)
    graph = helper.make_graph([node], "operator", inputs, outputs, weights)
    domains = [helper.make_opsetid("", 17)] + ([helper.make_opsetid(case.domain, 1)] if case.domain else [])
    model = helper.make_model(graph, opset_imports=domains)
    model.ir_version = 8
    onnx.save(model, folder + "/model.onnx")


def measure(settings, case, folder, threads):
    """Microseconds of each library, and the difference of their results."""
    workers = []
    try:
        for name, path in settings.libs:
            workers.append(versus.Worker(settings, name, path, threads, folder, 0))
        got = [w.outputs() for w in workers]
        for w in workers:
            w.run(0.01, 3)
            w.times.clear()
        for _ in range(settings.rounds):
            for w in workers:
                versus.settle(workers)
                w.run(settings.seconds, 400)
        return [min(w.times) for w in workers], versus.difference(got[0], got[1])
    finally:
        for w in workers:
            w.close()


def chosen(settings):
    for family in settings.families or cases.FAMILIES:
        for case in cases.FAMILIES[family]():
            if not settings.only or any(text.lower() in case.name.lower() for text in settings.only):
                yield family, case


def mean(ratios):
    return math.exp(sum(math.log(r) for r in ratios) / max(1, len(ratios)))


def table(rows, most):
    """What one number of threads gave."""
    print("\n| operator | sinter, us | onnxruntime, us | ratio |\n| --- | --- | --- | --- |")
    for row in sorted(rows, key=lambda r: r.ratio):
        if row.ratio < most:
            print("| %s | %.1f | %.1f | %.2f |" % (row.name, row.times[0], row.times[1], row.ratio))
    ratios = [r.ratio for r in rows]
    print("\n%d cases, geometric mean of ratios %.2f, %d below 1" % (len(ratios), mean(ratios), sum(r < 1 for r in ratios)))


def markdown(results):
    """Families in rows, numbers of threads in columns, and below the cases that are slower."""
    heads = ["family", "cases"]
    for threads in results:
        heads += ["mean, %dT" % threads, "least, %dT" % threads]
    lines = ["| %s |" % " | ".join(heads), "| --- " * len(heads) + "|"]
    families = list(dict.fromkeys(r.family for rows in results.values() for r in rows))
    for family in families + ["all"]:
        cells = [family]
        for rows in results.values():
            ratios = [r.ratio for r in rows if family in (r.family, "all")]
            cells = cells[:1] + [str(len(ratios))] + cells[2:] + ["%.2f" % mean(ratios), "%.2f" % min(ratios)]
        lines.append("| %s |" % " | ".join(cells))
    for threads, rows in results.items():
        slower = ["%s %.2f" % (r.name, r.ratio) for r in sorted(rows, key=lambda r: r.ratio) if r.ratio < 1]
        lines += ["", "Below 1 with %d thread%s (%d): %s." % (threads, "s" if threads > 1 else "", len(slower),
                                                              ", ".join(slower) or "none")]
    return "\n".join(lines) + "\n"


Row = collections.namedtuple("Row", "family name times ratio")


def run(settings, top, threads):
    rows = []
    for n, (family, case) in enumerate(chosen(settings)):
        folder = "%s/%d-%d" % (top, threads, n)
        try:
            write(case, folder)
            times, difference = measure(settings, case, folder, threads)
        except versus.Failed as e:
            print("%-12s %-34s %s" % (family, case.name, e), flush=True)
            continue
        ratio = times[1] / times[0]
        rows.append(Row(family, case.name, times, ratio))
        note = "" if difference < 1e-5 else "   results differ by %.1e" % difference
        print("%-12s %-34s %9.1f %9.1f %6.2f%s" % (family, case.name, times[0], times[1], ratio, note), flush=True)
    table(rows, settings.below)
    return rows


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("families", nargs="*", metavar="FAMILY", help=" ".join(cases.FAMILIES))
    p.add_argument("--only", action="append", metavar="TEXT", help="cases whose name contains it")
    p.add_argument("--threads", default="1", metavar="N[,N...]")
    p.add_argument("--seconds", type=float, default=0.03, help="of one turn of a library")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--below", type=float, default=math.inf, help="list ratios below this in the table at the end")
    p.add_argument("--markdown", metavar="FILE", help="put a table by families between the marks of this file")
    p.add_argument("--build", default=os.path.join(TOP, "build"))
    p.add_argument("--lib", action="append", metavar="NAME=PATH", help="the two to compare (default: this build and the real one)")
    settings = p.parse_args()
    settings.worker = os.path.join(settings.build, "versus_worker")
    settings.no_torch, settings.quick = True, False
    settings.libs = versus.engines_of(settings)[:2]
    with tempfile.TemporaryDirectory() as top:
        results = {n: run(settings, top, n) for n in map(int, settings.threads.split(","))}
    if settings.markdown:
        report.put_between(settings.markdown, MARKS, markdown(results))


if __name__ == "__main__":
    main()
