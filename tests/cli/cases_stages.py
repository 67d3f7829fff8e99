"""cases_stages.py - optimize, graph, compile and bench --shapes: what becomes of a model before it runs."""
import time

from harness import *


def network(folder, name="m.onnx", width=64):
    """Two dense layers with an activation written out, and a reshape that does nothing."""
    rng = np.random.default_rng(1)
    weights = [numpy_helper.from_array(rng.standard_normal((width, width)).astype(np.float32) / 8, n)
               for n in ("W1", "W2")]
    nodes = [helper.make_node("MatMul", ["x", "W1"], ["a"], name="first"),
             helper.make_node("Identity", ["a"], ["b"]),
             helper.make_node("Relu", ["b"], ["c"], name="active"),
             helper.make_node("MatMul", ["c", "W2"], ["d"], name="second"),
             helper.make_node("Sigmoid", ["d"], ["y"])]
    return model(os.path.join(folder, name), nodes, [("x", TensorProto.FLOAT, ["N", width])],
                 [("y", TensorProto.FLOAT, ["N", width])], weights)


@test
def optimize_writes_onnx(folder):
    path, out = network(folder), os.path.join(folder, "o.onnx")
    result = sinter("optimize", path, "-o", out, "--explain", "--dim", "N=3")
    check_code(result, 0, "MatMul", "Identity", "before", "after", "agree", "identity",
               "multiply-accumulates", "bytes that nodes read and write")
    made = onnx.load(out)
    onnx.checker.check_model(made)
    check(len(made.graph.node) < 5, "fewer nodes", result)
    check([i.name for i in made.graph.input] == ["x"] and [o.name for o in made.graph.output] == ["y"],
          "names stay", result)
    check_code(sinter("optimize", path, "-o", out, "--level", "0"), 0, "agree")
    check(len(onnx.load(out).graph.node) == 5, "level 0 leaves the graph alone", result)
    result = sinter("optimize", path, "-o", out, "--disable-rule", "identity")
    check_code(result, 0, "agree")
    check_error(sinter("optimize", path), 2, "no -o FILE")
    check_error(sinter("optimize", path, "-o", os.path.join(folder, "no", "o.onnx")), 4, "no")


@test
def families_of_numerics_can_be_left_out(folder):
    path = network(folder, width=128)
    for name in ("winograd", "strassen", "inner-product", "emulated-gemm", "exponent-compression"):
        check_code(sinter("inspect", path, "--stage", "opt", "--disable-rule", name), 0, "Linear")
    for old, name in (("paired", "inner-product"), ("digits", "emulated-gemm")):
        result = sinter("inspect", path, "--stage", "opt", "--disable-rule", old)
        check_code(result, 0, "Linear")
        check("'%s' is an old name of '%s'" % (old, name) in result.err, "a warning", result)


@test
def graph_draws(folder):
    path, out = network(folder), os.path.join(folder, "g.dot")
    for stage, words in (("import", ["Identity", "active"][:1]), ("opt", ["Linear"]), ("plan", ["bytes at"])):
        result = sinter("graph", path, "-o", out, "--stage", stage)
        check_code(result, 0)
        with open(out) as f:
            text = f.read()
        check(text.startswith("digraph"), "DOT text", result)
        for word in words:
            check(word in text, "%s has %s" % (stage, word), result)
    check_error(sinter("graph", path, "-o", out, "--stage", "end"), 2, "import, opt or plan")
    picture = os.path.join(folder, "g.svg")
    if shutil.which("dot"):
        check_code(sinter("graph", path, "-o", picture), 0)
        check("<svg" in open(picture).read(), "a picture")
    saved = os.environ["PATH"]
    os.environ["PATH"] = folder
    try:
        check_error(sinter("graph", path, "-o", picture), 4, "Graphviz")
    finally:
        os.environ["PATH"] = saved
    check(not [f for f in os.listdir(folder) if f.startswith("g.svg.")], "nothing left behind")



@test
def compiled_models_run_alike(folder):
    path, out = network(folder), os.path.join(folder, "m.sinter")
    check_code(sinter("compile", path, "-o", out), 0, "m.sinter", "nodes")
    for rows in (1, 5):
        plain = sinter("run", "--random", "--dim", "N=%d" % rows, path)
        quick = sinter("run", "--random", "--dim", "N=%d" % rows, out)
        check_code(quick, 0, "y  float32[%d,64]" % rows)
        check(plain.out.split("ran in")[0] == quick.out.split("ran in")[0], "same results", quick)
    check_code(sinter("inspect", out), 0, "float32[N,64]")
    with open(out, "rb") as f:
        data = bytearray(f.read())
    bad = os.path.join(folder, "bad.sinter")
    for at in (9, 100, 4100):
        broken_data = bytearray(data)
        broken_data[at] ^= 0xFF
        write(bad, bytes(broken_data))
        result = sinter("run", "--random", bad)
        check(result.code in (0, 3), "a damaged file is refused", result)
    write(bad, bytes(data[:len(data) // 2]))
    check_error(sinter("run", "--random", bad), 3, "bad.sinter", "header says")
    check_error(sinter("compile", path), 2, "no -o FILE")
    tuned = os.path.join(folder, "tuned.sinter")
    check_code(sinter("compile", path, "-o", tuned, "--tune"), 0, "tuned", "tuned.sinter", "nodes")
    check_code(sinter("run", "--random", tuned), 0, "y  float32[1,64]")


@test
def compiling_tells_of_free_dimensions(folder):
    """Where 1 is too little for a window, the error names the dimensions and the options for them."""
    def pool(name, *shape):
        return model(os.path.join(folder, name), [helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[3, 2])],
                     [("x", TensorProto.FLOAT, shape)], [("y", TensorProto.FLOAT, None)])
    path, out, x = pool("m.onnx", "N", 2, "H", "H"), os.path.join(folder, "m.sinter"), os.path.join(folder, "x.npy")
    hint = ["free dimensions", "--dim", "--shape"]
    result = sinter("compile", path, "-o", out)
    check_error(result, 4, "does not fit", "free dimensions 'N', 'H';", *hint)
    check_error(sinter("graph", path, "-o", os.path.join(folder, "g.dot"), "--stage", "plan"), 4, *hint)
    check_error(sinter("compile", path, "-o", out, "--dim", "H=2"), 4, "free dimensions 'N';", *hint)
    check_error(sinter("compile", pool("unnamed.onnx", 1, 2, None, 5), "-o", out), 4, *hint)
    np.save(x, np.zeros((1, 2, 1, 1), np.float32))
    for sizes in (["--shape", "x=1x2x1x1"], ["--dim", "H=1", "--dim", "N=1"], ["-i", x]):
        result = sinter("compile", path, "-o", out, *sizes)
        check_error(result, 4, "does not fit")
        check("free dimensions" not in result.err, "nothing was left free by %s" % sizes, result)
    check(not os.path.exists(out), "no file", result)
    for sizes in (["--dim", "H=3"], ["--shape", "x=1x2x3x3"]):
        check_code(sinter("compile", path, "-o", out, *sizes), 0, "nodes")


def file_pages(pid, name):
    """Kilobytes of a process's mappings of a file: copies of its own, what it shares with others, and all it has."""
    found = {"Anonymous:": 0, "Shared_Clean:": 0, "Shared_Dirty:": 0, "Rss:": 0}
    ours = False
    with open("/proc/%d/smaps" % pid) as f:
        for line in f:
            words = line.split()
            if "-" in words[0] and not words[0].endswith(":"):
                ours = line.rstrip().endswith(name)
            elif ours and words[0] in found:
                found[words[0]] += int(words[1])
    return found["Anonymous:"], found["Shared_Clean:"] + found["Shared_Dirty:"], found["Rss:"]


@test
def processes_share_a_compiled_model(folder):
    path, out = network(folder, width=1024), os.path.join(folder, "m.sinter")
    check_code(sinter("compile", path, "-o", out), 0)
    words = [program(), "bench", "--seconds", "600", "--threads", "1", out]
    running = [subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(2)]
    try:
        for _ in range(2000):
            time.sleep(0.05)
            if min(file_pages(p.pid, "m.sinter")[2] for p in running) >= 8000:
                break
        # Now that both have it: a page is shared from the moment on in which the second process maps it.
        for own, shared, present in [file_pages(p.pid, "m.sinter") for p in running]:
            check(present >= 8000, "the packed weights are used where they are mapped: %d kB" % present)
            check(own == 0, "no page is a copy of its own: %d kB" % own)
            check(shared >= 8000, "both processes have the same pages: %d kB" % shared)
    finally:
        for p in running:
            p.kill()
            p.wait()


@test
def bench_takes_shapes(folder):
    path = network(folder)
    result = sinter("bench", path, "--shapes", "N=1;N=7 N=2..4", "-n", "2")
    check_code(result, 0, "first ms", "N=1", "N=7", "N=2", "N=3", "N=4", "memory now")
    result = sinter("bench", path, "--shapes", "N=1;N=2", "-n", "2", "--json")
    check_code(result, 0)
    shapes = json.loads(result.out)["shapes"]
    check([s["N"] for s in shapes] == [1, 2] and all(s["first_ms"] > 0 and s["min_ms"] > 0 for s in shapes),
          "figures of each shape", result)
    for wrong in ("", "N", "N=x", "=4", "N=5..2"):
        check_error(sinter("bench", path, "--shapes", wrong), 2, "--shapes")
    check_error(sinter("bench", path, "--shapes", "Q=4"), 2, "Q")


@test
def diff_compares_values(folder):
    path = network(folder)
    result = sinter("diff", path, "--dim", "N=3")
    check_code(result, 0, "levels 0 and 3", "0 differ")
    check_code(sinter("diff", path, "--level", "1", "--level", "2", "-v"), 0, "levels 1 and 2", "agrees", "ulp",
               "cosine")
    result = sinter("diff", path, "--level", "0", "--level", "0", "-v")
    check("max abs 0 " in result.out and "cosine 1.0000" in result.out, "the same run twice is the same", result)
    check_error(sinter("diff", path, "--level", "4"), 2, "from 0 to 3")
    check_error(sinter("diff", path, "--level", "0", "--level", "1", "--level", "2"), 2, "more than twice")
    check_error(sinter("diff"), 2, "no model")


@test
def diff_compares_precisions(folder):
    """Rounded weights show as a difference of their size, in products of one level."""
    path = network(folder, width=160)
    check_code(sinter("diff", path, "--precision", "exact", "--dim", "N=3"), 0, "levels 0 and 3")
    for name, tolerance in (("tf32-like", "1e-3"), ("fp16", "1e-3"), ("bf16", "2e-2")):
        wrong = sinter("diff", path, "--precision", name, "--rtol", "1e-6", "--dim", "N=3")
        check_code(wrong, 1, "level 3, exact and in another precision", "first to differ: ")
        check_code(sinter("diff", path, "--precision", name, "--rtol", tolerance, "--dim", "N=3"), 0, " 0 differ")
    check_error(sinter("diff", path, "--precision", "fp8"), 2, "exact, tf32-like, bf16 or fp16")
    check_error(sinter("diff", path, "--precision", "bf16", "--level", "1", "--level", "2"), 2, "one --level")
    check_error(sinter("diff", path, "--precision", "bf16", "--against", "x"), 2, "no other library")


@test
def narrow_weights_stay_narrow(folder):
    """Both levels agree on 16-bit models, and a compiled one has the results of its model."""
    rng = np.random.default_rng(3)
    arrays = {"W1": rng.standard_normal((48, 64, 3, 3)) / 24, "W2": rng.standard_normal((16, 48, 1, 1)) / 8,
              "W3": rng.standard_normal((16 * 81, 200)) / 40}
    weights = [numpy_helper.from_array(a.astype(np.float16), name) for name, a in arrays.items()]
    nodes = [helper.make_node("Conv", ["x", "W1"], ["a"], pads=[1, 1, 1, 1]), helper.make_node("Relu", ["a"], ["b"]),
             helper.make_node("Conv", ["b", "W2"], ["c"]), helper.make_node("Flatten", ["c"], ["d"]),
             helper.make_node("MatMul", ["d", "W3"], ["y"])]
    path = model(os.path.join(folder, "h.onnx"), nodes, [("x", TensorProto.FLOAT16, [2, 64, 9, 9])],
                 [("y", TensorProto.FLOAT16, [2, 200])], weights)
    check_code(sinter("diff", path, "--rtol", "5e-3"), 0, " 0 differ")
    compiled, results = os.path.join(folder, "h.sinter"), []
    check_code(sinter("compile", path, "-o", compiled), 0, "h.sinter")
    for which, out in ((path, "plain"), (compiled, "packed")):
        check_code(sinter("run", which, "--random", "-o", os.path.join(folder, out)), 0)
        results.append(np.load(os.path.join(folder, out, "y.npy")))
    check(np.array_equal(*results), "a compiled model has the same bits")


@test
def diff_compares_pictures_in_blocks(folder):
    """What convolutions make is compared by the model's names, whatever layout the optimiser gave it."""
    rng = np.random.default_rng(2)
    weights = [numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32) / 8, name)
               for name, shape in (("W1", (21, 3, 3, 3)), ("W2", (21, 21, 3, 3)), ("W3", (5, 21, 1, 1)))]
    nodes = [helper.make_node("Conv", ["x", "W1"], ["a"], pads=[1, 1, 1, 1]),
             helper.make_node("Relu", ["a"], ["b"]),
             helper.make_node("Conv", ["b", "W2"], ["c"], pads=[1, 1, 1, 1]),
             helper.make_node("Add", ["c", "b"], ["d"]),
             helper.make_node("Conv", ["d", "W3"], ["y"])]
    path = model(os.path.join(folder, "p.onnx"), nodes, [("x", TensorProto.FLOAT, [2, 3, 11, 13])],
                 [("y", TensorProto.FLOAT, [2, 5, 11, 13])], weights)
    result = sinter("diff", path, "-v")
    check_code(result, 0, "agrees b (", "agrees d (", "float32[2,21,11,13]", "3 values in common, 0 differ")


def other_library():
    """The library of this build that has ONNX Runtime's interface; None: it was not built."""
    path = os.path.join(os.path.dirname(os.path.abspath(program())), "libonnxruntime.so.1")
    return path if os.path.exists(path) else None


@test
def diff_against_another_library(folder):
    path, library = network(folder), other_library()
    check_error(sinter("diff", path, "--against", os.path.join(folder, "none.so.1")), 2, "none.so.1")
    check_error(sinter("diff", path, "--against", "libm.so.6"), 4, "OrtGetApiBase")
    check_error(sinter("diff", path, "--against", "x", "--level", "1", "--level", "2"), 2, "one --level")
    if not library:
        return
    check_code(sinter("diff", path, "--against", library, "--dim", "N=3"), 0, "5 values in common, 0 differ")
    check_code(sinter("diff", path, "--against", library, "--level", "3", "-v"), 0, "agrees y", "level 3 and")
    nodes = [helper.make_node("Identity", ["s"], ["t"]), helper.make_node("StringNormalizer", ["t"], ["u"]),
             helper.make_node("Equal", ["t", "w"], ["e"])]
    strings = model(os.path.join(folder, "s.onnx"), nodes, [("s", TensorProto.STRING, [2])],
                    [("e", TensorProto.BOOL, [2]), ("u", TensorProto.STRING, [2])],
                    [helper.make_tensor("w", TensorProto.STRING, [2], [b"a", b"b"])], opset=19)
    check_code(sinter("diff", strings, "--against", library), 0, "1 values in common, 0 differ")


@test
def diff_shows_the_first_difference(folder):
    """A node that gives other numbers each time it runs is where two runs part."""
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("RandomNormalLike", ["a"], ["b"]),
             helper.make_node("Add", ["a", "b"], ["y"])]
    path = model(os.path.join(folder, "r.onnx"), nodes, [("x", TensorProto.FLOAT, [64])],
                 [("y", TensorProto.FLOAT, [64])])
    library = other_library()
    runs = [["--level", "0", "--level", "0"]] + ([["--against", library]] if library else [])
    for how in runs:
        check_code(sinter("diff", path, *how), 1, "first to differ: b (RandomNormalLike)", "2 differ", "ulp", "cosine")


@test
def diff_takes_sequences_of_maps(folder):
    """Values that are watched are not taken away from the run."""
    nodes = [helper.make_node("ZipMap", ["x"], ["z"], domain="ai.onnx.ml", classlabels_int64s=[1, 2])]
    kind = onnx.TypeProto()
    kind.sequence_type.elem_type.map_type.key_type = TensorProto.INT64
    kind.sequence_type.elem_type.map_type.value_type.tensor_type.elem_type = TensorProto.FLOAT
    path = model(os.path.join(folder, "z.onnx"), nodes, [("x", TensorProto.FLOAT, [3, 2])],
                 [helper.make_value_info("z", kind)])
    proto = onnx.load(path)
    proto.opset_import.append(helper.make_opsetid("ai.onnx.ml", 1))
    onnx.save(proto, path)
    check_code(sinter("diff", path), 0, "0 differ")


@test
def written_nodes_have_names_of_their_own(folder):
    """Softmax of opset 11 becomes several nodes of the newest one."""
    nodes = [helper.make_node("Softmax", ["x"], ["y"], name="s", axis=1)]
    path = model(os.path.join(folder, "m.onnx"), nodes, [("x", TensorProto.FLOAT, [2, 3, 4])],
                 [("y", TensorProto.FLOAT, [2, 3, 4])], opset=11)
    out = os.path.join(folder, "o.onnx")
    check_code(sinter("optimize", path, "-o", out, "--level", "0"), 0)
    names = [n.name for n in onnx.load(out).graph.node if n.name]
    check(len(names) > 1 and len(names) == len(set(names)), "each name once: %r" % names)


def long_chain(folder):
    """Twenty-four nodes, of which one is a Sin, and a second output half-way."""
    kinds = ["Abs", "Neg", "Relu", "Tanh"]
    nodes = [helper.make_node("Sin" if i == 16 else kinds[i % 4], ["v%d" % i], ["v%d" % (i + 1)]) for i in range(23)]
    nodes.append(helper.make_node("MatMul", ["v23", "W"], ["y"]))
    weight = numpy_helper.from_array(np.eye(4, dtype=np.float32), "W")
    return model(os.path.join(folder, "long.onnx"), nodes, [("v0", TensorProto.FLOAT, ["N", 4])],
                 [("y", TensorProto.FLOAT, ["N", 4]), ("v12", TensorProto.FLOAT, ["N", 4])], [weight])


def script(folder, text):
    path = os.path.join(folder, "command.py")
    with open(path, "w") as file:
        file.write("import sys, onnx\nm = onnx.load(sys.argv[-1])\nonnx.checker.check_model(m)\n"
                   "ops = [n.op_type for n in m.graph.node]\n" + text)
    return [sys.executable, path]


@test
def reduce_finds_one_node(folder):
    path, out = long_chain(folder), os.path.join(folder, "small.onnx")
    command = script(folder, "sys.exit(5 if 'Sin' in ops else 0)\n")
    result = sinter("reduce", path, "-o", out, "--", *command)
    check_code(result, 0, "1 of 24 nodes are left", "exit code 5")
    made = onnx.load(out)
    onnx.checker.check_model(made)
    check([n.op_type for n in made.graph.node] == ["Sin"] and not made.graph.initializer, "the Sin alone", result)
    check([i.name for i in made.graph.input] == ["v16"] and [o.name for o in made.graph.output] == ["v17"],
          "its values are input and output", result)
    check_code(sinter("run", out, "--random"), 0)


@test
def reduce_keeps_what_belongs_together(folder):
    """Two nodes far apart, and a weight, are needed at once; a signal counts as a code."""
    path, out = long_chain(folder), os.path.join(folder, "small.onnx")
    command = script(folder, "import os, signal\nif 'Sin' in ops and m.graph.initializer:\n"
                             "    os.kill(os.getpid(), signal.SIGKILL)\n")
    result = sinter("reduce", path, "-o", out, "--", *command)
    check_code(result, 0, "2 of 24 nodes are left", "exit code 137")
    check(sorted(n.op_type for n in onnx.load(out).graph.node) == ["MatMul", "Sin"], "both nodes", result)
    command = script(folder, "sys.exit(1 if len(ops) >= 7 else 0)\n")
    check_code(sinter("reduce", path, "-o", out, "--", *command), 0, "7 of 24 nodes are left")
    check(len(onnx.load(out).graph.node) == 7, "seven nodes")


@test
def reduce_cuts_shapes_and_outputs(folder):
    """A value whose contents were known becomes an input: what follows from them is forgotten."""
    shape = numpy_helper.from_array(np.array([2, 6], dtype=np.int64), "s")
    nodes = [helper.make_node("Identity", ["s"], ["t"]), helper.make_node("Reshape", ["x", "t"], ["r"]),
             helper.make_node("Split", ["r", "p"], ["a", "b"], axis=1), helper.make_node("Relu", ["a"], ["y"])]
    path = model(os.path.join(folder, "m.onnx"), nodes, [("x", TensorProto.FLOAT, [3, 4])],
                 [("y", TensorProto.FLOAT, [2, 3]), ("b", TensorProto.FLOAT, [2, 3]), ("r", TensorProto.FLOAT, [2, 6])],
                 [shape, numpy_helper.from_array(np.array([3, 3], dtype=np.int64), "p")], opset=13)
    out = os.path.join(folder, "small.onnx")
    command = script(folder, "sys.exit(3 if 'Reshape' in ops else 0)\n")
    check_code(sinter("reduce", path, "-o", out, "--", *command), 0, "1 of 4 nodes are left")
    made = onnx.load(out)
    check([i.name for i in made.graph.input] == ["x", "t"], "both are inputs")
    dims = made.graph.output[0].type.tensor_type.shape.dim
    check(not any(d.dim_value for d in dims), "the shape is not known any more: %s" % dims)
    command = script(folder, "sys.exit(3 if 'Split' in ops and 'Relu' in ops else 0)\n")
    check_code(sinter("reduce", path, "-o", out, "--", *command), 0, "2 of 4 nodes are left")
    made = onnx.load(out)
    check([o.name for o in made.graph.output] == ["y"], "one output is left")


@test
def reduce_refuses_wrong_commands(folder):
    path, out = long_chain(folder), os.path.join(folder, "small.onnx")
    check_error(sinter("reduce"), 2, "no model")
    check_error(sinter("reduce", path, "--", "true"), 2, "-o")
    check_error(sinter("reduce", path, "-o", out), 2, "no command")
    check_error(sinter("reduce", path, "more", "-o", out, "--", "true"), 2, "more")
    check_error(sinter("reduce", path, "-o", out, "--", os.path.join(folder, "none")), 2, "could not be run")
    check_error(sinter("reduce", os.path.join(folder, "none.onnx"), "-o", out, "--", "true"), 3, "none.onnx")
    command = script(folder, "sys.exit(m.producer_name == 'tests' and sys.argv[-1].endswith('long.onnx'))\n")
    check_error(sinter("reduce", path, "-o", out, "--", *command), 1, "written anew")
    check(not os.path.exists(out), "nothing is written")
