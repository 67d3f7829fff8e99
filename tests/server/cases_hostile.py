"""cases_hostile.py - broken and malicious clients: an error, a bounded cost, the next one served."""
from harness import *

BODY = b'{"inputs":[{"name":"x","shape":[1,4],"datatype":"FP32","data":[1,2,3,4]}]}'
INFER = b"POST /v2/models/scale/infer HTTP/1.1\r\nHost: a\r\n"
N = str(len(BODY)).encode()


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


# Bytes on a connection, the status of the first answer, and how many answers come.
RAW = [
    (b"GET /v2 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 200, 1),
    (b"\r\n\r\nGET /v2 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 200, 1),
    (b"GET http://b/v2 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 200, 1),
    (b"GET /v2 HTTP/1.0\r\n\r\n", 200, 1),
    (b"GET /v2 HTTP/1.1\r\n\r\n", 400, 1),
    (b"GET /v2 HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, 1),
    (b"GET /v2 HTTP/1.1\nHost: a\n\n", 400, 1),
    (b"GET /v2 HTTP/1.1\r\nHost: a\n\r\n", 400, 1),
    (b"GET /v2 HTTP/1.1\r\nHost: a\r\n\n", 400, 1),
    (b"GET  /v2 HTTP/1.1\r\nHost: a\r\n\r\n", 400, 1),
    (b"GET /v2  HTTP/1.1\r\nHost: a\r\n\r\n", 400, 1),
    (b"GET /v2 HTTP/1.1 \r\nHost: a\r\n\r\n", 400, 1),
    (b"GET /v2\r\nHost: a\r\n\r\n", 400, 1),
    (b"GET /v2 HTTP/2.0\r\nHost: a\r\n\r\n", 505, 1),
    (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, 1),
    (b"G\x01T /v2 HTTP/1.1\r\nHost: a\r\n\r\n", 400, 1),
    (b"GET /v2\x00 HTTP/1.1\r\nHost: a\r\n\r\n", 400, 1),
    (b"GET v2 HTTP/1.1\r\nHost: a\r\n\r\n", 400, 1),
    (b"GET /v2 HTTP/1.1\r\nHost: a\r\nX : y\r\n\r\n", 400, 1),
    (b"GET /v2 HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n", 400, 1),
    (b"GET /v2 HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n", 400, 1),
    (b"GET /v2 HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n", 400, 1),
    (b"GET /v2 HTTP/1.1\r\nHost: a\r\nnocolon\r\n\r\n", 400, 1),
    (b"GET /v2 HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * 200 + b"\r\n", 431, 1),
    (b"GET /v2 HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 20000 + b"\r\n\r\n", 431, 1),
    (b"GET /" + b"y" * 20000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 414, 1),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 600 + b"\n\n", 400, 1),
    # smuggling
    (INFER + b"Content-Length: " + N + b"\r\nTransfer-Encoding: chunked\r\n\r\n" + BODY, 400, 1),
    (INFER + b"Content-Length: " + N + b"\r\nContent-Length: " + N + b"\r\n\r\n" + BODY, 400, 1),
    (INFER + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n" + BODY, 400, 1),
    (INFER + b"Content-Length: " + N + b", " + N + b"\r\n\r\n" + BODY, 400, 1),
    (INFER + b"Content-Length: +" + N + b"\r\n\r\n" + BODY, 400, 1),
    (INFER + b"Content-Length: -1\r\n\r\n" + BODY, 400, 1),
    (INFER + b"Content-Length: 0x10\r\n\r\n" + BODY, 400, 1),
    (INFER + b"Content-Length: \r\n\r\n" + BODY, 400, 1),
    (INFER + b"Content-Length: 99999999999999999999\r\n\r\n", 400, 1),
    (INFER + b"Content-Length: 9999999999999\r\n\r\n", 413, 1),
    (INFER + b"Content-Length : " + N + b"\r\n\r\n" + BODY, 400, 1),
    (INFER + b"Transfer-Encoding: gzip, chunked\r\n\r\n", 501, 1),
    (INFER + b"Transfer-Encoding: identity\r\n\r\n", 501, 1),
    (INFER + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 400, 1),
    (INFER + b"Transfer-Encoding: \x0bchunked\r\n\r\n", 400, 1),
    (b"POST /v2/models/scale/infer HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, 1),
    # chunks
    (INFER + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(BODY) + b"0\r\n\r\n", 200, 1),
    (INFER + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n" +
     b"".join(chunk(BODY[i:i + 1]) for i in range(len(BODY))) + b"0\r\nX: y\r\n\r\n", 200, 1),
    (INFER + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n" +
     b"%x;name=value\r\n" % len(BODY) + BODY + b"\r\n0\r\n\r\n", 200, 1),
    (INFER + b"Transfer-Encoding: chunked\r\n\r\n" + b"%x\n" % len(BODY) + BODY + b"\n0\n\n", 400, 1),
    (INFER + b"Transfer-Encoding: chunked\r\n\r\nx\r\n", 400, 1),
    (INFER + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n", 400, 1),
    (INFER + b"Transfer-Encoding: chunked\r\n\r\n0x10\r\n", 400, 1),
    (INFER + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n", 400, 1),
    (INFER + b"Transfer-Encoding: chunked\r\n\r\n5\r\nabcdefgh\r\n", 400, 1),
    (INFER + b"Transfer-Encoding: chunked\r\n\r\n5;" + b"x" * 5000 + b"\r\n", 400, 1),
    (INFER + b"Transfer-Encoding: chunked\r\n\r\n" + chunk(b"{" * 4096) * 300, 413, 1),
    # others
    (INFER + b"Content-Length: " + N + b"\r\nExpect: 200-ok\r\n\r\n" + BODY, 417, 1),
    (INFER + b"Content-Encoding: br\r\nContent-Length: 1\r\n\r\nx", 415, 1),
    (INFER + b"\r\n", 400, 1),  # no body; the connection goes on
]


@test
def raw_bytes(folder):
    scale(folder)
    with Server(folder, "--max-body", "1") as server:
        for data, status, count in RAW:
            got = raw(server, data)
            answers = len(re.findall(rb"HTTP/1\.1 [2-5]\d\d ", got))
            check(status_of(got) == status and answers == count,
                  "%.120r: %r (%d answers), not %d" % (data, got[:200], answers, status))
            check(folder.encode() not in got, "no path in the answer")
        check(Client(server).infer("scale", np.float32([[1, 2, 3, 4]])).status == 200, "still serving")


# Headers of a request to the admin endpoints, and the answer.
PAGES = [
    (b"Host: 127.0.0.1:%d\r\n", 200),
    (b"Host: localhost:%d\r\n", 200),
    (b"Host: [::1]:%d\r\n", 200),
    (b"Host: models.example\r\n", 200),
    (b"Host: MODELS.example:1\r\n", 200),
    (b"Host: evil.example\r\n", 403),
    (b"Host: localhost.evil.example\r\n", 403),
    (b"Host: 127.0.0.1.evil.example\r\n", 403),
    (b"Host: localhost:%d\r\nOrigin: http://localhost:%d\r\nSec-Fetch-Site: same-origin\r\n", 200),
    (b"Host: localhost:%d\r\nSec-Fetch-Site: none\r\n", 200),
    (b"Host: localhost:%d\r\nOrigin: http://evil.example\r\n", 403),
    (b"Host: localhost:%d\r\nOrigin: http://localhost:1\r\n", 403),
    (b"Host: localhost:%d\r\nOrigin: null\r\n", 403),
    (b"Host: localhost:%d\r\nSec-Fetch-Site: cross-site\r\n", 403),
    (b"Host: localhost:%d\r\nSec-Fetch-Site: same-site\r\n", 403),
    (b"Host: localhost:%d\r\nOrigin: http://localhost:%d\r\nOrigin: http://evil.example\r\n", 400),
    (b"Host: localhost:%d\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b\r\n", 400),
    (b"Host: localhost:%d\r\nX-API-Key: a\r\nX-API-Key: b\r\n", 400),
]


@test
def pages_of_other_sites(folder):
    """What a browser sends for a page elsewhere changes nothing here, also if the page's name resolves to us."""
    scale(folder)
    with Server(folder, "--admin", "--allow-host", "models.example") as server:
        port = server.ports["http"]
        for headers, status in PAGES:
            headers = headers % ((port,) * headers.count(b"%d"))
            got = raw(server, b"POST /v2/repository/index HTTP/1.1\r\n" + headers +
                      b"Content-Length: 0\r\nConnection: close\r\n\r\n")
            check(status_of(got) == status, "%r: %r, not %d" % (headers, got[:200], status))
        get = b"GET /v2 HTTP/1.1\r\nConnection: close\r\n"
        check(status_of(raw(server, get + b"Host: evil.example\r\n\r\n")) == 403, "a name that is not ours")
        check(status_of(raw(server, get + b"Host: localhost\r\nOrigin: http://evil.example\r\n\r\n")) == 200,
              "reading, which the browser keeps from the page")


@test
def half_requests(folder):
    """Every prefix of a good request: nothing but silence, an error or the end of the connection."""
    scale(folder)
    with Server(folder) as server:
        whole = INFER + b"Content-Length: " + N + b"\r\n\r\n" + BODY
        for cut in range(0, len(whole), 3):
            with socket.create_connection(("127.0.0.1", server.ports["http"])) as s:
                s.sendall(whole[:cut])
        got = raw(server, whole + b"GET /v2 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", wait=PATIENCE)
        check(got.count(b"HTTP/1.1 200") == 2, got)


@test
def pipelining(folder):
    scale(folder)
    with Server(folder) as server:
        one = INFER + b"Content-Length: " + N + b"\r\n\r\n" + BODY
        last = b"GET /v2/health/live HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        got = raw(server, one * 500 + last, wait=PATIENCE)
        check(got.count(b"[2.0,4.0,6.0,8.0]") == 500, "%d answers" % got.count(b"HTTP/1.1 200"))
        check(got.count(b"HTTP/1.1 200") == 501, "each in order")
        got = raw(server, b"GET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n" * 5000 + last, wait=PATIENCE)
        check(got.count(b"HTTP/1.1 200") == 5001, "%d of 5001" % got.count(b"HTTP/1.1 200"))


def serves(server, model="scale"):
    """Whether a request is answered. The server may be impatient: one that a busy machine holds up comes again."""
    def asked():
        try:
            return Client(server).infer(model, np.float32([[1, 2, 3, 4]])).status == 200
        except OSError:
            return False
    return until(asked)


@test
def slow_clients(folder):
    scale(folder)
    with Server(folder, "--head-timeout", "1", "--body-timeout", "1", "--idle-timeout", "1") as server:
        address = ("127.0.0.1", server.ports["http"])
        idle = [socket.create_connection(address) for _ in range(50)]
        head = socket.create_connection(address)
        body = socket.create_connection(address)
        head.sendall(b"GET /v2 HT")
        body.sendall(INFER + b"Content-Length: 100\r\n\r\n{")
        start = time.time()
        while time.time() - start < 2.5:  # a byte now and then does not help
            for s in (head, body):
                try:
                    s.sendall(b" ")
                except OSError:
                    pass
            time.sleep(0.2)
            check(serves(server), "others are served")
        for s, status in ((head, 408), (body, 408)):
            s.settimeout(PATIENCE)
            got = b""
            try:
                while piece := s.recv(4096):
                    got += piece
            except OSError:
                pass
            check(status_of(got) in (status, 0) and (got or s is head), "%r" % got)
            s.close()
        for s in idle:
            s.settimeout(PATIENCE)
            check(s.recv(10) == b"", "an idle connection is closed")
            s.close()


@test
def reader_that_never_reads(folder):
    identity(folder, "big", TensorProto.FLOAT)
    with Server(folder, "--body-timeout", "1") as server:
        x = np.zeros(4 << 20, np.float32)
        text = json.dumps({"inputs": [{"name": "x", "shape": [x.size], "datatype": "FP32",
                                       "parameters": {"binary_data_size": x.nbytes}}],
                           "parameters": {"binary_data_output": True}}).encode()
        head = (b"POST /v2/models/big/infer HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n"
                b"Inference-Header-Content-Length: %d\r\n\r\n" % (len(text) + x.nbytes, len(text)))
        for _ in range(20):  # on a busy machine the request itself may be late
            with socket.create_connection(("127.0.0.1", server.ports["http"])) as s:
                try:
                    s.sendall(head + text + x.tobytes())
                except OSError:
                    continue
                check(until(lambda: alone(server)), metrics(server))
            if 'nv_inference_request_success{model="big",version="1"} 1\n' in metrics(server):
                return
        check(False, metrics(server))


def metrics(server):
    return Client(server, "metrics").get("/metrics").body.decode()


def alone(server):
    """Whether no connection is open but the one that asks for it."""
    return "sinter_connections 1\n" in metrics(server)


@test
def connection_limits(folder):
    scale(folder)
    with Server(folder, "--max-connections", "20", "--max-per-address", "10") as server:
        address = ("127.0.0.1", server.ports["http"])
        check(until(lambda: alone(server)), metrics(server))
        held = [socket.create_connection(address) for _ in range(11)]
        closed, end = 0, time.time() + PATIENCE
        while not closed and time.time() < end:
            for s in held:
                s.setblocking(False)
                try:
                    closed += s.recv(10) == b""
                except BlockingIOError:
                    pass
            time.sleep(0.05)
        check(closed in (1, 2), "one or two of eleven are closed, not %d" % closed)  # who asked for metrics may be there
        for s in held:
            s.close()
        check(serves(server), "there is room again")


@test
def depth_limit(folder):
    """Data of a tensor is in an object, an array, an object and an array already."""
    scale(folder)
    for options, most in ((), 32), (("--max-depth", "6"), 6):
        with Server(folder, *options) as server:
            for depth in most, most + 1:
                body = '{"more": %s1%s, "inputs": [%s]}' % (
                    "[" * (depth - 1), "]" * (depth - 1), json.dumps(tensor("x", np.float32([[1, 2, 3, 4]]))))
                reply = Client(server).post("/v2/models/scale/infer", body.encode())
                check(reply.status == (200 if depth <= most else 400), (options, depth, reply.body))


@test
def memory_limits(folder):
    identity(folder, "big", TensorProto.FLOAT)
    with Server(folder, "--max-body", "64", "--max-memory", "32") as server:
        before = server.rss()
        reply, _ = Client(server).infer_binary("big", np.zeros(12 << 20, np.float32))
        check(reply.status == 503 and reply.headers.get("retry-after"), (reply.status, reply.body))
        reply, _ = Client(server).infer_binary("big", np.zeros(20 << 20, np.float32))
        check(reply.status == 413, (reply.status, reply.body))
        reply, outputs = Client(server).infer_binary("big", np.ones(1 << 20, np.float32))
        check(reply.status == 200 and outputs["y"].sum() == 1 << 20, reply.status)
        check(until(lambda: "sinter_request_memory_bytes 0\n" in metrics(server)), "everything is given back")
        check(server.rss() - before < 100 << 20, "rss")


@test
def labels_do_not_grow(folder):
    scale(folder)
    with Server(folder) as server:
        client = Client(server)
        before = len(metrics(server).splitlines())
        for i in range(200):
            client.post("/v2/models/no%d/infer" % i, b"{}")
            client.get("/v2/models/scale/versions/%d" % (i + 5))
        check(len(metrics(server).splitlines()) == before, "metrics have as many lines as before")
