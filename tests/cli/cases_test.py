"""cases_test.py - sinter test: verdicts, expected failures, isolation."""
import pty
import signal
import time

from harness import *


@test
def verdicts(folder):
    case(folder, "a/good")
    case(folder, "a/bad", wrong=True)
    case(folder, "b/empty", data=False)
    result = sinter("test", folder)
    check_code(result, 1, "FAIL a/bad", "2 of 6 elements differ, first at [0,2]: got 0, want 7")
    check(last_line(result) == "1 passed, 1 failed, 1 skipped", "the closing line", result)
    check("a/good" not in result.out, "passes are silent", result)
    check_code(sinter("test", folder, "-v", "-j1"), 1, "PASS a/good", "SKIP b/empty")
    result = sinter("test", os.path.join(folder, "a", "good"), os.path.join(folder, "b"))
    check_code(result, 0)
    check(last_line(result) == "1 passed, 0 failed, 1 skipped", "two folders", result)
    result = sinter("test", folder, "--match", "goo")
    check(last_line(result) == "1 passed, 0 failed, 0 skipped", "--match", result)
    check_error(sinter("test", folder, "--match", "nothing"), 3, "no test case")
    check_error(sinter("test", os.path.join(folder, "none")), 3, "none")
    for level in range(4):
        check(sinter("test", folder, "-m", "good", "-O", level, "--threads", 2).code == 0,
              "level %d" % level)


@test
def order_is_stable(folder):
    for i in range(12):
        case(folder, "c%02d" % i, wrong=True)
    result = sinter("test", folder, "-j", 8)
    names = [line.split()[1] for line in result.out.splitlines() if line.startswith("FAIL")]
    check(names == ["c%02d" % i for i in range(12)], "failures in order of name", result)


@test
def comparison(folder):
    def verdict(got_type, x, want, rule=None):
        place = tempfile.mkdtemp(dir=folder)
        model(os.path.join(place, "model.onnx"), [helper.make_node("Identity", ["x"], ["y"])],
              [("x", got_type, None)], [("y", got_type, None)])
        save_pb(os.path.join(place, "test_data_set_0", "input_0.pb"), x)
        save_pb(os.path.join(place, "test_data_set_0", "output_0.pb"), want)
        if rule:
            write(os.path.join(place, "data.json"), json.dumps(rule).encode())
        return sinter("test", place)
    one = np.ones(3, np.float32)
    f4 = TensorProto.FLOAT
    special = np.array([np.nan, np.inf, -np.inf], np.float32)
    check_code(verdict(f4, one * 1.0009, one), 0)
    check_code(verdict(f4, one * 1.0012, one), 1, "3 of 3", "want 1")
    check_code(verdict(f4, one * 1.0012, one, {"rtol": 1e-2}), 0)
    check_code(verdict(f4, one * 9e-8, one * 0), 0)
    check_code(verdict(f4, one * 2e-7, one * 0), 1)
    check_code(verdict(f4, one * 2e-7, one * 0, {"atol": 1e-5}), 0)
    check_code(verdict(f4, special, special), 0)
    check_code(verdict(f4, special, -special), 1, "2 of 3", "got inf, want -inf")
    check_code(verdict(f4, one, one.astype("f8")), 1, "got float32, want float64")
    check_code(verdict(f4, one, one[None]), 1, "got shape [3], want [1,3]")
    check_code(verdict(TensorProto.INT64, np.array([5000]), np.array([5001])), 0)
    check_code(verdict(TensorProto.INT64, np.array([50]), np.array([51])), 1, "got 50, want 51")
    check_code(verdict(TensorProto.BOOL, np.array([True]), np.array([False])), 1, "got true")
    check_code(verdict(TensorProto.FLOAT16, one.astype("f2"), one.astype("f2") * 2), 1, "got 1")
    text = np.array(["a", "b\n"], object)
    check_code(verdict(TensorProto.STRING, text, text), 0)
    check_code(verdict(TensorProto.STRING, text, text[::-1].copy()), 1, 'got "a", want "b\\n"')
    place = case(folder, "json")
    write(os.path.join(place, "data.json"), b"{broken")
    check_code(sinter("test", place), 1, "data.json")


@test
def expected_failures(folder):
    case(folder, "s/good")
    case(folder, "s/bad", wrong=True)
    listed = os.path.join(folder, "list.txt")

    def run(text, *args):
        write(listed, text.encode())
        return sinter("test", os.path.join(folder, "s"), "--expect-fail", listed, *args)
    result = run("# a comment\n\nbad   # reason\n")
    check_code(result, 0, "1 failed as expected", "bad")
    check(last_line(result) == "2 passed, 0 failed, 0 skipped", "counted as passed", result)
    check_code(run("s/bad\r\n"), 0, "1 failed as expected")
    result = run("bad\ngood\n")
    check_code(result, 1, "FAIL good", "take it off")
    check(last_line(result) == "1 passed, 1 failed, 0 skipped", "an unexpected pass", result)
    check_code(run("ad\n"), 1, "FAIL bad", "did not run")
    check_error(sinter("test", folder, "--expect-fail", listed + "x"), 3, "list.txtx")
    told_file = os.path.join(folder, "v.json")
    run("bad\n", "--json", told_file)
    told = parse_json(content(told_file))
    check(told is not None and told["failed_as_expected"] == 1, "JSON counts")
    by_name = {c["name"]: c for c in told["cases"]}
    check(by_name["bad"]["verdict"] == "failed as expected", "JSON verdict")
    check("want 7" in by_name["bad"]["message"] and by_name["good"]["message"] == "", "messages")
    check(by_name["good"]["milliseconds"] > 0, "times")
    check(by_name["good"]["folder"].endswith("s/good"), "folders")
    check_error(sinter("test", folder, "--json", os.path.join(folder, "no", "v.json")), 4)


@test
def hangs_are_cut(folder):
    case(folder, "before")
    endless(folder, "hang")
    case(folder, "later")
    for seconds in 3, 40:  # on a busy machine the others may need more than 3 s, too
        result = sinter("test", folder, "--timeout", seconds, "-j1")
        check_code(result, 1, "FAIL hang", "timeout: not done after %d s" % seconds)
        if last_line(result) == "2 passed, 1 failed, 0 skipped":
            return
    check(False, "the others run on", result)


def child_of(pid):
    for _ in range(5000):
        try:
            with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as file:
                children = file.read().split()
        except OSError:
            children = []
        if children:
            return int(children[0])
        time.sleep(0.02)
    return None


@test
def crashes_are_isolated(folder):
    endless(folder, "a_crash")
    case(folder, "later")
    run = subprocess.Popen([program(), "test", folder, "-j1", "-t", "60"],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    child = child_of(run.pid)
    check(child is not None, "a case has a process of its own")
    time.sleep(0.3)
    if child is not None:
        os.kill(child, signal.SIGILL)
    out, _ = run.communicate(timeout=100)
    text = out.decode()
    crashed = "crashed: signal" in text or "ended with exit code" in text
    check(run.returncode == 1 and "FAIL a_crash" in text and crashed, "a crash: " + text)
    check(text.splitlines()[-1] == "1 passed, 1 failed, 0 skipped", "the other one runs: " + text)


@test
def broken_cases(folder):
    place = case(folder, "truncated")
    with open(os.path.join(place, "model.onnx"), "r+b") as file:
        file.truncate(40)
    place = case(folder, "bad_pb")
    write(os.path.join(place, "test_data_set_0", "input_0.pb"), b"\xff\xff\xff")
    place = case(folder, "too_many")
    save_pb(os.path.join(place, "test_data_set_0", "input_1.pb"), np.ones(1, np.float32))
    place = case(folder, "too_few")
    os.remove(os.path.join(place, "test_data_set_0", "input_0.pb"))
    place = case(folder, "two_sets")
    save_pb(os.path.join(place, "test_data_set_1", "input_0.pb"), np.ones((2, 3), np.float32))
    save_pb(os.path.join(place, "test_data_set_1", "output_0.pb"), np.zeros((2, 3), np.float32))
    result = sinter("test", folder)
    check_code(result, 1, "FAIL truncated", "load: ", "FAIL bad_pb", "input_0.pb",
               "FAIL too_many", "input_1.pb", "FAIL too_few", "FAIL two_sets", "data set 1: ")
    check(last_line(result) == "0 passed, 5 failed, 0 skipped", "all fail", result)


@test
def kinds(folder):
    place = os.path.join(folder, "sequence")
    os.makedirs(os.path.join(place, "test_data_set_0"))
    info = helper.make_tensor_sequence_value_info
    model(os.path.join(place, "model.onnx"), [helper.make_node("SequenceErase", ["s", "i"], ["t"])],
          [info("s", TensorProto.FLOAT, None), ("i", TensorProto.INT64, [])],
          [info("t", TensorProto.FLOAT, None)])
    a, b = np.ones(2, np.float32), np.zeros((1, 3), np.float32)

    def save_sequence(name, arrays):
        write(os.path.join(place, "test_data_set_0", name),
              numpy_helper.from_list(arrays).SerializeToString())
    save_sequence("input_0.pb", [a, b])
    save_pb(os.path.join(place, "test_data_set_0", "input_1.pb"), np.array(0))
    save_sequence("output_0.pb", [b])
    check_code(sinter("test", folder), 0)
    save_sequence("output_0.pb", [b + 1])
    check_code(sinter("test", folder), 1, "item 0: 3 of 3")
    save_sequence("output_0.pb", [b, b])
    check_code(sinter("test", folder), 1, "got a sequence of 1, want 2")


@test
def progress_on_terminals_only(folder):
    for i in range(20):
        case(folder, "c%02d" % i)
    check(sinter("test", folder).err == "", "no bar in a pipe")
    master, slave = pty.openpty()
    run = subprocess.Popen([program(), "test", folder, "-j1"], stdout=subprocess.PIPE,
                           stderr=slave, env=dict(os.environ, TERM="xterm"))
    run.communicate(timeout=60)
    os.close(slave)
    shown = b""
    try:
        shown = os.read(master, 65536)
    except OSError:
        pass
    os.close(master)
    check(b"[" in shown and b"%" in shown, "a bar on a terminal: %r" % shown[:200])
