#!/usr/bin/python3
"""torch_worker.py THREADS MODEL_FOLDER DATA_SET - the zoo's model of the folder's name in PyTorch eager,
answering as worker.c does. Convolutional networks are tried in both memory layouts; the quicker counts."""

import os
import resource
import sys
import time
import warnings

import numpy as np
import onnx
import torch
from onnx import numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../zoo"))
import export  # noqa: E402


def read_inputs(folder, data_set):
    values = []
    while os.path.exists(path := "%s/test_data_set_%s/input_%d.pb" % (folder, data_set, len(values))):
        proto = onnx.TensorProto()
        with open(path, "rb") as f:
            proto.ParseFromString(f.read())
        values.append(torch.from_numpy(numpy_helper.to_array(proto).copy()))
    return values


def best_of(model, inputs, runs=2):
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        model(*inputs)
        times.append(time.perf_counter() - start)
    return min(times)


def quicker_layout(model, inputs):
    if not any(x.dim() == 4 for x in inputs) or not any(isinstance(m, torch.nn.Conv2d) for m in model.modules()):
        return model, inputs
    plain = best_of(model, inputs)
    model = model.to(memory_format=torch.channels_last)
    turned = [x.to(memory_format=torch.channels_last) if x.dim() == 4 else x for x in inputs]
    if best_of(model, turned) < plain:
        return model, turned
    return model.to(memory_format=torch.contiguous_format), inputs


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main(threads, folder, data_set):
    warnings.filterwarnings("ignore")
    torch.set_num_threads(int(threads))
    torch.set_grad_enabled(False)
    name = os.path.basename(os.path.normpath(folder))
    start = time.perf_counter()
    torch.manual_seed(sum(map(ord, name)))
    model = export.entries(False)[name].make().eval()
    inputs = read_inputs(folder, data_set)
    made = time.perf_counter()
    model(*inputs)
    print("ready 0 %.3f %.3f %d" % ((made - start) * 1e3, (time.perf_counter() - made) * 1e3, peak()), flush=True)
    model, inputs = quicker_layout(model, inputs)
    for line in sys.stdin:
        word, *rest = line.split()
        if word == "run":
            times, spent = [], 0.0
            while len(times) < int(rest[1]) and (not times or spent < float(rest[0])):
                start = time.perf_counter()
                model(*inputs)
                times.append(time.perf_counter() - start)
                spent += times[-1]
            print("times", *("%.3f" % (t * 1e6) for t in times), flush=True)
        elif word == "save":
            result = model(*inputs)
            result = result if isinstance(result, tuple) else (result,)
            for i, r in enumerate(result):
                a = np.ascontiguousarray(r.contiguous().numpy())
                a.tofile("%s/%d.bin" % (rest[0], i))
                print("output", i, onnx.helper.mapping.NP_TYPE_TO_TENSOR_TYPE[a.dtype], *a.shape)
            print("end", flush=True)
        elif word == "peak":
            print("peak", peak(), flush=True)


if __name__ == "__main__":
    if os.path.basename(os.path.normpath(sys.argv[2])) in export.NOT_TORCH:
        print("failed not a PyTorch model", flush=True)
        sys.exit(1)
    main(*sys.argv[1:])
