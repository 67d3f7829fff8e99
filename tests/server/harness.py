"""harness.py - starts servers, talks HTTP to them byte by byte, and counts what holds."""
import gzip
import http.client
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "faults"))
from faults import Faults  # noqa: E402

PROGRAM = None
TESTS = []
PATIENCE = 120  # seconds to wait for what must come: a busy machine is slow, not wrong
broken = [0]

TYPES = {"BOOL": np.bool_, "UINT8": np.uint8, "UINT16": np.uint16, "UINT32": np.uint32,
         "UINT64": np.uint64, "INT8": np.int8, "INT16": np.int16, "INT32": np.int32,
         "INT64": np.int64, "FP16": np.float16, "FP32": np.float32, "FP64": np.float64}


def test(function):
    """Marks a function as a test; it gets a fresh folder."""
    TESTS.append(function)
    return function


def check(truth, what):
    if truth:
        return
    broken[0] += 1
    caller = sys._getframe(1)
    while caller.f_code.co_name.startswith("check") and caller.f_back:
        caller = caller.f_back
    print("FAIL %s line %d: %s" % (caller.f_code.co_name, caller.f_lineno, what))


# ---- Models --------------------------------------------------------------------------------------

def save(path, nodes, inputs, outputs, initializers=()):
    """Writes a model; inputs and outputs are (name, type, shape)."""
    info = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "graph", [info(*v) for v in inputs],
                              [info(*v) for v in outputs], list(initializers))
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    proto.ir_version = 8
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".new", "wb") as file:
        file.write(proto.SerializeToString())
    os.rename(path + ".new", path)  # a served file changes in one step


def scale(folder, name="scale", version=1, factor=2.0, shape=("N", 4)):
    """y = x * factor, row by row."""
    weight = numpy_helper.from_array(np.array(factor, np.float32), "factor")
    save(os.path.join(folder, name, str(version), "model.onnx"),
         [helper.make_node("Mul", ["x", "factor"], ["y"])],
         [("x", TensorProto.FLOAT, shape)], [("y", TensorProto.FLOAT, shape)], [weight])


def identity(folder, name, elem_type, shape=("N",)):
    save(os.path.join(folder, name, "1", "model.onnx"),
         [helper.make_node("Identity", ["x"], ["y"])],
         [("x", elem_type, shape)], [("y", elem_type, shape)])


def slow(folder, name="slow", trips=2 ** 40):
    """A loop whose number of turns is its input: x[0] turns, or `trips` when that is negative."""
    one = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["c2"]), helper.make_node("Add", ["s", "s"], ["s2"])],
        "body", [one("i", TensorProto.INT64, []), one("c", TensorProto.BOOL, []),
                 one("s", TensorProto.FLOAT, [1])],
        [one("c2", TensorProto.BOOL, []), one("s2", TensorProto.FLOAT, [1])])
    zero = numpy_helper.from_array(np.zeros(1, np.float32), "zero")
    shape = numpy_helper.from_array(np.zeros(0, np.int64), "shape")
    save(os.path.join(folder, name, "1", "model.onnx"),
         [helper.make_node("Reshape", ["x", "shape"], ["n"]),
          helper.make_node("Loop", ["n", "", "zero"], ["y"], body=body)],
         [("x", TensorProto.INT64, [1])], [("y", TensorProto.FLOAT, [1])], [zero, shape])


def config(folder, name, text):
    os.makedirs(os.path.join(folder, name), exist_ok=True)
    file = "config.json" if text.lstrip().startswith("{") else "config.pbtxt"
    with open(os.path.join(folder, name, file), "w") as out:
        out.write(text)


# ---- The server ----------------------------------------------------------------------------------

class Server:
    """A running server; `with` stops it and checks that it ended well."""

    def __init__(self, repository, *options, ready=True, environment=None, fds=()):
        words = [PROGRAM, "serve", repository, "--http", "0", "--metrics", "0", *map(str, options)]
        if "--allow-host" not in options:
            words += ["--allow-host", "a"]  # what requests written by hand call the server
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=self.log,
                                        env=environment, pass_fds=fds)
        self.ports = {}
        for line in self.process.stdout:
            found = re.match(rb"(\w+) https?://.*:(\d+)$", line.strip())
            if found:
                self.ports[found.group(1).decode()] = int(found.group(2))
            if "metrics" in self.ports and ("grpc" in self.ports or "--grpc" not in options):
                break
        self.tls = "--tls-cert" in options
        if ready:
            self.wait_ready()

    def wait_ready(self):
        def ready():
            try:
                return self.tls or Client(self).get("/v2/health/ready").status == 200
            except OSError:
                return False
        if not until(ready):
            check(False, "the server becomes ready:\n" + self.said())

    def said(self):
        """The log so far. The server writes at the file's offset, so reading must not move it."""
        number = self.log.fileno()
        return os.pread(number, os.fstat(number).st_size, 0).decode("utf-8", "replace")

    def stop(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return None

    def rss(self):
        with open("/proc/%d/statm" % self.process.pid) as file:
            return int(file.read().split()[1]) * 4096

    def __enter__(self):
        return self

    def __exit__(self, *error):
        code = self.stop()
        check(code == 0, "the server ends with 0, not %r:\n%s" % (code, self.said()[-3000:]))


class Reply:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = {k.lower(): v for k, v in headers}
        self.body = body
        if self.headers.get("content-encoding") == "gzip":
            self.body = gzip.decompress(body)

    def json(self):
        return json.loads(self.body)

    def error(self):
        return self.json()["error"] if self.body else ""


class Client:
    """One connection."""

    def __init__(self, server, port="http"):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.ports[port], timeout=PATIENCE)

    def ask(self, method, path, body=None, **headers):
        names = {k.replace("_", "-"): str(v) for k, v in headers.items()}
        try:
            self.connection.request(method, path, body, names)
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused before all of it was sent: the answer is there nevertheless
        reply = self.connection.getresponse()
        return Reply(reply.status, reply.getheaders(), reply.read())

    def get(self, path, **headers):
        return self.ask("GET", path, **headers)

    def post(self, path, body=b"", **headers):
        if not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        return self.ask("POST", path, body, **headers)

    def infer(self, model, array, name="x", datatype=None, **more):
        """Sends one tensor as JSON and returns the first output's data, or the reply."""
        body = {"inputs": [tensor(name, array, datatype)]}
        body.update(more)
        return self.post("/v2/models/%s/infer" % model, body)

    def infer_binary(self, model, array, name="x", datatype=None, outputs=None, **headers):
        """The same with tensors in binary; returns reply and output arrays by name."""
        data, size = pack(array)
        body = {"inputs": [{"name": name, "shape": list(array.shape),
                            "datatype": datatype or type_of(array),
                            "parameters": {"binary_data_size": size}}],
                "parameters": {"binary_data_output": True}}
        if outputs:
            body["outputs"] = outputs
        text = json.dumps(body).encode()
        reply = self.post("/v2/models/%s/infer" % model, text + data,
                          Inference_Header_Content_Length=len(text), **headers)
        return reply, (unpack(reply) if reply.status == 200 else None)


def type_of(array):
    return {v: k for k, v in TYPES.items()}.get(array.dtype.type, "BYTES")


def tensor(name, array, datatype=None):
    array = np.asarray(array)
    return {"name": name, "shape": list(array.shape), "datatype": datatype or type_of(array),
            "data": array.ravel().tolist()}


def pack(array):
    if array.dtype == object:
        data = b"".join(struct.pack("<I", len(s)) + s for s in array.ravel())
    else:
        data = array.tobytes()
    return data, len(data)


def unpack(reply):
    size = int(reply.headers["inference-header-content-length"])
    at, result = size, {}
    for output in json.loads(reply.body[:size])["outputs"]:
        length = output["parameters"]["binary_data_size"]
        raw = reply.body[at:at + length]
        at += length
        if output["datatype"] == "BYTES":
            items = []
            while raw:
                n = struct.unpack("<I", raw[:4])[0]
                items.append(raw[4:4 + n])
                raw = raw[4 + n:]
            result[output["name"]] = np.array(items, object).reshape(output["shape"])
        else:
            result[output["name"]] = np.frombuffer(raw, TYPES[output["datatype"]]).reshape(
                output["shape"])
    check(at == len(reply.body), "the binary outputs fill the body")
    return result


def raw(server, data, port="http", first=PATIENCE, wait=3):
    """Sends bytes and returns what comes back: until the end, none in `first` seconds, or silence after some."""
    with socket.create_connection(("127.0.0.1", server.ports[port]), timeout=PATIENCE) as s:
        try:
            s.sendall(data)
        except OSError:
            pass
        got = b""
        s.settimeout(first)
        try:
            while True:
                piece = s.recv(65536)
                if not piece:
                    break
                got += piece
                s.settimeout(wait)
        except OSError:
            pass
        return got


def until(truth, seconds=PATIENCE):
    """Asks truth() until it holds; whether it did in time."""
    end = time.time() + seconds
    while not truth():
        if time.time() > end:
            return False
        time.sleep(0.02)
    return True


def status_of(answer):
    found = re.match(rb"HTTP/1\.1 (\d+) ", answer)
    return int(found.group(1)) if found else 0


class Skipped(Exception):
    """A test cannot be made with this build."""


def faults():
    """Faults for a server whose `environment` is theirs. The library lies where the program is; builds with
    sanitizers, which take calls of the system over themselves, have none."""
    library = os.path.join(os.path.dirname(PROGRAM), "libfaults.so")
    if not os.path.exists(library):
        raise Skipped("there is no %s" % library)
    return Faults(library)


def run_all(program, match):
    global PROGRAM
    PROGRAM = os.path.abspath(program)
    failed, skipped, chosen = 0, 0, [f for f in TESTS if not match or match in f.__name__]
    for function in chosen:
        folder = tempfile.mkdtemp(prefix="sinter-server-")
        broken[0] = 0
        start = time.time()
        try:
            function(folder)
        except Skipped as why:
            print("skipped %s: %s" % (function.__name__, why))
            skipped += 1
        except Exception:
            traceback.print_exc(file=sys.stdout)
            broken[0] += 1
        shutil.rmtree(folder, ignore_errors=True)
        failed += broken[0] > 0
        if broken[0] or os.environ.get("VERBOSE"):
            print("%s %s (%.1f s)" % ("FAIL" if broken[0] else "ok", function.__name__,
                                      time.time() - start), flush=True)
    print("%d passed, %d failed, %d skipped" % (len(chosen) - failed - skipped, failed, skipped))
    return 1 if failed else 0
