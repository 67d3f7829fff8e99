#!/usr/bin/python3
"""test_provider.py PROGRAM GUARDED THRESHOLD RUN_OPS - providers from the command line: what is told of them,
what fails, and that a failure at any call is an error that names provider and part, or is made good.
GUARDED is tests/provider/guarded.c, THRESHOLD examples/provider/threshold.c; RUN_OPS writes models
as ONNX files."""

import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import time

PROGRAM, GUARDED, THRESHOLD, RUN_OPS = sys.argv[1:5]
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODEL = os.path.join(TOP, "demo/digits.onnx")
WORK = tempfile.mkdtemp(prefix="provider-")

failures = 0


def check(condition, what, *details):
    global failures
    if not condition:
        failures += 1
        print("FAIL", what, *details, sep="\n  ")


def sinter(*args, env=None):
    """Exit code, stdout and stderr; a signal is a negative code."""
    done = subprocess.run([PROGRAM, *args], capture_output=True, text=True, timeout=300,
                          env={**os.environ, **(env or {})})
    check(done.returncode >= 0, f"{args} ended by signal {-done.returncode}", done.stderr[-2000:])
    return done.returncode, done.stdout, done.stderr


def run(provider, *more, model=MODEL, library=GUARDED, env=None):
    return sinter("run", model, "--random", "--provider-library", library, "--provider", provider,
                  "--optimize", "1", *more, env=env)


def values(out):
    """What `run` prints, without times."""
    return re.sub(r"ran in .*", "", out)


def numbers(out):
    return [float(x) for x in re.findall(r"-?\d+\.\d+(?:e-?\d+)?", values(out))]


def same(a, b):
    a, b = numbers(a), numbers(b)
    return len(a) == len(b) > 0 and all(abs(x - y) <= 1e-4 + 1e-3 * abs(y) for x, y in zip(a, b))


def model_of(name, body):
    """The path of a model that is given as ONNX text."""
    folder = os.path.join(WORK, name)
    os.mkdir(folder)
    with open(os.path.join(folder, "case.txt"), "w") as f:
        f.write("== " + name + "\n" + body)
    subprocess.run([RUN_OPS, "--export", folder, os.path.join(folder, "case.txt")], check=True)
    return next(os.path.join(folder, f) for f in os.listdir(folder) if f.endswith(".onnx"))


plain = sinter("run", MODEL, "--random")
check(plain[0] == 0, "the model runs on the CPU", plain[2])


def test_devices():
    code, out, _ = sinter("devices", "--provider-library", GUARDED)
    check(code == 0 and out.startswith("cpu:0") and "guarded:0" in out, "devices", out)
    check("NOT USABLE: it is there to be refused" in out, "an unusable device says why", out)
    folder = os.path.join(WORK, "folder")
    os.mkdir(folder)
    os.symlink(GUARDED, os.path.join(folder, "libguarded.so"))
    with open(os.path.join(folder, "libbroken.so"), "w") as f:
        f.write("no library")
    code, out, err = sinter("devices", env={"SINTER_PROVIDER_PATH": folder})
    check("guarded:0" in out and "libbroken.so" in err, "a folder is searched", out, err)
    code, out, err = sinter("run", MODEL, "--random", "--provider", "guarded",
                            env={"SINTER_PROVIDER_PATH": folder})
    check(code == 0 and same(out, plain[1]), "a provider is found in a folder", out, err)


def test_names():
    cases = [("Foo", "there is no provider 'Foo'"), ("guarded:1", "it is there to be refused"),
             ("guarded:9", "no device 9"), ("guarded,colour=red", "there is no setting 'colour'"),
             ("guarded,sinter.speed=1", "there is no setting 'sinter.speed'"),
             ("guarded,sinter.shapes=0", "must be a number"), ("guarded,fail=open", "open fails")]
    for name, message in cases:
        code, out, err = run(name)
        check(code == 3 and message in err, f"--provider {name}", str(code), err)
        optional = name.replace(",", "?,", 1) if "," in name else name + "?"
        code, out, err = run(optional)
        check(code == 0 and message in err and same(out, plain[1]), f"--provider {optional}", err)
    for name in (":0", "guarded:x", "guarded,fail", ""):
        code, out, err = run(name)
        check(code == 2, f"--provider '{name}' is no provider", str(code), err)
    for name in ("cpu", "CPUExecutionProvider", "guardedExecutionProvider", "GUARDED"):
        code, out, err = run(name)
        check(code == 0 and same(out, plain[1]), f"--provider {name}", err)


def test_libraries():
    cases = [("old", "some of alloc"), ("late", "version 99"), ("nothing", "no table"),
             ("failing", "the entry fails on purpose")]
    for how, message in cases:
        code, _, err = run("guarded", env={"GUARDED_AS": how})
        check(code in (2, 3) and message in err and "libguarded" in err, f"a library that is {how}", err)
    code, _, err = run("guarded", library="/lib/x86_64-linux-gnu/libm.so.6")
    check("sinter_ep_entry" in err or "cannot open" in err, "a library without the entry", err)
    code, _, err = run("guarded", library=os.path.join(WORK, "none.so"))
    check(code in (2, 3) and "none.so" in err, "a library that is not there", err)


def test_claims():
    for claim, message in (("all", ""), ("none", ""), ("parts", ""), ("odd", ""), ("wild", "claim failed"),
                           ("twice", "claimed in two parts"), ("hole", "not convex")):
        code, out, err = run(f"guarded,claim={claim},sinter.min_nodes=1")
        check(code == 0 and same(out, plain[1]), f"claim={claim}", str(code), err)
        check(message in err, f"claim={claim} is told", err)
    code, out, err = sinter("inspect", "-s", "plan", MODEL, "--provider-library", GUARDED,
                            "--provider", "guarded,claim=odd,sinter.min_nodes=1")
    check("Part by guarded" in out and "the test does not want it" in out, "the plan says who", out)
    code, out, err = sinter("profile", MODEL, "-n", "3", "--provider-library", GUARDED,
                            "--provider", "guarded,claim=parts")
    check(out.count("CopyToDevice") >= 1 and "CopyToHost" in out and "parts" in out,
          "the profile shows transfers", out)
    compiled = os.path.join(WORK, "m.sinter")
    check(sinter("compile", MODEL, "-o", compiled)[0] == 0, "a model is compiled")
    code, out, err = run("guarded", model=compiled)
    check(code == 3 and "compiled model" in err, "a compiled model takes no provider", str(code), err)
    code, out, err = sinter("diff", MODEL, "--provider-library", GUARDED, "--provider", "guarded,claim=parts",
                            "--level", "3", "--level", "3")
    check(code == 0 and " 0 differ" in out, "diff compares CPU and provider", out, err)


def test_failures():
    """The n-th call of each kind fails, until there is no n-th."""
    made_good = {"claim", "compile"}  # the CPU runs the nodes
    for memory in ("guarded", "plain"):
        for kind in ("claim", "compile", "prepare", "alloc", "queue", "copy", "run", "wait", "silent",
                     "shape"):
            if memory == "plain" and kind in ("alloc", "queue", "copy", "wait"):
                continue
            failed = 0
            for at in range(1, 8):
                code, out, err = run(f"{memory},claim=parts,fail={kind},at={at},delay=100",
                                     env={"GUARDED_AS": memory})
                if code == 0:
                    check(same(out, plain[1]), f"{memory}: {kind} {at} gives the results", out)
                    continue
                failed += 1
                check(code == 4 and memory in err and "part '" in err, f"{memory}: {kind} {at}",
                      str(code), err)
            quiet = kind in made_good or kind == "alloc"
            check((failed == 0) == quiet, f"{memory}: {kind} failed {failed} times")
    code, out, err = run("guarded,claim=parts,fail=alloc,at=3,often=1")
    check(code == 0 and same(out, plain[1]) and "ran on the CPU" in err,
          "without memory parts run on the CPU", str(code), err)
    code, out, err = run("guarded,claim=parts,fail=alloc,at=3,often=1,sinter.fallback=0")
    check(code == 4 and "device memory" in err, "unless that is not wanted", str(code), err)
    model = model_of("found", """found (float[n] x) => (int64[1, m] y) { a = Sin (x) y = NonZero (a) }
""")
    for memory in ("guarded", "plain"):
        code, out, err = run(f"{memory},fail=missing,claim=parts,at={1 + (memory == 'plain')}", "--dim", "n=9", model=model,
                             env={"GUARDED_AS": memory})
        check(code == 4 and "did not make output 0" in err and "NonZero" not in out, "an output is missing", err)
    for seed in range(1, 13):
        kind = ("copy", "run", "wait", "alloc")[seed % 4]
        code, out, err = run(f"guarded,claim=parts,fail={kind},seed={seed * 77777}")
        check(code == 4 or same(out, plain[1]), f"seed {seed}", str(code), err)


def test_cache():
    folder = os.path.join(WORK, "cache")
    os.mkdir(folder)
    for turn in range(2):
        code, out, err = run("guarded", "--cache", folder)
        check(code == 0 and same(out, plain[1]), f"cache, turn {turn}", err)
    blobs = [f for f in os.listdir(folder) if f.endswith(".blob")]
    check(len(blobs) == 1, "one part has one blob", str(os.listdir(folder)))
    path = os.path.join(folder, blobs[0])
    with open(path, "r+b") as f:
        f.seek(40)
        f.write(b"damaged")
    code, out, err = run("guarded", "--cache", folder)
    check(code == 0 and same(out, plain[1]), "a damaged blob is left alone", err)


def test_example():
    model = model_of("chain", """chain (float[n] x) => (float[n] y) <float low = {-0.5}, float high = {0.6}> {
    a = Sin (x)
    b = Clip (a, low, high)
    c = Relu (b)
    y = Exp (c)
}
""")
    for optimize in ("0", "3"):
        want = sinter("run", model, "--random", "--dim", "n=1000")
        code, out, err = run("threshold,sinter.min_nodes=1", "--dim", "n=1000", "-O", optimize, model=model,
                             library=THRESHOLD)
        check(code == 0 and same(out, want[1]), "the example computes", err, out, want[1])
    code, out, err = sinter("inspect", "-s", "plan", model, "--provider-library", THRESHOLD,
                            "--provider", "threshold,sinter.min_nodes=1")
    check("Part by threshold" in out and "it is no threshold of float32" in out, "the example's plan", out)
    code, out, err = sinter("inspect", "-s", "plan", model, "--provider-library", THRESHOLD,
                            "--provider", "threshold,only_relu=1,sinter.min_nodes=1")
    check("Part by threshold 'c'" in out, "the example's setting", out)


def test_types_and_shapes():
    model = model_of("half", """half (float16[n] x) => (float16[n] y) { a = Sigmoid (x) b = Mul (a, x) y = Neg (b) }
""")
    code, out, err = sinter("inspect", "-s", "plan", model)
    check("Cast" in out, "the CPU widens float16", out)
    code, out, err = sinter("inspect", "-s", "plan", model, "--provider-library", GUARDED, "--provider", "guarded")
    check("Cast" not in out and "1 steps" in out, "a provider gets float16 as it is", out)
    code, out, err = sinter("bench", model, "--shapes", "n=1;n=50;n=9", "-n", "4", "--provider-library", GUARDED,
                            "--provider", "guarded,sinter.shapes=1")
    check(code == 0, "shapes in turn", err)
    model = model_of("sizes", """sizes (float[n, 6] x) => (float[m, 3] y) <int64[1] three = {3}, int64[1] minus = {-1}> {
    a = Sin (x)
    s = Shape (a)
    n = Gather (s, minus)
    k = Concat <axis = 0> (minus, three)
    b = Reshape (a, k)
    y = Exp (b)
}
""")
    code, out, err = sinter("inspect", "-s", "plan", model, "--provider-library", GUARDED, "--provider",
                            "guarded,sinter.min_nodes=1", "--dim", "n=4")
    check("1 steps" in out and "float32[8,3]" in out and "dynamic" not in out, "shapes behind a part are known", out)


def test_server():
    folder = os.path.join(WORK, "models", "digits")
    os.makedirs(os.path.join(folder, "1"))
    os.symlink(MODEL, os.path.join(folder, "1", "model.onnx"))
    body = json.dumps({"inputs": [{"name": "image", "datatype": "FP32", "shape": [1, 1, 8, 8],
                                   "data": [i / 64 for i in range(64)]}]})
    answers = []
    for config in ("{}", '{"parameters": {"sinter_providers": {"string_value": "guarded:0,claim=parts"}}}',
                   '{"parameters": {"sinter_providers": {"string_value": "nobody"}}}'):
        with open(os.path.join(folder, "config.json"), "w") as f:
            f.write(config)
        server = subprocess.Popen([PROGRAM, "serve", os.path.dirname(folder), "--http", "0", "--metrics", "off",
                                   "--provider-library", GUARDED], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True)
        try:
            port = re.search(r":(\d+)", server.stdout.readline()).group(1)
            connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=60)
            for _ in range(200):
                connection.request("GET", "/v2/health/ready")
                ready = connection.getresponse()
                ready.read()
                if ready.status == 200:
                    break
                time.sleep(0.05)
            connection.request("POST", "/v2/models/digits/infer", body)
            answer = connection.getresponse()
            answers.append((answer.status, answer.read().decode()))
        finally:
            server.terminate()
            errors = server.communicate()[1]
    check(answers[0][0] == 200 and answers[1][0] == 200 and
          same(*(re.search(r'"data":(\[.*?\])', a[1]).group(1) for a in answers[:2])), "a served model", *map(str, answers))
    check(answers[2][0] != 200 and "no provider 'nobody'" in errors, "a served model without its provider",
          str(answers[2]), errors)


for test in (test_devices, test_names, test_libraries, test_claims, test_failures, test_cache, test_example, test_types_and_shapes,
             test_server):
    test()
    print(test.__name__, flush=True)
print("failures:", failures)
sys.exit(failures != 0)
