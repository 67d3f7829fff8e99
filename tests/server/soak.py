#!/usr/bin/python3
"""soak.py PROGRAM [SECONDS] - a long run by hand: load, reloads every 5 s, disconnects, bad requests, stopped
clients. Every answer is checked; exits with 1 if one was wrong or lost, or if memory grew.

Two models are asked by 12 clients over HTTP and, where python3-grpcio is installed, 4 over gRPC; `scale` is replaced
every 5 seconds by one with another factor, and an answer must be that of a factor that was in place while the request
was under way.
"""
import random
import struct
import sys

import harness
from harness import *
from cases_hostile import RAW
from cases_schedule import mlp

try:
    import grpc
except ImportError:
    grpc = None

SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 600
harness.PROGRAM = os.path.abspath(sys.argv[1])
counts = {"asked": 0, "asked over gRPC": 0, "wrong": 0, "lost": 0, "cut": 0, "bad": 0, "reloads": 0, "stops": 0}
lock = threading.Lock()
factors = [1]  # those that may answer now: the last two


def count(what, note=None):
    with lock:
        counts[what] += 1
        if note is not None and counts[what] <= 5:
            print(what, note, flush=True)


def ask_scale(server, end, seed):
    rng, client = random.Random(seed), Client(server)
    while time.time() < end:
        rows = rng.randint(1, 5)
        x = np.float32(np.random.RandomState(rng.randint(0, 1 << 30)).randint(1, 99, (rows, 4)))
        with lock:
            before = list(factors)
        try:
            if rng.random() < 0.5:
                reply, outputs = client.infer_binary("scale", x)
                y = outputs["y"] if outputs else None
            else:
                reply = client.infer("scale", x)
                y = np.float32(reply.json()["outputs"][0]["data"]).reshape(rows, 4) if reply.status == 200 else None
        except (OSError, http.client.HTTPException) as error:
            count("lost", error)
            client = Client(server)
            continue
        with lock:
            allowed = set(before) | set(factors)
        count("asked")
        if y is None or not any((y == x * f).all() for f in allowed):
            count("wrong", (reply.status, reply.body[:200], sorted(allowed)))


def field(number, data):
    """A field of a protobuf message with fewer than 128 bytes."""
    return bytes([number << 3 | 2, len(data)]) + data


def ask_grpc(server, end, seed):
    rng, path = np.random.RandomState(seed), "/inference.GRPCInferenceService/ModelInfer"
    with grpc.insecure_channel("127.0.0.1:%d" % server.ports["grpc"]) as channel:
        send = channel.unary_unary(path)
        while time.time() < end:
            x = np.float32(rng.randint(1, 99, (1 + rng.randint(5), 4)))
            shape = field(1, b"x") + field(2, b"FP32") + field(3, bytes(x.shape))
            with lock:
                before = list(factors)
            try:
                reply = send(field(1, b"scale") + field(5, shape) + field(7, x.tobytes()), timeout=60)
            except grpc.RpcError as error:
                count("lost", error)
                continue
            with lock:
                allowed = set(before) | set(factors)
            count("asked over gRPC")
            y = np.frombuffer(reply[-x.nbytes:], np.float32).reshape(x.shape)  # the last field
            if not any((y == x * f).all() for f in allowed):
                count("wrong", (reply, sorted(allowed)))


def ask_mlp(server, end, seed, reference):
    rng, client = np.random.RandomState(seed), Client(server)
    while time.time() < end:
        x = rng.rand(1 + rng.randint(3), 256).astype(np.float32)
        reply, outputs = client.infer_binary("mlp", x)
        count("asked")
        if reply.status != 200 or not np.allclose(outputs["y"], reference(x), rtol=1e-4, atol=1e-5):
            count("wrong", (reply.status, reply.body[:100]))


def cut_off(server, end, seed):
    """Connections that end anywhere: in the head, in the body, in the run, in the answer."""
    rng = random.Random(seed)
    x = np.ones((64, 256), np.float32)
    text = json.dumps({"inputs": [{"name": "x", "shape": [64, 256], "datatype": "FP32",
                                   "parameters": {"binary_data_size": x.nbytes}}]}).encode()
    whole = (b"POST /v2/models/mlp/infer HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n"
             b"Inference-Header-Content-Length: %d\r\n\r\n" % (len(text) + x.nbytes, len(text))) + text + x.tobytes()
    while time.time() < end:
        with socket.create_connection(("127.0.0.1", server.ports["http"])) as s:
            size = rng.choice([rng.randint(0, 300), rng.randint(0, len(whole)), len(whole)])
            s.sendall(whole[:size])
            time.sleep(rng.random() * 0.02)
        count("cut")


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def cut_off_grpc(server, end, seed):
    """The same over HTTP/2; some with a byte changed, some with the stream reset in the run."""
    rng = random.Random(seed)
    x = np.ones((64, 256), np.float32)
    shape = field(1, b"x") + field(2, b"FP32") + field(3, bytes(x.shape[:1]) + b"\x80\x02")
    head = field(1, b"mlp") + field(5, shape)
    size = len(x.tobytes())
    message = head + b"\x3a" + bytes([size & 127 | 128, size >> 7 & 127 | 128, size >> 14]) + x.tobytes()
    names = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/inference.GRPCInferenceService/ModelInfer"),
             (b":authority", b"a"), (b"te", b"trailers"), (b"content-type", b"application/grpc")]
    lines = b"".join(b"\0" + bytes([len(k)]) + k + bytes([len(v)]) + v for k, v in names)
    data = b"\0" + struct.pack(">I", len(message)) + message
    whole = (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0) + frame(1, 4, 1, lines)
             + b"".join(frame(0, 0, 1, data[at:at + 16000]) for at in range(0, len(data), 16000)) + frame(0, 1, 1))
    while time.time() < end:
        sent = bytearray(whole)
        if rng.random() < 0.3:
            sent[rng.randrange(len(sent))] ^= 1 << rng.randrange(8)
        with socket.create_connection(("127.0.0.1", server.ports["grpc"])) as s:
            try:
                s.sendall(sent[:rng.choice([rng.randint(0, 300), rng.randint(0, len(sent)), len(sent)])])
                time.sleep(rng.random() * 0.02)
                s.sendall(frame(3, 0, 1, b"\0\0\0\x08"))
            except OSError:
                pass
        count("cut")


def misbehave(server, end, seed):
    rng = random.Random(seed)
    while time.time() < end:
        data = bytearray(rng.choice(RAW)[0][:20000])
        for _ in range(rng.randint(0, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        raw(server, bytes(data), first=0.2, wait=0.2)
        count("bad")


def stop_and_go(server, end):
    """A load tool that is stopped and continued: its requests wait in its sockets."""
    body = json.dumps({"inputs": [tensor("x", np.float32([[1, 2, 3, 4]]))]})
    script = ("import http.client,sys\nc=http.client.HTTPConnection('127.0.0.1',%d)\n"
              "while True:\n c.request('POST','/v2/models/scale/infer',%r);c.getresponse().read()\n"
              % (server.ports["http"], body))
    children = [subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL) for _ in range(2)]
    while time.time() < end:
        for child in children:
            child.send_signal(signal.SIGSTOP)
        time.sleep(0.5)
        for child in children:
            child.send_signal(signal.SIGCONT)
        time.sleep(0.5)
        count("stops")
    for child in children:
        child.kill()
        child.wait()


def full_load(server, seconds, url, model):
    """Load tools keep the server busy; a request of theirs that fails is one too many."""
    done = subprocess.run([harness.PROGRAM, "load", url, "-m", model, "-c", "8", "-q", "-t", str(max(1, seconds - 2))],
                          capture_output=True, text=True, check=False)
    print(done.stdout, flush=True)
    if done.returncode:
        count("lost", done.stderr)


def reload(server, folder, end):
    client, factor = Client(server), 1
    while time.time() + 1 < end:
        time.sleep(min(5, SECONDS / 10))
        factor = factor % 50 + 1
        with lock:
            factors.append(factor)
        scale(folder, factor=float(factor))
        reply = client.post("/v2/repository/models/scale/load")
        if reply.status != 200:
            count("lost", reply.body)
        time.sleep(0.3)  # requests that took the old one are done
        with lock:
            del factors[:-1]
        count("reloads")


def main():
    folder = tempfile.mkdtemp(prefix="sinter-soak-")
    scale(folder, factor=1.0)
    reference = mlp(folder)
    end = time.time() + SECONDS
    doors = ["http", "grpc"] if grpc else ["http"]
    options = ["--admin", "--head-timeout", "60", "--body-timeout", "60"] + (["--grpc", "0"] if grpc else [])
    with Server(folder, *options) as server:
        work = [(ask_scale, i) for i in range(8)] + [(cut_off, 100), (cut_off, 101), (misbehave, 200)]
        if grpc:
            work += [(ask_grpc, 300 + i) for i in range(4)] + [(cut_off_grpc, 400)]
        threads = [threading.Thread(target=f, args=(server, end, seed)) for f, seed in work]
        threads += [threading.Thread(target=ask_mlp, args=(server, end, i, reference)) for i in range(4)]
        threads += [threading.Thread(target=reload, args=(server, folder, end)),
                    threading.Thread(target=stop_and_go, args=(server, end))]
        for door in doors:
            url = "%s://127.0.0.1:%d" % (door, server.ports[door])
            threads += [threading.Thread(target=full_load, args=(server, SECONDS, url, model))
                        for model in ("scale", "mlp")]
        for thread in threads:
            thread.start()
        sizes = []
        while time.time() < end:
            time.sleep(min(10, SECONDS / 10))
            sizes.append(server.rss() >> 10)
            print("%4.0f s left, %d KiB, %r" % (end - time.time(), sizes[-1], counts), flush=True)
        for thread in threads:
            thread.join()
        settled = max(sizes[len(sizes) // 4:len(sizes) // 2 + 1])
        grown = max(sizes[len(sizes) // 2:]) / settled
    shutil.rmtree(folder)
    print(counts, "memory: %.0f %% of what it was" % (100 * grown))
    return 1 if counts["wrong"] or counts["lost"] or broken[0] or grown > 1.15 else 0


if __name__ == "__main__":
    sys.exit(main())
