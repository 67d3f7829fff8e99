#!/usr/bin/python3
"""quantized.py [--threads N...] [--engines NAME,...] [MODEL...] - models in int8 beside other engines and their float32.

MODEL is a folder that bench/zoo/quantized.py wrote (NAME-int8, beside NAME), or one with a batch size (NAME-int8:8).
Engines are "ours", "ours-fp32" (our float32), "theirs" (ONNX Runtime), "theirs-fp32", "openvino" and "old" (another build
of ours, --old). Each has a process of its own, and they take turns of some tenths of a second. Figures are milliseconds,
the least of all runs and the median, and how many times ours the other engine's least is. --cpu takes the processor's time
in the place of the clock's, for one thread on a machine that does other things meanwhile. Needs onnx, onnxruntime and
numpy, and openvino for that column.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "python"))
SUFFIXES = ("-int8s", "-int8")
TURN = 0.2  # seconds


def inputs_of(folder, batch, case):
    import onnx
    from onnx import numpy_helper

    model = onnx.load(folder + "/model.onnx", load_external_data=False)
    names = [v.name for v in model.graph.input]
    found = {}
    data = folder
    for suffix in SUFFIXES:
        data = data.removesuffix(suffix)
    for i, name in enumerate(names):
        tensor = onnx.TensorProto()
        with open("%s/test_data_set_%d/input_%d.pb" % (data, case, i), "rb") as f:
            tensor.ParseFromString(f.read())
        value = numpy_helper.to_array(tensor)
        found[name] = np.ascontiguousarray(np.repeat(value[:1], batch, axis=0)) if batch else value
    return found


def ours(path, threads, values):
    import sinter

    session = sinter.Session(path, threads=threads)
    return lambda: session.run(values)


def theirs(path, threads, values):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, values)


def openvino(path, threads, values):
    import openvino

    core = openvino.Core()
    compiled = core.compile_model(path, "CPU", {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY"})
    request = compiled.create_infer_request()
    return lambda: request.infer(values)


class Apart:
    """An engine in a process of its own."""

    def __init__(self, settings, name, library, model, threads):
        command = [sys.executable, os.path.abspath(__file__), "--worker", name, "--threads", str(threads), "--case",
                   str(settings.case), "%s:%d" % model] + (["--cpu"] if settings.cpu else [])
        environment = dict(os.environ, SINTER_LIBRARY=library)
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=environment)
        self.process.stdout.readline()

    def __call__(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return [float(v) * 1e3 for v in self.process.stdout.readline().split()]


MAKERS = {"ours": ours, "ours-fp32": ours, "theirs": theirs, "theirs-fp32": theirs, "openvino": openvino, "old": ours}


def plain_of(folder):
    for suffix in SUFFIXES:
        folder = folder.removesuffix(suffix)
    return folder


def split(model):
    folder, _, batch = model.partition(":")
    return folder.rstrip("/"), int(batch or 0)


def worker(settings):
    folder, batch = split(settings.models[0])
    values = inputs_of(folder, batch, settings.case)
    source = plain_of(folder) if settings.worker.endswith("-fp32") else folder
    run = MAKERS[settings.worker](source + "/model.onnx", settings.threads[0], values)
    for _ in range(3):
        run()
    print("ready", flush=True)
    clock = time.process_time if settings.cpu else time.perf_counter
    for _ in sys.stdin:
        until, times = time.monotonic() + TURN, []
        while time.monotonic() < until or len(times) < 2:
            start = clock()
            run()
            times.append(clock() - start)
        print(*times, flush=True)


def measure(settings, model, threads):
    folder, batch = split(model)
    engines = settings.engines.split(",")
    libraries = {"old": settings.old}
    runs = {}
    for name in engines:
        library = libraries.get(name, os.environ["SINTER_LIBRARY"])
        runs[name] = Apart(settings, name, library, (folder, batch), threads)
    times = {name: [] for name in engines}
    until = time.monotonic() + settings.seconds
    while time.monotonic() < until or len(times[engines[0]]) < 5:
        for name in engines:
            times[name] += runs[name]()
    for run in runs.values():
        run.process.stdin.close()
        run.process.wait()
    cells = []
    for name in engines:
        least, median = min(times[name]), statistics.median(times[name])
        ratio = "" if name == "ours" or "ours" not in times else " %4.2fx" % (least / min(times["ours"]))
        cells.append("%s %8.3f (%8.3f)%s" % (name, least, median, ratio))
    label = os.path.basename(folder) + (" b%d" % batch if batch else " c%d" % settings.case if settings.case else "")
    print("%-24s %d  %s" % (label, threads, "  ".join(cells)), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--engines", default="ours,theirs")
    parser.add_argument("--case", type=int, default=0, help="data set whose inputs are taken")
    parser.add_argument("--seconds", type=float, default=4, help="for each line")
    parser.add_argument("--cpu", action="store_true", help="the processor's time")
    parser.add_argument("--build", default=os.path.join(HERE, "..", "build"))
    parser.add_argument("--old", help="a libsinter.so to compare with")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    settings = parser.parse_args()
    os.environ.setdefault("SINTER_LIBRARY", os.path.join(settings.build, "libsinter.so"))
    if settings.worker:
        worker(settings)
        return
    for threads in settings.threads:
        for model in settings.models:
            measure(settings, model, threads)


if __name__ == "__main__":
    main()
