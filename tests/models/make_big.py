#!/usr/bin/python3
"""make_big.py FILE - writes a model of 1 GB of which a run needs 4 KB.

The output is x + bias. Eight matrices of 128 MB stand before the bias in the file and are used by
nodes whose results nobody asks for. The matrices are holes in a sparse file: quick to write, and
whoever reads them is seen by the memory it takes.
"""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SIDE = 5793  # SIDE * SIDE floats are 128 MB
COUNT = 8
WIDTH = 1024


def varint(n):
    out = b""
    while n > 0x7F:
        out += bytes([n & 0x7F | 0x80])
        n >>= 7
    return out + bytes([n])


def field(number, length):
    """The start of a length-delimited protobuf field."""
    return varint(number << 3 | 2) + varint(length)


def main(path):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", WIDTH])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", WIDTH])
    nodes = [helper.make_node("Add", ["x", "bias"], ["y"])]
    for i in range(COUNT):
        nodes.append(helper.make_node("Transpose", ["big_%d" % i], ["unused_%d" % i]))
    bias = numpy_helper.from_array(np.arange(WIDTH, dtype=np.float32), "bias")
    graph = helper.make_graph(nodes, "big", [x], [y], [bias]).SerializeToString()
    model = helper.make_model(helper.make_graph([], "big", [], []), opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    model.ClearField("graph")

    size = SIDE * SIDE * 4
    starts = []
    for i in range(COUNT):
        tensor = TensorProto(dims=[SIDE, SIDE], data_type=TensorProto.FLOAT, name="big_%d" % i).SerializeToString()
        tensor += field(9, size)  # raw_data
        starts.append(field(5, len(tensor) + size) + tensor)  # GraphProto.initializer
    length = len(graph) + sum(len(s) + size for s in starts)
    with open(path, "wb") as f:
        f.write(model.SerializeToString() + field(7, length))  # ModelProto.graph
        for start in starts:
            f.write(start)
            f.seek(size, 1)
        f.write(graph)


if __name__ == "__main__":
    main(sys.argv[1])
