"""cases_loading.py - folders as people lay them out, models that hang, and a server that stops nevertheless."""
import collections

from harness import *

X = np.float32([[1, 2, 3, 4]])


def answers(client, name, factor):
    reply = client.infer(name, X)
    check(reply.status == 200 and reply.json()["outputs"][0]["data"] == list(X[0] * factor),
          (name, reply.status, reply.body[:300]))


def flat(folder, path, factor):
    scale(folder, ".made", factor=factor)
    os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
    os.rename(os.path.join(folder, ".made", "1", "model.onnx"), os.path.join(folder, path))
    shutil.rmtree(os.path.join(folder, ".made"))


@test
def flat_layouts(folder):
    flat(folder, "a.onnx", 2)
    flat(folder, "b/model.onnx", 3)
    flat(folder, "c.onnx", 4)
    config(folder, "c", '{"max_batch_size": 0}')  # a configuration for a file at the top
    flat(folder, "d.onnx", 5)
    scale(folder, "d", factor=6, version=2)  # versions come first
    flat(folder, "e/model.onnx", 7)
    flat(folder, "e.onnx", 8)  # and then the folder's own
    flat(folder, "no model.onnx", 9)
    with open(os.path.join(folder, "readme.txt"), "w") as file:
        file.write("not a model")
    with Server(folder, "--poll", "0.2", "--admin") as server:
        client = Client(server)
        for name, factor in [("a", 2), ("b", 3), ("c", 4), ("d", 6), ("e", 7)]:
            answers(client, name, factor)
        check(client.get("/v2/models/c/config").json()["max_batch_size"] == 0, "its configuration is read")
        check('model="no model.onnx" reason="a name has' in server.said(), server.said())
        check("readme" not in server.said(), "other files are no models")
        check("ready served=\"5\"" in server.said(), server.said())
        flat(folder, "a.onnx", 20)  # changed, come and gone
        flat(folder, "f.onnx", 30)
        os.remove(os.path.join(folder, "b", "model.onnx"))
        check(until(lambda: client.infer("f", X).status == 200), "a new one")
        check(until(lambda: client.infer("b", X).status == 503), "one without a file")
        check(until(lambda: client.infer("a", X).json()["outputs"][0]["data"][0] == 20), "another one")
        ready = client.get("/v2/health/ready")
        check(ready.status == 503 and "model 'b': there is no b.onnx" in ready.error(), ready.body)
        os.rmdir(os.path.join(folder, "b"))
        check(until(lambda: client.get("/v2/health/ready").status == 200), "nobody wants it any more")


@test
def nothing_to_serve(folder):
    with Server(folder) as server:
        check("there is no model to serve" in server.said() and "NAME/model.onnx" in server.said(), server.said())


@test
def reasons(folder):
    """Who may ask about models is told why they are not ready; the page gets it with the statistics."""
    scale(folder)
    for name in "broken", "other":
        os.makedirs(os.path.join(folder, name))
        with open(os.path.join(folder, name, "model.onnx"), "wb") as file:
            file.write(b"nonsense")
    tokens = os.path.join(folder, ".tokens")
    with open(tokens, "w") as file:
        file.write("secret\n")
    with Server(folder, "--auth", "metadata=" + tokens, ready=False) as server:
        check(until(lambda: "not ready served=\"1\" missing=\"2\"" in server.said()), server.said())
        client = Client(server)
        check(client.get("/v2/health/ready").error() == "the server is not ready", "not for everybody")
        ready = client.get("/v2/health/ready", Authorization="Bearer secret")
        check(ready.status == 503 and "model 'broken': " in ready.error() and "model 'other'" in ready.error()
              and folder not in ready.error(), ready.body)
        stats = client.get("/v2/models/stats", Authorization="Bearer secret").json()
        check([m["name"] for m in stats["model_stats"]] == ["scale"], stats)
        missing = {m["name"]: m for m in stats["unavailable"]}
        check(sorted(missing) == ["broken", "other"] and missing["broken"]["reason"], stats)


@test
def a_model_that_hangs(folder):
    """Others load, also later ones; clients are told; the server stops in time."""
    for name in "hangs", "one", "two":
        scale(folder, name)
    control = faults()
    control.hang("hangs/1")
    server = Server(folder, "--load-timeout", "1", "--admin", "--drain", "1", ready=False, environment=control.environment)
    client = Client(server)
    check(until(lambda: client.infer("one", X).status == 200 and client.infer("two", X).status == 200), "others load")
    ready = client.get("/v2/health/ready")
    check(ready.status == 503, ready.body)
    check(until(lambda: "does not end" in client.get("/v2/health/ready").error()), server.said())
    check("model 'hangs': loading it takes longer than 1 s" in client.get("/v2/health/ready").error(), "it is named")
    check(client.infer("hangs", X).status == 503, "and not served")
    check(client.post("/v2/repository/models/hangs/unload").status == 503, "nobody waits behind it")
    scale(folder, "three")
    check(client.post("/v2/repository/models/three/load").status == 200, "later ones load")
    for i in range(3):  # as many threads as load at once hang by now
        scale(folder, "hangs%d" % i)
    control.hang("hangs")
    for i in range(3):
        check(client.post("/v2/repository/models/hangs%d/load" % i).status == 504, "in time")
    check(client.post("/v2/repository/models/two/load").status == 200, "other threads took their place")
    start = time.time()
    check(server.stop() == 0, server.said())
    check(time.time() - start < 10, "%.1f s to stop" % (time.time() - start))
    control.hang()


@test
def a_model_that_comes_late(folder):
    scale(folder, "hangs")
    control = faults()
    control.hang("hangs/1")
    with Server(folder, "--load-timeout", "1", "--admin", ready=False, environment=control.environment) as server:
        client = Client(server)
        check(until(lambda: "does not end" in client.get("/v2/health/ready").error()), server.said())
        control.hang()
        check(until(lambda: "its time limit" in client.get("/v2/health/ready").error()), "it ends, too late")
        check(client.post("/v2/repository/models/hangs/load").status == 200, "and loads the next time")
        check(client.infer("hangs", X).status == 200 and client.get("/v2/health/ready").status == 200, server.said())


@test
def stopping_while_models_load(folder):
    scale(folder, "hangs")
    control = faults()
    control.hang("hangs/1")
    server = Server(folder, "--drain", "0", ready=False, environment=control.environment)
    check(until(lambda: Client(server).get("/v2/health/ready").status == 503), "alive")
    check(server.stop() == 0, server.said())


@test
def stopping_while_a_run_hangs(folder):
    """--drain is kept whatever a kernel does."""
    shape = numpy_helper.from_array(np.int64([16 << 20]), "shape")
    save(os.path.join(folder, "big", "model.onnx"), [helper.make_node("Expand", ["x", "shape"], ["y"])],
         [("x", TensorProto.FLOAT, (1,))], [("y", TensorProto.FLOAT, (16 << 20,))], [shape])
    config(folder, "big", '{"max_batch_size": 0, "parameters": {"sinter_warmup": {"string_value": "0"}}}')
    control = faults()
    server = Server(folder, "--drain", "1", environment=control.environment)
    control.slow(32 << 20)
    body = json.dumps({"inputs": [tensor("x", np.float32([1]))]}).encode()
    head = b"POST /v2/models/big/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
    asked = threading.Thread(target=lambda: raw(server, head + body))
    asked.start()
    time.sleep(0.5)
    check(Client(server).get("/v2/health/live").status == 200, "alive while it hangs")
    check(asked.is_alive(), "it hangs")
    start = time.time()
    check(server.stop() == 0, server.said())
    check(0.5 < time.time() - start < 10, "%.1f s to stop" % (time.time() - start))
    asked.join()


@test
def a_model_that_takes_too_long(folder):
    """Making a session ends at the deadline by itself: products of large constants that could be folded."""
    one = numpy_helper.from_array(np.float32([1]), "one")
    shape = numpy_helper.from_array(np.int64([4096, 4096]), "shape")
    nodes = [helper.make_node("Expand", ["one", "shape"], ["m0"])]
    nodes += [helper.make_node("MatMul", ["m%d" % i, "m%d" % i], ["m%d" % (i + 1)]) for i in range(60)]
    nodes += [helper.make_node("ReduceSum", ["m60"], ["s"], keepdims=0), helper.make_node("Add", ["x", "s"], ["y"])]
    save(os.path.join(folder, "long.onnx"), nodes, [("x", TensorProto.FLOAT, (1,))],
         [("y", TensorProto.FLOAT, (1,))], [one, shape])
    scale(folder)
    with Server(folder, "--load-timeout", "1", "--admin", ready=False) as server:
        client = Client(server)
        check(until(lambda: client.infer("scale", X).status == 200), "others load")
        states = collections.Counter()
        check(until(lambda: "loaded a model" in server.said() and "ready served=" in server.said()), server.said())
        for line in client.post("/v2/repository/index").json():
            states[line["state"]] += 1
        check(states["LOADING"] == 0, (states, server.said()))
        check("hangs" not in server.said(), server.said())
