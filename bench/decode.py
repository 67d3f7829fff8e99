#!/usr/bin/python3
"""decode.py [--layers N] [--level N]... - a llama-style network with weights of 4 bits beside ONNX Runtime.

Makes a model with random weights: embedding, layers of MatMulNBits, GroupQueryAttention with rotary embedding,
SkipSimplifiedLayerNormalization and a gated feed-forward, and a head for 32,000 words. Caches of keys and values are
bound as inputs and as outputs at once, so that both engines append to them in place. Measures one token after
--past others, and a prompt. Both engines take turns in one process. Figures are milliseconds, the least of all runs and
the median; GB/s is what the least makes of the bytes of the products' weights. Needs the packages onnx, onnxruntime and
numpy.
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
from onnx import TensorProto, helper

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "python")]

import lowbit  # noqa: E402

MICROSOFT = "com.microsoft"


def tensor(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


class Network(lowbit.Stack):
    def __init__(self, settings, level):
        super().__init__(settings, 4, level)
        self.inputs = [tensor("ids", TensorProto.INT64, [1, "s"]), tensor("filled", TensorProto.INT32, [1]),
                       tensor("total", TensorProto.INT32, [1])]
        self.outputs = [tensor("logits", TensorProto.FLOAT, None)]

    def ones(self, name):
        return self.constant(name, np.ones(self.settings.hidden, np.float32))

    def rotary(self):
        s = self.settings
        angles = np.arange(s.room)[:, None] / 10000 ** (np.arange(s.size // 2) / (s.size // 2))[None]
        self.constant("cosines", np.cos(angles).astype(np.float32))
        self.constant("sines", np.sin(angles).astype(np.float32))

    def add_norm(self, x, y, name):
        """The sum of two tensors, and that normalised."""
        self.nodes.append(helper.make_node("SkipSimplifiedLayerNormalization", [x, y, self.ones(name + "_w")],
                                           [name, "", "", name + "_sum"], domain=MICROSOFT, epsilon=1e-5))
        return name, name + "_sum"

    def attention(self, x, i):
        s = self.settings
        parts = [self.product(x, s.hidden, heads * s.size, "%s%d" % (what, i))
                 for what, heads in (("q", s.heads), ("k", s.groups), ("v", s.groups))]
        past, present = (["%s_%s%d" % (when, c, i) for c in "kv"] for when in ("past", "present"))
        shape = [1, s.groups, s.room, s.size]
        self.inputs += [tensor(name, TensorProto.FLOAT, shape) for name in past]
        self.outputs += [tensor(name, TensorProto.FLOAT, shape) for name in present]
        self.nodes.append(helper.make_node(
            "GroupQueryAttention", parts + past + ["filled", "total", "cosines", "sines"], ["a%d" % i] + present,
            domain=MICROSOFT, num_heads=s.heads, kv_num_heads=s.groups, do_rotary=1))
        return self.product("a%d" % i, s.heads * s.size, s.hidden, "o%d" % i)

    def feed_forward(self, x, i):
        s = self.settings
        gate, up = (self.product(x, s.hidden, s.ffn, what + str(i)) for what in ("g", "u"))
        bent = self.node("Mul", [gate, self.node("Sigmoid", [gate], "s%d" % i)], "b%d" % i)
        return self.product(self.node("Mul", [bent, up], "m%d" % i), s.ffn, s.hidden, "d%d" % i)

    def save(self, path):
        s = self.settings
        words = (self.random.standard_normal((s.words, s.hidden)) / 2).astype(np.float32)
        self.rotary()
        x = self.node("Gather", [self.constant("words", words), "ids"], "x")
        self.bytes = 0  # of products from here on
        normal = self.node("SimplifiedLayerNormalization", [x, self.ones("first")], "n", axis=-1, epsilon=1e-5)
        for i in range(s.layers):
            normal, x = self.add_norm(x, self.attention(normal, i), "h%d" % i)
            normal, x = self.add_norm(x, self.feed_forward(normal, i), "n%d" % i)
        self.product(normal, s.hidden, s.words, "logits")
        graph = helper.make_graph(self.nodes, "g", self.inputs, self.outputs, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid(MICROSOFT, 1)])
        model.ir_version = 10
        onnx.save(model, path)


def runner(module, path, settings, threads):
    """A function that runs so many tokens, the last of which is number `total`, and returns the logits."""
    options = module.SessionOptions()
    options.intra_op_num_threads = threads
    session = module.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    random = np.random.default_rng(1)
    shape = (1, settings.groups, settings.room, settings.size)
    caches = [module.OrtValue.ortvalue_from_numpy(random.standard_normal(shape).astype(np.float32))
              for _ in range(2 * settings.layers)]

    def bind(tokens, total):
        binding = session.io_binding()
        binding.bind_cpu_input("ids", (np.arange(tokens, dtype=np.int64) * 77 % settings.words)[None])
        binding.bind_cpu_input("filled", np.array([total - 1], np.int32))
        binding.bind_cpu_input("total", np.array([total], np.int32))
        for at, cache in enumerate(caches):
            name = "%s%d" % ("kv"[at % 2], at // 2)
            binding.bind_ortvalue_input("past_" + name, cache)
            binding.bind_ortvalue_output("present_" + name, cache)
        binding.bind_output("logits")

        def run():
            session.run_with_iobinding(binding)
            return binding.get_outputs()[-1].numpy()
        return run
    return bind


def measure(label, runs, seconds, size):
    wanted, got = (run() for run in runs)
    error = np.abs(wanted - got).max() / np.abs(wanted).max()
    times, until = ([], []), time.monotonic() + seconds
    while time.monotonic() < until or len(times[0]) < 5:
        for run, list_of in zip(runs, times):
            start = time.perf_counter()
            run()
            list_of.append((time.perf_counter() - start) * 1e3)
    least, median = [min(t) for t in times], [statistics.median(t) for t in times]
    print("%-32s theirs %8.2f (%8.2f)  ours %8.2f (%8.2f)  %5.2f times  %5.1f GB/s  differ by %.1e"
          % (label, least[0], median[0], least[1], median[1], least[0] / least[1], size / least[1] / 1e6, error),
          flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("layers", 8), ("hidden", 768), ("ffn", 2048), ("heads", 12), ("groups", 4), ("size", 64),
                        ("words", 32000), ("block", 32), ("room", 512), ("past", 128), ("prompt", 128)):
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--levels", type=int, nargs="+", default=[0, 4])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=2, help="for each line")
    parser.add_argument("--build", default=os.path.join(HERE, "..", "build"))
    settings = parser.parse_args()
    settings.zero_points = False
    os.environ.setdefault("SINTER_LIBRARY", os.path.join(settings.build, "libsinter.so"))
    import sinter.ort
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "network.onnx")
        for level in settings.levels:
            network = Network(settings, level)
            network.save(path)
            for threads in settings.threads:
                binds = [runner(module, path, settings, threads) for module in (onnxruntime, sinter.ort)]
                for what, tokens, total in (("token", 1, settings.past + 1),
                                            ("prompt of %d" % settings.prompt, settings.prompt, settings.prompt)):
                    label = "level %d, %d thread%s, %s" % (level, threads, "s" if threads > 1 else "", what)
                    measure(label, [bind(tokens, total) for bind in binds], settings.seconds, network.bytes)


if __name__ == "__main__":
    main()
