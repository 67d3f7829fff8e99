#!/usr/bin/python3
"""shapes.py [MODEL] [--zoo DIR] [--build DIR] - a model with a dynamic dimension in shapes that change all the time.

Prints three figures of a Transformer of the zoo (bert_base, minilm_l6) or any other model, for lengths 1..512 in
random order:
  steady   cost of a run in a session that sees all lengths, as a part of that in a session that sees this length alone,
           and of that of a model that has the length as a number, for which weights may be packed otherwise; for
           sessions that see the shortest length first, one in between, and the longest. The least of many runs in turns; on a machine that does other things meanwhile, single
           lengths come out 3 % apart, and 5 % with fewer than ten runs of each
  memory   resident bytes after so many random shapes, as a part of those of the largest shape alone
  first    what the first run of a shape costs more than its second, in ms. Single runs differ from each other, and a
           run that follows one of another length finds other things in the caches: so beside it stand the same
           difference for lengths that the session knows, and what the second run costs more than the third.
and fails if one of them is worse than it should be (1.05 at each length, and of models of one length in the mean, 1.2, 2 ms in the median, 2 ms over lengths that
are known at the 90th percentile). Costs are time on the clock; --cpu takes the processors' time, for machines that do other
things meanwhile.
"""

import argparse
import collections
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "python"))

# What is measured where nothing is said: numbers of random shapes for memory, of runs for each length of the steady
# sample, of new lengths for the first runs. The large model takes some minutes with these.
DEFAULTS = {"minilm_l6": (2000, 7, 60), "bert_base": (200, 3, 24)}
SAMPLES = {"minilm_l6": (1, 7, 16, 48, 64, 96, 128, 256, 333, 512), "bert_base": (1, 16, 48, 64, 96, 128, 256, 512)}


def resident_mb():
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS")) / 1024


clock = time.perf_counter


def once(session, feeds):
    start = clock()
    session.run(feeds)
    return (clock() - start) * 1e3


class Model:
    """Makes sessions, and inputs in which the dynamic dimension has a given size."""

    def __init__(self, settings):
        import numpy as np
        import sinter

        self.np, self.sinter, self.settings = np, sinter, settings

    def session(self):
        return self.sinter.Session(self.settings.model, threads=self.settings.threads)

    def fixed(self, length):
        """A session of a copy of the model in whose inputs the dimension has this size and no other."""
        import onnx

        model = onnx.load(self.settings.model)
        for port in model.graph.input:
            for dim in port.type.tensor_type.shape.dim:
                if dim.dim_param == self.settings.dim:
                    dim.dim_value = length
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.onnx")
            onnx.save(model, path)
            return self.sinter.Session(path, threads=self.settings.threads)  # which keeps the file open

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
    out = subprocess.run([sys.executable, os.path.abspath(__file__), settings.model, "--child",
                          ",".join(map(str, lengths)), "--dim", settings.dim, "--threads", str(settings.threads)],
                         check=True, capture_output=True, text=True, env=os.environ)
    return float(out.stdout)


STEADY_SECONDS, MOST_RUNS = 2.5, 60  # of a length, where the number of runs that is asked for takes less


def steady(model, shuffled, sample, runs):
    """For each length of the sample: cost among all others, as a part of that in a session of its own and of that of a
    model of its own. In turns, so that what else the machine does meets all; short lengths, of which a single run says
    little, as often as time allows."""
    session, ratios = model.session(), []
    for length in shuffled:
        once(session, model.feeds(session, length))
    for length in sample:
        others = [model.session(), model.fixed(length)]
        feeds = model.feeds(session, length)
        mixed, alone, start = [], ([], []), time.perf_counter()
        while len(mixed) < runs or (len(mixed) < MOST_RUNS and time.perf_counter() - start < STEADY_SECONDS):
            once(session, model.feeds(session, random.choice(shuffled)))  # another shape in between
            mixed.append(once(session, feeds))
            for other, times in zip(others, alone):
                once(other, feeds)  # its weights are in the caches as much as the first's
                times.append(once(other, feeds))
        ratios.append([min(mixed) / min(times) for times in alone])
        print("  length %3d: %.2f ms among others, %.2f alone: %.3f; %.2f as a model of this length: %.3f"
              % (length, min(mixed), min(alone[0]), ratios[-1][0], min(alone[1]), ratios[-1][1]), flush=True)
    return zip(*ratios)


First = collections.namedtuple("First", "new known noise")


def first_cost(model, lengths):
    """Differences of runs in a session that begins with the shortest length: of each new length the first two, then of
    one that it knows, and the second and third of the new one."""
    session, result, seen = model.session(), First([], [], []), [1]
    for _ in range(3):
        once(session, model.feeds(session, 1))  # weights are packed
    for length in lengths:
        feeds = model.feeds(session, length)
        times = [once(session, feeds) for _ in range(3)]
        result.new.append(times[0] - times[1])
        result.noise.append(times[1] - times[2])
        feeds = model.feeds(session, random.choice(seen))
        result.known.append(once(session, feeds) - once(session, feeds))
        seen.append(length)
    return result


def tenth(values):
    """The median and the 90th percentile."""
    return statistics.median(values), statistics.quantiles(values, n=10)[-1]


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="minilm_l6", help="of the zoo, or a file")
    parser.add_argument("--build", default=os.path.join(HERE, "..", "build"))
    parser.add_argument("--zoo", default=os.path.join(HERE, "..", "build/zoo/full-17"))
    parser.add_argument("--dim", default="T", help="name of the dynamic dimension")
    parser.add_argument("--shapes", type=int, help="random shapes of the figure for memory")
    parser.add_argument("--most", type=int, default=512)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--runs", type=int, help="of each length of the figure for steady cost")
    parser.add_argument("--lengths", help="of the figure for steady cost, as 1,64,96")
    parser.add_argument("--new", type=int, help="lengths of the figure for first runs")
    parser.add_argument("--cpu", action="store_true", help="time of the processors, not of the clock")
    parser.add_argument("--child", default="", help=argparse.SUPPRESS)
    settings = parser.parse_args()
    shapes, runs, new = DEFAULTS.get(settings.model, DEFAULTS["minilm_l6"])
    settings.shapes = shapes if settings.shapes is None else settings.shapes
    settings.runs = runs if settings.runs is None else settings.runs
    settings.new = new if settings.new is None else settings.new
    settings.sample = [int(n) for n in settings.lengths.split(",")] if settings.lengths else [
        n for n in SAMPLES.get(settings.model, SAMPLES["minilm_l6"]) if n <= settings.most]
    if not os.path.isfile(settings.model):
        settings.model = os.path.join(settings.zoo, settings.model, "model.onnx")
    return settings


def main():
    global clock
    settings = parse()
    clock = time.process_time if settings.cpu else time.perf_counter
    os.environ.setdefault("SINTER_LIBRARY", os.path.join(settings.build, "libsinter.so"))
    model = Model(settings)
    if settings.child:
        print(memory(model, [int(n) for n in settings.child.split(",")]))
        return 0
    random.seed(0)
    lengths, good = list(range(1, settings.most + 1)), True
    if settings.runs:
        shuffled = random.sample(lengths, min(40, len(lengths))) + settings.sample
        for first in (1, settings.most // 5, settings.most):
            alone, fixed = steady(model, [first] + shuffled, settings.sample, settings.runs)
            mean = statistics.geometric_mean(fixed)
            good &= max(alone) <= 1.05 and mean <= 1.05
            print("steady: %.3f of a session for the length, %.3f at worst; %.3f of a model of the length, %.3f at worst; "
                  "length %d came first (at most 1.05)"
                  % (statistics.geometric_mean(alone), max(alone), mean, max(fixed), first), flush=True)
    if settings.new:
        first = first_cost(model, random.sample(lengths, min(settings.new, len(lengths))))
        new, known, noise = map(tenth, first)
        good &= new[0] <= 2 and new[1] - known[1] <= 2
        print("first:  a new length %+.2f ms, at the 90th percentile %+.2f; a known one %+.2f, %+.2f; "
              "second over third run %+.2f, %+.2f (at most 2)" % (*new, *known, *noise), flush=True)
    if settings.shapes:
        many = in_child(settings, [random.choice(lengths) for _ in range(settings.shapes)])
        largest = in_child(settings, [settings.most] * 3)
        good &= many / largest <= 1.2
        print("memory: %.0f MB after %d shapes, %.0f MB after length %d alone: %.3f (at most 1.2)"
              % (many, settings.shapes, largest, settings.most, many / largest))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
