"""ort_table.py - ONNX Runtime's C table from Python: any library with that interface, called by the
names of its slots."""

import ctypes
import os
import re

import numpy as np

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DTYPES = {1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64,
          9: np.bool_, 10: np.float16, 11: np.float64, 12: np.uint32, 13: np.uint64}
NUMBERS = {np.dtype(t): n for n, t in DTYPES.items()}


def slots():
    text = open(os.path.join(TOP, "src/ort/ort_slots.def")).read()
    text = text[text.index("/* Version 1 */"):]
    return [m.group(2) for m in re.finditer(r"ORT_(?:SLOT|STUB)\(\d+, ([^,]+), (\w+),", text)]


class OrtError(Exception):
    pass


class Ort:
    """A library. Slots are methods: api.CreateEnv(...) raises OrtError when the status says so."""

    def __init__(self, path, version=30):
        self.library = ctypes.CDLL(path)
        self.library.OrtGetApiBase.restype = ctypes.POINTER(ctypes.c_void_p)
        base = self.library.OrtGetApiBase()
        table = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)(base[0])(version)
        self.names = {name: i for i, name in enumerate(slots())}
        self.table = ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))

    def call(self, name, result, *arguments):
        kinds = []
        for a in arguments:
            kinds.append(ctypes.c_void_p if a is None or isinstance(a, (bytes, int)) and not isinstance(a, bool)
                         else type(a))
        values = [ctypes.cast(ctypes.c_char_p(a), ctypes.c_void_p) if isinstance(a, bytes) else a
                  for a in arguments]
        return ctypes.CFUNCTYPE(result, *kinds)(self.table[self.names[name]])(*values)

    def __getattr__(self, name):
        def method(*arguments):
            status = self.call(name, ctypes.c_void_p, *arguments)
            if status:
                text = self.call("GetErrorMessage", ctypes.c_char_p, status).decode("utf-8", "replace")
                self.call("ReleaseStatus", None, status)
                raise OrtError(text)
        return method

    def made(self, name, *arguments):
        """Calls a slot whose last argument is where it puts a pointer."""
        out = ctypes.c_void_p()
        getattr(self, name)(*arguments, ctypes.addressof(out))
        return out.value

    # ---- Providers ----

    def devices(self, env):
        listed, count = ctypes.c_void_p(), ctypes.c_size_t()
        self.GetEpDevices(env, ctypes.addressof(listed), ctypes.addressof(count))
        return ctypes.cast(listed, ctypes.POINTER(ctypes.c_void_p))[:count.value]

    def device_name(self, device):
        return self.call("EpDevice_EpName", ctypes.c_char_p, device).decode()

    # ---- Values ----

    def tensor(self, array):
        array = np.ascontiguousarray(array)
        info = self.made("CreateCpuMemoryInfo", 1, 0)
        shape = (ctypes.c_int64 * max(1, array.ndim))(*array.shape)
        value = self.made("CreateTensorWithDataAsOrtValue", info, array.ctypes.data, array.nbytes,
                          ctypes.addressof(shape), array.ndim, NUMBERS[array.dtype])
        self.call("ReleaseMemoryInfo", None, info)
        return value

    def array(self, value):
        info = self.made("GetTensorTypeAndShape", value)
        kind, rank = ctypes.c_int(), ctypes.c_size_t()
        self.GetTensorElementType(info, ctypes.addressof(kind))
        self.GetDimensionsCount(info, ctypes.addressof(rank))
        shape = (ctypes.c_int64 * max(1, rank.value))()
        self.GetDimensions(info, ctypes.addressof(shape), rank.value)
        self.call("ReleaseTensorTypeAndShapeInfo", None, info)
        dtype, dims = DTYPES[kind.value], shape[:rank.value]
        data = self.made("GetTensorMutableData", value)
        count = int(np.prod(dims))
        if not count:
            return np.zeros(dims, dtype)
        size = count * np.dtype(dtype).itemsize
        return np.frombuffer(ctypes.string_at(data, size), dtype).reshape(dims)

    # ---- Sessions ----

    def names_of(self, session, what):
        allocator = self.made("GetAllocatorWithDefaultOptions")
        count = ctypes.c_size_t()
        getattr(self, "SessionGet%sCount" % what)(session, ctypes.addressof(count))
        return [ctypes.string_at(self.made("SessionGet%sName" % what, session, i, allocator))
                for i in range(count.value)]

    def run(self, session, inputs):
        """Outputs by position, of inputs by name."""
        values = [self.tensor(a) for a in inputs.values()]
        outputs = self.names_of(session, "Output")
        in_names = (ctypes.c_char_p * max(1, len(inputs)))(*inputs.keys())
        in_values = (ctypes.c_void_p * max(1, len(inputs)))(*values)
        out_names = (ctypes.c_char_p * len(outputs))(*outputs)
        results = (ctypes.c_void_p * len(outputs))()
        self.Run(session, None, ctypes.addressof(in_names), ctypes.addressof(in_values), len(inputs),
                 ctypes.addressof(out_names), len(outputs), ctypes.addressof(results))
        arrays = [self.array(r) for r in results]
        for v in values + list(results):
            self.call("ReleaseValue", None, v)
        return arrays
