"""cases_general.py - help, errors, inspect, run's display, bench, profile and ops."""
from harness import *

COMMANDS = ["run", "inspect", "bench", "profile", "optimize", "graph", "compile", "diff", "reduce", "test", "ops"]


@test
def help_and_version(folder):
    result = sinter("--help")
    check_code(result, 0, "usage: sinter", "exit codes")
    for name in COMMANDS:
        check("  " + name in result.out, "help lists " + name, result)
        check_code(sinter(name, "--help"), 0, "usage: sinter " + name)
        check_code(sinter("help", name), 0, "usage: sinter " + name)
    check_code(sinter("--version"), 0, "sinter 0.")


@test
def wrong_usage(folder):
    check_error(sinter(), 2, "no command")
    check_error(sinter("fly"), 2, "'fly'")
    check_error(sinter("fly\x1b[31m\n"), 2, "fly\\x1b[31m\\n")
    check_error(sinter(b"fly\xff"), 2, "fly\\xff")
    for name in ["run", "inspect", "bench", "profile"]:
        check_error(sinter(name), 2, "no model")
        check_error(sinter(name, "a", "b"), 2, "'b'")
        check_error(sinter(name, "--wings"), 2, "--wings")
        check_error(sinter(name, os.path.join(folder, "none.onnx")), 3, "none.onnx")
    check_error(sinter("test"), 2, "no folder")
    check_error(sinter("ops", "x"), 2, "'x'")
    check_error(sinter("ops", "--markdown=1"), 2, "takes no value")
    check_error(sinter("run", "m", "--threads"), 2, "needs a value")
    check_error(sinter("run", "m", "--threads", "many"), 2, "whole number", "'many'")
    check_error(sinter("run", "m", "-O9"), 2, "from 0 to 3")
    check_error(sinter("run", "m", "--shape", "x=axb"), 2, "--shape")
    check_error(sinter("run", "m", "--format", "csv"), 2, "npy or pb")
    check_error(sinter("inspect", "m", "--stage", "end"), 2, "import, opt or plan")


@test
def unreadable_models(folder):
    path = os.path.join(folder, "bad.onnx")
    write(path, b"\xff" * 100)
    for name in ["run", "inspect", "bench", "profile"]:
        check_error(sinter(name, path), 3, "bad.onnx")
        check_error(sinter(name, folder), 3)


def classifier(folder):
    weights = numpy_helper.from_array(np.eye(4, 10, dtype=np.float32), "W")
    return model(os.path.join(folder, "m.onnx"),
                 [helper.make_node("MatMul", ["x", "W"], ["scores"]),
                  helper.make_node("Softmax", ["scores"], ["y"], axis=-1)],
                 [("x", TensorProto.FLOAT, ["batch", 4])],
                 [("y", TensorProto.FLOAT, ["batch", 10])], [weights])


@test
def inspect_shows_facts(folder):
    path = classifier(folder)
    result = sinter("inspect", path)
    check_code(result, 0, "tests", "ai.onnx 17", "x  float32[batch,4]", "y  float32[batch,10]",
               "MatMul", "Softmax", "largest weights", "float32[4,10]  W", "axis 0 of x",
               "parameters  40 in 1 weights, 160 B")
    check("UNSUPPORTED" not in result.out, "all is supported", result)
    facts = parse_json(sinter("inspect", path, "--json").out)
    check(facts is not None and facts["inputs"][0]["shape"] == ["batch", 4], "JSON inputs")
    check(facts["parameter_count"] == 40 and facts["weights"][0]["bytes"] == 160, "JSON weights")
    check(sorted(o["name"] for o in facts["operators"]) == ["MatMul", "Softmax"], "JSON operators")
    check("largest" not in sinter("inspect", path, "-w0").out, "no weights wanted")


@test
def inspect_shows_stages(folder):
    path = classifier(folder)
    check_code(sinter("inspect", path, "--stage", "import"), 0, "MatMul", "Softmax")
    check_code(sinter("inspect", path, "--stage", "opt"), 0, "Softmax")
    check_code(sinter("inspect", path, "--stage", "plan", "--dim", "batch=3"), 0)
    check_error(sinter("inspect", path, "--stage", "plan", "--dim", "nobody=3"), 2, "nobody=3")
    check_error(sinter("inspect", path, "--stage", "plan", "--shape", "x=3"), 2, "dimensions")


@test
def inspect_marks_unsupported(folder):
    node = helper.make_node("Frobnicate", ["x"], ["y"])
    path = model(os.path.join(folder, "u.onnx"), [node], [("x", TensorProto.FLOAT, [2])],
                 [("y", TensorProto.FLOAT, [2])])
    check_code(sinter("inspect", path), 0, "Frobnicate  UNSUPPORTED")
    facts = parse_json(sinter("inspect", path, "--json").out)
    check(facts is not None and facts["operators"][0]["supported"] is False, "JSON mark")
    check_error(sinter("run", path, "--random"), 3, "Frobnicate")


@test
def strange_names(folder):
    name = "QQ/\x1b\"\n../y"
    path = model(os.path.join(folder, "n.onnx"), [helper.make_node("Identity", ["x"], [name])],
                 [("x", TensorProto.FLOAT, [2])], [(name, TensorProto.FLOAT, [2])])
    write(path, content(path).replace(b"QQ", b"\xff\xfe"))
    check_code(sinter("inspect", path), 0, "\\xff\\xfe/\\x1b\"\\n../y")
    raw = sinter("inspect", path, "--json")
    facts = parse_json(raw.out)
    check(facts is not None and facts["outputs"][0]["name"] == "\ufffd\ufffd/\x1b\"\n../y",
          "JSON of an invalid name", raw)
    saved = os.path.join(folder, "out")
    check_code(sinter("run", path, "--random", "-o", saved), 0)
    check(os.path.isdir(saved) and len(os.listdir(saved)) == 1, "one file, inside the folder")


@test
def run_shows_outputs(folder):
    path = classifier(folder)
    np.save(os.path.join(folder, "x.npy"), np.array([[0, 5, 0, 1]], np.float32))
    result = sinter("run", path, "-i", os.path.join(folder, "x.npy"), "--top", 2)
    check_code(result, 0, "y  float32[1,10]", "min ", "max ", "mean ", "ran in")
    lines = [line for line in result.out.splitlines() if "#" in line]
    check(len(lines) >= 1 and lines[0].split()[0] == "1", "the best class is 1", result)
    shown = [line for line in result.out.splitlines() if line[:8].strip().isdigit()]
    check(len(shown) == 2, "two classes", result)


@test
def run_random(folder):
    path = classifier(folder)

    def saved(*args):
        return saved_array(folder, path, "--random", *args)
    check(saved().shape == (1, 10), "a free dimension is 1")
    check(saved("--shape", "x=3x4").shape == (3, 10), "--shape")
    check(saved("--dim", "batch=2").shape == (2, 10), "--dim")
    check(np.array_equal(saved("--seed", 5), saved("--seed", 5)), "one seed")
    check(not np.array_equal(saved("--seed", 5), saved("--seed", 6)), "two seeds")
    check_error(sinter("run", path), 2, "'x'", "--random")
    check_error(sinter("run", path, "--random", "--shape", "z=1"), 2, "z=1")
    check_error(sinter("run", path, "--random", "--shape", "x=3x5"), 4)
    check_error(sinter("run", path, "--random", "-o", os.path.join(folder, "a", "b")), 4, "folder")


@test
def bench_measures(folder):
    path = classifier(folder)
    result = sinter("bench", path, "--runs", 30, "--threads", 1)
    check_code(result, 0, "median", "p90", "p99", "runs/s (30 runs)", "peak memory", "load")
    figures = parse_json(sinter("bench", path, "--seconds", 0.05, "--json").out)
    check(figures is not None and figures["runs"] >= 5, "JSON figures")
    check(figures["min_ms"] <= figures["median_ms"] <= figures["p90_ms"] <= figures["p99_ms"],
          "percentiles in order")
    check(figures["peak_memory_bytes"] > 1e5, "peak memory")
    check_code(sinter("bench", path, "--runs", 2), 0, "only 2 runs")
    check_error(sinter("bench", path, "--runs", 0), 2, "--runs")


def looped(folder):
    """y = x doubled three times by a Loop, whose body has a node of its own."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["go_on"]), helper.make_node("Add", ["a", "a"], ["b"], name="twice")],
        "body",
        [helper.make_tensor_value_info("i", TensorProto.INT64, []),
         helper.make_tensor_value_info("go", TensorProto.BOOL, []),
         helper.make_tensor_value_info("a", TensorProto.FLOAT, [4])],
        [helper.make_tensor_value_info("go_on", TensorProto.BOOL, []),
         helper.make_tensor_value_info("b", TensorProto.FLOAT, [4])])
    turns = numpy_helper.from_array(np.array(3, dtype=np.int64), "turns")
    return model(os.path.join(folder, "loop.onnx"), [helper.make_node("Loop", ["turns", "", "x"], ["y"], body=body)],
                 [("x", TensorProto.FLOAT, [4])], [("y", TensorProto.FLOAT, [4])], [turns])


@test
def profile_shows_steps(folder):
    path = classifier(folder)
    trace, page = os.path.join(folder, "t.json"), os.path.join(folder, "p.html")
    result = sinter("profile", path, "-O0", "--runs", 3, "--threads", 1, "--dim", "batch=5", "--trace", trace, "--html", page)
    check_code(result, 0, "MatMul", "Softmax", "5x4 4x10 -> 5x10", "GFLOP/s", "best of 3", "us while watched")
    events = parse_json(open(trace).read())["traceEvents"]
    check([e["cat"] for e in events] == ["MatMul", "Softmax"], "the trace has both steps in order")
    check(all(e["ph"] == "X" and e["dur"] >= 0 and e["ts"] >= 0 for e in events), "times of the trace")
    text = open(page).read()
    check(text.count("<svg") == 1 and text.count("<tr>") == 6 and "5x4 4x10 -&gt; 5x10" in text, "the page")
    check("http" not in text, "the page needs nothing from elsewhere")
    figures = parse_json(sinter("profile", path, "-O0", "--runs", 2, "--json", "--dim", "batch=5").out)
    check(figures["peak_gflops"] > 0.1 and figures["read_gbytes_per_second"] > 0.01, "the machine's figures")
    steps = figures["steps"]
    check([s["op"] for s in steps] == ["MatMul", "Softmax"], "steps in order")
    check(steps[0]["macs"] == 5 * 4 * 10 and steps[1]["macs"] == 0, "multiplications")
    check(steps[0]["input_bytes"] == 4 * (20 + 40) and steps[0]["output_bytes"] == 4 * 50, "bytes")


@test
def profile_of_a_loop(folder):
    steps = parse_json(sinter("profile", looped(folder), "--runs", 2, "--json", "-O0").out)["steps"]
    adds = [s for s in steps if s["op"] == "Add"]
    check(len(adds) == 1 and adds[0]["depth"] == 1 and adds[0]["calls"] == 3, "a body's node counts its turns")
    check([s["op"] for s in steps if s["depth"] == 0] == ["Loop"], "the loop itself")


@test
def ops_lists(folder):
    result = sinter("ops")
    check_code(result, 0, "Relu", "operators")
    table = sinter("ops", "--markdown")
    check_code(table, 0, "| Relu | ai.onnx |")
    rows = [line for line in table.out.splitlines() if line.startswith("| ")]
    bars = {line.replace("\\|", "").count("|") for line in rows}
    check(bars == {7}, "every row has 6 cells")
    check(last_line(result) == "%d operators" % (len(rows) - 1), "the same number", result)


@test
def full_disk(folder):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([program(), "ops"], stdout=full, stderr=subprocess.PIPE)
    check(done.returncode == 4 and b"cannot write" in done.stderr, "a full disk is told")
