#!/usr/bin/python3
"""make_models.py DIR - the small models that the client tests run."""
import os
import sys
import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

folder = sys.argv[1]
F, I, S, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING, TensorProto.BOOL


def model(name, nodes, inputs, outputs, initializers=(), extra=(), **fields):
    graph = helper.make_graph(nodes, name, inputs, outputs, list(initializers))
    graph.doc_string = "graph of " + name
    opsets = [helper.make_opsetid("", 15)] + [helper.make_opsetid(d, v) for d, v in extra]
    m = helper.make_model(graph, opset_imports=opsets, producer_name="make_models", **fields)
    m.ir_version = 8
    helper.set_model_props(m, {"author": "tests", "empty": ""})
    save(m, f"{folder}/{name}.onnx")


def info(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


rng = np.random.RandomState(1)
w1 = numpy_helper.from_array(rng.randn(8, 16).astype(np.float32), "w1")
b1 = numpy_helper.from_array(rng.randn(16).astype(np.float32), "b1")
w2 = numpy_helper.from_array(rng.randn(16, 4).astype(np.float32), "w2")
model("mlp",
      [helper.make_node("MatMul", ["x", "w1"], ["h"]), helper.make_node("Add", ["h", "b1"], ["hb"]),
       helper.make_node("Relu", ["hb"], ["r"]), helper.make_node("MatMul", ["r", "w2"], ["y"])],
      [info("x", F, ["N", 8])], [info("y", F, ["N", 4])], [w1, b1, w2])
model("types",
      [helper.make_node("Add", ["i", "i"], ["i2"]), helper.make_node("Not", ["b"], ["nb"]),
       helper.make_node("Identity", ["s"], ["s2"])],
      [info("i", I, ["N"]), info("b", B, ["N"]), info("s", S, ["N"])],
      [info("i2", I, ["N"]), info("nb", B, ["N"]), info("s2", S, ["N"])])
model("default",
      [helper.make_node("Mul", ["x", "scale"], ["y"])],
      [info("x", F, ["batch", None]), info("scale", F, [1])], [info("y", F, ["batch", None])],
      [numpy_helper.from_array(np.array([3], np.float32), "scale")], model_version=7)
model("sequence",
      [helper.make_node("SplitToSequence", ["x"], ["seq"], axis=0, keepdims=1)],
      [info("x", F, ["N", 2])],
      [helper.make_tensor_sequence_value_info("seq", F, [1, 2])])
model("loop",
      [helper.make_node("Loop", ["n", "", "x"], ["y"], body=helper.make_graph(
          [helper.make_node("Sin", ["a"], ["b"]), helper.make_node("Identity", ["c"], ["d"])], "body",
          [info("t", I, []), info("c", B, []), info("a", F, ["M"])],
          [info("d", B, []), info("b", F, ["M"])]))],
      [info("n", I, []), info("x", F, ["M"])], [info("y", F, ["M"])])
w = helper.make_tensor("w", F, [2], np.array([2, 3], np.float32).tobytes(), raw=True)
w.ClearField("raw_data")
w.data_location = TensorProto.EXTERNAL
for key, value in (("location", "weights.bin"), ("offset", "4"), ("length", "8")):
    w.external_data.add(key=key, value=value)
model("external", [helper.make_node("Mul", ["x", "w"], ["y"])],
      [info("x", F, ["N", 2])], [info("y", F, ["N", 2])], [w])
c = [("test.custom", 1)]
model("custom",
      [helper.make_node("Blend", ["a", "b"], ["m"], domain="test.custom", alpha=0.25,
                        biases=[0.5, 1.0], label="blend", name="blend0"),
       helper.make_node("Relu", ["m"], ["r"]),
       helper.make_node("Twice", ["r"], ["y"], domain="test.custom"),
       helper.make_node("CountAbove", ["y"], ["n"], domain="test.custom", limit=2),
       helper.make_node("Twice", ["n"], ["n2"], domain="test.custom"),
       helper.make_node("Keep", ["m"], ["k"], domain="test.custom"),
       helper.make_node("Neg", ["k"], ["nk"]),
       helper.make_node("Join", ["s", "s", "t"], ["j"], domain="test.custom")],
      [info("a", F, ["N", 3]), info("b", F, ["N", 3]), info("s", S, [2]), info("t", S, [2])],
      [info("y", F, ["N", 3]), info("n2", I, [1]), info("nk", F, [None]), info("j", S, [2])],
      extra=c)
model("refuse", [helper.make_node("Refuse", ["x"], ["y"], domain="test.custom", name="no")],
      [info("x", F, [1])], [info("y", F, [1])], extra=c)

# ---- What the specification forbids and ONNX Runtime accepts, and what it refuses, too ----


def odd(name, nodes, weights=(), opsets=(("", 17),), unused=()):
    graph = helper.make_graph(nodes, name, [info("x", F, [2, 3])] + list(unused),
                              [info("y", F, None)], list(weights))
    m = helper.make_model(graph, opset_imports=[helper.make_opsetid(d, v) for d, v in opsets])
    m.ir_version = 8
    with open(f"{folder}/{name}.onnx", "wb") as f:
        f.write(m.SerializeToString())


def scalar(name, value):
    return numpy_helper.from_array(np.array([value], np.float32), name)


def constant(value):
    return helper.make_node("Constant", [], ["c"], value=scalar("", value))


add, ones = helper.make_node("Add", ["x", "c"], ["y"]), numpy_helper.from_array(np.ones(3, np.float32), "s")
relu = helper.make_node("Relu", ["x"], ["y"])
odd("norm_typo", [helper.make_node("LayerNormalization", ["x", "s"], ["y"], epsion=0.5)], [ones])
odd("simplified_typo", [helper.make_node("SimplifiedLayerNormalization", ["x", "s"], ["y"], epsion=0.5)], [ones])
odd("tool_attribute", [helper.make_node("Relu", ["x"], ["y"], __scope="a")])
odd("relu_typo", [helper.make_node("Relu", ["x"], ["y"], epsion=0.5)])
odd("constant_twice", [constant(1), add, constant(2)])
odd("weight_twice", [add], [scalar("c", 1), scalar("c", 2)])
odd("relu_twice", [helper.make_node("Relu", ["x"], ["c"]), helper.make_node("Neg", ["x"], ["c"]), add])
odd("opset_zero", [relu], opsets=(("", 0), ("", 7), ("ai.onnx.ml", 0)))
odd("opset_zero_only", [relu], opsets=(("", 0),))
odd("unused_input", [relu], unused=[info("u", F, [2])])
body = helper.make_graph(
    [helper.make_node("Identity", ["go"], ["go2"]), helper.make_node("Cast", ["i"], ["f"], to=F),
     helper.make_node("Add", ["v", "f"], ["v2"])], "body",
    [info("i", I, [1]), info("go", B, [1]), info("v", F, None)], [info("go2", B, [1]), info("v2", F, None)])
odd("loop_list", [helper.make_node("Loop", ["m", "k", "x"], ["y"], body=body)],
    [numpy_helper.from_array(np.array([3]), "m"), numpy_helper.from_array(np.array([True]), "k")])
linked = scalar("c", 0)
linked.data_location = TensorProto.EXTERNAL
linked.ClearField("raw_data")
linked.external_data.add(key="location", value="hard.bin")
odd("hard_link", [add], [linked])
np.array([7], np.float32).tofile(f"{folder}/hard_source.bin")
os.link(f"{folder}/hard_source.bin", f"{folder}/hard.bin")


def variadic(name, second):
    node = helper.make_node("VariadicNode", ["a", "b", "c"], ["y", "z"], name="VariadicNode0", domain="test")
    graph = helper.make_graph([node], name, [info("a", F, [2]), info("b", second, [2]), info("c", F, [2])],
                              [info("y", F, None), info("z", F, None)])
    m = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("test", 1)])
    m.ir_version = 8
    save(m, f"{folder}/{name}.onnx")


variadic("variadic", F)
variadic("variadic_unlike", I)

graph = helper.make_graph([helper.make_node("Thrower", ["x"], ["y"], domain="test")], "thrower",
                          [info("x", F, [2])], [info("y", F, [2])])
m = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("test", 1)])
m.ir_version = 8
save(m, f"{folder}/thrower.onnx")
