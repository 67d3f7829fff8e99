#!/usr/bin/python3
"""versus.py [--lib NAME=PATH]... [MODEL[:CASE]...] - engines side by side on the zoo's models.

Each engine runs in a process of its own, which loads a model once for each number of threads and then
takes turns with the others, so that all see the same machine. A PATH is a libonnxruntime.so.1, the word
"sinter" (libsinter by its own interface) or "torch" (PyTorch eager). The default compares this build
with the real ONNX Runtime, which npm brings, and PyTorch. The second engine is what others are held
against. Outputs are compared with PyTorch's, and engines with each other.
"""

import argparse
import glob
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
import report  # noqa: E402

# The cases that are measured when none is named, and those of a quick look.
ALL = (
    "resnet18 resnet50:b1 resnet50:b8 vgg16 yolov8n unet super_res densenet121 inception_v3 mobilenet_v2 "
    "mobilenet_v3_large efficientnet_b0 shufflenet_v2 squeezenet1_1 convnext_tiny swin_t vit_b_16 "
    "deeplabv3_mobilenet bert_base:s128 bert_base:s16 bert_base:b8 minilm_l6:s128 gpt2:dec128 gpt2:prefill64 "
    "lstm_stream:t1 lstm_stream:t50 lstm_bi gru_stream:t50 ssdlite320 fasterrcnn_mobilenet mlp_tiny mlp_mnist "
    "random_forest:r1 random_forest:r1000"
).split()
QUICK = "mlp_tiny mlp_mnist resnet18 mobilenet_v2 minilm_l6:s128 lstm_stream:t50 random_forest:r1000".split()
TYPES = {1: np.float32, 2: np.uint8, 3: np.int8, 6: np.int32, 7: np.int64, 9: np.bool_, 10: np.float16, 11: np.float64}


class Failed(Exception):
    pass


class Worker:
    """An engine's process, with a model loaded."""

    def __init__(self, settings, name, path, threads, folder, data_set):
        if path == "torch":
            command = [os.path.join(HERE, "torch_worker.py"), str(threads), folder, str(data_set)]
        else:
            command = [settings.worker, path, str(threads), folder, str(data_set)]
        environment = dict(os.environ, OMP_NUM_THREADS=str(threads), OPENBLAS_NUM_THREADS=str(threads))
        self.name = name
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env=environment,
        )
        numbers = self.answer("ready")
        self.library_ms, self.session_ms, self.first_ms, self.loaded_kb = map(float, numbers)
        self.times = []

    def answer(self, word):
        line = self.process.stdout.readline()
        parts = line.split()
        if not parts or parts[0] != word:
            code = self.process.poll()
            raise Failed("%s: %s" % (self.name, line.strip() or "ended with code %s" % code))
        return parts[1:]

    def tell(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def run(self, seconds, most=1 << 16):
        self.tell("run %g %d" % (seconds, most))
        self.times += [float(t) for t in self.answer("times")]

    def outputs(self):
        with tempfile.TemporaryDirectory() as folder:
            self.tell("save " + folder)
            found = []
            while (line := self.process.stdout.readline().split()) and line[0] == "output":
                dims = [int(d) for d in line[3:]]
                data = np.fromfile("%s/%s.bin" % (folder, line[1]), TYPES[int(line[2])])
                found.append(data.reshape(dims))
            if line != ["end"]:
                raise Failed("%s: no outputs" % self.name)
            return found

    def outputs_if_tensors(self):
        """The outputs; none if one of them is no tensor, which ends the process."""
        try:
            return self.outputs()
        except Failed:
            return []

    def peak_mb(self):
        self.tell("peak")
        return float(self.answer("peak")[0]) / 1024

    def cpu_ns(self):
        """How long the process's threads have run."""
        used = 0
        for path in glob.glob("/proc/%d/task/*/schedstat" % self.process.pid):
            try:
                with open(path) as f:
                    used += int(f.read().split()[0])
            except OSError:  # the thread has ended
                pass
        return used

    def close(self):
        try:
            self.process.stdin.close()
            self.process.wait(20)
        except (subprocess.TimeoutExpired, BrokenPipeError):
            self.process.kill()
            self.process.wait()


def expected(folder, data_set):
    """The outputs beside a model, up to the first that is no tensor."""
    import onnx
    from onnx import numpy_helper

    values = []
    while os.path.exists(path := "%s/test_data_set_%d/output_%d.pb" % (folder, data_set, len(values))):
        proto = onnx.TensorProto()
        try:
            with open(path, "rb") as f:
                proto.ParseFromString(f.read())
            values.append(numpy_helper.to_array(proto))
        except Exception:  # a sequence or map in another kind of message
            break
    return values


def difference(got, want):
    """The largest difference of any output as a part of that output's largest value."""
    worst = 0.0
    for a, b in zip(got, want):
        if a.shape != b.shape:
            return math.inf
        if a.size:
            scale = float(np.abs(b.astype(np.float64)).max()) or 1.0
            worst = max(worst, float(np.abs(a.astype(np.float64) - b.astype(np.float64)).max()) / scale)
    return worst


def macs_of(settings, folder, case, data_set):
    path = os.path.join(folder, "macs-%s.txt" % case)
    if not os.path.exists(path):
        done = subprocess.run([settings.worker, "--macs", folder, str(data_set)], capture_output=True, text=True)
        if done.returncode:
            return 0
        if settings.folders:
            return int(done.stdout)
        with open(path, "w") as f:
            f.write(done.stdout)
    with open(path) as f:
        return int(f.read())


def settle(workers):
    """Waits, a second at most, until no worker's threads run: some spin for 35 ms of CPU time after a run's
    end, and would have one of the CPUs while the next worker is measured."""
    before, deadline = None, time.monotonic() + 1
    while (used := [w.cpu_ns() for w in workers]) != before and time.monotonic() < deadline:
        before = used
        time.sleep(0.01)


def take_turns(workers, seconds):
    """Every worker runs for `seconds` in all, in short turns."""
    for w in workers:
        w.run(0, 2)
    slowest = max(statistics.median(w.times) for w in workers) * 1e-6
    for w in workers:
        w.times.clear()
    rounds = max(3, min(10, int(seconds / max(slowest, 0.05))))
    for _ in range(rounds):
        for w in workers:
            settle(workers)
            w.run(seconds / rounds)


def measure(settings, engines, folder, case, data_set, threads):
    """The figures of every engine for one case: a dictionary by engine."""
    workers, failed = [], {}
    for name, path in engines:
        try:
            workers.append(Worker(settings, name, path, threads, folder, data_set))
        except Failed as e:
            failed[name] = {"failed": str(e)}
    figures = {}
    try:
        take_turns(workers, settings.seconds)
        wanted = expected(folder, data_set)
        peak = {w.name: w.peak_mb() for w in workers}
        results = {w.name: w.outputs_if_tensors() for w in workers}
        reference = results.get(engines[1][0]) if len(engines) > 1 else None
        for w in workers:
            figures[w.name] = {
                "min_us": min(w.times), "median_us": statistics.median(w.times), "runs": len(w.times),
                "library_ms": w.library_ms, "session_ms": w.session_ms, "first_ms": w.first_ms,
                "peak_mb": peak[w.name], "difference": difference(results[w.name], wanted),
            }
            if reference is not None:
                figures[w.name]["difference_from_second"] = difference(results[w.name], reference)
    except Failed as e:
        failed.setdefault(str(e).split(":")[0], {"failed": str(e)})
    finally:
        for w in workers:
            w.close()
    figures.update(failed)
    return figures


def read_model(folder):
    """Has the system read the model's files: whoever is the first to open them is not to pay for the disk."""
    for path in glob.glob(os.path.join(glob.escape(folder), "*")):
        if os.path.isfile(path):
            with open(path, "rb") as f:
                while f.read(1 << 24):
                    pass


def measure_case(settings, engines, folder, case, data_set, threads):
    """As measure(); if an engine dies under way, the others are measured again without it."""
    left, failed = list(engines), {}
    read_model(folder)
    while left:
        figures = measure(settings, left, folder, case, data_set, threads)
        dead = {n: f for n, f in figures.items() if "failed" in f}
        if len(figures) - len(dead) + len(failed) + len(dead) >= len(engines) or not dead:
            break
        failed.update(dead)
        left = [e for e in left if e[0] not in failed]
    return {**failed, **figures}


def find_cases(settings, wanted):
    """(label, folder, case, data set) of MODEL or MODEL:CASE; a folder of a model counts, too."""
    found = []
    for text in wanted:
        name, _, case = text.partition(":")
        folder = name if os.path.isdir(name) else os.path.join(settings.zoo, name)
        if not os.path.exists(folder + "/model.onnx"):
            raise SystemExit("there is no %s/model.onnx: bench/zoo/export.py writes it" % folder)
        cases = ["0"]
        if os.path.exists(folder + "/data.json"):
            with open(folder + "/data.json") as f:
                cases = json.load(f).get("cases", cases)
        if case and case not in cases:
            raise SystemExit("%s has the cases %s" % (name, ", ".join(cases)))
        short = os.path.basename(os.path.normpath(folder))
        chosen = [case] if case else cases[:1]
        found += [("%s:%s" % (short, c), folder, c, cases.index(c)) for c in chosen]
    return found


def models_in(top):
    """The folders of models below `top`, by name."""
    if not top:
        return []
    folders = [os.path.join(top, name) for name in sorted(os.listdir(top))]
    return [f for f in folders if os.path.exists(f + "/model.onnx")]


def peaks(settings, tries=5):
    """What the machine does at best: the best of several looks, because other work makes it less."""
    found = {}
    for t in settings.threads:
        for _ in range(tries):
            isa, flops, bandwidth = subprocess.run(
                [settings.worker, "--peak", str(t)], capture_output=True, text=True, check=True
            ).stdout.split()
            best = found.setdefault(str(t), {"isa": isa, "gflops": 0.0, "gbytes": 0.0})
            best["gflops"] = max(best["gflops"], float(flops))
            best["gbytes"] = max(best["gbytes"], float(bandwidth))
    return found


def arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("models", nargs="*", metavar="MODEL[:CASE]", help="default: all of the table")
    p.add_argument("--lib", action="append", metavar="NAME=PATH", help="an engine; the first is ours")
    p.add_argument("--quick", action="store_true", help="a few models for a short time")
    p.add_argument("--threads", default="1,2")
    p.add_argument("--seconds", type=float, default=1.0, help="of each engine for each case")
    p.add_argument("--repeat", type=int, default=1, help="measure everything so many times and show the spread")
    p.add_argument("--zoo", default=os.path.join(TOP, "build/zoo/full-17"))
    p.add_argument("--folders", metavar="DIR", help="every model in a folder of this one, instead of the zoo's")
    p.add_argument("--build", default=os.path.join(TOP, "build"))
    p.add_argument("--no-torch", action="store_true")
    p.add_argument("--json", metavar="FILE")
    p.add_argument("--html", metavar="FILE")
    p.add_argument("--markdown", metavar="FILE", help="put the table between the marks of this file")
    settings = p.parse_args()
    settings.threads = [int(t) for t in settings.threads.split(",")]
    settings.worker = os.path.join(settings.build, "versus_worker")
    return settings


def engines_of(settings):
    if settings.lib:
        pairs = [text.partition("=") for text in settings.lib]
        return [(name if path else os.path.basename(name), path or name) for name, _, path in pairs]
    ours = os.path.join(settings.build, "libonnxruntime.so.1")
    done = subprocess.run(
        [os.path.join(HERE, "install-ort.sh"), os.path.join(TOP, "build/onnxruntime")], capture_output=True, text=True
    )
    theirs = [("onnxruntime", done.stdout.strip())] if done.returncode == 0 else []
    if not theirs:
        print(done.stderr, file=sys.stderr)
    torch = [] if settings.no_torch or settings.quick else [("torch", "torch")]
    return [("sinter", ours if os.path.exists(ours) else "sinter"), *theirs, *torch]


def main():
    settings = arguments()
    if settings.quick:
        settings.seconds = min(settings.seconds, 0.3)
    engines = engines_of(settings)
    wanted = settings.models or models_in(settings.folders) or (QUICK if settings.quick else ALL)
    names = sorted({w.partition(":")[0] for w in wanted if not os.path.isdir(w.partition(":")[0])})
    missing = [n for n in names if not os.path.isdir(os.path.join(settings.zoo, n))]
    if missing:
        print("exporting " + " ".join(missing), file=sys.stderr)
        zoo = os.path.join(TOP, "bench/zoo/export.py")
        subprocess.run([zoo, "--out", settings.zoo, *missing], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    cases = find_cases(settings, wanted)
    data = {"engines": [n for n, _ in engines], "threads": settings.threads, "peaks": peaks(settings), "runs": []}
    data["machine"] = report.machine()
    for number in range(settings.repeat):
        table = {}
        for label, folder, case, data_set in cases:
            row = {"macs": macs_of(settings, folder, case, data_set)}
            for t in settings.threads:
                row[str(t)] = measure_case(settings, engines, folder, case, data_set, t)
                print(report.line(data, label, row, t), flush=True)
            table[label] = row
        data["runs"].append(table)
        print(report.means(data, table), flush=True)
    if settings.json:
        with open(settings.json, "w") as f:
            json.dump(data, f, indent=1)
    if settings.html:
        with open(settings.html, "w") as f:
            f.write(report.html(data))
    if settings.markdown:
        report.write_markdown(data, settings.markdown)
    return 0


if __name__ == "__main__":
    sys.exit(main())
