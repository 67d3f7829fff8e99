#!/usr/bin/python3
"""half.py [--threads N,N] [--seconds S] MODEL.onnx... - 16-bit twins of float32 models beside ONNX Runtime.

Makes a float16 and a bfloat16 twin of each model: weights, inputs and outputs become narrow. Each engine runs each of
them in processes of its own, in turn: this library's float32 and 16-bit sessions, and ONNX Runtime's float32 and float16
ones (it refuses many operators in bfloat16). Free dimensions are 1, --dim NAME=N says otherwise. The table has
milliseconds until the first results are there (session and first run; the least of three processes), the least and the
median of later runs, and the memory that the process has grown by at most, in MB. The ratio is that of the least times
to ONNX Runtime's float16. Needs the packages onnx, onnxruntime and numpy.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PROCESSES = 3


# ---- Twins ----


def narrow_tensor(tensor, kind):
    import numpy as np
    from onnx import TensorProto, numpy_helper

    if tensor.data_type != TensorProto.FLOAT:
        return
    array = numpy_helper.to_array(tensor)
    if kind == "fp16":
        made = numpy_helper.from_array(np.clip(array, -65504, 65504).astype(np.float16), tensor.name)
    else:
        bits = np.ascontiguousarray(array).view(np.uint32)
        bits = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
        made = TensorProto(name=tensor.name, data_type=TensorProto.BFLOAT16, dims=array.shape, raw_data=bits.tobytes())
    tensor.CopyFrom(made)


def narrow_graph(graph, kind, dtype):
    import onnx

    for tensor in graph.initializer:
        narrow_tensor(tensor, kind)
    for value in [*graph.input, *graph.output, *graph.value_info]:
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            value.type.tensor_type.elem_type = dtype
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR:
                narrow_tensor(attribute.t, kind)
            if attribute.type == onnx.AttributeProto.GRAPH:
                narrow_graph(attribute.g, kind, dtype)
            if attribute.name in ("to", "dtype") and attribute.i == onnx.TensorProto.FLOAT:
                attribute.i = dtype


def make_twin(path, kind, to):
    import onnx

    model = onnx.load(path)
    narrow_graph(model.graph, kind, {"fp16": onnx.TensorProto.FLOAT16, "bf16": onnx.TensorProto.BFLOAT16}[kind])
    onnx.save(model, to)


# ---- One process ----


def memory_now():
    with open("/proc/self/status") as status:
        fields = dict(line.split(":", 1) for line in status)
    return {name: int(fields[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM")}


def inputs_of(described, dims):
    """Random numbers, indices of 0 and masks of 1 for (name, shape, type)."""
    import numpy as np

    feeds = {}
    for name, shape, dtype in described:
        shape = [d if isinstance(d, int) and d >= 0 else dims.get(d, 1) for d in shape]
        if "float" not in dtype:
            feeds[name] = (np.ones if "mask" in name else np.zeros)(shape, np.bool_ if "bool" in dtype else np.int64)
        elif "bfloat16" in dtype:
            feeds[name] = np.zeros(shape, np.uint16)
        else:
            feeds[name] = np.random.default_rng(0).standard_normal(shape).astype(
                np.float16 if "16" in dtype else np.float32)
    return feeds


def ours(path, threads, dims):
    import sinter

    session = sinter.Session(path, threads=threads)
    feeds = inputs_of([(i.name, i.shape, str(i.dtype)) for i in session.inputs], dims)
    return lambda: session.run(feeds)


def theirs(path, threads, dims):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feeds = inputs_of([(i.name, i.shape, i.type.replace("float16", "16float")) for i in session.get_inputs()], dims)
    return lambda: session.run(None, feeds)


def work(engine, path, threads, seconds, dims):
    """What a child process does; it writes its figures as JSON."""
    sys.path.insert(0, os.path.join(HERE, "..", "python"))
    import numpy  # noqa: F401 - its memory is not the engine's

    __import__("sinter" if engine == "ours" else "onnxruntime")
    before = memory_now()["VmRSS"]
    start = time.perf_counter()
    run = (ours if engine == "ours" else theirs)(path, threads, dims)
    run()
    first = time.perf_counter() - start
    times, until = [], time.perf_counter() + seconds
    while time.perf_counter() < until or len(times) < 3:
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1e3)
    peak = memory_now()["VmHWM"] - before
    print(json.dumps({"first": first * 1e3, "least": min(times), "median": statistics.median(times), "peak": peak}))


# ---- The table ----


def measure(settings, runs, threads):
    """Figures of each run (label, engine, path); None: the engine refused it."""
    figures = {}
    for _ in range(PROCESSES):
        for label, engine, path in runs:
            command = [sys.executable, os.path.abspath(__file__), "--work", engine, "--threads", str(threads),
                       "--seconds", str(settings.seconds / PROCESSES), path]
            for dim in settings.dim:
                command += ["--dim", dim]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                figures[label] = None
                continue
            found = json.loads(done.stdout.splitlines()[-1])
            known = figures.setdefault(label, found)
            for key in found:
                known[key] = min(known[key], found[key])
    return figures


def show(name, threads, figures):
    peer = figures.get("onnxruntime fp16")
    for label, f in figures.items():
        if f is None:
            print("%-14s %d  %-17s refused" % (name, threads, label), flush=True)
            continue
        ratio = "%5.2f" % (peer["least"] / f["least"]) if peer else "    -"
        print("%-14s %d  %-17s first %8.1f  least %8.2f  median %8.2f  peak %7.1f  ratio %s" % (
            name, threads, label, f["first"], f["least"], f["median"], f["peak"], ratio), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--dim", action="append", default=[])
    parser.add_argument("--work", choices=("ours", "theirs"), help=argparse.SUPPRESS)
    parser.add_argument("models", nargs="+")
    settings = parser.parse_args()
    dims = {k: int(v) for k, v in (d.split("=") for d in settings.dim)}
    if settings.work:
        work(settings.work, settings.models[0], int(settings.threads), settings.seconds, dims)
        return
    with tempfile.TemporaryDirectory() as folder:
        for path in settings.models:
            twins = {kind: os.path.join(folder, kind + ".onnx") for kind in ("fp16", "bf16")}
            for kind, to in twins.items():
                make_twin(path, kind, to)
            runs = [("sinter fp32", "ours", path), ("sinter fp16", "ours", twins["fp16"]),
                    ("sinter bf16", "ours", twins["bf16"]), ("onnxruntime fp32", "theirs", path),
                    ("onnxruntime fp16", "theirs", twins["fp16"])]
            name = os.path.basename(os.path.dirname(os.path.abspath(path))) + "/" + os.path.basename(path)
            for threads in map(int, settings.threads.split(",")):
                show(name[-14:], threads, measure(settings, runs, threads))


if __name__ == "__main__":
    main()
