#!/usr/bin/python3
"""lowbit.py [--layers N] [--hidden N] [--ffn N] - products with weights of few bits beside ONNX Runtime.

Makes a stack of the products of a llama-style network (queries, keys and values of fewer heads, output, gated
feed-forward) as MatMulNBits with random weights, one model for each number of bits and accuracy level, and runs it with
one row (a token is decoded) and with many (a prompt). Attention between the products is left out: it reads no weights.
Both engines take turns in one process. Figures are milliseconds, the least of all runs and the median; GB/s is what the
least makes of the bytes of the model. --cpu takes the processor's time in the place of the clock's, for one thread on a
machine that does other things meanwhile. Needs the packages onnx, onnxruntime and numpy.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "python"))


class Stack:
    """A model under construction."""

    def __init__(self, settings, bits, level):
        self.settings, self.bits, self.level = settings, bits, level
        self.random = np.random.default_rng(1)
        self.nodes, self.constants, self.bytes = [], [], 0

    def constant(self, name, array):
        self.constants.append(numpy_helper.from_array(array, name))
        self.bytes += array.nbytes
        return name

    def product(self, x, k, n, name):
        block = self.settings.block
        blocks = -(-k // block)
        weights = self.random.integers(0, 256, (n, blocks, block * self.bits // 8), dtype=np.uint8)
        scales = (self.random.random((n, blocks)) + 0.5) / np.sqrt(k) / 2 ** (self.bits - 1)
        inputs = [x, self.constant(name + "_q", weights), self.constant(name + "_s", scales.astype(np.float32))]
        if self.settings.zero_points:
            zeros = self.random.integers(0, 256, (n, -(-blocks * self.bits // 8)), dtype=np.uint8)
            inputs.append(self.constant(name + "_z", zeros))
        return self.node("MatMulNBits", inputs, name, domain="com.microsoft", K=k, N=n, bits=self.bits,
                         block_size=block, accuracy_level=self.level)

    def node(self, kind, inputs, name, **attributes):
        self.nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

    def layer(self, x, i):
        hidden, ffn, shared = self.settings.hidden, self.settings.ffn, self.settings.hidden // 4
        query = self.product(x, hidden, hidden, "q%d" % i)
        key = self.product(x, hidden, shared, "k%d" % i)
        value = self.product(x, hidden, shared, "v%d" % i)
        spread = self.node("Concat", [key, value, key, value], "kv%d" % i, axis=-1)
        mixed = self.node("Add", [query, spread], "a%d" % i)
        x = self.node("Add", [x, self.product(mixed, hidden, hidden, "o%d" % i)], "r%d" % i)
        gate = self.product(x, hidden, ffn, "g%d" % i)
        up = self.product(x, hidden, ffn, "u%d" % i)
        bent = self.node("Mul", [gate, self.node("Sigmoid", [gate], "s%d" % i)], "b%d" % i)
        down = self.product(self.node("Mul", [bent, up], "m%d" % i), ffn, hidden, "d%d" % i)
        return self.node("Add", [x, down], "x%d" % i)

    def save(self, path):
        x = "x"
        for i in range(self.settings.layers):
            x = self.layer(x, i)
        shape = ["rows", self.settings.hidden]
        graph = helper.make_graph(
            self.nodes, "stack", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info(x, TensorProto.FLOAT, shape)], self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21),
                                                        helper.make_opsetid("com.microsoft", 1)])
        model.ir_version = 10
        onnx.save(model, path)


def engines(path, threads):
    import sinter  # SINTER_LIBRARY is set by now

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    theirs = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    ours = sinter.Session(path, threads=threads)
    return (lambda x: theirs.run(None, {"x": x})[0]), (lambda x: ours.run({"x": x})[ours.outputs[0].name])


def measure(settings, path, size, label):
    clock = time.process_time if settings.cpu else time.perf_counter
    for threads in settings.threads:
        theirs, ours = engines(path, threads)
        for rows in settings.rows:
            x = np.random.default_rng(0).standard_normal((rows, settings.hidden)).astype(np.float32)
            wanted, got = theirs(x), np.asarray(ours(x))
            error = np.abs(wanted - got).max() / np.abs(wanted).max()
            times = ([], [])
            until = time.monotonic() + settings.seconds
            while time.monotonic() < until or len(times[0]) < 5:
                for run, list_of in zip((theirs, ours), times):
                    start = clock()
                    run(x)
                    list_of.append((clock() - start) * 1e3)
            least = [min(t) for t in times]
            median = [statistics.median(t) for t in times]
            print("%-16s %d thread%s %4d rows  theirs %8.2f (%8.2f)  ours %8.2f (%8.2f)  %5.2f times  %5.1f GB/s  "
                  "differ by %.1e" % (label, threads, "s" if threads > 1 else " ", rows, least[0], median[0], least[1],
                                      median[1], least[0] / least[1], size / least[1] / 1e6, error), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--hidden", type=int, default=2048)
    parser.add_argument("--ffn", type=int, default=5632)
    parser.add_argument("--block", type=int, default=32)
    parser.add_argument("--bits", type=int, nargs="+", default=[4, 8])
    parser.add_argument("--levels", type=int, nargs="+", default=[0, 4])
    parser.add_argument("--zero-points", action="store_true")
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 128])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=2, help="for each line")
    parser.add_argument("--cpu", action="store_true", help="the processor's time")
    parser.add_argument("--build", default=os.path.join(HERE, "..", "build"))
    settings = parser.parse_args()
    os.environ.setdefault("SINTER_LIBRARY", os.path.join(settings.build, "libsinter.so"))
    with tempfile.TemporaryDirectory() as folder:
        for bits in settings.bits:
            for level in settings.levels:
                stack = Stack(settings, bits, level)
                path = os.path.join(folder, "stack.onnx")
                stack.save(path)
                measure(settings, path, stack.bytes, "%d bits level %d" % (bits, level))


if __name__ == "__main__":
    main()
