#!/usr/bin/python3
"""Tests of the Python package: values both ways, the native interface, the one that behaves as
ONNX Runtime's, threads, and bad input. Exits with 77 where numpy is not installed."""

import gc
import os
import subprocess
import sys
import tempfile
import threading
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.join(HERE, "..", "..")
sys.path.insert(0, os.path.join(TOP, "python"))

try:
    import numpy as np
except ImportError as e:
    print("skipped:", e)
    sys.exit(77)

import sinter

DIGITS = os.path.join(TOP, "demo", "digits.onnx")
HEAD = '<ir_version: 8, opset_import: ["": 17, "ai.onnx.ml": 3]>\n'


def session(text, **options):
    return sinter.Session(sinter.Model(text=HEAD + text), **options)


def identity(type_text):
    return session(f"g ({type_text} x) => ({type_text} y) {{ y = Identity(x) }}")


class Values(unittest.TestCase):
    def test_every_numpy_type_goes_through(self):
        names = {"float": np.float32, "double": np.float64, "float16": np.float16, "bool": np.bool_,
                 **{n: getattr(np, n) for n in ("uint8", "int8", "uint16", "int16", "int32", "int64",
                                                "uint32", "uint64", "complex64", "complex128")}}
        for name, dtype in names.items():
            x = (np.arange(12).reshape(3, 4) % 7).astype(dtype)
            y = identity(name + "[N,M]")(x)
            self.assertEqual(y.dtype, x.dtype)
            np.testing.assert_array_equal(y, x)

    def test_layouts_that_numpy_allows(self):
        s = identity("float[N,M]")
        x = np.arange(24, dtype=np.float32).reshape(4, 6)
        for view in (x.T, x[:, ::2], x[::-1], x.astype(">f4"), np.asfortranarray(x), x[:0]):
            np.testing.assert_array_equal(s(view), view)
        odd = np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(np.float32).reshape(4, 6)
        np.testing.assert_array_equal(s(odd), x)

    def test_scalar_and_empty(self):
        self.assertEqual(identity("float[]")(np.float32(3)).shape, ())
        self.assertEqual(identity("float[N]")(np.empty(0, np.float32)).shape, (0,))

    def test_strings(self):
        x = np.array([["a", "long and é"], ["", "\u2603"]], object)
        np.testing.assert_array_equal(identity("string[N,M]")(x), x)
        np.testing.assert_array_equal(identity("string[N]")(np.array(["p", "q"])), ["p", "q"])

    def test_sequence_and_optional(self):
        s = session("g (seq(float[N]) x) => (seq(float[N]) y) { y = Identity(x) }")
        out = s([np.ones(2, np.float32), np.zeros(3, np.float32)])
        self.assertEqual([o.tolist() for o in out], [[1, 1], [0, 0, 0]])
        self.assertIsNone(sinter.Value.of(None).numpy())

    def test_map(self):
        s = session("g (float[N,2] x) => (seq(map(string, float)) y) "
                    '{ y = ai.onnx.ml.ZipMap <classlabels_strings = ["no", "yes"]> (x) }')
        self.assertEqual(s(np.array([[0.25, 0.75]], np.float32)), [{"no": 0.25, "yes": 0.75}])

    def test_types_without_a_numpy_name_are_bits(self):
        x = np.array([1.0, -2.5, 3.1415926], np.float32)
        bits = sinter.bfloat16_bits(x)
        out = identity("bfloat16[N]")(bits)
        np.testing.assert_array_equal(out, bits)
        np.testing.assert_allclose(sinter.bfloat16_values(out), x, rtol=1 / 256)
        packed = sinter.Value.packed(np.array([0x21, 0x03], np.uint8), (3,), "uint4")
        s = session("g (uint4[N] x) => (float[N] y) { y = Cast <to = 1> (x) }")
        self.assertEqual(s(packed).tolist(), [1, 2, 3])

    def test_numbers_in_a_list_take_the_declared_type(self):
        s = session("g (int64[N] x) => (int64[N] y) { y = Neg(x) }")
        self.assertEqual(s([1, 2]).tolist(), [-1, -2])

    def test_results_outlive_session_and_inputs_are_not_copied(self):
        x = np.ones((4, 4), np.float32)
        value = sinter.Value.of(x)
        x[0, 0] = 5
        self.assertEqual(value.numpy()[0, 0], 5)
        s = identity("float[N,M]")
        y = s(x)
        del s, value
        gc.collect()
        self.assertEqual(y[0, 0], 5)


class Layout(unittest.TestCase):
    """The structures are declared twice, in sinter.h and for ctypes: a C compiler compares them."""

    def test_fields_are_where_the_header_has_them(self):
        from sinter import _lib

        pairs = {"sn_error": _lib.ErrorSlot, "sn_value_info": _lib.ValueInfo,
                 "sn_load_options": _lib.LoadOptions, "sn_model_info": _lib.ModelInfo,
                 "sn_session_options": _lib.SessionOptionsStruct, "sn_binding": _lib.Binding,
                 "sn_dimension": _lib.Dimension,
                 "sn_step_event": _lib.StepEvent, "sn_run_options": _lib.RunOptionsStruct}
        lines = ["#include <stddef.h>", "#include <sinter.h>"]
        for name, struct in pairs.items():
            for field, _ in struct._fields_:
                if field != "_room":
                    at = getattr(struct, field).offset
                    lines.append(f'_Static_assert(offsetof({name}, {field}) == {at}, "{name}.{field}");')
            if name == "sn_session_options":  # nothing is left out
                fields = [n for n, _ in struct._fields_ if n != "_room"]
                lines.append(f'_Static_assert(sizeof({name}) - offsetof({name}, {fields[-1]}) - '
                             f'sizeof((({name} *)0)->{fields[-1]}) < _Alignof({name}), '
                             f'"{name}: a field is missing");')
            if name != "sn_step_event":  # read in the library's memory
                import ctypes

                lines.append(f'_Static_assert(sizeof({name}) <= {ctypes.sizeof(struct)}, "{name}");')
        include = os.path.join(TOP, "include")
        done = subprocess.run(["cc", "-std=c11", "-fsyntax-only", f"-I{include}", "-xc", "-"],
                              input="\n".join(lines), text=True, capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)


class Native(unittest.TestCase):
    def test_model_says_what_it_is(self):
        m = sinter.Model(DIGITS)
        self.assertEqual(m.inputs[0].shape, ["N", 1, 8, 8])
        self.assertEqual(m.outputs[0].dtype, "float32")
        self.assertGreater(m.info["parameter_count"], 100)
        self.assertIn("", m.opsets)
        again = sinter.Model(m.to_onnx())
        self.assertEqual(again.inputs[0].type, m.inputs[0].type)
        self.assertIn("Conv", m.to_text())

    def test_threads_share_a_session(self):
        s = sinter.Session(DIGITS, threads=1)
        x = np.random.default_rng(0).random((1, 1, 8, 8), np.float32)
        want, wrong = s(x), []

        def work():
            for _ in range(200):
                if not np.array_equal(s(x), want):
                    wrong.append(1)

        threads = [threading.Thread(target=work) for _ in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        self.assertEqual(wrong, [])

    def test_cancel_and_time_limit(self):
        loop = ("g (int64 n, float[8] x) => (float[8] y) { c = Constant <value = bool {1}> () "
                "y = Loop (n, c, x) <body = b (int64 i, bool k, float[8] v) => (bool k2, float[8] w) "
                "{ k2 = Identity(k) w = Sin(v) }> }")
        s = session(loop)
        feeds = {"n": np.int64(1 << 40), "x": np.ones(8, np.float32)}
        with self.assertRaises(sinter.TimedOut):
            s.run(feeds, time_limit=0.05)
        cancel = sinter.Cancel()
        timer = threading.Timer(0.05, cancel.trigger)
        timer.start()
        with self.assertRaises(sinter.Cancelled):
            s.run(feeds, cancel=cancel)

    def test_large_windows_stop_in_time(self):
        """Work that grows with attributes and not with memory: hours of it, were it not stopped."""
        line, plane = np.ones((1, 1, 1500000), np.float32), np.ones((1, 1, 1200, 1200), np.float32)
        rois = np.tile(np.float32([0, 0, 90, 90]), (2000, 1))
        feeds = {"r": rois, "i": np.zeros(len(rois), np.int64), "w": np.ones((1, 1, 600, 600), np.float32)}
        for x, call in (
            (line, "AveragePool <kernel_shape = [750000]> (x)"),
            (line, "MaxPool <kernel_shape = [750000]> (x)"),
            (plane, "MaxPool <kernel_shape = [600, 600]> (x)"),
            (plane, "LpPool <kernel_shape = [600, 600], p = 3> (x)"),
            (np.ones((1, 400000, 1, 4), np.float32), "LRN <size = 400001> (x)"),
            (plane, "Conv <pads = [300, 300, 300, 300]> (x, w)"),
            (plane, "RoiAlign <output_height = 20, output_width = 20, sampling_ratio = 1000> (x, r, i)"),
        ):
            dims = "N,C,W" if x.ndim == 3 else "N,C,H,W"
            text = (f"g (float[{dims}] x, float[1,1,600,600] w, float[R,4] r, int64[R] i) => (float y) "
                    f"{{ y = {call} }}")
            for optimize in (0, 3):
                with self.assertRaisesRegex(sinter.TimedOut, call.split()[0], msg=call):
                    session(text, optimize=optimize).run({"x": x, **feeds}, time_limit=0.05)

    def test_long_sequences_stop_in_time(self):
        """Attention over half a million places, which takes little memory: half an hour."""
        text = ("g (float[1,N,64] x) => (float[1,N,64] y) "
                "{ y = com.microsoft.MultiHeadAttention <num_heads = 1> (x, x, x) }")
        s = sinter.Session(sinter.Model(text=HEAD.replace('"": 17', '"": 17, "com.microsoft": 1') + text))
        with self.assertRaisesRegex(sinter.TimedOut, "Attention"):
            s.run({"x": np.ones((1, 500000, 64), np.float32)}, time_limit=0.05)

    def test_large_products_stop_in_time(self):
        for kind, out, op, x in (("float", "float", "MatMul", np.ones((4096, 4096), np.float32)),
                                 ("uint8", "int32", "MatMulInteger", np.ones((4096, 4096), np.uint8))):
            s = session(f"g ({kind}[N,N] x) => ({out}[N,N] y) {{ y = {op} (x, x) }}")
            with self.assertRaisesRegex(sinter.TimedOut, op):
                s.run({"x": x}, time_limit=0.01)

    def test_folding_stops_in_time(self):
        text = ("g (float[1] t) => (float[A,B,C] y) <int64[3] s = {1, 1, 1500000}> "
                "{ x = ConstantOfShape <value = float[1] {1}> (s) y = MaxPool <kernel_shape = [750000]> (x) }")
        with self.assertRaises(sinter.TimedOut):
            session(text, prepare_limit=0.1)

    def test_errors_name_the_cause(self):
        s = sinter.Session(DIGITS)
        with self.assertRaisesRegex(sinter.InvalidArgument, "image"):
            s(np.zeros((1, 2, 8, 8), np.float32))
        with self.assertRaisesRegex(sinter.InvalidArgument, "float64"):
            s(np.zeros((1, 1, 8, 8)))
        with self.assertRaises(sinter.InvalidArgument):
            s()
        with self.assertRaises(sinter.InvalidArgument):
            s(1, 2)
        with self.assertRaisesRegex(FileNotFoundError, "nowhere.onnx"):
            sinter.Model("nowhere.onnx")
        with self.assertRaises(sinter.Error):
            sinter.Model(b"\xff\xff\xff")


class Cache(unittest.TestCase):
    """Compiled models kept in a folder."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.x = np.random.default_rng(2).random((1, 1, 8, 8), np.float32)

    def files(self):
        return sorted(n for n in os.listdir(self.folder) if n.endswith(".sinter"))

    def test_sessions_find_what_others_made(self):
        lines = []
        options = {"cache_folder": self.folder, "log": lambda _, line: lines.append(line)}
        want = sinter.Session(DIGITS)(self.x)
        np.testing.assert_array_equal(sinter.Session(DIGITS, **options)(self.x), want)
        self.assertEqual(len(self.files()), 1)
        self.assertFalse([line for line in lines if "found in the cache" in line])
        np.testing.assert_array_equal(sinter.Session(DIGITS, **options)(self.x), want)
        self.assertEqual(len(self.files()), 1)
        self.assertTrue([line for line in lines if "found in the cache" in line])

    def test_tuned_and_compiled(self):
        session, path = sinter.Session(DIGITS), os.path.join(self.folder, "digits.sinter")
        self.assertLessEqual(session.tune({"image": self.x}), 3)
        y = session(self.x)
        session.compile(path)
        np.testing.assert_array_equal(sinter.Session(path)(self.x), y)
        self.assertGreater(session.trim(), 0)
        np.testing.assert_array_equal(session(self.x), y)
        nothing = sinter.Model(text=HEAD + "g (float[2] image) => (float[2] y) { y = Relu(image) }")
        for one in (session, sinter.Session(DIGITS), sinter.Session(nothing)):
            with self.assertRaisesRegex(sinter.InvalidArgument, "'image' .* is missing"):
                one.tune({})  # whether something is left to choose or not

    def test_compiling_fails(self):
        """What was there stays, nothing is left beside it, and the error says what happened."""
        session, path = sinter.Session(DIGITS), os.path.join(self.folder, "digits.sinter")
        session(self.x)
        with open(path, "w", encoding="ascii") as file:
            file.write("older")

        def full(piece):
            raise OSError(28, "No space left on device")

        real, sinter._lib.write_through = sinter._lib.write_through, (
            lambda take, *arguments: real(full, *arguments))
        try:
            with self.assertRaisesRegex(OSError, "No space left"):
                session.compile(path)
        finally:
            sinter._lib.write_through = real
        self.assertEqual(os.listdir(self.folder), ["digits.sinter"])
        with open(path, encoding="ascii") as file:
            self.assertEqual(file.read(), "older")
        nowhere = os.path.join(self.folder, "none", "digits.sinter")
        with self.assertRaisesRegex(FileNotFoundError, "none/digits.sinter'"):
            session.compile(nowhere)
        session.compile("/dev/null")
        session.compile(path)
        self.assertEqual(os.listdir(self.folder), ["digits.sinter"])
        sinter.Session(path)(self.x)

    def test_limit(self):
        sinter.Session(DIGITS, cache_folder=self.folder, cache_limit=1)(self.x)
        self.assertEqual(self.files(), [])
        sinter.Session(DIGITS, cache_folder=self.folder, cache_limit=1 << 30)(self.x)
        self.assertEqual(len(self.files()), 1)
        for wrong in (-1, 1 << 64):
            with self.assertRaisesRegex(sinter.InvalidArgument, "cache_limit"):
                sinter.Session(DIGITS, cache_folder=self.folder, cache_limit=wrong)

    def test_entries_of_onnxruntime(self):
        options = sinter.SessionOptions()
        options.add_session_config_entry("sinter.cache_folder", self.folder)
        options.add_session_config_entry("sinter.cache_limit", "1")
        sinter.InferenceSession(DIGITS, options).run(None, {"image": self.x})
        self.assertEqual(self.files(), [])
        options.add_session_config_entry("sinter.cache_limit", "1000000000")
        sinter.InferenceSession(DIGITS, options).run(None, {"image": self.x})
        self.assertEqual(len(self.files()), 1)
        for wrong in ("", "-1", "12 MB", "99999999999999999999999"):
            options.add_session_config_entry("sinter.cache_limit", wrong)
            with self.assertRaisesRegex(sinter.InvalidArgument, "cache_limit"):
                sinter.InferenceSession(DIGITS, options)


class Providers(unittest.TestCase):
    """Names and options; with the library of tests/provider/guarded.c beside libsinter, runs too."""

    def test_names(self):
        for name in ("CUDAExecutionProvider", "Foo"):
            with self.assertRaisesRegex(sinter.Error, f"no provider '{name}'"):
                sinter.InferenceSession(DIGITS, providers=[name, "CPUExecutionProvider"])
        lines = []
        session = sinter.Session(DIGITS, providers=["Foo?", "cpu"], log=lambda level, line: lines.append(line))
        self.assertEqual(session.providers(), [])
        self.assertTrue(any("Foo" in line for line in lines))
        with self.assertRaisesRegex(ValueError, "same length"):
            sinter.InferenceSession(DIGITS, providers=["cpu"], provider_options=[{}, {}])
        with self.assertRaisesRegex(ValueError, "pair"):
            sinter.InferenceSession(DIGITS, providers=[5])
        self.assertEqual(sinter.devices()[0].provider, "cpu")

    def test_guarded(self):
        library = os.path.join(os.path.dirname(os.environ.get("SINTER_LIBRARY", "")), "libguarded.so")
        if not os.path.exists(library):
            self.skipTest("the test provider is not built")
        x = np.random.default_rng(1).random((2, 1, 8, 8), np.float32)
        want, = sinter.InferenceSession(DIGITS).run(None, {"image": x})
        sinter.register_execution_provider_library("guarded", library)
        self.assertEqual(sinter.get_available_providers(), ["guarded", "CPUExecutionProvider"])
        session = sinter.InferenceSession(DIGITS, providers=["GuardedExecutionProvider"],
                                          provider_options=[{"claim": "parts", "delay": 10}])
        got, = session.run(None, {"image": x})
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)
        self.assertEqual(session.get_providers(), ["guarded", "CPUExecutionProvider"])
        self.assertGreater(session._session.providers()[0][3], 1)
        with self.assertRaisesRegex(sinter.Error, "colour"):
            sinter.Session(DIGITS, providers=[("guarded", {"colour": "red"})])
        with self.assertRaisesRegex(sinter.Error, "refused"):
            sinter.Session(DIGITS, providers=["guarded:1"])
        failing = sinter.Session(DIGITS, providers=[("guarded", {"fail": "run"})])
        with self.assertRaisesRegex(sinter.Error, "provider 'guarded', part '.*run fails on purpose"):
            failing(x)
        np.testing.assert_allclose(failing(x), want, rtol=1e-4, atol=1e-6)
        session.set_providers(["CPUExecutionProvider"])
        self.assertEqual(session.get_providers(), ["CPUExecutionProvider"])
        sinter.unregister_execution_provider_library("guarded")
        with self.assertRaisesRegex(sinter.Error, "no provider"):
            sinter.Session(DIGITS, providers=["guarded"])
        np.testing.assert_allclose(failing(x), want, rtol=1e-4, atol=1e-6)


class AsOnnxRuntime(unittest.TestCase):
    def setUp(self):
        self.x = np.random.default_rng(1).random((2, 1, 8, 8), np.float32)
        self.session = sinter.InferenceSession(DIGITS, providers=["CPUExecutionProvider"])

    def test_describes_the_model(self):
        i, = self.session.get_inputs()
        self.assertEqual((i.name, i.type, i.shape), ("image", "tensor(float)", ["N", 1, 8, 8]))
        self.assertEqual(self.session.get_outputs()[0].name, "probabilities")
        self.assertEqual(self.session.get_providers(), ["CPUExecutionProvider"])
        self.assertIsInstance(self.session.get_modelmeta().custom_metadata_map, dict)

    def test_run(self):
        y, = self.session.run(None, {"image": self.x})
        z, = self.session.run(["probabilities"], {"image": self.x}, sinter.RunOptions())
        np.testing.assert_array_equal(y, z)
        np.testing.assert_allclose(y.sum(axis=1), [1, 1], rtol=1e-5)
        with self.assertRaisesRegex(ValueError, "nothing"):
            self.session.run(["nothing"], {"image": self.x})

    def test_bytes_options_and_levels_agree(self):
        y, = self.session.run(None, {"image": self.x})
        with open(DIGITS, "rb") as f:
            raw = f.read()
        for level in (0, 1, 2, sinter.GraphOptimizationLevel.ORT_ENABLE_ALL):
            options = sinter.SessionOptions()
            options.graph_optimization_level = level
            options.intra_op_num_threads = 1
            options.add_session_config_entry("some.key", "1")
            z, = sinter.InferenceSession(raw, options).run(None, {"image": self.x})
            np.testing.assert_allclose(y, z, rtol=1e-4, atol=1e-6)

    def test_ort_values_and_binding(self):
        want, = self.session.run(None, {"image": self.x})
        value = sinter.OrtValue.ortvalue_from_numpy(self.x)
        self.assertEqual((value.shape(), value.data_type()), ([2, 1, 8, 8], "tensor(float)"))
        out, = self.session.run_with_ort_values(None, {"image": value})
        np.testing.assert_array_equal(out.numpy(), want)
        binding = self.session.io_binding()
        room = np.zeros((2, 10), np.float32)
        binding.bind_cpu_input("image", self.x)
        binding.bind_output("probabilities", "cpu", 0, np.float32, (2, 10), room.ctypes.data)
        self.session.run_with_iobinding(binding)
        np.testing.assert_array_equal(room, want)
        np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], want)
        target = sinter.OrtValue.ortvalue_from_shape_and_type((2, 10), np.float32)
        binding.bind_ortvalue_output("probabilities", target)
        self.session.run_with_iobinding(binding)
        np.testing.assert_array_equal(target.numpy(), want)

    def test_terminate(self):
        options = sinter.RunOptions()
        options.terminate = True
        with self.assertRaises(sinter.Error):
            self.session.run(None, {"image": self.x}, options)
        options.terminate = False
        self.session.run(None, {"image": self.x}, options)

    def test_profile(self):
        options = sinter.SessionOptions()
        options.enable_profiling = True
        with tempfile.TemporaryDirectory() as folder:
            options.profile_file_prefix = os.path.join(folder, "p")
            s = sinter.InferenceSession(DIGITS, options)
            s.run(None, {"image": self.x})
            path = s.end_profiling()
            with open(path, encoding="utf-8") as f:
                self.assertIn("op_name", f.read())

    def test_dimensions_and_initializers(self):
        text = HEAD + "g (float[N,2] x) => (float[N,2] y) <float[2] w = {1.0, 2.0}> { y = Mul(x, w) }"
        raw = sinter.Model(text=text).to_onnx()
        options = sinter.SessionOptions()
        options.add_free_dimension_override_by_name("N", 3)
        options.add_initializer("w", sinter.OrtValue.ortvalue_from_numpy(np.array([5, 7], np.float32)))
        s = sinter.InferenceSession(raw, options)
        self.assertEqual(s.get_inputs()[0].shape, [3, 2])
        np.testing.assert_array_equal(s.run(None, {"x": np.ones((3, 2), np.float32)})[0], [[5, 7]] * 3)
        with self.assertRaises(sinter.InvalidArgument):
            s.run(None, {"x": np.ones((4, 2), np.float32)})
        options = sinter.SessionOptions()
        options.register_custom_ops_library("nowhere.so")
        with self.assertRaisesRegex(sinter.Error, "nowhere.so"):
            sinter.InferenceSession(raw, options)

    def test_what_is_not_a_model(self):
        with self.assertRaises(TypeError):
            sinter.InferenceSession(17)


class Export(unittest.TestCase):
    def test_module_to_model(self):
        try:
            import torch  # noqa: F401
        except ImportError:
            self.skipTest("PyTorch is not installed")
        import contextlib
        import io

        from sinter import export

        said = io.StringIO()
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(said):
            path = os.path.join(folder, "m.onnx")
            self.assertEqual(export.main(["torch.nn:Identity", "-i", "rows=2x3", "-o", path,
                                          "--seconds", "0.01"]), 0)
            y = sinter.Session(path)(np.ones((5, 3), np.float32))
            self.assertEqual(y.shape, (5, 3))
        self.assertIn("fine", said.getvalue())
        with contextlib.redirect_stderr(said):
            self.assertEqual(export.main(["torch.nn:Nothing"]), 1)
            self.assertEqual(export.main(["torch.nn:Identity", "-i", "2xx3"]), 1)


class Compression(unittest.TestCase):
    def setUp(self):
        self.model = sinter.Model(DIGITS)
        shape = [d if isinstance(d, int) else 4 for d in self.model.inputs[0].shape]
        random = np.random.default_rng(1)
        self.samples = [random.random(shape, np.float32) for _ in range(4)]

    def test_quantize(self):
        for to in ("int8", "fp16"):
            phases = set()
            model, report = sinter.quantize(self.model, self.samples, to=to, may_be_slower=True,
                                            progress=lambda phase, done, total: phases.add(phase))
            self.assertLess(report.summary["loss"], 0.01)
            self.assertLess(report.summary["bytes_after"], report.summary["bytes_before"])
            self.assertIn(to, [layer["precision"] for layer in report.layers])
            self.assertTrue(phases)
            want = sinter.Session(self.model)(self.samples[0])
            got = sinter.Session(model.to_onnx())(self.samples[0])
            np.testing.assert_allclose(got, want, atol=0.1)

    def test_dicts_scores_and_limits(self):
        name = self.model.inputs[0].name
        samples = [{name: x} for x in self.samples]
        _, report = sinter.quantize(self.model, samples, to="fp16", max_loss=0, score=lambda s: 7)
        self.assertEqual(report.summary["loss"], 0)
        with self.assertRaises(sinter.LimitReached) as caught:
            sinter.quantize(self.model, samples, may_be_slower=True, max_loss=0)
        self.assertTrue(any(layer["loss"] > 0 for layer in caught.exception.report.layers))

    def test_prune(self):
        model, report = sinter.prune(self.model, self.samples, pattern="2:4")
        self.assertGreater(report.summary["sparsity"], 0.4)
        self.assertEqual(len(model.outputs), len(self.model.outputs))

    def test_what_callbacks_raise_comes_out(self):
        def fail(*_):
            raise KeyError("mine")

        for options in ({"progress": fail}, {"score": fail}):
            with self.assertRaises(KeyError):
                sinter.quantize(self.model, self.samples, **options)
        with self.assertRaises(sinter.InvalidArgument):
            sinter.quantize(self.model, [])
        with self.assertRaises(sinter.InvalidArgument):
            sinter.quantize(self.model, self.samples, to="int5")
        with self.assertRaises(sinter.Error):
            sinter.quantize(self.model, [np.zeros((2, 3), np.float32)])


if __name__ == "__main__":
    unittest.main()
