"""cases_inputs.py - every input format, and the way back to files."""
from harness import *

TYPES = [(TensorProto.FLOAT, "f4"), (TensorProto.DOUBLE, "f8"), (TensorProto.FLOAT16, "f2"),
         (TensorProto.INT8, "i1"), (TensorProto.INT16, "i2"), (TensorProto.INT32, "i4"),
         (TensorProto.INT64, "i8"), (TensorProto.UINT8, "u1"), (TensorProto.UINT16, "u2"),
         (TensorProto.UINT32, "u4"), (TensorProto.UINT64, "u8"), (TensorProto.BOOL, "?"),
         (TensorProto.COMPLEX64, "c8"), (TensorProto.COMPLEX128, "c16")]


def sample(letter, shape):
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape) * 7 % 120
    if letter[0] == "c":
        return (values - 1j * values).astype(letter)
    return (values % 2 == 1) if letter == "?" else values.astype(letter)


def through(folder, path, given, *args):
    """Runs an identity model on a file and gives back the saved array."""
    return saved_array(folder, path, "-i", "x=" + given, *args)


def check_same(got, want, what):
    same = got.dtype == want.dtype and got.shape == want.shape
    check(same and np.array_equal(got, want), what)


@test
def npy_types(folder):
    file = os.path.join(folder, "x.npy")
    for elem_type, letter in TYPES:
        path = identity(folder, elem_type, [2, 3])
        want = sample(letter, (2, 3))
        np.save(file, want)
        check_same(through(folder, path, file), want, "npy " + letter)
        np.save(file, np.asfortranarray(want))
        check_same(through(folder, path, file), want, "Fortran order " + letter)
        np.save(file, want.astype(want.dtype.newbyteorder(">")))
        check_same(through(folder, path, file), want, "big endian " + letter)


@test
def npy_shapes_and_versions(folder):
    file = os.path.join(folder, "x.npy")
    for shape in [(), (0,), (2, 0, 3), (1, 2, 3, 2, 2)]:
        want = sample("f4", shape)
        np.save(file, want)
        path = identity(folder, TensorProto.FLOAT, list(shape))
        check_same(through(folder, path, file), want, "shape %s" % (shape,))
    want = sample("i8", (4,))
    for version in [(1, 0), (2, 0), (3, 0)]:
        with open(file, "wb") as out:
            np.lib.format.write_array(out, want, version=version)
        path = identity(folder, TensorProto.INT64, [4])
        check_same(through(folder, path, file), want, "version %s" % (version,))


@test
def npy_strings(folder):
    file = os.path.join(folder, "x.npy")
    path = identity(folder, TensorProto.STRING, [2, 2])
    want = np.array([["a", "\u20ac\U0001f600"], ["", "lang"]])
    np.save(file, want)
    check_same(through(folder, path, file), want, "strings")
    np.save(file, np.array([[b"a", b"bc"], [b"", b"d"]]))
    check_same(through(folder, path, file), np.array([["a", "bc"], ["", "d"]]), "bytes")


@test
def npz_members(folder):
    path = model(os.path.join(folder, "add.onnx"), [helper.make_node("Add", ["a", "b"], ["y"])],
                 [("a", TensorProto.FLOAT, ["n"]), ("b", TensorProto.FLOAT, ["n"])],
                 [("y", TensorProto.FLOAT, ["n"])])
    a, b = sample("f4", (3000,)), np.ones(3000, np.float32)
    for save in [np.savez, np.savez_compressed]:
        file = os.path.join(folder, "ab.npz")
        save(file, a=a, b=b)
        check_same(saved_array(folder, path, "-i", file), a + b, save.__name__)
        check_code(sinter("run", path, "-i", "a=" + file, "-i", "b=" + file), 0)
        check_error(sinter("run", path, "-i", file, "-i", "a=" + file), 2, "twice")
        save(file, a=a, c=b)
        check_error(sinter("run", path, "-i", file), 2, "'c'")
        check_error(sinter("run", path, "-i", "a=" + file, "-i", "b=" + file), 3, "'b'")
        save(file, a=a)
        check_error(sinter("run", path, "-i", file), 2, "'b'")


@test
def pb_round_trip(folder):
    file = os.path.join(folder, "x.pb")
    for elem_type, letter in TYPES + [(TensorProto.STRING, "O")]:
        want = np.array(["a", "", "c"] * 2, object) if letter == "O" else sample(letter, (2, 3))
        want = want.reshape(2, 3)
        save_pb(file, want)
        path = identity(folder, elem_type, [2, 3])
        place = tempfile.mkdtemp(dir=folder)
        check_code(sinter("run", path, "-i", file, "-o", place, "--format", "pb"), 0)
        got = TensorProto()
        got.ParseFromString(content(os.path.join(place, "y.pb")))
        array = numpy_helper.to_array(got)
        if letter == "O":
            texts = [s.decode() if isinstance(s, bytes) else s for s in array.reshape(-1)]
            array = np.array(texts, object).reshape(2, 3)
        check(got.name == "y" and np.array_equal(array, want), "pb " + letter)


@test
def raw_bytes(folder):
    path = identity(folder, TensorProto.INT32, ["n", 3])
    want = sample("i4", (5, 3))
    file = os.path.join(folder, "x.bin")
    want.tofile(file)
    check_same(through(folder, path, file), want, "raw bytes")
    check_same(through(folder, path, file, "--shape", "x=5x3"), want, "raw bytes with a shape")
    check_error(sinter("run", path, "-i", file, "--shape", "x=4x3"), 3, "60 bytes")
    write(file, content(file) + b"z")
    check_error(sinter("run", path, "-i", file), 3, "61 bytes")
    check_error(sinter("run", identity(folder, TensorProto.INT32, ["n", "m"]), "-i", file), 2,
                "--shape")


def run_json(folder, elem_type, text, shape):
    file = os.path.join(folder, "x.json")
    write(file, text.encode())
    return file, identity(folder, elem_type, shape)


@test
def json_inputs(folder):
    good = [
        (TensorProto.FLOAT, "[[1, 2.5e0], [-3, 1E-2]]", np.array([[1, 2.5], [-3, .01]], "f4")),
        (TensorProto.INT64, "[9223372036854775807, -9223372036854775808]",
         np.array([2 ** 63 - 1, -2 ** 63], "i8")),
        (TensorProto.UINT64, "[18446744073709551615, 1.0]", np.array([2 ** 64 - 1, 1], "u8")),
        (TensorProto.BOOL, "[true, false, 1]", np.array([True, False, True])),
        (TensorProto.FLOAT16, "[[[65504, 1e-7]]]", np.array([[[65504, 1e-7]]], "f2")),
        (TensorProto.DOUBLE, " 0.1 ", np.array(0.1)),
        (TensorProto.STRING, '["a\\u00e9", "\\ud83d\\ude00", "\\n"]',
         np.array(["a\u00e9", "\U0001f600", "\n"])),
        (TensorProto.INT8, "[[], []]", np.zeros((2, 0), "i1")),
    ]
    for elem_type, text, want in good:
        file, path = run_json(folder, elem_type, text, list(want.shape))
        check_same(through(folder, path, file), want, text)
    file, path = run_json(folder, TensorProto.FLOAT, '["NaN", "-Infinity"]', [2])
    got = through(folder, path, file)
    check(got.shape == (2,) and np.isnan(got[0]) and got[1] == -np.inf, "special numbers")


@test
def json_errors(folder):
    number, text_type = TensorProto.FLOAT, TensorProto.STRING
    bad = [(TensorProto.INT8, "[128]", "int8"), (TensorProto.INT64, "[1.5]", "int64"),
           (TensorProto.UINT8, "[-1]", "uint8"), (TensorProto.FLOAT16, "[65520]", "float16"),
           (TensorProto.BOOL, "[2]", "bool"), (number, "[1e999]", "range"),
           (number, "[1e39]", "float32"), (number, "[[1, 2], [3]]", "length"),
           (number, "[1, [2]]", "depth"), (number, "[[1], 2]", "depth"),
           (number, "[1,]", "byte 3"), (number, "[01]", "bad number"),
           (number, "[1] 2", "after the end"), (number, "", "missing"),
           (number, "[nan]", "unexpected"), (number, "[" * 65, "deep"),
           (number, '["x"]', "no number"), (number, '{"a": 1, "a": 2}', "twice"),
           (number, "[+1]", "byte 1"), (number, "[" * 17 + "1" + "]" * 17, "deeper than 16"),
           (text_type, "[1]", "no string"), (text_type, '["\\ud83d"]', "surrogate"),
           (text_type, '["\t"]', "control")]
    for elem_type, text, why in bad:
        file, path = run_json(folder, elem_type, text, ["n"])
        check_error(sinter("run", path, "-i", file), 3, why)


@test
def types_must_fit(folder):
    path = identity(folder, TensorProto.FLOAT, [2])
    file = os.path.join(folder, "x.npy")
    np.save(file, np.array([1, 2.5]))
    check_error(sinter("run", path, "-i", file), 3, "float64", "float32", "--convert")
    check_same(through(folder, path, file, "--convert"), np.array([1, 2.5], "f4"), "converted")
    path = identity(folder, TensorProto.UINT8, [2])
    check_error(sinter("run", path, "-i", file, "--convert"), 3, "element 1", "2.5", "uint8")
    np.save(file, np.array([1, 256]))
    check_error(sinter("run", path, "-i", file, "--convert"), 3, "256")
    np.save(file, np.array(["a", "b"]))
    check_error(sinter("run", path, "-i", file, "--convert"), 3, "string")


@test
def narrow_types(folder):
    # bfloat16 and, where onnx knows them, float8 and int4; the codes are onnx's numbers
    values = np.array([0, 1, -1.5, 3], np.float32)
    file = os.path.join(folder, "x.npy")
    np.save(file, values)
    for elem_type in [16, 17, 18, 19, 20, 23]:
        path = identity(folder, elem_type, [4])
        check_same(through(folder, path, file, "--convert"), values, "float type %d" % elem_type)
    whole = np.array([0, 1, -2, 1, 1], np.int8)
    np.save(file, whole)
    for elem_type in [22, 26]:
        path = identity(folder, elem_type, [5])
        check_same(through(folder, path, file, "--convert"), whole, "integer type %d" % elem_type)
    np.save(file, np.array([100, 2], np.float32))
    path = identity(folder, 23, [2])
    check_error(sinter("run", path, "-i", file, "--convert"), 3, "float4e2m1")


@test
def input_names(folder):
    path = identity(folder, TensorProto.FLOAT, [2])
    file = os.path.join(folder, "x.npy")
    np.save(file, np.zeros(2, np.float32))
    check_error(sinter("run", path, "-i", "z=" + file), 2, "z=")
    check_error(sinter("run", path, "-i", file, "-i", "x=" + file), 2, "twice")
    check_error(sinter("run", path, "-i", os.path.join(folder, "no.npy")), 3, "no.npy")
    os.rename(file, file + ".txt")
    check_error(sinter("run", path, "-i", file + ".txt"), 2, "npy, npz")


@test
def sequences(folder):
    seq = helper.make_tensor_sequence_value_info("y", TensorProto.FLOAT, None)
    path = model(os.path.join(folder, "s.onnx"),
                 [helper.make_node("SequenceConstruct", ["a", "a"], ["y"])],
                 [("a", TensorProto.FLOAT, [2])], [seq])
    given = os.path.join(folder, "a.npy")
    np.save(given, np.array([1, 2], np.float32))
    check_code(sinter("run", path, "-i", given), 0, "sequence of 2", "[1]  float32[2]")
    check_error(sinter("run", path, "-i", given, "-o", folder), 4, "--format pb")
    check_code(sinter("run", path, "-i", given, "-o", folder, "--format", "pb"), 0)
    back = model(os.path.join(folder, "b.onnx"),
                 [helper.make_node("SequenceLength", ["y"], ["n"])], [seq],
                 [("n", TensorProto.INT64, [])])
    check_code(sinter("run", back, "-i", os.path.join(folder, "y.pb")), 0, "int64[]", "  2")
    check_error(sinter("run", back, "-i", given), 3, ".pb")
    check_error(sinter("run", back, "--random"), 2, "file")
