"""graph.py - an ONNX graph written node by node: for the tools that make models of real weights."""

import numpy as np
from onnx import helper, numpy_helper


class Graph:
    def __init__(self):
        self.nodes, self.weights, self.count = [], [], 0

    def weight(self, array, name=None):
        name = name or "w%d" % len(self.weights)
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def ints(self, *v):
        return self.weight(np.array(v, np.int64))

    def add(self, op, *inputs, name="", outputs=1, **attributes):
        self.count += 1
        out = ["v%d_%d" % (self.count, i) for i in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), out, name, **attributes))
        return out[0] if outputs == 1 else out

    def model(self, inputs, outputs):
        graph = helper.make_graph(self.nodes, "network", inputs, outputs, self.weights)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
        made.ir_version = 10
        return made
