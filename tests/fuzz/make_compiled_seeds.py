#!/usr/bin/python3
"""make_compiled_seeds.py SINTER FOLDER - small compiled models with packed weights of every kind, for the fuzzer."""

import os
import subprocess
import sys
import tempfile

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

random = np.random.RandomState(0)


def weight(name, *shape):
    return numpy_helper.from_array(random.randn(*shape).astype(np.float32), name)


def graph(nodes, weights, ins, outs):
    return helper.make_graph(nodes, "g", [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in ins],
                             [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in outs], weights)


def branches():
    yes = graph([helper.make_node("MatMul", ["x", "w"], ["p"])], [], [], [("p", ["N", 8])])
    no = graph([helper.make_node("Neg", ["x"], ["q"])], [], [], [("q", ["N", 8])])
    nodes = [helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0), helper.make_node("Greater", ["s", "z"], ["c"]),
             helper.make_node("If", ["c"], ["y"], then_branch=yes, else_branch=no)]
    zero = numpy_helper.from_array(np.array(0, dtype=np.float32), "z")
    return graph(nodes, [weight("w", 8, 8), zero], [("x", ["N", 8])], [("y", ["N", 8])])


def constant(name, value, dtype):
    return numpy_helper.from_array(np.array(value, dtype=dtype), name)


def quantised():
    """Products of bytes: a convolution, one by channels without and with zero points, a matrix."""
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
             helper.make_node("QLinearConv", ["q", "s", "z", "k", "s", "o", "s", "z"], ["a"], pads=[1, 1, 1, 1]),
             helper.make_node("QLinearConv", ["a", "s", "z", "l", "s", "o", "s", "z"], ["b"], group=4),
             helper.make_node("QLinearConv", ["b", "s", "z", "l", "s", "n", "s", "z"], ["c"], group=4),
             helper.make_node("Reshape", ["c", "shape"], ["d"]),
             helper.make_node("QLinearMatMul", ["d", "s", "z", "m", "s", "n", "s", "z"], ["e"]),
             helper.make_node("DequantizeLinear", ["e", "s", "z"], ["y"])]
    weights = [constant("s", 0.1, np.float32), constant("z", 3, np.uint8), constant("o", 0, np.int8),
               constant("n", 2, np.int8), constant("shape", [1, -1], np.int64),
               constant("k", random.randint(-9, 9, (4, 2, 3, 3)), np.int8),
               constant("l", random.randint(-9, 9, (4, 1, 3, 3)), np.int8),
               constant("m", random.randint(-9, 9, (64, 5)), np.int8)]
    return graph(nodes, weights, [("x", [1, 2, 8, 8])], [("y", [1, 5])])


GRAPHS = {
    "matmul": graph([helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Add", ["a", "b"], ["c"]),
                     helper.make_node("Relu", ["c"], ["y"])],
                    [weight("w", 8, 12), weight("b", 12)], [("x", ["N", 8])], [("y", ["N", 12])]),
    "gemm": graph([helper.make_node("Gemm", ["x", "w", "b"], ["y"], transB=1, alpha=0.5)],
                  [weight("w", 5, 8), weight("b", 5)], [("x", ["N", 8])], [("y", ["N", 5])]),
    "conv": graph([helper.make_node("Conv", ["x", "w", "b"], ["a"], pads=[1, 1, 1, 1]),
                   helper.make_node("Relu", ["a"], ["r"]),
                   helper.make_node("Conv", ["r", "v"], ["d"], pads=[1, 1, 1, 1], group=4),
                   helper.make_node("Conv", ["d", "u"], ["y"], pads=[1, 1, 1, 1])],
                  [weight("w", 4, 2, 3, 3), weight("b", 4), weight("v", 4, 1, 3, 3), weight("u", 4, 4, 3, 3)],
                  [("x", [1, 2, 8, 8])], [("y", [1, 4, 8, 8])]),
    "lstm": graph([helper.make_node("LSTM", ["x", "w", "r", "b"], ["y"], hidden_size=4)],
                  [weight("w", 1, 16, 3), weight("r", 1, 16, 4), weight("b", 1, 32)],
                  [("x", [2, 1, 3])], [("y", [2, 1, 1, 4])]),
    "if": branches(),
    "quantised": quantised(),
}

sinter, folder = sys.argv[1:]
with tempfile.TemporaryDirectory() as temporary:
    for name, g in GRAPHS.items():
        path = os.path.join(temporary, "model.onnx")
        save(helper.make_model(g, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
        subprocess.run([sinter, "compile", path, "-o", os.path.join(folder, name)], check=True)
