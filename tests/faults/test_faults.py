#!/usr/bin/python3
"""test_faults.py PROGRAM LIBRARY - the n-th call of each kind fails, for every n: in commands of the program and in a
server. Nothing crashes, errors are told, files are whole or as they were, and the server serves on without a descriptor
more. Exit code 77 when something is missing."""
import os
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.abspath(__file__))
sys.path += [os.path.join(TOP, "..", "server"), TOP]
sys.dont_write_bytecode = True
try:
    import harness
    import numpy as np
except ImportError as missing:
    print("skipped: %s" % missing)
    sys.exit(77)
import subprocess

from faults import KINDS, Faults

counts = {"passed": 0, "failed": 0}
LEAST = 12  # steps below which every n is tried; beyond STEPS they are spread evenly
STEPS = 60


def check(truth, what):
    counts["passed" if truth else "failed"] += 1
    if not truth:
        print("FAIL", what, flush=True)


def numbers(most):
    """Which calls fail: all of the first ones, and a spread of the others, the last included."""
    if most <= STEPS:
        return list(range(1, most + 1))
    return sorted({*range(1, LEAST + 1), *(round(i) for i in np.linspace(LEAST + 1, most, STEPS - LEAST))})


# ---- Commands ------------------------------------------------------------------------------------

class Command:
    """A command, what must come of it, and what may be left when it fails."""

    def __init__(self, control, words, folder, prepare=lambda: None, judge=lambda code: True):
        self.control, self.words, self.folder = control, words, folder
        self.prepare, self.judge = prepare, judge

    def run(self):
        self.prepare()
        done = subprocess.run([harness.PROGRAM, *self.words], capture_output=True, cwd=self.folder, timeout=300,
                              env=self.control.environment)
        return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")

    def attack(self):
        self.control.clear()
        code, good, err = self.run()
        check(code == 0, (self.words, code, err))
        seen = {kind: self.control.seen(kind) for kind in KINDS}
        for kind in KINDS:
            for n in numbers(seen[kind]):
                self.control.clear()
                self.control.fail(kind, n)
                code, out, err = self.run()
                what = "%s with %s %d failing: %d\n%s%s" % (" ".join(self.words), kind, n, code, out[:300], err[:300])
                check(0 <= code <= 4, what)
                check(code == 0 or kind in ("alloc", "write") or err, "tells why: " + what)
                check("internal" not in err, what)
                check(code != 0 or without_times(out) == without_times(good) or kind == "write", "all of it: " + what)
                check(self.judge(code), "left behind: " + what)
                check(not [f for f in os.listdir(self.folder) if ".part" in f], "half a file: " + what)
        self.control.clear()
        return seen


def without_times(text):
    return "\n".join(line for line in text.splitlines() if not line.startswith("ran in"))


def read(path):
    with open(path, "rb") as file:
        return file.read()


def commands(control, folder):
    harness.scale(folder, "m")
    np.save(os.path.join(folder, "x.npy"), np.float32([[1, 2, 3, 4]]))
    model, out = os.path.join("m", "1", "model.onnx"), os.path.join(folder, "out")

    def old():
        with open(out, "wb") as file:
            file.write(b"old")

    def old_or_new(code):
        text = read(out)
        return len(text) > 1000 or (text == b"old" and code)

    run = ["run", model, "-i", "x.npy"]
    Command(control, run, folder).attack()
    Command(control, ["compile", model, "-o", "out"], folder, old, old_or_new).attack()
    Command(control, ["optimize", model, "-o", "out"], folder, old, lambda code: len(read(out)) > 60 or (read(out) == b"old" and code)).attack()
    cached = Command(control, run + ["--cache", "cache"], folder)
    cached.attack()  # its files are written again and again
    code, _, err = cached.run()
    check(code == 0, "the cache is good: %s" % err)


# ---- A server ------------------------------------------------------------------------------------

def descriptors(server):
    return len(os.listdir("/proc/%d/fd" % server.process.pid))


def ask(server, deed):
    """What a client sees: a status, or that the connection broke."""
    try:
        return deed(harness.Client(server)).status
    except (OSError, harness.http.client.HTTPException):
        return 0


X = np.float32([[1, 2, 3, 4]])
DEEDS = {
    "a request": lambda client: client.infer("scale", X),
    "a load": lambda client: client.post("/v2/repository/models/scale/load"),
    "the index": lambda client: client.post("/v2/repository/index"),
}


def serving(control, folder):
    harness.scale(folder)
    control.clear()
    with harness.Server(folder, "--admin", "--threads", "1", "--io-threads", "1", "--head-timeout", "2", "--quiet",
                        environment=control.environment) as server:
        for deed in DEEDS.values():
            check(ask(server, deed) == 200, "it serves")
        before = descriptors(server)
        for name, deed in DEEDS.items():
            control.clear()
            ask(server, deed)
            seen = {kind: control.seen(kind) for kind in KINDS}
            for kind in KINDS:
                for n in numbers(seen[kind]):
                    control.fail(kind, n)
                    status = ask(server, deed)
                    control.fail(kind, 0)
                    what = "%s with %s %d failing: %d" % (name, kind, n, status)
                    check(status in (0, 200, 400, 500, 503), what)
                    check(server.process.poll() is None, "alive after " + what)
                    if name == "a load" and status != 200:
                        check(ask(server, deed) == 200, "loads again after " + what)
                    reply = harness.until(lambda: ask(server, DEEDS["a request"]) == 200, 20)
                    check(reply, "serves after " + what)
        check(harness.until(lambda: descriptors(server) <= before), "%d descriptors, %d before" % (descriptors(server), before))


def main():
    harness.PROGRAM = os.path.abspath(sys.argv[1])
    control = Faults(os.path.abspath(sys.argv[2]))
    for part in (commands, serving):
        if len(sys.argv) > 3 and part.__name__ not in sys.argv[3:]:
            continue
        start = time.time()
        with tempfile.TemporaryDirectory(prefix="sinter-faults-") as folder:
            part(control, folder)
        print("%s: %d checks so far, %.1f s" % (part.__name__, counts["passed"] + counts["failed"], time.time() - start), flush=True)
    failed = counts["failed"] + harness.broken[0]
    print("%d passed, %d failed, 0 skipped" % (counts["passed"], failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
