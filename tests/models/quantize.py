"""quantize.py PROGRAM FOLDER [NODE_MODULES] - sinter quantize and sinter prune on trained networks: how
many digits the results still tell, what the errors say, that work goes on where it was broken off, and
that ONNX Runtime runs the results alike."""

import json
import os
import subprocess
import sys

import numpy as np
import onnx

import digits

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM, FOLDER = sys.argv[1], sys.argv[2]
failures = []


def check(ok, what):
    if not ok:
        failures.append(what)
        print("FAILED:", what)


def at(name):
    return os.path.join(FOLDER, name)


def sinter(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)


def made(command, source, name, *options, data=True):
    """The report of a command that must succeed."""
    samples = ["--data", at("calibrate")] if data else []
    r = sinter(command, at(source), "-o", at(name), *samples, *options, "--json")
    check(r.returncode == 0, "%s %s: %s" % (command, name, r.stderr))
    check(not os.path.exists(at(name) + ".state"), name + " leaves no state behind")
    onnx.checker.check_model(onnx.load(at(name)))
    return json.loads(r.stdout or "{}")


def outputs(name, x):
    np.save(at("x.npy"), x)
    r = sinter("run", at(name), "-i", at("x.npy"), "-o", at("out"))
    check(r.returncode == 0, "run %s: %s" % (name, r.stderr))
    return np.load(at("out/y.npy"))


def operators(name):
    return {n.op_type for n in onnx.load(at(name)).graph.node}


# ---- How good the results are ----

# file, command, model, options, the least accuracy, operators that it has, part of the weights' bytes
RESULTS = [
    ("c8.onnx", "quantize", "cnn.onnx", ["--may-be-slower"], 0.96, "QuantizeLinear DequantizeLinear", 0.3),
    ("m8.onnx", "quantize", "mlp.onnx", ["--may-be-slower"], 0.96, "QuantizeLinear DequantizeLinear", 0.3),
    ("n8.onnx", "quantize", "cnn.onnx", ["--may-be-slower", "--target", "neon"], 0.96, "QuantizeLinear", 0.3),
    ("a8.onnx", "quantize", "cnn.onnx", ["--may-be-slower", "--target", "avx2"], 0.96, "QuantizeLinear", 0.3),
    ("d8.onnx", "quantize", "mlp.onnx", ["--to", "int8-dynamic"], 0.96, "DynamicQuantizeLinear MatMulInteger", 0.3),
    ("e8.onnx", "quantize", "cnn.onnx", ["--to", "int8-dynamic"], 0.96, "DynamicQuantizeLinear MatMulInteger", 0.8),
    ("c4.onnx", "quantize", "cnn.onnx", ["--to", "int4"], 0.96, "MatMulNBits", 0.75),
    ("m4.onnx", "quantize", "mlp.onnx", ["--to", "int4"], 0.96, "MatMulNBits", 0.2),
    ("m2.onnx", "quantize", "mlp.onnx", ["--to", "int2"], 0.94, "MatMulNBits", 0.12),
    ("h.onnx", "quantize", "cnn.onnx", ["--to", "fp16"], 0.96, "Cast", 0.5),
    ("b.onnx", "quantize", "cnn.onnx", ["--to", "bf16"], 0.96, "Cast", 0.5),
    ("mm.onnx", "quantize", "mlp.onnx", ["--to", "mixed", "--max-loss", "0.1%", "--may-be-slower"], 0.96, "", 1),
    ("s.onnx", "prune", "mlp.onnx", ["--sparsity", "60%"], 0.95, "", 0.45),
    ("p.onnx", "prune", "mlp.onnx", ["--pattern", "2:4"], 0.96, "", 0.55),
    ("pc.onnx", "prune", "cnn.onnx", ["--sparsity", "30%"], 0.92, "", 0.75),
]
NOT_IN_ORT = ("b.onnx", "m2.onnx")  # it has no kernels for bfloat16, and older ones none for 2 bits


def quality(x, y):
    found = {}
    for name, command, source, options, accuracy, ops, part in RESULTS:
        report = made(command, source, name, *options)
        found[name] = got = outputs(name, x)
        right = (got.argmax(1) == y).mean()
        size = report["bytes_after"] / report["bytes_before"]
        print("%-8s %-50s accuracy %.3f, loss %.2e, bytes %.3f" %
              (name, " ".join([command, source] + options), right, report["loss"], size))
        check(right >= accuracy, "%s tells %.3f of the digits" % (name, right))
        check(set(ops.split()) <= operators(name), "%s has %s" % (name, ops))
        check(size <= part, "%s takes %.3f of the bytes" % (name, size))
    return found


def fits(x, y):
    """Samples make few bits and many zeros better than weights alone do."""
    for command, options in (("quantize", ["--to", "int2"]), ("prune", ["--sparsity", "80%"])):
        made(command, "mlp.onnx", "with.onnx", *options)
        made(command, "mlp.onnx", "without.onnx", *options, data=False)
        right = [(outputs(n, x).argmax(1) == y).mean() for n in ("with.onnx", "without.onnx")]
        check(right[0] > right[1], "%s: %.3f with samples, %.3f without" % (command, *right))


def zeros():
    for w in onnx.load(at("p.onnx")).graph.initializer:
        w = onnx.numpy_helper.to_array(w)
        if w.ndim == 2:
            groups = w.T.reshape(w.shape[1], -1, 4)
            check(((groups != 0).sum(2) <= 2).all(), "two of four weights stay")


# ---- Choices, state, errors ----


def same_twice():
    for options in (["--to", "int4"], ["--may-be-slower"]):
        files = []
        for name in ("one.onnx", "two.onnx"):
            made("quantize", "mlp.onnx", name, *options)
            with open(at(name), "rb") as f:
                files.append(f.read())
        check(files[0] == files[1], "the same bytes twice")


def losses():
    report = made("quantize", "mlp.onnx", "l.onnx", "--to", "int2", "--max-loss", "0.6%", "--html", at("l.html"))
    check(report["loss"] <= 0.006, "the loss is kept")
    kept = [l["name"] for l in report["layers"] if l["precision"] == "float32"]
    check(0 < len(kept) < 3, "some layers stay: %s" % kept)
    with open(at("l.html")) as f:
        page = f.read()
    check("second" in page and "<svg" in page and "http" not in page, "the page stands alone")
    report = made("quantize", "mlp.onnx", "k.onnx", "--keep", "second", "--may-be-slower", "--calibration", "minmax")
    check([l["precision"] for l in report["layers"]] == ["int8", "float32", "int8"], "a layer is kept")
    r = sinter("quantize", at("mlp.onnx"), "-o", at("t.onnx"), "--data", at("calibrate"), "--to", "int4", "--task",
               "echo working; wc -c < $SINTER_MODEL", "--max-loss", "10%")
    check(r.returncode == 4 and "relative loss of the score" in r.stderr, "a smaller file is a loss here: " + r.stderr)
    report = made("quantize", "mlp.onnx", "t.onnx", "--to", "int4", "--task", "echo 1", "--max-loss", "0")
    check(report["loss"] == 0, "the score is the loss")
    report = made("quantize", "mlp.onnx", "t.onnx", "--teacher", at("cnn.onnx"), "--to", "int4", "--metric", "top1")
    check(0 < report["loss"] < 0.2, "the teacher tells other digits")


def goes_on():
    state = at("kept.state")
    arguments = ["quantize", at("mlp.onnx"), "-o", at("g.onnx"), "--data", at("calibrate"), "--to", "int2",
                 "--max-loss", "0.0001%", "--state", state]
    r = sinter(*arguments)
    check(r.returncode == 4 and "cannot be reached" in r.stderr and "'second'" in r.stderr, "says which: " + r.stderr)
    check(not os.path.exists(at("g.onnx")), "no result")
    with open(state) as f:
        lines = f.read().splitlines()
    check(len(lines) > 4, "the state has what was measured")
    check(sinter(*arguments).returncode == 4, "again")
    with open(state) as f:
        check(f.read().splitlines() == lines, "nothing is measured twice")
    with open(state, "w") as f:
        f.write("no state")
    r = sinter(*arguments)
    check(r.returncode == 4 and "no state of a quantisation" in r.stderr, "a foreign file stays: " + r.stderr)


def errors():
    def bad(code, words, *arguments, model="mlp.onnx", folder=None):
        data = ["--data", folder] if folder else []
        r = sinter("quantize", at(model), "-o", at("e.onnx"), *data, *arguments)
        check(r.returncode == code and all(w in r.stderr for w in words),
              "%s: %d, %s" % (arguments or folder, r.returncode, r.stderr))
        check(not os.path.exists(at("e.onnx")), "no result of " + str(arguments))

    def samples(name, **arrays):
        os.makedirs(at(name), exist_ok=True)
        for file, array in arrays.items():
            np.save(os.path.join(at(name), file), array)
        return at(name)

    good = np.zeros((1, 1, 8, 8), np.float32)
    bad(4, ["sample 1", "number 3 is NaN"], folder=samples("nan", a=good, b=np.where(np.arange(64) == 3, np.nan, 0)
                                                          .astype(np.float32).reshape(1, 1, 8, 8)))
    bad(2, ["sample 0", "[2,8]"], folder=samples("shape", a=np.zeros((2, 8), np.float32)))
    bad(4, ["takes float32"], folder=samples("type", a=good.astype(np.int32)))
    bad(3, ["empty"], folder=samples("none"))
    bad(3, ["No such file"], folder=at("nowhere"))
    bad(4, ["no input in any sample"], "--may-be-slower", folder=samples("zero", a=good[:0]))
    bad(4, ["quantised already", "'"], model="m8.onnx")
    bad(4, ["quantised already"], model="m4.onnx")
    bad(2, ["no layer 'x' to keep"], "--keep", "x")
    bad(2, ["without samples"], "--max-loss", "1%")
    bad(2, ["none of int8"], "--to", "int7")
    bad(2, ["blocks of 48"], "--to", "int4", "--block", "48")
    bad(4, ["no layer of the model can be int8"], model="cnn.onnx", *["--keep", "last"])
    r = sinter("prune", at("mlp.onnx"), "-o", at("e.onnx"), "--sparsity", "100%")
    check(r.returncode == 2 and "between 0 and 1" in r.stderr, "all weights: " + r.stderr)


# ---- The real ONNX Runtime ----


def in_onnx_runtime(modules, found, x):
    cases = os.path.join(FOLDER, "cases")
    for name in found:
        if name in NOT_IN_ORT:
            continue
        folder = os.path.join(cases, name[:-5])
        os.makedirs(folder)
        os.link(at(name), os.path.join(folder, "model.onnx"))
        x.tofile(os.path.join(folder, "x.bin"))
        with open(os.path.join(folder, "inputs.json"), "w") as f:
            json.dump([{"name": "x", "file": "x.bin", "type": "float32", "dims": x.shape}], f)
    subprocess.run(["node", os.path.join(HERE, "..", "differential", "run_ort.js"), cases, "all"], check=True,
                   env=dict(os.environ, NODE_PATH=modules))
    for case in sorted(os.listdir(cases)):
        folder, ours = os.path.join(cases, case), found[case + ".onnx"]
        with open(os.path.join(folder, "ort.json")) as f:
            report = json.load(f)
        if "outputs" not in report:
            check(False, "ONNX Runtime on %s: %s" % (case, report))
            continue
        theirs = np.fromfile(os.path.join(folder, "ort_0.bin"), np.float32).reshape(ours.shape)
        gap = np.abs(ours - theirs).max() / np.abs(theirs).max()
        print("%-8s largest difference from ONNX Runtime %.1e of the scale" % (case, gap))
        # Bytes: a sum that rounds to the other side moves a value by a step of its scale, 1/255.
        check(gap <= (0.01 if "8" in case or case == "mm" else 2e-3 if case == "h" else 1e-5),
              "%s: %.2e from ONNX Runtime" % (case, gap))


def main():
    digits.make(FOLDER)
    _, _, x, y = digits.data()
    found = quality(x, y)
    fits(x, y)
    zeros()
    same_twice()
    losses()
    goes_on()
    errors()
    if len(sys.argv) > 3:
        in_onnx_runtime(sys.argv[3], found, x)
    sys.exit(bool(failures))


main()
