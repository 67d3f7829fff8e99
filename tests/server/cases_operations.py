"""cases_operations.py - loading, reloading, stopping, watching, and who may do what."""
import ssl

from harness import *
from cases_schedule import wait_for

X = np.float32([[1, 2, 3, 4]])


def first(reply):
    return reply.json()["outputs"][0]["data"] if reply.status == 200 else reply.status


@test
def one_file(folder):
    scale(folder)
    with Server(os.path.join(folder, "scale", "1", "model.onnx")) as server:
        check(first(Client(server).infer("model", X)) == [2, 4, 6, 8], "named after the file")


@test
def what_cannot_start(folder):
    for words, code in [([os.path.join(folder, "none")], 3), ([folder, "--http", "99999"], 2), ([], 2),
                        ([folder, "--tls-cert", "x"], 2), ([folder, "--host", "localhost"], 3),
                        ([folder, "--auth", "x=/dev/null"], 3), ([folder, "--model", "none"], 3),
                        ([folder, "--nonsense"], 2), ([folder, folder], 2)]:
        done = subprocess.run([harness_program(), "serve", "--metrics", "0", *words]
                              + ([] if "--http" in words else ["--http", "0"]),
                              capture_output=True, timeout=PATIENCE)
        check(done.returncode == code, "%r: %d %r" % (words, done.returncode, done.stderr))


def harness_program():
    import harness
    return harness.PROGRAM


@test
def broken_models_do_not_stop_others(folder):
    scale(folder)
    os.makedirs(os.path.join(folder, "broken", "1"))
    with open(os.path.join(folder, "broken", "1", "model.onnx"), "wb") as file:
        file.write(b"nonsense")
    os.makedirs(os.path.join(folder, "empty"))
    scale(folder, "odd")
    config(folder, "odd", "max_batch_size: [")
    scale(folder, "wrong")
    config(folder, "wrong", '{"input": [{"name": "nope", "data_type": "TYPE_FP32", "dims": [4]}]}')
    with Server(folder, "--admin", ready=False) as server:
        check(until(lambda: "not ready served=" in server.said()), server.said())  # all was tried
        client = Client(server)
        check(client.get("/v2/health/live").status == 200, "alive")
        check(client.get("/v2/health/ready").status == 503, "but not ready: models are missing")
        check(first(client.infer("scale", X)) == [2, 4, 6, 8], "the good one serves")
        for name, status in [("broken", 503), ("empty", 503), ("odd", 503), ("wrong", 503)]:
            reply = client.infer(name, X)
            check(reply.status == status, (name, reply.status, reply.body))
        index = {m["name"]: m for m in client.post("/v2/repository/index").json()}
        check(index["broken"]["state"] == "UNAVAILABLE" and index["broken"]["reason"], index)
        check(folder not in json.dumps(index), "no paths")
        ready = client.post("/v2/repository/index", {"ready": True}).json()
        check([m["name"] for m in ready] == ["scale"], ready)
        reply = client.post("/v2/repository/models/broken/load")
        check(reply.status == 400 and folder not in reply.error(), reply.body)


@test
def load_and_unload(folder):
    scale(folder)
    scale(folder, "other", factor=7)
    with Server(folder, "--admin", "--explicit", "--model", "scale") as server:
        client = Client(server)
        check(client.infer("other", X).status == 404, "not asked for")
        check(client.post("/v2/repository/models/other/load").status == 200, "load")
        check(first(client.infer("other", X)) == [7, 14, 21, 28], "loaded")
        check(client.post("/v2/repository/models/other/unload").status == 200, "unload")
        check(client.infer("other", X).status == 404, "unloaded")
        check(client.post("/v2/repository/models/other/unload").status == 404, "again")
        text = json.dumps({"max_batch_size": 3})
        reply = client.post("/v2/repository/models/other/load",
                            {"parameters": {"config": "{}", "file:1/model.onnx": "AAAA"}})
        check(reply.status == 400 and "not supported" in reply.error(), "files in a request: %s" % reply.error())
        reply = client.post("/v2/repository/models/other/load", {"parameters": {"config": text}})
        check(reply.status == 200, reply.body)
        check(client.get("/v2/models/other/config").json()["max_batch_size"] == 3, "its configuration")
        for bad in ("{", "[]", json.dumps({"max_batch_size": -5})):
            reply = client.post("/v2/repository/models/other/load", {"parameters": {"config": bad}})
            check(reply.status == 400, (bad, reply.status))
        check(first(client.infer("other", X)) == [7, 14, 21, 28], "the old one still serves")


@test
def reload_under_load(folder):
    """Versions replace each other while 8 clients ask; every answer is one version's, none is lost."""
    scale(folder, factor=1)
    with Server(folder, "--admin") as server:
        stop = threading.Event()
        wrong, asked = [], [0] * 8

        def ask(i):
            client = Client(server)
            while not stop.is_set():
                reply, outputs = client.infer_binary("scale", X * (i + 1))
                asked[i] += 1
                factor = outputs["y"][0, 0] / (i + 1) if reply.status == 200 else 0
                if factor not in range(1, 40) or (outputs["y"] != X * (i + 1) * factor).any():
                    wrong.append((reply.status, reply.body))
            return True
        threads = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        admin = Client(server)

        def met():
            """Every client has had an answer since."""
            before = list(asked)
            check(until(lambda: all(a > b for a, b in zip(asked, before))), asked)
        for factor in range(2, 30):
            scale(folder, factor=float(factor))
            if factor % 3 == 0:
                server.process.send_signal(signal.SIGHUP)
                met()
            else:
                reply = admin.post("/v2/repository/models/scale/load")
                check(reply.status == 200, reply.body)
                check(first(admin.infer("scale", X)) == (X * factor).ravel().tolist(), "the new one answers")
            met()
        stop.set()
        for thread in threads:
            thread.join()
        check(not wrong, "%d of %d answers wrong: %r" % (len(wrong), sum(asked), wrong[:2]))
        check(min(asked) > 28, asked)


@test
def versions_and_polling(folder):
    scale(folder, version=1, factor=1)
    with Server(folder, "--poll", "0.1", "--admin") as server:
        client = Client(server)

        def becomes(what, truth):
            check(until(truth), what)
        scale(folder, version=2, factor=2)
        becomes("version 2 takes over", lambda: first(client.infer("scale", X)) == [2, 4, 6, 8])
        check(client.get("/v2/models/scale/versions/1").status == 404, "only the latest by default")
        config(folder, "scale", "version_policy { specific { versions: [1] } }")
        becomes("the policy changes", lambda: first(client.infer("scale", X)) == [1, 2, 3, 4])
        scale(folder, "new", factor=9)
        becomes("a new model", lambda: first(client.infer("new", X)) == [9, 18, 27, 36])
        shutil.rmtree(os.path.join(folder, "new"))
        becomes("a model goes", lambda: client.infer("new", X).status == 404)
        with open(os.path.join(folder, "scale", "1", "model.onnx.new"), "wb") as file:
            file.write(b"broken")
        os.rename(os.path.join(folder, "scale", "1", "model.onnx.new"),
                  os.path.join(folder, "scale", "1", "model.onnx"))
        becomes("the broken file is seen", lambda: "could not load a model" in server.said())
        check(first(client.infer("scale", X)) == [1, 2, 3, 4], "a broken file leaves the old one serving")


@test
def resting_models_give_memory_back(folder):
    """A model whose runs need 16 MB or more: they go when it rests, once, and come back with a request."""
    rows = 2 ** 22
    save(os.path.join(folder, "wide", "1", "model.onnx"),
         [helper.make_node("Expand", ["x", "shape"], ["wide"]), helper.make_node("Sin", ["wide"], ["sine"]),
          helper.make_node("CumSum", ["sine", "axis"], ["sums"]),
          helper.make_node("ReduceMax", ["sums"], ["y"], axes=[0])],
         [("x", TensorProto.FLOAT, [1, 1])], [("y", TensorProto.FLOAT, [1, 1])],
         [numpy_helper.from_array(np.array([rows, 1]), "shape"), numpy_helper.from_array(np.array(0), "axis")])
    shutil.copytree(os.path.join(folder, "wide"), os.path.join(folder, "other"))
    for options, trims in [(("--trim", "0.4"), True), (("--trim", "0"), False)]:
        with Server(folder, "-v", *options) as server:
            client = Client(server)
            answer = first(client.infer("wide", np.float32([[1]])))
            freed, count = after_rest(server, trims)
            for _ in range(9):  # on a busy machine the memory may have gone before it was measured
                if freed > rows * 3 or not trims:
                    break
                check(first(client.infer("wide", np.float32([[1]]))) == answer, "the same answer again")
                freed, count = after_rest(server, trims, count)
            check(freed > rows * 3 if trims else freed < rows * 2, "%d bytes given back" % freed)
            if trims:  # when another model's turn has come and gone, nothing more was taken from this one
                client.infer("other", np.float32([[1]]))
                check(until(lambda: trimmed(server, "other") > 0), server.said())
            check(trimmed(server) == count, "not again without a run")
            check(first(client.infer("wide", np.float32([[1]]))) == answer, "the same answer afterwards")


def trimmed(server, model="wide"):
    """How often the server says that this model gave memory back."""
    return sum("trimmed a model" in line and model in line for line in server.said().splitlines())


def after_rest(server, trims, count=0):
    """Bytes that a model which rests now gives back, and how often the server said so; `count`: before."""
    held = server.rss()
    until(lambda: trimmed(server) > count, PATIENCE if trims else 1)
    now = trimmed(server)
    check((now > count) == trims, server.said())
    return held - server.rss(), now


@test
def drain(folder):
    slow(folder)
    for turns in 200000, 1000000, 5000000:  # the run must not be over before the signal comes
        if drained(folder, turns):
            return
    check(False, "the request under way is answered, and the connection closed")


def drained(folder, turns):
    server = Server(folder, "--drain", PATIENCE)
    idle = socket.create_connection(("127.0.0.1", server.ports["http"]))
    results = []
    thread = threading.Thread(target=lambda: results.append(Client(server).infer("slow", np.array([turns]))))
    thread.start()
    running = 'sinter_running_count{model="slow",version="1"} 1\n'
    check(until(lambda: results or running in Client(server, "metrics").get("/metrics").body.decode()), "running")
    server.process.send_signal(signal.SIGTERM)
    thread.join()
    check(results and results[0].status == 200, "the request under way is answered")
    check(server.stop() == 0, "the server ends")
    idle.settimeout(PATIENCE)
    check(idle.recv(10) == b"", "idle connections are closed")
    return results[0].headers.get("connection") == "close"


@test
def drain_has_an_end(folder):
    slow(folder)
    server = Server(folder, "--drain", "0.5")
    body = json.dumps({"inputs": [tensor("x", np.array([2 ** 40]))]}).encode()
    s = socket.create_connection(("127.0.0.1", server.ports["http"]))
    s.sendall(b"POST /v2/models/slow/infer HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    wait_for(server, 'sinter_running_count{model="slow",version="1"} 1')
    start = time.monotonic()
    check(server.stop() == 0 and time.monotonic() - start < 25, "an endless run is cut, before the usual 30 s")


@test
def tokens(folder):
    scale(folder)
    for name, text in (("users", "# people\nalpha\nbeta\n"), ("admins", "gamma\n")):
        with open(os.path.join(folder, name), "w") as file:
            file.write(text)
    with Server(folder, "--admin", "--auth", "infer,metadata=%s/users" % folder,
                "--auth", "admin,infer=%s/admins" % folder) as server:
        client = Client(server)
        for headers, infer, admin in [({}, 401, 401), ({"Authorization": "Bearer alpha"}, 200, 403),
                                      ({"Authorization": "bearer beta"}, 200, 403), ({"X_API_Key": "gamma"}, 200, 200),
                                      ({"Authorization": "Bearer alph"}, 401, 401), ({"X_API_Key": "alphaa"}, 401, 401),
                                      ({"Authorization": "Bearer "}, 401, 401), ({"Authorization": "Basic alpha"}, 401, 401),
                                      ({"X_API_Key": "# people"}, 401, 401)]:
            body = json.dumps({"inputs": [tensor("x", X)]})
            check(client.post("/v2/models/scale/infer", body, **headers).status == infer, (headers, infer))
            check(client.post("/v2/repository/index", **headers).status == admin, (headers, admin))
        check(client.get("/v2/health/ready").status == 200, "health is open")
        check(client.get("/v2").status == 401, "metadata is not")
        check("www-authenticate" in client.get("/v2").headers, "it says how")
        check(Client(server, "metrics").get("/metrics").status == 200, "no rule for metrics")


def make_certificate(key, cert):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert,
                    "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"],
                   check=True, capture_output=True)


def certificate(server):
    return ssl.get_server_certificate(("127.0.0.1", server.ports["http"]), timeout=PATIENCE)


@test
def encrypted(folder):
    if not shutil.which("openssl"):
        return
    scale(os.path.join(folder, "models"))
    key, cert = os.path.join(folder, "key.pem"), os.path.join(folder, "cert.pem")
    make_certificate(key, cert)
    with Server(os.path.join(folder, "models"), "--tls-cert", cert, "--tls-key", key) as server:
        context = ssl.create_default_context(cafile=cert)
        client = Client(server)
        client.connection = http.client.HTTPSConnection("127.0.0.1", server.ports["http"], context=context,
                                                        timeout=PATIENCE)
        check(until(lambda: client.get("/v2/health/ready").status == 200), "ready")
        check(first(client.infer("scale", X)) == [2, 4, 6, 8], "over TLS")
        rows = np.random.rand(100000, 4).astype(np.float32)
        reply, outputs = client.infer_binary("scale", rows)
        check(reply.status == 200 and (outputs["y"] == rows * 2).all(), "much over TLS")
        check(raw(server, b"GET /v2 HTTP/1.1\r\nHost: a\r\n\r\n", first=3)[:4] != b"HTTP", "no plain answer")
        old = certificate(server)
        make_certificate(key, cert)
        server.process.send_signal(signal.SIGHUP)  # certificates are read again
        check(until(lambda: certificate(server) != old), "new connections get the new certificate")
        check(first(client.infer("scale", X)) == [2, 4, 6, 8], "an old connection goes on")


@test
def socket_activation(folder):
    scale(folder)
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    # the descriptor must be 3: a small shell puts it there
    script = 'exec 3<&%d; LISTEN_PID=$$ LISTEN_FDS=1 exec "$@"' % listener.fileno()
    process = subprocess.Popen(["bash", "-c", script, "sh", harness_program(), "serve", folder,
                                "--metrics", "off", "--quiet"],
                               pass_fds=[listener.fileno()], stdout=subprocess.DEVNULL)

    class Here:
        ports = {"http": listener.getsockname()[1]}
    check(first(Client(Here).infer("scale", X)) in ([2, 4, 6, 8], 404, 503), "a client may come first")
    check(until(lambda: first(Client(Here).infer("scale", X)) == [2, 4, 6, 8]), "served on the socket that was given")
    process.terminate()
    try:
        check(process.wait(PATIENCE) == 0, "ends")
    except subprocess.TimeoutExpired:
        process.kill()
        check(False, "ends")


@test
def metrics_say_what_happened(folder):
    scale(folder)
    with Server(folder) as server:
        client = Client(server)
        for _ in range(7):
            client.infer("scale", np.float32([[1, 2, 3, 4]] * 3))
        client.infer("scale", np.float32([1]))
        text = Client(server, "metrics").get("/metrics").body.decode()
        label = '{model="scale",version="1"}'
        for line in ["nv_inference_request_success%s 7" % label, "nv_inference_count%s 21" % label,
                     "nv_inference_exec_count%s 7" % label, "nv_inference_pending_request_count%s 0" % label,
                     'sinter_request_duration_seconds_bucket{model="scale",version="1",le="+Inf"} 7']:
            check(line + "\n" in text, "%r in the metrics" % line)
        for line in text.splitlines():  # the form that Prometheus reads
            good = line.startswith("#") or re.match(r'[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [0-9.e+-]+$', line)
            check(good, line)
        seen = client.get("/v2/models/scale/stats").json()["model_stats"][0]
        check(seen["batch_stats"][0]["batch_size"] == 3, seen)


@test
def trace_and_logs(folder):
    scale(os.path.join(folder, "models"))
    path = os.path.join(folder, "trace.json")
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    with Server(os.path.join(folder, "models"), "--trace", path, "--log-json", "-v", "--admin") as server:
        client = Client(server)
        body = json.dumps({"id": "t1", "inputs": [tensor("x", X)]})
        check(client.post("/v2/models/scale/infer", body, traceparent=parent).status == 200, "traced")
        reply = client.post("/v2/trace/setting", {"trace_level": ["OFF"]})
        check(reply.json()["trace_level"] == ["OFF"], reply.body)
        client.infer("scale", X, id="t2")
        reply = client.post("/v2/trace/setting", {"trace_rate": "0"})
        check(reply.status == 400, "no rate of 0")
        reply = client.post("/v2/logging", {"log_verbose_level": 0, "log_info": False})
        check(reply.json()["log_verbose_level"] == 0, reply.body)
        check(client.post("/v2/logging", {"log_file": "/etc/passwd"}).status == 400, "no file by request")
        lines = [json.loads(line) for line in server.said().splitlines()]
        check(any(l["message"] == "request" and l["status"] == "200" for l in lines), lines)
    with open(path) as file:
        events = [e for e in json.load(file) if e]
    check({e["name"] for e in events} >= {"request", "queue", "infer"}, events)
    check(all(e["args"]["traceparent"] == parent and e["args"]["id"] == "t1" for e in events), events)
    with Server(os.path.join(folder, "models"), "--trace", path, "--trace-rate", "1000") as server:
        client = Client(server)
        for name, flags in ("first", "00"), ("no", "00"), ("sampled", "03"), ("not", "02"):
            body = json.dumps({"id": name, "inputs": [tensor("x", X)]})
            client.post("/v2/models/scale/infer", body, traceparent=parent[:-2] + flags)
    with open(path) as file:
        check({e["args"]["id"] for e in json.load(file) if e} == {"first", "sampled"}, "one in 1000, and sampled ones")
