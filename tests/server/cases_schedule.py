"""cases_schedule.py - batching, priorities, queues, deadlines, cancellation, the cache."""
from harness import *


def together(count, work):
    """Calls work(i) in `count` threads at once; the results in order."""
    results = [None] * count
    threads = []

    def go(i):
        results[i] = work(i)
    for i in range(count):
        threads.append(threading.Thread(target=go, args=(i,)))
        threads[-1].start()
    for thread in threads:
        thread.join()
    return results


def stats(server, model):
    return Client(server).get("/v2/models/%s/stats" % model).json()["model_stats"][0]


def mlp(folder, name="mlp"):
    """Rows through a matrix: costly enough for requests to queue, and every row's result its own."""
    rng = np.random.RandomState(3)
    weights = [numpy_helper.from_array(rng.randn(256, 256).astype(np.float32) / 16, "w%d" % i)
               for i in range(8)]
    nodes, value = [], "x"
    for i in range(8):
        nodes.append(helper.make_node("MatMul", [value, "w%d" % i], ["m%d" % i]))
        nodes.append(helper.make_node("Relu", ["m%d" % i], ["y" if i == 7 else "r%d" % i]))
        value = "r%d" % i
    save(os.path.join(folder, name, "1", "model.onnx"), nodes,
         [("x", TensorProto.FLOAT, ["N", 256])], [("y", TensorProto.FLOAT, ["N", 256])], weights)

    def run(x):
        for w in weights:
            x = np.maximum(x @ numpy_helper.to_array(w), 0)
        return x
    return run


@test
def batches_give_each_its_own(folder):
    reference = mlp(folder)
    config(folder, "mlp", 'max_batch_size: 64\ndynamic_batching { max_queue_delay_microseconds: 20000 }\n'
                          'instance_group [ { count: 1 kind: KIND_CPU } ]')
    with Server(folder) as server:
        def ask(i):
            rng = np.random.RandomState(i)
            client, good = Client(server), 0
            for turn in range(10):
                x = rng.rand(1 + (i + turn) % 3, 256).astype(np.float32)
                reply, outputs = client.infer_binary("mlp", x)
                good += reply.status == 200 and np.allclose(outputs["y"], reference(x), rtol=1e-4, atol=1e-5)
            return good
        check(together(16, ask) == [10] * 16, "every row comes back to who sent it")
        seen = stats(server, "mlp")
        check(seen["inference_stats"]["success"]["count"] == 160, seen)
        reply, _ = Client(server).infer_binary("mlp", np.zeros((65, 256), np.float32))
        check(reply.status == 400, "more rows than max_batch_size")


@test
def full_batches_do_not_wait(folder):
    """The last of eight rows makes the batch full: one run for all, long before the delay is over."""
    reference = mlp(folder)
    config(folder, "mlp", 'max_batch_size: 8\ndynamic_batching { max_queue_delay_microseconds: 900000000 }\n'
                          'instance_group [ { count: 1 kind: KIND_CPU } ]')
    with Server(folder) as server:
        rows = np.random.RandomState(5).rand(16, 1, 256).astype(np.float32)
        for turn in 1, 2:
            for i, (reply, outputs) in enumerate(together(8, lambda i: Client(server).infer_binary("mlp", rows[i * turn]))):
                check(reply.status == 200, reply.body)
                check(np.allclose(outputs["y"], reference(rows[i * turn]), rtol=1e-4, atol=1e-5), "row %d" % i)
            check(stats(server, "mlp")["execution_count"] == turn, stats(server, "mlp"))


@test
def unlike_shapes_are_not_mixed(folder):
    save(os.path.join(folder, "sum", "1", "model.onnx"),
         [helper.make_node("ReduceMax", ["x"], ["y"], axes=[1], keepdims=0)],
         [("x", TensorProto.FLOAT, ["N", "T"])], [("y", TensorProto.FLOAT, ["N"])])
    config(folder, "sum", 'dynamic_batching { max_queue_delay_microseconds: 5000 } max_batch_size: 16')
    with Server(folder) as server:
        def ask(i):
            client, good = Client(server), 0
            for turn in range(10):
                x = np.random.RandomState(i * 100 + turn).rand(1 + i % 2, 1 + (i + turn) % 5).astype(np.float32)
                reply, outputs = client.infer_binary("sum", -x)
                good += reply.status == 200 and (outputs["y"] == (-x).max(1)).all()
            return good
        check(together(8, ask) == [10] * 8, "nothing is padded")


@test
def rows_that_depend_on_each_other(folder):
    """A first dimension that is no batch is found out, whatever it is called."""
    save(os.path.join(folder, "norm", "1", "model.onnx"), [helper.make_node("Softmax", ["x"], ["y"], axis=0)],
         [("x", TensorProto.FLOAT, ["batch", 3])], [("y", TensorProto.FLOAT, ["batch", 3])])
    scale(folder)
    with Server(folder) as server:
        client = Client(server)
        check(client.get("/v2/models/norm/config").json()["max_batch_size"] == 0, "softmax over rows")
        check(client.get("/v2/models/scale/config").json()["max_batch_size"] > 0, "scale")


@test
def one_bad_request_in_a_batch(folder):
    table = numpy_helper.from_array(np.arange(10, dtype=np.float32), "table")
    save(os.path.join(folder, "look", "1", "model.onnx"), [helper.make_node("Gather", ["table", "x"], ["y"])],
         [("x", TensorProto.INT64, ["N"])], [("y", TensorProto.FLOAT, ["N"])], [table])
    config(folder, "look", '{"max_batch_size": 32, "dynamic_batching": {"max_queue_delay_microseconds": 50000}}')
    with Server(folder) as server:
        def ask(i):
            x = np.array([99 if i == 3 else i], np.int64)
            return Client(server).infer_binary("look", x)
        for i, (reply, outputs) in enumerate(together(8, ask)):
            if i == 3:
                check(reply.status == 400, (reply.status, reply.body))
            else:
                check(reply.status == 200 and outputs["y"].tolist() == [i], (i, reply.body))


@test
def full_queue_and_deadlines(folder):
    slow(folder)
    config(folder, "slow", '{"instance_group": [{"count": 1}], "dynamic_batching": '
                           '{"default_queue_policy": {"max_queue_size": 2}}}')
    with Server(folder, "--model", "slow", "-v") as server:
        holder = hold(server)
        waiting = [threading.Thread(target=lambda: check(Client(server).infer("slow", np.array([5])).status == 200,
                                                         "queued requests are answered")) for _ in range(2)]
        for thread in waiting:
            thread.start()
        wait_for(server, 'nv_inference_pending_request_count{model="slow",version="1"} 2')
        for reply in together(3, lambda i: Client(server).infer("slow", np.array([5]))):
            check(reply.status == 503 and reply.headers.get("retry-after"), "full: %d, Retry-After" % reply.status)
        holder.close()  # and the run under way ends with its client
        for thread in waiting:
            thread.join()
        holder = hold(server)
        start = time.monotonic()
        codes = [r.status for r in together(2, lambda i: Client(server).infer("slow", np.array([5]),
                                                                              parameters={"timeout": 400000}))]
        check(codes == [504, 504], "deadlines hold although the only instance is busy: %r" % codes)
        check(time.monotonic() - start > 0.3, "not before their time")
        holder.close()
        reply = Client(server).infer("slow", np.array([5]))
        check(reply.status == 200, (reply.status, reply.body))
        check(until(lambda: stats(server, "slow")["inference_stats"]["fail"]["count"] >= 7), stats(server, "slow"))
        reply = Client(server).infer("slow", np.array([2 ** 40]), parameters={"timeout": 300000})
        check(reply.status == 504, "a deadline inside a run: %d" % reply.status)


def hold(server, model="slow"):
    """Occupies an instance until the connection that is returned is closed."""
    holder = socket.create_connection(("127.0.0.1", server.ports["http"]))
    body = json.dumps({"inputs": [tensor("x", np.array([2 ** 40]))]}).encode()
    holder.sendall(b"POST /v2/models/%s/infer HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s"
                   % (model.encode(), len(body), body))
    wait_for(server, 'sinter_running_count{model="%s",version="1"} 1' % model)
    return holder


def wait_for(server, line):
    if not until(lambda: line + "\n" in Client(server, "metrics").get("/metrics").body.decode()):
        check(False, "%r in the metrics" % line)


@test
def priorities(folder):
    """The order is the server's, by its trace: clients may see answers in another one."""
    models, path = os.path.join(folder, "models"), os.path.join(folder, "trace.json")
    slow(models)
    config(models, "slow", '{"instance_group": [{"count": 1}], "dynamic_batching": '
                           '{"priority_levels": 3, "default_priority_level": 2}}')
    with Server(models, "--threads", "1", "--trace", path) as server:
        holder = hold(server)

        def ask(priority):
            reply = Client(server).infer("slow", np.array([100]), id=str(priority), parameters={"priority": priority})
            check(reply.status == 200, reply.body)
        threads = []
        for i, priority in enumerate([3, 0, 1, 9]):
            threads.append(threading.Thread(target=ask, args=(priority,)))
            threads[-1].start()
            wait_for(server, 'nv_inference_pending_request_count{model="slow",version="1"} %d' % (i + 1))
        holder.close()
        for thread in threads:
            thread.join()
    with open(path) as file:
        order = [e["args"]["id"] for e in json.load(file) if e.get("name") == "request"]
    check(order == ["", "1", "0", "3", "9"], order)


@test
def disconnect_in_a_run(folder):
    slow(folder)
    with Server(folder, "--threads", "2") as server:
        body = json.dumps({"inputs": [tensor("x", np.array([2 ** 40]))]}).encode()
        head = (b"POST /v2/models/slow/infer HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body))
        for _ in range(10):  # more than there are threads: each must be given back
            with socket.create_connection(("127.0.0.1", server.ports["http"])) as s:
                s.sendall(head + body)
                wait_for(server, 'sinter_running_count{model="slow",version="1"} 1')
            wait_for(server, 'sinter_running_count{model="slow",version="1"} 0')
        check(Client(server).infer("slow", np.array([5])).status == 200, "the threads are free again")


@test
def short_runs_that_become_long(folder):
    """Short runs are not handed to another thread; one that looks like them must not hold up its loop."""
    slow(folder)
    with Server(folder, "--threads", "2", "--io-threads", "1") as server:
        client = Client(server)
        for _ in range(20):
            check(client.infer("slow", np.array([3])).status == 200, "short")
        holder = hold(server)
        check(client.get("/v2/health/live").status == 200, "live")  # else the loop is held up, without an end
        check(client.infer("slow", np.array([3])).status == 200, "the other instance")
        reply = client.infer("slow", np.array([2 ** 40]), parameters={"timeout": 200000})
        check(reply.status == 504, reply.body)
        holder.close()
        wait_for(server, 'sinter_running_count{model="slow",version="1"} 0')


@test
def run_limits(folder):
    slow(folder)
    identity(folder, "copy", TensorProto.FLOAT)
    save(os.path.join(folder, "grow", "1", "model.onnx"),
         [helper.make_node("MatMul", ["x", "x"], ["m"]), helper.make_node("Relu", ["m"], ["y"])],
         [("x", TensorProto.FLOAT, ["A", "A"])], [("y", TensorProto.FLOAT, ["A", "A"])])
    config(folder, "slow", 'parameters { key: "sinter_time_limit_ms" value { string_value: "200" } }')
    config(folder, "grow", '{"parameters": {"sinter_memory_limit": {"string_value": "1000000"}}}')
    with Server(folder) as server:
        check(Client(server).infer("slow", np.array([2 ** 40])).status == 504, "time")
        reply, _ = Client(server).infer_binary("grow", np.zeros((600, 600), np.float32))
        check(reply.status == 413, (reply.status, reply.body))
        reply, _ = Client(server).infer_binary("grow", np.zeros((10, 10), np.float32))
        check(reply.status == 200, "small ones run")


@test
def cache(folder):
    scale(folder)
    config(folder, "scale", 'response_cache { enable: true }')
    with Server(folder, "--admin") as server:
        client = Client(server)
        x = np.float32([[1, 2, 3, 4]])
        for i in range(5):
            reply = client.infer("scale", x)
            check(reply.json()["outputs"][0]["data"] == [2, 4, 6, 8], reply.body)
        reply = client.infer("scale", x + 1)
        check(reply.json()["outputs"][0]["data"] == [4, 6, 8, 10], reply.body)
        seen = stats(server, "scale")
        check(seen["inference_stats"]["cache_hit"]["count"] == 4, seen["inference_stats"])
        check(seen["execution_count"] == 2, seen)
        scale(folder, factor=5)
        check(client.post("/v2/repository/models/scale/load").status == 200, "load")
        reply = client.infer("scale", x)
        check(reply.json()["outputs"][0]["data"] == [5, 10, 15, 20], "a reloaded model has no old answers")
