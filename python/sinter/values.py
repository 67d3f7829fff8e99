"""Values between numpy and the library, without copies where the memory allows it.

Tensors are numpy arrays. Element types that numpy has no name for are arrays of their bits:
bfloat16 as uint16, the float8 types as uint8, and types under 8 bits as packed uint8, which Value
describes with its own `dtype` and `shape`. Strings are object arrays of str. Sequences are lists,
maps are dicts, an optional that holds nothing is None."""

import ctypes

import numpy as np

from . import _lib
from ._lib import call, create, lib

# Element types by ONNX number: name, numpy type of the elements (None: strings), elements per byte.
DTYPES = {
    1: ("float32", np.float32, 1),
    2: ("uint8", np.uint8, 1),
    3: ("int8", np.int8, 1),
    4: ("uint16", np.uint16, 1),
    5: ("int16", np.int16, 1),
    6: ("int32", np.int32, 1),
    7: ("int64", np.int64, 1),
    8: ("string", None, 1),
    9: ("bool", np.bool_, 1),
    10: ("float16", np.float16, 1),
    11: ("float64", np.float64, 1),
    12: ("uint32", np.uint32, 1),
    13: ("uint64", np.uint64, 1),
    14: ("complex64", np.complex64, 1),
    15: ("complex128", np.complex128, 1),
    16: ("bfloat16", np.uint16, 1),
    17: ("float8e4m3fn", np.uint8, 1),
    18: ("float8e4m3fnuz", np.uint8, 1),
    19: ("float8e5m2", np.uint8, 1),
    20: ("float8e5m2fnuz", np.uint8, 1),
    21: ("uint4", np.uint8, 2),
    22: ("int4", np.uint8, 2),
    23: ("float4e2m1", np.uint8, 2),
    24: ("float8e8m0", np.uint8, 1),
    25: ("uint2", np.uint8, 4),
    26: ("int2", np.uint8, 4),
}
STRING = 8
NUMBERS = {name: number for number, (name, _, _) in DTYPES.items()}
_OF_NUMPY = {np.dtype(t): number for number, (_, t, per) in sorted(DTYPES.items(), reverse=True)
             if t is not None and per == 1 and number < 16}


def _dims(shape):
    return (ctypes.c_int64 * max(len(shape), 1))(*shape)


class Value:
    """An owned sn_value, with whatever Python memory it refers to."""

    __slots__ = ("handle", "_memory", "__weakref__")

    def __init__(self, handle, memory=None):
        self.handle = handle
        self._memory = memory

    def __del__(self):
        if getattr(self, "handle", None) and lib is not None:
            lib.sn_value_destroy(self.handle)
            self.handle = None

    @property
    def kind(self):
        return lib.sn_value_kind(self.handle)

    @property
    def dtype(self):
        """The element type's name, such as "float32"."""
        return _lib.text(lib.sn_dtype_name(lib.sn_tensor_dtype(self.handle)))

    @property
    def shape(self):
        rank = lib.sn_tensor_rank(self.handle)
        return tuple(lib.sn_tensor_dims(self.handle)[:rank]) if rank else ()

    def numpy(self):
        """The value as Python sees it; a tensor's array shares the value's memory."""
        return _to_python(self.handle, self)

    @staticmethod
    def of(obj, dtype=0):
        """A value from numpy arrays, lists (sequences), dicts (maps) or None. `dtype` is the ONNX
        number that bits are to be read as where numpy cannot tell; 0: what numpy says."""
        if isinstance(obj, Value):
            return obj
        if obj is None:
            return Value(create(lib.sn_none_create))
        if isinstance(obj, dict):
            return _map(obj)
        if isinstance(obj, (list, tuple)) and not _is_plain(obj):
            return _sequence(obj, dtype)
        return _tensor(np.asarray(obj), dtype)

    @staticmethod
    def zeros(shape, dtype="float32"):
        """A zero-filled tensor in the library's memory."""
        return Value(create(lib.sn_tensor_create, NUMBERS[dtype], len(shape), _dims(shape)))

    @staticmethod
    def packed(bits, shape, dtype):
        """A tensor of a type under 8 bits over packed bytes, low bits first."""
        bits = np.ascontiguousarray(bits, np.uint8)
        return Value(create(lib.sn_tensor_wrap, NUMBERS[dtype], len(shape), _dims(shape),
                            bits.ctypes.data, bits.nbytes), bits)


def _is_plain(obj):
    """Whether a list is a tensor written out in numbers rather than a sequence of tensors."""
    while isinstance(obj, (list, tuple)) and obj:
        obj = obj[0]
    return isinstance(obj, (int, float, bool, complex, str, bytes, np.generic))


def _tensor(array, dtype):
    if array.dtype.kind in "OUS":
        return _strings(array)
    native = array.dtype.newbyteorder("=")
    number = dtype or _OF_NUMPY.get(native)
    if not number or DTYPES[number][2] != 1 or np.dtype(DTYPES[number][1]) != native:
        wanted = f" as {DTYPES[number][0]}" if number else ""
        raise _lib.InvalidArgument(f"an array of {array.dtype} cannot be taken{wanted}")
    if not (array.flags.c_contiguous and array.dtype.isnative):
        array = np.ascontiguousarray(array, native)
    return Value(create(lib.sn_tensor_wrap, number, array.ndim, _dims(array.shape),
                        array.ctypes.data, array.nbytes), array)


def _strings(array):
    value = Value(create(lib.sn_tensor_create, STRING, array.ndim, _dims(array.shape)))
    for i, item in enumerate(array.ravel()):
        raw = item if isinstance(item, bytes) else str(item).encode("utf-8", "surrogateescape")
        call(lib.sn_tensor_set_string, value.handle, i, raw, len(raw))
    return value


def _sequence(items, dtype):
    values = [Value.of(i, dtype) for i in items]
    handles = (ctypes.c_void_p * max(len(values), 1))(*[v.handle for v in values])
    value = Value(create(lib.sn_sequence_create, handles, len(values)),
                  [v._memory for v in values])
    for v in values:  # taken over by the sequence
        v.handle = None
    return value


def _map(items):
    keys = list(items)
    text = bool(keys) and isinstance(keys[0], (str, bytes))
    key_value = Value.of(np.array(keys, object if text else np.int64))
    data = list(items.values())
    plain = not data or _is_plain(data)
    if plain and data and not isinstance(data[0], (str, bytes)):
        array = np.array(data)
        data = array.astype(np.float32) if array.dtype == np.float64 and not isinstance(
            next(iter(items.values())), np.float64) else array
    elif plain:
        data = np.array(data, object if data else np.float32)
    values = Value.of(data) if plain else _sequence(data, 0)
    result = Value(create(lib.sn_map_create, key_value.handle, values.handle),
                   (key_value._memory, values._memory))
    key_value.handle = values.handle = None
    return result


def _to_python(handle, owner):
    kind = lib.sn_value_kind(handle)
    if kind == _lib.NONE:
        return None
    if kind == _lib.SEQUENCE:
        return [_to_python(lib.sn_sequence_at(handle, i), owner)
                for i in range(lib.sn_sequence_length(handle))]
    if kind == _lib.MAP:
        keys = _to_python(lib.sn_map_keys(handle), owner)
        values = _to_python(lib.sn_map_values(handle), owner)
        if isinstance(values, np.ndarray):
            values = values.tolist()
        return dict(zip(keys.tolist(), values))
    return _to_array(handle, owner)


def _to_array(handle, owner):
    rank = lib.sn_tensor_rank(handle)
    shape = tuple(lib.sn_tensor_dims(handle)[:rank]) if rank else ()
    number = lib.sn_tensor_dtype(handle)
    if number == STRING:
        return _to_strings(handle, shape)
    _, dtype, per_byte = DTYPES[number]
    if per_byte > 1:
        shape = (lib.sn_tensor_bytes(handle),)
    size = lib.sn_tensor_bytes(handle)
    if not size:
        return np.empty(shape, dtype)
    memory = (ctypes.c_char * size).from_address(lib.sn_tensor_const_data(handle))
    memory.owner = owner  # the array keeps the memory alive, and the memory its value
    return np.frombuffer(memory, dtype).reshape(shape)


def _to_strings(handle, shape):
    count = lib.sn_tensor_count(handle)
    out = np.empty(count, object)
    data, size = ctypes.c_void_p(), ctypes.c_size_t()
    for i in range(count):
        call(lib.sn_tensor_get_string, handle, i, ctypes.byref(data), ctypes.byref(size))
        raw = ctypes.string_at(data, size.value)
        out[i] = raw.decode("utf-8", "surrogateescape")
    return out.reshape(shape)


def bfloat16_bits(array):
    """float32 to the bits of bfloat16, to nearest even; NaN stays NaN."""
    array = np.ascontiguousarray(array, np.float32)
    bits = array.view(np.uint32)
    rounded = (bits + (((bits >> 16) & 1) + 0x7FFF).astype(np.uint32)) >> 16
    return np.where(np.isnan(array), 0x7FC0, rounded).astype(np.uint16)


def bfloat16_values(bits):
    """The bits of bfloat16 to float32."""
    return (np.asarray(bits, np.uint16).astype(np.uint32) << 16).view(np.float32)
