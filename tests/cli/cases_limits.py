"""cases_limits.py - limits of time and memory, Ctrl-C, and names that a terminal might obey."""
import signal
import time

from harness import *


def product(folder, size=3000, count=1):
    """y = x x ... x"""
    names = ["x"] + ["m%d" % i for i in range(count - 1)] + ["y"]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("MatMul", [names[i], "x"], [names[i + 1]]) for i in range(count)], "g",
        [info("x", TensorProto.FLOAT, [size, size])], [info("y", TensorProto.FLOAT, [size, size])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    path = os.path.join(folder, "product.onnx")
    onnx.save(model, path)
    return path


@test
def limits(folder):
    model = product(folder)
    for words in (["run", model, "--random"], ["bench", model, "--runs", "1"], ["profile", model, "--runs", "1"],
                  ["compile", model, "-o", os.path.join(folder, "out")],
                  ["optimize", model, "-o", os.path.join(folder, "out")],
                  ["diff", model, "--level", "0", "--level", "3"]):
        late = sinter(*words, "--time-limit", "0.005")
        check(late.code == 4 and "time limit" in late.err, words, late)
        large = sinter(*words, "--memory-limit", "8")
        check(large.code == 4 and "memory limit of 8388608 bytes" in large.err, words, large)
        check(words[0] != "compile" or not os.path.exists(os.path.join(folder, "out")), "nothing is written")
    check(sinter("run", model, "--random", "--time-limit", "600", "--memory-limit", "4000").code == 0, "they suffice")
    check(sinter("run", model, "--random", "--time-limit", "-1").code == 2, "no time")


@test
def interrupt(folder):
    model = product(folder, 300)
    for words, shows in ((["bench", model, "--seconds", "600"], "warning: interrupted"),
                         (["bench", model, "--seconds", "600", "--json"], '"interrupted"'),
                         (["profile", model, "--seconds", "600"], "MatMul")):
        process = subprocess.Popen([program(), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(2)
        start = time.time()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
        check(process.returncode == 130 and shows in out.decode(), (words, process.returncode, out, err))
        check(time.time() - start < 5, "at once, not after %.1f s" % (time.time() - start))
    process = subprocess.Popen([program(), "run", product(folder, 4000, 100), "--random"], stdout=subprocess.PIPE)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    check(process.returncode == -signal.SIGINT, "a run that has nothing to show ends: %d" % process.returncode)


@test
def many_inputs(folder):
    """Inputs are bound in their order: the time grows with their number, not its square."""
    names = ["x%d" % i for i in range(60000)]
    info = helper.make_tensor_value_info
    graph = helper.make_graph([helper.make_node("Sum", names, ["y"])], "g",
                              [info(name, TensorProto.FLOAT, [1]) for name in names],
                              [info("y", TensorProto.FLOAT, [1])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, os.path.join(folder, "model.onnx"))
    start = time.time()
    done = sinter("run", os.path.join(folder, "model.onnx"), "--random")
    check(done.code == 0 and time.time() - start < 15, "%.1f s" % (time.time() - start), done)


@test
def names_on_a_terminal(folder):
    """Names of a model are shown in plans so that a terminal does not obey them."""
    info = helper.make_tensor_value_info
    node = helper.make_node("Softmax", ["x"], ["y"], name="a\x1b[31m\u009b1m\u00fc")
    model = helper.make_model(helper.make_graph([node], "g", [info("x", TensorProto.FLOAT, [3])],
                                                [info("y", TensorProto.FLOAT, [3])]),
                              opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, os.path.join(folder, "model.onnx"))
    shown = sinter("inspect", "--stage", "plan", os.path.join(folder, "model.onnx"))
    check("'a\\x1B[31m\\xC2\\x9B1m\u00fc'" in shown.out, "escaped", shown)
