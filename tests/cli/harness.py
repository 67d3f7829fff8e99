"""harness.py - runs the sinter program and counts what holds and what does not."""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import traceback
import zlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

PROGRAM = None
TESTS = []
broken = [0]  # checks of the running test that did not hold


def test(function):
    """Marks a function as a test; it gets a fresh folder."""
    TESTS.append(function)
    return function


class Result:
    def __init__(self, done):
        self.code = done.returncode
        self.out = done.stdout.decode("utf-8", "replace")
        self.err = done.stderr.decode("utf-8", "replace")


def program():
    return PROGRAM


def sinter(*args, timeout=600):  # far more than any needs on a busy machine
    words = [PROGRAM] + [a if isinstance(a, bytes) else str(a) for a in args]
    return Result(subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True,
                                 timeout=timeout))


def check(truth, what, result=None):
    if truth:
        return
    broken[0] += 1
    caller = sys._getframe(1)
    while caller.f_code.co_name.startswith("check") and caller.f_back:
        caller = caller.f_back
    print("FAIL %s line %d: %s" % (caller.f_code.co_name, caller.f_lineno, what))
    if result is not None:
        print("     exit %d" % result.code)
        print("     stdout: " + result.out[-1500:].replace("\n", "\n             "))
        print("     stderr: " + result.err[-1500:].replace("\n", "\n             "))


def check_code(result, code, *texts):
    """The exit code, and texts that stdout or stderr must contain."""
    check(result.code == code, "exit code %d, not %d" % (code, result.code), result)
    for text in texts:
        check(text in result.out + result.err, "text %r" % text, result)


def check_error(result, code, *texts):
    """An error: nothing but lines of 'sinter: ' on stderr."""
    check_code(result, code, *texts)
    lines = result.err.splitlines()
    good = lines and all(line.startswith("sinter: ") for line in lines)
    check(good, "errors begin with 'sinter: '", result)


def model(path, nodes, inputs, outputs, initializers=(), opset=17):
    """Writes a model; inputs and outputs are (name, type, shape) or value infos."""
    def info(value):
        return helper.make_tensor_value_info(*value) if isinstance(value, tuple) else value
    graph = helper.make_graph(nodes, "graph", [info(v) for v in inputs],
                              [info(v) for v in outputs], list(initializers))
    proto = helper.make_model(graph, producer_name="tests",
                              opset_imports=[helper.make_opsetid("", opset)])
    proto.ir_version = 8
    with open(path, "wb") as file:
        file.write(proto.SerializeToString())
    return path


def identity(folder, elem_type, shape, name="identity.onnx"):
    return model(os.path.join(folder, name), [helper.make_node("Identity", ["x"], ["y"])],
                 [("x", elem_type, shape)], [("y", elem_type, shape)])


def save_pb(path, array):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(numpy_helper.from_array(array).SerializeToString())


def case(folder, name, wrong=False, data=True):
    """A backend-test folder of one Relu."""
    place = os.path.join(folder, name)
    os.makedirs(place)
    model(os.path.join(place, "model.onnx"), [helper.make_node("Relu", ["x"], ["y"])],
          [("x", TensorProto.FLOAT, [2, 3])], [("y", TensorProto.FLOAT, [2, 3])])
    x = np.array([[-1, 2, -3], [4, -5, 6]], np.float32)
    y = np.maximum(x, 0)
    if wrong:
        y[0, 2] = 7
        y[1, 2] = 8
    if data:
        save_pb(os.path.join(place, "test_data_set_0", "input_0.pb"), x)
        save_pb(os.path.join(place, "test_data_set_0", "output_0.pb"), y)
    return place


def endless(folder, name):
    """A backend-test folder whose Loop has no practical end."""
    place = os.path.join(folder, name)
    os.makedirs(place)
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["c2"]), helper.make_node("Add", ["s", "s"], ["s2"])],
        "body", [helper.make_tensor_value_info("i", TensorProto.INT64, []),
                 helper.make_tensor_value_info("c", TensorProto.BOOL, []),
                 helper.make_tensor_value_info("s", TensorProto.FLOAT, [1])],
        [helper.make_tensor_value_info("c2", TensorProto.BOOL, []),
         helper.make_tensor_value_info("s2", TensorProto.FLOAT, [1])])
    trips = numpy_helper.from_array(np.array(2 ** 62, np.int64), "n")
    model(os.path.join(place, "model.onnx"),
          [helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)],
          [("x", TensorProto.FLOAT, [1])], [("y", TensorProto.FLOAT, [1])], [trips])
    save_pb(os.path.join(place, "test_data_set_0", "input_0.pb"), np.ones(1, np.float32))
    save_pb(os.path.join(place, "test_data_set_0", "output_0.pb"), np.ones(1, np.float32))
    return place


def png(path, pixels):
    """Writes an array of height x width x 3 bytes as PNG."""
    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + pixels[y].astype(np.uint8).tobytes() for y in range(height))

    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" +
                   chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
                   chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def content(path):
    with open(path, "rb") as file:
        return file.read()


def write(path, data):
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else bytes(data))


def saved_array(folder, path, *args):
    """Runs a model with one output y and gives back what it saves."""
    place = tempfile.mkdtemp(dir=folder)
    check_code(sinter("run", path, "-o", place, *args), 0)
    saved = os.path.join(place, "y.npy")
    return np.load(saved) if os.path.exists(saved) else np.zeros(0)


def last_line(result):
    lines = result.out.splitlines()
    return lines[-1] if lines else ""


def parse_json(text):
    try:
        return json.loads(text)
    except ValueError:
        return None


def main(path, only):
    global PROGRAM
    PROGRAM = path
    passed = failed = 0
    for function in TESTS:
        if only and function.__name__ not in only:
            continue
        folder = tempfile.mkdtemp(prefix="sinter-cli-")
        broken[0] = 0
        try:
            function(folder)
        except Exception:
            broken[0] += 1
            print("FAIL %s stopped:" % function.__name__)
            traceback.print_exc(file=sys.stdout)
        shutil.rmtree(folder, ignore_errors=True)
        if broken[0]:
            failed += 1
        else:
            passed += 1
    print("%d passed, %d failed, 0 skipped" % (passed, failed))
    return 1 if failed else 0
