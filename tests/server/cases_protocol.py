"""cases_protocol.py - every endpoint of the Open Inference Protocol, and every way to get it wrong."""
import shutil
import subprocess
import zlib

from harness import *

# method, path, status: of a server with the model "scale" (versions 1 and 3, both loaded), opened
# for administration. The path's status must also hold with a slash at the end.
ENDPOINTS = [
    ("GET", "/v2", 200), ("GET", "/v2/health/live", 200), ("GET", "/v2/health/ready", 200),
    ("GET", "/v2/models/scale", 200), ("GET", "/v2/models/scale/ready", 200),
    ("GET", "/v2/models/scale/config", 200), ("GET", "/v2/models/scale/stats", 200),
    ("GET", "/v2/models/scale/versions/1", 200), ("GET", "/v2/models/scale/versions/3", 200),
    ("GET", "/v2/models/scale/versions/1/ready", 200),
    ("GET", "/v2/models/scale/versions/1/config", 200),
    ("GET", "/v2/models/scale/versions/1/stats", 200), ("GET", "/v2/models/stats", 200),
    ("POST", "/v2/repository/index", 200), ("GET", "/v2/trace/setting", 200),
    ("GET", "/v2/models/scale/trace/setting", 200), ("GET", "/v2/logging", 200),
    ("HEAD", "/v2", 200), ("HEAD", "/v2/models/scale", 200),
    ("GET", "/v2/models/none", 404), ("GET", "/v2/models/none/ready", 404),
    ("GET", "/v2/models/none/config", 404), ("GET", "/v2/models/none/stats", 404),
    ("POST", "/v2/models/none/infer", 404), ("GET", "/v2/models/scale/versions/2", 404),
    ("GET", "/v2/models/scale/versions/2/ready", 404),
    ("POST", "/v2/models/scale/versions/2/infer", 404),
    ("GET", "/v2/models/scale/versions/0", 400), ("GET", "/v2/models/scale/versions/x", 400),
    ("GET", "/v2/models/scale/versions/-1", 400),
    ("GET", "/v2/models/scale/versions/99999999999999999999", 400),
    ("POST", "/v2", 405), ("POST", "/v2/health/live", 405), ("GET", "/v2/models/scale/infer", 405),
    ("DELETE", "/v2/models/scale", 405), ("PUT", "/v2/models/scale/infer", 405),
    ("GET", "/v2/repository/index", 405), ("GET", "/v2/repository/models/scale/load", 405),
    ("POST", "/v2/repository/models/none/load", 404),
    ("POST", "/v2/repository/models/none/unload", 404),
    ("GET", "/v1", 404), ("GET", "/v2/", 200), ("GET", "/v2/models", 404),
    ("GET", "/v2/models//ready", 404), ("GET", "/v2/models/scale/what", 404),
    ("GET", "/metrics", 404), ("GET", "/v2/systemsharedmemory/status", 404),
    ("GET", "/v2/models/%73cale", 200), ("GET", "/v2/models/..%2fscale", 404),
    ("GET", "/v2/models/%2e%2e", 404), ("GET", "/v2/models/../models/scale", 404),
    ("GET", "/v2/models/sc%00ale", 404), ("GET", "/v2/models/%", 404),
    ("GET", "/v2/models/" + "a" * 500, 404),
]

X = {"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4]}

# A request body that must be refused, and a word of the reason.
BAD_REQUESTS = [
    ("", "empty"), ("{", "JSON"), ("[]", "object"), ("{}", "no inputs"), ("null", "object"),
    ('{"inputs": {}}', "array"), ('{"inputs": []}', "no inputs"), ('{"inputs": [1]}', "object"),
    ('{"inputs": [{}]}', "name"), ({"inputs": [dict(X, name="z")]}, "no input 'z'"),
    ({"inputs": [X, X]}, "twice"), ({"inputs": [dict(X, datatype="FP99")]}, "datatype"),
    ({"inputs": [dict(X, datatype="INT32")]}, "INT32"), ({"inputs": [dict(X, shape=[4])]}, "shape"),
    ({"inputs": [dict(X, shape=[1, 5])]}, "elements"), ({"inputs": [dict(X, shape=[2, 4])]}, "elements"),
    ({"inputs": [dict(X, shape=[-1, 4])]}, "negative"), ({"inputs": [dict(X, shape=[1] * 17)]}, "17|dimensions"),
    ({"inputs": [dict(X, shape=[2 ** 62, 2 ** 62])]}, "elements|large"),
    ({"inputs": [dict(X, shape=[1, 2 ** 40])]}, "elements|large"),
    ({"inputs": [dict(X, shape="1,4")]}, "array"), ({"inputs": [dict(X, shape=[1.5, 4])]}, "whole"),
    ({"inputs": [dict(X, data=[1, 2, 3])]}, "elements"), ({"inputs": [dict(X, data="abcd")]}, "array"),
    ({"inputs": [dict(X, data=[1, 2, 3, "4"])]}, "number"), ({"inputs": [dict(X, data=[1, 2, 3, None])]}, "number"),
    ({"inputs": [dict(X, data=[1, 2, 3, {}])]}, "number"), ({"inputs": [dict(X, name=7)]}, "string"),
    ('{"inputs":[{"name":"x","shape":[1,4],"datatype":"FP32","data":[1,2,3,1e999999]}]}', "large"),
    ('{"inputs":[{"name":"x","shape":[1,4],"datatype":"FP32","data":[1,2,3,1e39]}]}', "large"),
    ('{"inputs":[{"name":"x","shape":[1,4],"datatype":"FP32","data":[1,2,3,NaN]}]}', "number|character"),
    ('{"inputs":[{"name":"x","shape":[1,4],"datatype":"FP32","data":[1,2,3,%s]}]}' % ("1" * 5000), "digits"),
    ('{"inputs":[{"name":"x","shape":[1,4],"datatype":"FP32","data":[1,2,3,01]}]}', "number"),
    ('{"inputs":[{"name":"x","shape":[1,4],"datatype":"FP32","data":[1,2,3,4],}]}', "key"),
    ('{"inputs":[{"name":"x","shape":[1,4],"datatype":"FP32","data":[1,2,3,4]}]} x', "after"),
    ('{"a":' + "[" * 100000, "deep"), ('{"inputs":' + '{"a":' * 100000, "array"),
    ('{"inputs":[{"name":"x","data":' + "[" * 100000, "deep"),
    ('{"id":"\\ud800","inputs":[]}', "surrogate"), (b'{"id":"\xff"}', "UTF-8"),
    ({"id": 7, "inputs": [X]}, "string"), ({"inputs": [X], "outputs": [{"name": "q"}]}, "no output"),
    ({"inputs": [X], "outputs": [{"name": "y"}, {"name": "y"}]}, "twice"),
    ({"inputs": [X], "outputs": [{}]}, "name"), ({"inputs": [dict(X, data=None)]}, "array"),
    ({"inputs": [{k: v for k, v in X.items() if k != "data"}]}, "no data"),
    ({"inputs": [dict(X, parameters={"binary_data_size": 16})]}, "binary|both"),
    ({"inputs": [dict({k: v for k, v in X.items() if k != "data"}, parameters={"binary_data_size": 16})]},
     "Inference-Header"),
    ({"inputs": [X], "parameters": {"priority": -1}}, "range"),
    ({"inputs": [X], "parameters": {"timeout": "soon"}}, "number|JSON"),
]


def two_versions(folder):
    scale(folder, version=1, factor=2)
    scale(folder, version=3, factor=3)
    config(folder, "scale", 'version_policy { all { } }')


@test
def endpoints(folder):
    two_versions(folder)
    with Server(folder, "--admin") as server:
        client = Client(server)
        for method, path, status in ENDPOINTS:
            for slash in ("", "/"):
                if slash and path.endswith("/"):
                    continue
                reply = client.ask(method, path + slash, b"" if method == "POST" else None)
                check(reply.status == status,
                      "%s %s%s: %d, not %d %s" % (method, path, slash, reply.status, status, reply.body))
                if status >= 400 and method != "HEAD":
                    check(folder not in reply.error(), "no path in %r" % reply.body)
                if status == 405:
                    check(reply.headers.get("allow"), "%s %s says what is allowed" % (method, path))
        reply = client.get("/v2").json()
        check(reply["name"] == "sinter" and "binary_tensor_data" in reply["extensions"], "metadata")
        reply = client.get("/v2/models/scale").json()
        check(reply["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 4]}], reply)
        index = client.post("/v2/repository/index").json()
        check([(m["name"], m["version"], m["state"]) for m in index] ==
              [("scale", "3", "READY"), ("scale", "1", "READY")], index)


@test
def administration_is_closed(folder):
    scale(folder)
    with Server(folder) as server:
        client = Client(server)
        for method, path in [("POST", "/v2/repository/index"), ("POST", "/v2/repository/models/scale/unload"),
                             ("GET", "/v2/logging"), ("GET", "/v2/trace/setting")]:
            check(client.ask(method, path, b"").status == 403, path)
        check(client.get("/v2/models/scale/ready").status == 200, "still there")


@test
def bad_requests(folder):
    scale(folder)
    with Server(folder) as server:
        client = Client(server)
        for body, word in BAD_REQUESTS:
            text = body if isinstance(body, (str, bytes)) else json.dumps(body)
            reply = client.post("/v2/models/scale/infer", text)
            check(reply.status == 400 and re.search(word, reply.error()),
                  "%.100r: %d %s, not about %r" % (text, reply.status, reply.body, word))
        reply = client.infer("scale", np.float32([[1, 2, 3, 4]]))
        check(reply.status == 200 and reply.json()["outputs"][0]["data"] == [2, 4, 6, 8], reply.body)


@test
def element_types(folder):
    onnx_types = {name: helper.np_dtype_to_tensor_dtype(np.dtype(t)) if hasattr(helper, "np_dtype_to_tensor_dtype")
                  else onnx.mapping.NP_TYPE_TO_TENSOR_TYPE[np.dtype(t)] for name, t in TYPES.items()}
    values = {}
    for name, kind in TYPES.items():
        identity(folder, name, onnx_types[name])
        if name == "BOOL":
            values[name] = np.array([True, False, True])
        elif name.startswith("FP"):
            info = np.finfo(kind)
            values[name] = np.array([0.1, -0.0, info.max, info.tiny, info.eps, 1 / 3], kind)
        else:
            info = np.iinfo(kind)
            values[name] = np.array([info.min, info.max, 7], kind)
    with Server(folder) as server:
        client = Client(server)
        for name, value in values.items():
            reply = client.infer(name, value)
            check(reply.status == 200, reply.body)
            output = reply.json()["outputs"][0]
            back = np.array(output["data"], value.dtype)
            check(output["datatype"] == name and back.tobytes() == value.tobytes(), output)
            reply, outputs = client.infer_binary(name, value)
            check(reply.status == 200 and outputs["y"].tobytes() == value.tobytes(), reply.body)
        for bad in (256, -1, 1.5, "a"):
            reply = client.post("/v2/models/UINT8/infer", {"inputs": [
                {"name": "x", "shape": [1], "datatype": "UINT8", "data": [bad]}]})
            check(reply.status == 400, "%r as UINT8" % bad)
        reply = client.post("/v2/models/FP32/infer", {"inputs": [
            {"name": "x", "shape": [3], "datatype": "FP32", "data": ["NaN", "Infinity", "-Infinity"]}]})
        check(reply.json()["outputs"][0]["data"] == ["NaN", "Infinity", "-Infinity"], reply.body)
        reply = client.infer("FP32", np.zeros(0, np.float32))
        check(reply.status == 200 and reply.json()["outputs"][0]["data"] == [], reply.body)


@test
def strings(folder):
    identity(folder, "text", TensorProto.STRING)
    words = ["", "a", "häßlich \u2028 \"q\" \\ \n", "\U0001F600", "x" * 5000]
    with Server(folder) as server:
        client = Client(server)
        body = {"inputs": [{"name": "x", "shape": [5], "datatype": "BYTES", "data": words}]}
        reply = client.post("/v2/models/text/infer", body)
        check(reply.json()["outputs"][0]["data"] == words, reply.body[:300])
        packed = np.array([w.encode() for w in words] + [b"\x00\xff"], object)
        reply, outputs = client.infer_binary("text", packed)
        check(reply.status == 200 and list(outputs["y"]) == list(packed), reply.body[:300])
        for size, data in [(4, b"\5\0\0\0"), (3, b"\0\0\0"), (4, b"\xff\xff\xff\xff"), (8, b"\0\0\0\0\0\0\0\0")]:
            text = json.dumps({"inputs": [{"name": "x", "shape": [1], "datatype": "BYTES",
                                           "parameters": {"binary_data_size": size}}]}).encode()
            reply = client.post("/v2/models/text/infer", text + data,
                                Inference_Header_Content_Length=len(text))
            check(reply.status == 400, (size, reply.body))


@test
def binary_mistakes(folder):
    scale(folder)
    with Server(folder) as server:
        x = np.float32([[1, 2, 3, 4]])
        for size in (15, 17, 0, 2 ** 63, 2 ** 64, 10 ** 30, -1, 2 ** 32 + 16):
            text = json.dumps({"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32",
                                           "parameters": {"binary_data_size": size}}]}).encode()
            reply = Client(server).post("/v2/models/scale/infer", text + x.tobytes(),
                                        Inference_Header_Content_Length=len(text))
            check(reply.status == 400, (size, reply.body))
        text = json.dumps({"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32",
                                       "parameters": {"binary_data_size": 16}}]}).encode()
        for length, data in [(len(text), x.tobytes() + b"1"), (len(text), x.tobytes()[:-1]), (len(text), b""),
                             (len(text) + 1, x.tobytes()), (len(text) - 1, x.tobytes()), (0, x.tobytes()),
                             (10 ** 9, x.tobytes()), ("x", x.tobytes()), ("-1", x.tobytes())]:
            reply = Client(server).post("/v2/models/scale/infer", text + data,
                                        Inference_Header_Content_Length=length)
            check(reply.status == 400, (length, reply.status, reply.body))
        reply, outputs = Client(server).infer_binary("scale", x)
        check(reply.status == 200 and (outputs["y"] == 2 * x).all(), reply.body)


@test
def ids_outputs_and_parameters(folder):
    two_versions(folder)
    save(os.path.join(folder, "pair", "1", "model.onnx"),
         [helper.make_node("Neg", ["a"], ["n"]), helper.make_node("Add", ["a", "b"], ["s"])],
         [("a", TensorProto.FLOAT, ["N"]), ("b", TensorProto.FLOAT, ["N"])],
         [("n", TensorProto.FLOAT, ["N"]), ("s", TensorProto.FLOAT, ["N"])])
    with Server(folder) as server:
        client = Client(server)
        x = np.float32([[1, 2, 3, 4]])
        reply = client.infer("scale", x, id="über-7").json()
        check(reply["id"] == "über-7" and reply["model_version"] == "3", reply)
        reply = client.post("/v2/models/scale/versions/1/infer", {"inputs": [X]}).json()
        check(reply["model_version"] == "1" and reply["outputs"][0]["data"] == [2, 4, 6, 8], reply)
        body = {"inputs": [tensor("b", np.float32([1, 1])), tensor("a", np.float32([1, 2]))]}
        outputs = client.post("/v2/models/pair/infer", body).json()["outputs"]
        check([(o["name"], o["data"]) for o in outputs] == [("n", [-1, -2]), ("s", [2, 3])], outputs)
        body["outputs"] = [{"name": "s"}]
        outputs = client.post("/v2/models/pair/infer", body).json()["outputs"]
        check([o["name"] for o in outputs] == ["s"], outputs)
        body["outputs"] = [{"name": "s", "parameters": {"binary_data": True}}, {"name": "n"}]
        reply = client.post("/v2/models/pair/infer", body)
        size = int(reply.headers["inference-header-content-length"])
        head = json.loads(reply.body[:size])
        check(np.frombuffer(reply.body[size:], np.float32).tolist() == [2, 3], reply.body)
        check([o.get("data") for o in head["outputs"]] == [[-1, -2], None], head)
        body["parameters"] = {"binary_data_output": True}
        body["outputs"] = [{"name": "s", "parameters": {"binary_data": False}}, {"name": "n"}]
        reply = client.post("/v2/models/pair/infer", body)
        head = json.loads(reply.body[:int(reply.headers["inference-header-content-length"])])
        check([o.get("data") for o in head["outputs"]] == [None, [2, 3]], head)
        del body["parameters"]
        body["inputs"][0]["shape"] = [2, 1]
        check(client.post("/v2/models/pair/infer", body).status == 400, "rank")
        # nested data, and data before its shape
        body = {"inputs": [{"data": [[1, 2], [3, 4]], "shape": [1, 4], "name": "x", "datatype": "FP32"}]}
        check(client.post("/v2/models/scale/infer", body).json()["outputs"][0]["data"] == [3, 6, 9, 12], "late")
        reply = client.infer("scale", x, outputs=[{"name": "y", "parameters": {"classification": 2}}]).json()
        check(reply["outputs"][0]["data"] == ["12.000000:3", "9.000000:2"], reply)
        check(reply["outputs"][0]["shape"] == [1, 2], reply)


@test
def packed_bodies(folder):
    scale(folder)
    with Server(folder, "--max-body", "4") as server:
        client = Client(server)
        body = json.dumps({"inputs": [X]}).encode()
        for name, data in [("gzip", gzip.compress(body)), ("deflate", zlib.compress(body))]:
            reply = client.post("/v2/models/scale/infer", data, Content_Encoding=name)
            check(reply.status == 200, (name, reply.body))
        x = np.arange(400, dtype=np.float32).reshape(100, 4)
        text = json.dumps({"inputs": [{"name": "x", "shape": [100, 4], "datatype": "FP32",
                                       "parameters": {"binary_data_size": x.nbytes}}],
                           "parameters": {"binary_data_output": True}}).encode()
        reply = client.post("/v2/models/scale/infer", gzip.compress(text + x.tobytes()), Content_Encoding="gzip",
                            Accept_Encoding="gzip", Inference_Header_Content_Length=len(text))
        check(reply.headers.get("content-encoding") == "gzip", reply.headers)
        check((unpack(reply)["y"] == 2 * x).all(), "packed both ways")
        for name, data, status in [("gzip", b"nonsense" * 10, 400), ("gzip", gzip.compress(body)[:-9], 400),
                                   ("gzip", gzip.compress(body) + b"x", 400), ("br", body, 415),
                                   ("gzip", gzip.compress(b"0" * (64 << 20)), 413),
                                   ("gzip", gzip.compress(b'{"a":"' + b"0" * (64 << 20)), 413)]:
            reply = Client(server).post("/v2/models/scale/infer", data, Content_Encoding=name)
            check(reply.status == status, (name, reply.status, reply.body[:100]))
        check(server.rss() < 400 << 20, "a bomb takes little memory")


@test
def curl_speaks_it(folder):
    if not shutil.which("curl"):
        return
    scale(folder)
    with Server(folder) as server:
        base = "http://127.0.0.1:%d/v2" % server.ports["http"]

        def curl(*words):
            return subprocess.run(["curl", "-sS", *words], capture_output=True, timeout=PATIENCE).stdout
        body = json.dumps({"inputs": [X]})
        out = curl("-d", body, base + "/models/scale/infer")
        check(json.loads(out)["outputs"][0]["data"] == [2, 4, 6, 8], out)
        out = curl("-H", "Transfer-Encoding: chunked", "-d", body, base + "/models/scale/infer")
        check(json.loads(out)["outputs"][0]["data"] == [2, 4, 6, 8], out)
        big = os.path.join(folder, "big.json")
        rows = np.arange(40000, dtype=np.float32).reshape(10000, 4)
        with open(big, "w") as file:
            json.dump({"inputs": [tensor("x", rows)]}, file)
        out = curl("--data-binary", "@" + big, base + "/models/scale/infer")  # expects 100-continue
        check(json.loads(out)["outputs"][0]["data"] == (2 * rows).ravel().tolist(), out[:200])
        out = curl("-I", base)
        check(out.startswith(b"HTTP/1.1 200"), out)
        out = curl("--compressed", "--http1.0", base + "/models/scale")
        check(json.loads(out)["name"] == "scale", out)
