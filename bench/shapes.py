#!/usr/bin/python3
"""shapes.py [--zoo DIR] [--build DIR] - a model with a dynamic dimension in shapes that change from run to run.

Prints three figures of BERT (bench/zoo, sequence lengths 1..512 in random order, other models on request):
  steady   cost of a run in a session that sees all lengths, as a part of that in one made for the length alone
  memory   resident bytes after so many random shapes, as a part of those of the largest shape alone
  first    what the first run of a shape costs more than its second, in ms
and fails if one of them is worse than it should be (1.05, 1.2, 2 ms).
"""

import argparse
import os
import random
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "python"))


def resident_mb():
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS")) / 1024


def once(session, feeds):
    start = time.perf_counter()
    session.run(feeds)
    return (time.perf_counter() - start) * 1e3


class Model:
    """Makes sessions, and inputs in which the dynamic dimension has a given size."""

    def __init__(self, settings):
        import numpy as np
        import sinter

        self.np, self.sinter, self.settings = np, sinter, settings

    def session(self):
        return self.sinter.Session(self.settings.model, threads=self.settings.threads)

    def feeds(self, session, length):
        np, made = self.np, {}
        for port in session.inputs:
            shape = [d if isinstance(d, int) else length if d == self.settings.dim else 1 for d in port.shape]
            made[port.name] = np.ones(shape, dtype=port.dtype)
        return made


def memory(model, lengths):
    """Resident MB of this process after one session has run all lengths. Runs in a process of its own."""
    session = model.session()
    for length in lengths:
        once(session, model.feeds(session, length))
    return resident_mb()


def in_child(settings, lengths):
    out = subprocess.run([sys.executable, os.path.abspath(__file__), "--child", ",".join(map(str, lengths)),
                          "--model", settings.model, "--dim", settings.dim, "--threads", str(settings.threads)],
                         check=True, capture_output=True, text=True, env=os.environ)
    return float(out.stdout)


def steady(model, shuffled, sample, runs):
    """For each length of the sample: cost among all others, and in a session of its own."""
    session, ratios = model.session(), []
    for length in shuffled:
        once(session, model.feeds(session, length))
    for length in sample:
        fixed = model.session()
        feeds = model.feeds(session, length)
        mixed, alone = [], []
        for i in range(runs):
            once(session, model.feeds(session, random.choice(shuffled)))  # another shape in between
            mixed.append(once(session, feeds))
            once(fixed, feeds) if i == 0 else None
            alone.append(once(fixed, feeds))
        ratios.append((length, min(mixed) / min(alone)))
        print("  length %3d: %.2f ms among others, %.2f ms alone" % (length, min(mixed), min(alone)))
    return ratios


def first_cost(model, lengths):
    session, more = model.session(), []
    once(session, model.feeds(session, max(lengths)))  # weights are packed, memory is there
    for length in lengths:
        feeds = model.feeds(session, length)
        first = once(session, feeds)
        more.append(first - min(once(session, feeds), once(session, feeds)))
    return more


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(HERE, "..", "build"))
    parser.add_argument("--model", default="", help="default: the zoo's bert_base")
    parser.add_argument("--zoo", default="/tmp/zoofull")
    parser.add_argument("--dim", default="T", help="name of the dynamic dimension")
    parser.add_argument("--shapes", type=int, default=2000, help="of the figure for memory")
    parser.add_argument("--most", type=int, default=512)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--child", default="")
    settings = parser.parse_args()
    settings.model = settings.model or os.path.join(settings.zoo, "bert_base", "model.onnx")
    os.environ.setdefault("SINTER_LIBRARY", os.path.join(settings.build, "libsinter.so"))
    model = Model(settings)
    if settings.child:
        print(memory(model, [int(n) for n in settings.child.split(",")]))
        return 0
    random.seed(0)
    lengths = list(range(1, settings.most + 1))
    sample = [n for n in (1, 7, 16, 50, 128, 333, 512) if n <= settings.most]
    ratios = steady(model, random.sample(lengths, min(40, len(lengths))) + sample, sample, settings.runs)
    more = first_cost(model, random.sample(lengths, min(60, len(lengths))))
    many = in_child(settings, [random.choice(lengths) for _ in range(settings.shapes)])
    largest = in_child(settings, [settings.most] * 3)
    worst, first = statistics.geometric_mean(r for _, r in ratios), statistics.median(more)
    print("steady: %.3f of a session made for the length (at most 1.05)" % worst)
    print("memory: %.0f MB after %d shapes, %.0f MB after length %d alone: %.3f (at most 1.2)"
          % (many, settings.shapes, largest, settings.most, many / largest))
    print("first:  %.2f ms more than the second run, at the 90th percentile %.2f (at most 2)"
          % (first, statistics.quantiles(more, n=10)[-1]))
    return 0 if worst <= 1.05 and many / largest <= 1.2 and first <= 2 else 1


if __name__ == "__main__":
    sys.exit(main())
