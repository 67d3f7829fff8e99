#!/usr/bin/python3
"""test_grpc.py PROGRAM - every gRPC method of `sinter serve`, its errors, and hostile peers, driven by
python3-grpcio. Exits with 77 where grpcio or protoc is not installed."""

import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.join(HERE, "..", "..")

try:
    import grpc
    import numpy as np

    made = tempfile.mkdtemp(prefix="sinter-proto-")
    subprocess.run(["protoc", f"-I{HERE}", f"--python_out={made}", "inference.proto", "health.proto"],
                   check=True)
    sys.path.insert(0, made)
    import health_pb2
    import inference_pb2 as pb
except (ImportError, OSError, subprocess.CalledProcessError) as e:
    print("skipped:", e)
    sys.exit(77)

PROGRAM = sys.argv.pop(1) if len(sys.argv) > 1 else os.path.join(TOP, "build", "sinter")
SERVICE = "/inference.GRPCInferenceService/"
PATIENCE = 120  # seconds to wait for what must come: a busy machine is slow, not wrong
WORDS = """<ir_version: 8, opset_import: ["": 17]>
words (string[N] s, bool[N] b, int64[N] i, float16[N] h) => (string[N] s2, bool[N] b2, int64[N] i2, float16[N] h2) {
  s2 = Identity(s)
  b2 = Not(b)
  i2 = Neg(i)
  h2 = Neg(h)
}"""
SLOW = """<ir_version: 8, opset_import: ["": 17]>
slow (int64 n, float[8] x) => (float[8] y) {
  c = Constant <value = bool {1}> ()
  y = Loop (n, c, x) <body = b (int64 i, bool k, float[8] v) => (bool k2, float[8] w) {
    k2 = Identity(k)
    w = Sin(v)
  }>
}"""
TYPES = {"ServerLive": (pb.Empty, pb.Flag), "ServerReady": (pb.Empty, pb.Flag),
         "ModelReady": (pb.Named, pb.Flag), "ServerMetadata": (pb.Empty, pb.ServerMetadataResponse),
         "ModelMetadata": (pb.Named, pb.ModelMetadataResponse),
         "ModelInfer": (pb.ModelInferRequest, pb.ModelInferResponse),
         "ModelConfig": (pb.Named, pb.ModelConfigResponse),
         "ModelStatistics": (pb.Named, pb.ModelStatisticsResponse),
         "RepositoryIndex": (pb.RepositoryIndexRequest, pb.RepositoryIndexResponse),
         "RepositoryModelLoad": (pb.RepositoryModelRequest, pb.Empty),
         "RepositoryModelUnload": (pb.RepositoryModelRequest, pb.Empty),
         "TraceSetting": (pb.TraceSettings, pb.TraceSettings),
         "LogSettings": (pb.LogSettingsMessage, pb.LogSettingsMessage),
         "NoSuchMethod": (pb.Empty, pb.Empty)}


class Server:
    """`sinter serve` over a folder of small models."""

    def __init__(self, *options):
        self.folder = tempfile.mkdtemp(prefix="sinter-models-")
        self.add("digits", os.path.join(TOP, "demo", "digits.onnx"))
        self.add("words", WORDS)
        self.add("slow", SLOW)
        self.process = subprocess.Popen(
            [PROGRAM, "serve", self.folder, "--http", "0", "--metrics", "off", "--grpc", "0", *options],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.ports = {}
        while "grpc" not in self.ports:
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError("the server did not start")
            name, url = line.split()
            self.ports[name] = int(url.rsplit(":", 1)[1])
        self.channel = grpc.insecure_channel(f"127.0.0.1:{self.ports['grpc']}",
                                             options=[("grpc.max_receive_message_length", -1)])
        end = time.time() + PATIENCE
        while not self.call("ServerReady").value and time.time() < end:
            time.sleep(0.02)

    def add(self, name, source):
        folder = os.path.join(self.folder, name, "1")
        os.makedirs(folder)
        target = os.path.join(folder, "model.onnx")
        if os.path.exists(source):
            shutil.copy(source, target)
        else:
            write_model(source, target)

    def call(self, method, **fields):
        timeout = fields.pop("timeout", PATIENCE)
        metadata = fields.pop("metadata", None)
        compression = fields.pop("compression", None)
        request, response = TYPES[method]
        send = self.channel.unary_unary(SERVICE + method, request_serializer=request.SerializeToString,
                                        response_deserializer=response.FromString)
        return send(request(**fields), timeout=timeout, metadata=metadata, compression=compression)

    def rss(self):
        with open(f"/proc/{self.process.pid}/statm") as file:
            return int(file.read().split()[1]) * 4096

    def stop(self):
        self.channel.close()
        self.process.terminate()
        code = self.process.wait(PATIENCE)
        self.process.stdout.close()
        shutil.rmtree(self.folder)
        return code


def write_model(text, target):
    """A model in ONNX text as a file; in a process of its own, which the library stays loaded in."""
    code = "import sinter, sys; sys.stdout.buffer.write(sinter.Model(text=sys.stdin.read()).to_onnx())"
    with open(target, "wb") as f:
        subprocess.run([sys.executable, "-c", code], input=text.encode(), stdout=f, check=True,
                       env=dict(os.environ, PYTHONPATH=os.path.join(TOP, "python")))


def image(rows=1):
    return np.random.default_rng(rows).random((rows, 1, 8, 8), np.float32)


def raw_request(x, name="digits", **more):
    return {"model_name": name, "inputs": [{"name": "image", "datatype": "FP32", "shape": x.shape}],
            "raw_input_contents": [x.tobytes()], **more}


class Methods(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--admin")

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0, "the server did not end cleanly"

    def refused(self, code, method, *words, **fields):
        with self.assertRaises(grpc.RpcError) as caught:
            self.server.call(method, **fields)
        self.assertEqual(caught.exception.code(), code)
        for word in words:
            self.assertIn(word, caught.exception.details())

    def test_health_and_metadata(self):
        self.assertTrue(self.server.call("ServerLive").value)
        self.assertTrue(self.server.call("ModelReady", name="digits").value)
        self.assertFalse(self.server.call("ModelReady", name="nothing").value)
        self.assertEqual(self.server.call("ServerMetadata").name, "sinter")
        model = self.server.call("ModelMetadata", name="digits")
        self.assertEqual(model.inputs[0].shape, [-1, 1, 8, 8])
        self.assertEqual(model.outputs[0].datatype, "FP32")
        self.refused(grpc.StatusCode.NOT_FOUND, "ModelMetadata", "nothing", name="nothing")
        self.refused(grpc.StatusCode.INVALID_ARGUMENT, "ModelMetadata", name="digits", version="x")
        self.refused(grpc.StatusCode.UNIMPLEMENTED, "NoSuchMethod")

    def test_standard_health(self):
        check = self.server.channel.unary_unary(
            "/grpc.health.v1.Health/Check",
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=health_pb2.HealthCheckResponse.FromString)
        self.assertEqual(check(health_pb2.HealthCheckRequest()).status, 1)
        with self.assertRaises(grpc.RpcError) as caught:
            check(health_pb2.HealthCheckRequest(service="nothing"))
        self.assertEqual(caught.exception.code(), grpc.StatusCode.NOT_FOUND)
        watch = self.server.channel.unary_stream(
            "/grpc.health.v1.Health/Watch",
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=health_pb2.HealthCheckResponse.FromString)
        states = watch(health_pb2.HealthCheckRequest())
        self.assertEqual(next(states).status, 1)
        states.cancel()
        words = watch(health_pb2.HealthCheckRequest(service="words"))
        self.assertEqual(next(words).status, 1)
        self.server.call("RepositoryModelUnload", model_name="words")
        self.assertEqual(next(words).status, 3)
        self.server.call("RepositoryModelLoad", model_name="words")
        self.assertEqual(next(words).status, 1)
        words.cancel()
        long = watch(health_pb2.HealthCheckRequest(service="a" * 200))
        with self.assertRaises(grpc.RpcError):
            next(long)

    def test_watch_ends_with_the_server(self):
        server = Server()
        states = server.channel.unary_stream(
            "/grpc.health.v1.Health/Watch",
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=health_pb2.HealthCheckResponse.FromString)(health_pb2.HealthCheckRequest())
        self.assertEqual(next(states).status, 1)
        server.process.terminate()
        self.assertEqual(next(states).status, 2)
        with self.assertRaises(grpc.RpcError) as caught:
            next(states)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAVAILABLE)
        self.assertEqual(server.process.wait(PATIENCE), 0)
        server.stop()

    def test_infer_raw_and_contents_agree(self):
        x = image(3)
        raw = self.server.call("ModelInfer", **raw_request(x, id="seven"))
        self.assertEqual((raw.id, raw.model_name, raw.model_version), ("seven", "digits", "1"))
        self.assertEqual(list(raw.outputs[0].shape), [3, 10])
        y = np.frombuffer(raw.raw_output_contents[0], np.float32).reshape(3, 10)
        np.testing.assert_allclose(y.sum(axis=1), 1, rtol=1e-5)
        listed = self.server.call("ModelInfer", model_name="digits", inputs=[
            {"name": "image", "datatype": "FP32", "shape": x.shape,
             "contents": {"fp32_contents": x.ravel().tolist()}}])
        self.assertEqual(listed.raw_output_contents[0], raw.raw_output_contents[0])
        packed = self.server.call("ModelInfer", compression=grpc.Compression.Gzip, **raw_request(x))
        self.assertEqual(packed.raw_output_contents[0], raw.raw_output_contents[0])

    def test_every_kind_of_value(self):
        inputs = [{"name": "s", "datatype": "BYTES", "shape": [2], "contents": {"bytes_contents": [b"a", b"\xc3\xa9"]}},
                  {"name": "b", "datatype": "BOOL", "shape": [2], "contents": {"bool_contents": [True, False]}},
                  {"name": "i", "datatype": "INT64", "shape": [2], "contents": {"int64_contents": [1, -2]}}]
        half = {"name": "h", "datatype": "FP16", "shape": [2]}
        self.refused(grpc.StatusCode.INVALID_ARGUMENT, "ModelInfer", "raw", model_name="words",
                     inputs=inputs + [half])
        for tensor in inputs:
            tensor.pop("contents")
        raws = [b"\1\0\0\0a\2\0\0\0\xc3\xa9", b"\1\0", np.array([1, -2], np.int64).tobytes(),
                np.array([1.5, -2], np.float16).tobytes()]
        result = self.server.call("ModelInfer", model_name="words", inputs=inputs + [half],
                                  raw_input_contents=raws, outputs=[{"name": n} for n in ("h2", "s2", "i2", "b2")])
        got = dict(zip((o.name for o in result.outputs), result.raw_output_contents))
        self.assertEqual(got["s2"], raws[0])
        self.assertEqual(np.frombuffer(got["h2"], np.float16).tolist(), [-1.5, 2])
        self.assertEqual(np.frombuffer(got["i2"], np.int64).tolist(), [-1, 2])
        self.assertEqual(got["b2"], b"\0\1")

    def test_classification(self):
        result = self.server.call("ModelInfer", **raw_request(
            image(), outputs=[{"name": "probabilities", "parameters": {"classification": pb.Parameter(int64_param=2)}}]))
        self.assertEqual((result.outputs[0].datatype, list(result.outputs[0].shape)), ("BYTES", [1, 2]))

    def test_what_is_wrong_is_named(self):
        bad = grpc.StatusCode.INVALID_ARGUMENT
        x = image()
        self.refused(grpc.StatusCode.NOT_FOUND, "ModelInfer", **raw_request(x, name="nothing"))
        self.refused(bad, "ModelInfer", "no inputs", model_name="digits")
        self.refused(bad, "ModelInfer", "bytes", model_name="digits",
                     inputs=[{"name": "image", "datatype": "FP32", "shape": [1, 1, 8, 8]}],
                     raw_input_contents=[b"123"])
        self.refused(bad, "ModelInfer", "image", "[1,1,2,2]", model_name="digits",
                     inputs=[{"name": "image", "datatype": "FP32", "shape": [1, 1, 2, 2]}],
                     raw_input_contents=[bytes(16)])
        self.refused(bad, "ModelInfer", "FP99", model_name="digits",
                     inputs=[{"name": "image", "datatype": "FP99", "shape": [1]}])
        self.refused(bad, "ModelInfer", "elements", model_name="digits", inputs=[
            {"name": "image", "datatype": "FP32", "shape": [1, 1, 8, 8], "contents": {"fp32_contents": [1.0]}}])
        self.refused(bad, "ModelInfer", "other", **raw_request(x, outputs=[{"name": "other"}]))
        self.refused(bad, "ModelInfer", model_name="digits", inputs=[
            {"name": "image", "datatype": "FP32", "shape": [1 << 40, 1 << 40]}], raw_input_contents=[b""])
        self.refused(bad, "ModelInfer", model_name="digits", inputs=[
            {"name": "image", "datatype": "FP32", "shape": [-1, 1, 8, 8]}], raw_input_contents=[b""])

    def test_stream_answers_in_order(self):
        send = self.server.channel.stream_stream(
            SERVICE + "ModelStreamInfer", request_serializer=pb.ModelInferRequest.SerializeToString,
            response_deserializer=pb.ModelStreamInferResponse.FromString)
        requests = [pb.ModelInferRequest(**raw_request(image(1 + i % 3), id=str(i),
                                                       name="digits" if i % 5 else "nothing")) for i in range(60)]
        answers = list(send(iter(requests), timeout=PATIENCE))
        self.assertEqual(len(answers), 60)
        for i, answer in enumerate(answers):
            if i % 5:
                self.assertEqual(answer.infer_response.id, str(i))
                self.assertEqual(list(answer.infer_response.outputs[0].shape), [1 + i % 3, 10])
            else:
                self.assertIn("nothing", answer.error_message)

    def test_deadline_and_cancel_stop_the_run(self):
        slow = {"model_name": "slow", "inputs": [{"name": "n", "datatype": "INT64", "shape": []},
                                                 {"name": "x", "datatype": "FP32", "shape": [8]}],
                "raw_input_contents": [np.int64(1 << 40).tobytes(), bytes(32)]}
        self.refused(grpc.StatusCode.DEADLINE_EXCEEDED, "ModelInfer", timeout=0.3, **slow)
        send = self.server.channel.unary_unary(
            SERVICE + "ModelInfer", request_serializer=pb.ModelInferRequest.SerializeToString,
            response_deserializer=pb.ModelInferResponse.FromString)
        waiting = send.future(pb.ModelInferRequest(**slow))
        time.sleep(0.2)
        waiting.cancel()
        short = dict(slow, raw_input_contents=[np.int64(1).tobytes(), bytes(32)])
        self.assertEqual(len(self.server.call("ModelInfer", **short).outputs), 1)

    def test_admin(self):
        config = self.server.call("ModelConfig", name="digits").config
        self.assertEqual((config.name, config.backend, config.input[0].data_type), ("digits", "sinter", 11))
        rows = config.max_batch_size
        text = json.dumps({"max_batch_size": 4, "response_cache": {"enable": True},
                           "instance_group": [{"count": 3}], "parameters": {"sinter_threads": {"string_value": "1"}},
                           "dynamic_batching": {"preferred_batch_size": [2, 4], "max_queue_delay_microseconds": 7,
                                                "priority_levels": 3, "default_priority_level": 2,
                                                "default_queue_policy": {"max_queue_size": 9}}})
        self.server.call("RepositoryModelLoad", model_name="digits",
                         parameters={"config": pb.Parameter(string_param=text)})
        config = self.server.call("ModelConfig", name="digits").config
        batching = config.dynamic_batching
        self.assertEqual((config.max_batch_size, config.response_cache.enable, config.instance_group[0].count,
                          config.parameters["sinter_threads"].string_value, config.version_policy.latest.num_versions),
                         (4, True, 3, "1", 1))
        self.assertEqual((list(batching.preferred_batch_size), batching.max_queue_delay_microseconds,
                          batching.priority_levels, batching.default_priority_level,
                          batching.default_queue_policy.max_queue_size), ([2, 4], 7, 3, 2, 9))
        self.server.call("RepositoryModelLoad", model_name="digits")
        self.assertEqual(self.server.call("ModelConfig", name="digits").config.max_batch_size, rows)
        self.server.call("ModelInfer", **raw_request(image()))
        stats = self.server.call("ModelStatistics", name="digits").model_stats
        self.assertGreater(stats[0].inference_stats.success.count, 0)
        self.assertEqual({s.name for s in self.server.call("ModelStatistics").model_stats},
                         {"digits", "words", "slow"})
        names = {m.name: m.state for m in self.server.call("RepositoryIndex").models}
        self.assertEqual(names["digits"], "READY")
        self.server.call("RepositoryModelUnload", model_name="words")
        self.assertFalse(self.server.call("ModelReady", name="words").value)
        self.server.call("RepositoryModelLoad", model_name="words")
        self.assertTrue(self.server.call("ModelReady", name="words").value)
        self.refused(grpc.StatusCode.NOT_FOUND, "RepositoryModelLoad", model_name="../../etc")
        settings = self.server.call("LogSettings", settings={"log_info": pb.LogSettingsMessage.Value(bool_param=False)}).settings
        self.assertFalse(settings["log_info"].bool_param)
        self.refused(grpc.StatusCode.INVALID_ARGUMENT, "LogSettings", settings={"nothing": pb.LogSettingsMessage.Value(bool_param=True)})
        self.assertEqual(self.server.call("TraceSetting").settings["trace_level"].value, ["OFF"])
        self.refused(grpc.StatusCode.INVALID_ARGUMENT, "TraceSetting", "--trace",
                     settings={"trace_level": pb.TraceSettings.Value(value=["TIMESTAMPS"])})

    def test_node_client(self):
        modules = os.environ.get("SINTER_NODE_MODULES", "")
        if not os.path.isdir(os.path.join(modules, "@grpc", "grpc-js")):
            self.skipTest("@grpc/grpc-js is not installed")
        done = subprocess.run(["node", os.path.join(HERE, "client.js"), os.path.join(HERE, "inference.proto"),
                               str(self.server.ports["grpc"])], env=dict(os.environ, NODE_PATH=modules),
                              capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual((done.stdout, done.returncode), ("ok\n", 0), done.stderr)

    def test_many_at_once(self):
        def answer(x):
            raw = self.server.call("ModelInfer", **raw_request(x)).raw_output_contents[0]
            return np.frombuffer(raw, np.float32)

        images = [np.random.default_rng(i).random((2, 1, 8, 8), np.float32) for i in range(8)]
        wants = [answer(x) for x in images]
        wrong = []

        def work(x, want):  # requests that share a run may differ in their last digits
            for _ in range(50):
                if not np.allclose(answer(x), want, rtol=1e-5, atol=1e-7):
                    wrong.append(want)

        threads = [threading.Thread(target=work, args=pair) for pair in zip(images, wants)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        self.assertEqual(wrong, [])
        self.assertFalse(any(np.allclose(a, b, rtol=1e-3) for a, b in zip(wants, wants[1:])), "all images look alike")


class Load(unittest.TestCase):
    """`sinter load` against both doors."""

    @classmethod
    def setUpClass(cls):
        cls.server = Server()

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0, "the server did not end cleanly"

    def load(self, scheme, *options, seconds=0.5):
        url = f"{scheme}://127.0.0.1:{self.server.ports[scheme]}"
        return subprocess.run([PROGRAM, "load", url, "--json", "-q", "-t", str(seconds), "-w", "0.1", *options],
                              capture_output=True, text=True, timeout=PATIENCE, check=False)

    def test_both_protocols_and_both_loops(self):
        for scheme in ("http", "grpc"):
            for options in (("-c", "3"), ("-c", "3", "-r", "100"), ("-s", "image=5x1x8x8", "--ramp", "0.2")):
                for seconds in (0.5, 5, 50):  # on a busy machine half a second may be over at once
                    done = self.load(scheme, "-m", "digits", *options, seconds=seconds)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    report = json.loads(done.stdout)
                    self.assertEqual(report["failed"], 0)
                    if report["requests"] > 5:
                        break
                self.assertGreater(report["requests"], 5)
                self.assertLessEqual(report["latency_ns"]["p50"], report["latency_ns"]["max"])
        self.assertEqual(self.load("http", "-m", "digits", "--json-tensors").returncode, 0)

    def test_failures_are_told(self):
        for scheme in ("http", "grpc"):
            done = self.load(scheme, "-m", "nothing")
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("nothing", done.stderr)
            done = self.load(scheme, "-m", "digits", "-s", "image=1x1x2x2")
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("[1,1,2,2]", done.stderr)
        self.assertNotEqual(subprocess.run([PROGRAM, "load", "ftp://x", "-m", "digits"], check=False,
                                           capture_output=True).returncode, 0)


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0)


class Hostile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--max-body", "1", "--max-memory", "8")

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0, "the server did not end cleanly"

    def tearDown(self):
        self.assertTrue(self.server.call("ServerLive").value)

    def speak(self, data, seconds=PATIENCE, enough=lambda heard: False):
        """What the server answers before it closes, it is enough or `seconds` are silent; whether it closed."""
        heard = b""
        with socket.create_connection(("127.0.0.1", self.server.ports["grpc"])) as s:
            s.settimeout(seconds)
            try:
                s.sendall(data)
                while True:
                    piece = s.recv(65536)
                    if not piece:
                        return heard, True
                    heard += piece
                    if enough(heard):
                        return heard, False
            except (ConnectionError, socket.timeout) as e:
                return heard, isinstance(e, ConnectionError)

    def headers(self, stream, path=SERVICE + "ServerLive", flags=4):
        block = b"\x83\x86\x00\x05:path" + bytes([len(path)]) + path.encode()
        block += b"\x00\x0a:authority\x01x\x00\x02te\x08trailers\x00\x0ccontent-type\x10application/grpc"
        return frame(1, flags, stream, block)

    def test_not_http2(self):
        self.assertTrue(self.speak(b"GET / HTTP/1.1\r\n\r\n")[1])
        self.assertTrue(self.speak(os.urandom(4096))[1])

    def test_rapid_reset(self):
        flood = b"".join(self.headers(1 + 2 * i) + frame(3, 0, 1 + 2 * i, struct.pack(">I", 8))
                         for i in range(3000))
        self.assertTrue(self.speak(PREFACE + flood)[1])

    def test_continuation_flood(self):
        flood = self.headers(1, flags=0) + b"".join(frame(9, 0, 1, b"\x00\x01a\x01b" * 200) for _ in range(400))
        self.assertTrue(self.speak(PREFACE + flood)[1])

    def test_ping_and_settings_flood(self):
        self.speak(PREFACE + frame(6, 0, 0, bytes(8)) * 20000, 1)
        self.speak(PREFACE + frame(4, 0, 0) * 20000, 1)

    def test_idle_frames_flood(self):
        """Frames with nothing in them: some are fine, a flood is cut off."""
        live = self.headers(1, flags=4) + frame(0, 1, 1, bytes(5))
        answer = b"\x01\x04\0\0\0\x01\x88"  # headers of stream 1 that begin with status 200
        for what, one in (("PRIORITY", frame(2, 0, 1, struct.pack(">IB", 0, 1))), ("unknown", frame(200, 0, 0, b"x")),
                          ("WINDOW_UPDATE", frame(8, 0, 0, struct.pack(">I", 1))), ("ALTSVC", frame(10, 0, 0))):
            self.assertTrue(self.speak(PREFACE + one * 30000)[1], what)
            self.assertIn(answer, self.speak(PREFACE + one * 2000 + live, enough=lambda heard: answer in heard)[0], what)
        self.assertTrue(self.speak(PREFACE + self.headers(1) + frame(0, 0, 1) * 30000)[1], "empty DATA")

    def test_too_large_a_message(self):
        with self.assertRaises(grpc.RpcError) as caught:
            self.server.call("ModelInfer", model_name="digits", raw_input_contents=[bytes(2 << 20)])
        self.assertEqual(caught.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
        huge = self.headers(1, SERVICE + "ModelInfer") + frame(0, 0, 1, b"\0\xff\xff\xff\xff")

        def answered(heard, at=0):  # headers that end stream 1: the refusal, without waiting for 4 GB
            while at + 9 <= len(heard):
                if heard[at + 3] == 1 and heard[at + 4] & 1 and heard[at + 8] == 1:
                    return True
                at += 9 + int.from_bytes(heard[at:at + 3], "big")
            return False
        self.assertTrue(answered(self.speak(PREFACE + huge, enough=answered)[0]))

    def test_bomb(self):
        with self.assertRaises(grpc.RpcError) as caught:
            self.server.call("ModelInfer", compression=grpc.Compression.Gzip, model_name="digits",
                             raw_input_contents=[bytes(64 << 20)])
        self.assertEqual(caught.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)

    def test_not_protobuf(self):
        send = self.server.channel.unary_unary(SERVICE + "ModelInfer")
        for data in (b"\xff\xff\xff", b"\x2a\x7f", b"\x08" * 100, b"\x3a\xff\xff\xff\xff\x0f", b""):
            with self.assertRaises(grpc.RpcError) as caught:
                send(data, timeout=PATIENCE)
            self.assertIn(caught.exception.code(), (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND))

    def test_reader_that_never_reads(self):
        """Answers that a client leaves no room for count as memory, and end its call."""
        no_window = frame(4, 0, 0, struct.pack(">HI", 4, 0))
        many = b"".join(frame(0, 0, 1, bytes(5) * 1000) for _ in range(12))
        call = self.headers(1, SERVICE + "ModelStreamInfer")
        before = self.server.rss()
        with socket.create_connection(("127.0.0.1", self.server.ports["grpc"])) as s:
            s.sendall(PREFACE + no_window + call + many)
            time.sleep(0.5)
            self.assertLess(self.server.rss() - before, 24 << 20)
        self.assertTrue(self.server.call("ServerLive").value)

    def test_admin_is_closed(self):
        with self.assertRaises(grpc.RpcError) as caught:
            self.server.call("RepositoryIndex")
        self.assertIn(caught.exception.code(), (grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.NOT_FOUND,
                                                grpc.StatusCode.UNAUTHENTICATED))


if __name__ == "__main__":
    unittest.main()
