"""The C library: where it is found, its structures and functions, and its errors as exceptions."""

import ctypes
import ctypes.util
import os
import threading
from ctypes import POINTER, c_bool, c_char, c_char_p, c_int, c_int64, c_size_t, c_uint64, c_void_p

MAX_RANK = 16
MESSAGE_SIZE = 512

# Kinds of values (sn_kind).
NONE, TENSOR, SEQUENCE, MAP, OPTIONAL = range(5)
# Formats and stages of sn_model_write and sn_session_write.
TEXT, ONNX = range(2)
STAGES = ("import", "opt", "plan")


class Error(RuntimeError):
    """A failure reported by the library; `status` is its code, `message` says what and where."""

    status = 12

    def __init__(self, message, status=None):
        super().__init__(message)
        self.message = message
        if status is not None:
            self.status = status


class InvalidArgument(Error, ValueError):
    status = 1


class NoSuchFile(Error, FileNotFoundError):
    status = 2

    def __str__(self):
        return self.message


class IOFailure(Error, OSError):
    status = 3

    def __str__(self):
        return self.message


class InvalidProtobuf(Error):
    status = 4


class InvalidGraph(Error):
    status = 5


class NotImplemented(Error):  # the name that ONNX Runtime's package uses
    status = 6


class NoMemory(Error, MemoryError):
    status = 7


class LimitReached(Error):
    status = 8


class Cancelled(Error):
    status = 9


class TimedOut(Error, TimeoutError):
    status = 10

    def __str__(self):
        return self.message


class BadData(Error):
    status = 11


_ERRORS = {
    e.status: e
    for e in (InvalidArgument, NoSuchFile, IOFailure, InvalidProtobuf, InvalidGraph, NotImplemented,
              NoMemory, LimitReached, Cancelled, TimedOut, BadData)
}


# Structures that the library fills may have grown at their end since this was written.
_ROOM = ("_room", c_char * 256)


class ErrorSlot(ctypes.Structure):
    _fields_ = [("status", c_int), ("message", c_char * MESSAGE_SIZE)]


class ValueInfo(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("kind", c_int), ("dtype", c_int), ("has_shape", c_bool),
                ("rank", c_int), ("dims", c_int64 * MAX_RANK), ("symbols", c_char_p * MAX_RANK),
                ("type_text", c_char_p), ("key", c_int), ("element", c_void_p), _ROOM]


class Binding(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("value", c_void_p)]


class Dimension(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("by_denotation", c_bool), ("size", c_int64)]


class LoadOptions(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("copy", c_bool), ("borrow", c_bool), ("allow_links", c_bool),
                ("base_path", c_char_p), ("memory_limit", c_uint64),
                ("dimensions", POINTER(Dimension)), ("dimension_count", c_size_t),
                ("weights", POINTER(Binding)), ("weight_count", c_size_t), ("files", c_void_p),
                ("file_count", c_size_t), ("operators", c_void_p), ("verify", c_bool),
                ("repack", c_bool), ("strict", c_bool), ("allow_hard_links", c_bool), _ROOM]


class ModelInfo(ctypes.Structure):
    _fields_ = [("ir_version", c_int64), ("model_version", c_int64),
                ("producer_name", c_char_p),
                ("producer_version", c_char_p), ("domain", c_char_p), ("doc", c_char_p),
                ("graph_name", c_char_p), ("opset_count", c_size_t),
                ("metadata_count", c_size_t), ("operator_count", c_size_t),
                ("weight_count", c_size_t), ("node_count", c_size_t),
                ("parameter_count", c_uint64), ("weight_bytes", c_uint64), ("macs", c_uint64),
                ("macs_unknown", c_size_t), ("has_model_version", c_bool),
                ("graph_doc", c_char_p), _ROOM]


LOG_FN = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_char_p)


class ProviderSetting(ctypes.Structure):
    _fields_ = [("key", c_char_p), ("value", c_char_p)]


class ProviderUse(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("device", c_int), ("optional", c_bool),
                ("settings", POINTER(ProviderSetting)), ("setting_count", c_size_t)]


class DeviceInfo(ctypes.Structure):
    _fields_ = [("provider", c_char_p), ("index", c_int), ("kind", c_char_p), ("name", c_char_p),
                ("vendor", c_char_p), ("driver", c_char_p), ("revision", c_char_p),
                ("library", c_char_p), ("memory_bytes", c_uint64), ("types", ctypes.c_uint32),
                ("unusable", c_char_p), _ROOM]


class ProviderShare(ctypes.Structure):
    _fields_ = [("provider", c_char_p), ("device", c_char_p), ("nodes", c_size_t),
                ("parts", c_size_t), ("refused", c_size_t), _ROOM]


class SessionOptionsStruct(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("threads", c_int), ("optimize", c_int),
                ("memory_limit", c_uint64), ("time_limit_ns", c_uint64), ("log", LOG_FN),
                ("log_ctx", c_void_p), ("disabled_rules", POINTER(c_char_p)),
                ("disabled_rule_count", c_size_t), ("plan_cache_bytes", c_uint64),
                ("portable", c_bool), ("prepare_limit_ns", c_uint64), ("cache_folder", c_char_p),
                ("cache_limit", c_uint64), ("providers", POINTER(ProviderUse)),
                ("provider_count", c_size_t), ("precision", c_int), _ROOM]


class StepEvent(ctypes.Structure):
    _fields_ = [("node", c_char_p), ("op", c_char_p), ("depth", c_int), ("start_ns", c_uint64),
                ("end_ns", c_uint64), ("output_bytes", c_uint64)]


STEP_FN = ctypes.CFUNCTYPE(None, c_void_p, POINTER(StepEvent))


class RunOptionsStruct(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("cancel", c_void_p), ("time_limit_ns", c_uint64),
                ("on_step", STEP_FN), ("on_step_ctx", c_void_p), ("threads", c_int), _ROOM]


WRITE_FN = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_size_t)

_ERR = POINTER(ErrorSlot)
_OUT = POINTER(c_void_p)
_SIGNATURES = {
    # name: (result, arguments); functions that take an error slot return a status.
    "sn_version": (c_char_p, []),
    "sn_status_name": (c_char_p, [c_int]),
    "sn_dtype_name": (c_char_p, [c_int]),
    "sn_dtype_bytes": (c_size_t, [c_int, c_size_t]),
    "sn_tensor_create": (c_int, [c_int, c_int, POINTER(c_int64), _OUT, _ERR]),
    "sn_tensor_wrap": (c_int, [c_int, c_int, POINTER(c_int64), c_void_p, c_size_t, _OUT, _ERR]),
    "sn_sequence_create": (c_int, [POINTER(c_void_p), c_size_t, _OUT, _ERR]),
    "sn_map_create": (c_int, [c_void_p, c_void_p, _OUT, _ERR]),
    "sn_none_create": (c_int, [_OUT, _ERR]),
    "sn_value_destroy": (None, [c_void_p]),
    "sn_value_kind": (c_int, [c_void_p]),
    "sn_tensor_dtype": (c_int, [c_void_p]),
    "sn_tensor_rank": (c_int, [c_void_p]),
    "sn_tensor_dims": (POINTER(c_int64), [c_void_p]),
    "sn_tensor_count": (c_size_t, [c_void_p]),
    "sn_tensor_bytes": (c_size_t, [c_void_p]),
    "sn_tensor_data": (c_void_p, [c_void_p]),
    "sn_tensor_const_data": (c_void_p, [c_void_p]),
    "sn_tensor_get_string": (c_int, [c_void_p, c_size_t, POINTER(c_void_p), POINTER(c_size_t),
                                     _ERR]),
    "sn_tensor_set_string": (c_int, [c_void_p, c_size_t, c_char_p, c_size_t, _ERR]),
    "sn_sequence_length": (c_size_t, [c_void_p]),
    "sn_sequence_at": (c_void_p, [c_void_p, c_size_t]),
    "sn_map_keys": (c_void_p, [c_void_p]),
    "sn_map_values": (c_void_p, [c_void_p]),
    "sn_operators_create": (c_int, [_OUT, _ERR]),
    "sn_operators_load": (c_int, [c_void_p, c_char_p, _ERR]),
    "sn_operators_destroy": (None, [c_void_p]),
    "sn_load_options_init": (None, [POINTER(LoadOptions), c_size_t]),
    "sn_model_load": (c_int, [c_char_p, POINTER(LoadOptions), _OUT, _ERR]),
    "sn_model_load_memory": (c_int, [c_char_p, c_size_t, POINTER(LoadOptions), _OUT, _ERR]),
    "sn_model_load_text": (c_int, [c_char_p, c_size_t, _OUT, _ERR]),
    "sn_model_destroy": (None, [c_void_p]),
    "sn_model_input_count": (c_size_t, [c_void_p]),
    "sn_model_output_count": (c_size_t, [c_void_p]),
    "sn_model_input": (c_int, [c_void_p, c_size_t, POINTER(ValueInfo), _ERR]),
    "sn_model_output": (c_int, [c_void_p, c_size_t, POINTER(ValueInfo), _ERR]),
    "sn_model_input_is_optional": (c_bool, [c_void_p, c_size_t]),
    "sn_model_get_info": (None, [c_void_p, POINTER(ModelInfo)]),
    "sn_model_opset": (c_bool, [c_void_p, c_size_t, POINTER(c_char_p), POINTER(c_int64)]),
    "sn_model_metadata": (c_bool, [c_void_p, c_size_t, POINTER(c_char_p), POINTER(c_char_p)]),
    "sn_session_options_init": (None, [POINTER(SessionOptionsStruct), c_size_t]),
    "sn_session_create": (c_int, [c_void_p, POINTER(SessionOptionsStruct), _OUT, _ERR]),
    "sn_session_destroy": (None, [c_void_p]),
    "sn_session_provider": (c_bool, [c_void_p, c_size_t, POINTER(ProviderShare)]),
    "sn_provider_load": (c_int, [c_char_p, c_char_p, _ERR]),
    "sn_provider_unload": (c_int, [c_char_p, _ERR]),
    "sn_provider_search": (None, [c_char_p, LOG_FN, c_void_p]),
    "sn_device": (c_bool, [c_size_t, POINTER(DeviceInfo)]),
    "sn_cancel_create": (c_int, [_OUT, _ERR]),
    "sn_cancel_trigger": (None, [c_void_p]),
    "sn_cancel_reset": (None, [c_void_p]),
    "sn_cancel_destroy": (None, [c_void_p]),
    "sn_run_options_init": (None, [POINTER(RunOptionsStruct), c_size_t]),
    "sn_session_run": (c_int, [c_void_p, POINTER(RunOptionsStruct), POINTER(Binding), c_size_t,
                               POINTER(Binding), c_size_t, _ERR]),
    "sn_session_rule": (c_bool, [c_void_p, c_size_t, POINTER(c_char_p), POINTER(c_size_t)]),
    "sn_session_node_counts": (None, [c_void_p, POINTER(c_size_t), POINTER(c_size_t)]),
    "sn_model_write": (c_int, [c_void_p, c_int, WRITE_FN, c_void_p, _ERR]),
    "sn_session_write": (c_int, [c_void_p, c_int, c_int, WRITE_FN, c_void_p, _ERR]),
    "sn_session_compile": (c_int, [c_void_p, WRITE_FN, c_void_p, _ERR]),
    "sn_session_tune": (c_int, [c_void_p, POINTER(Binding), c_size_t, POINTER(c_size_t), _ERR]),
    "sn_session_trim": (c_uint64, [c_void_p]),
}


def _candidates():
    """Paths to try, in order: the one asked for, beside the package, a build tree, the system's."""
    asked = os.environ.get("SINTER_LIBRARY")
    if asked:
        yield asked
        return
    here = os.path.dirname(os.path.abspath(__file__))
    for folder in (here, os.path.join(here, "..", "..", "build")):
        path = os.path.join(folder, "libsinter.so")
        if os.path.exists(path):
            yield path
    found = ctypes.util.find_library("sinter")
    if found:
        yield found
    yield "libsinter.so.0"


def _load():
    reasons = []
    for path in _candidates():
        try:
            return ctypes.CDLL(path)
        except OSError as e:
            reasons.append(str(e))
    raise ImportError("libsinter was not found: build it with `make`, or set SINTER_LIBRARY to its "
                      "path (" + "; ".join(reasons) + ")")


lib = _load()
for _name, (_result, _arguments) in _SIGNATURES.items():
    _function = getattr(lib, _name)
    _function.restype = _result
    _function.argtypes = _arguments


def raise_error(slot):
    """Raises what a filled error slot says."""
    text = slot.message.decode("utf-8", "replace")
    raise _ERRORS.get(slot.status, Error)(text, slot.status)


def call(function, *arguments):
    """Calls a function that takes an error slot last; raises if it fails."""
    slot = ErrorSlot()
    if function(*arguments, ctypes.byref(slot)) != 0:
        raise_error(slot)


def create(function, *arguments):
    """Calls a function that makes an object through its last out-parameter; returns the handle."""
    handle = c_void_p()
    call(function, *arguments, ctypes.byref(handle))
    return handle.value


def text(raw):
    return raw.decode("utf-8", "surrogateescape") if raw else ""


def write_through(take, function, *arguments):
    """Calls a writing function, which hands its output to `take` piece by piece, each a buffer that
    lives as long as the call. What `take` raises stops it and is raised here."""
    raised = []

    def receive(_, data, size):
        try:
            take((ctypes.c_char * size).from_address(data) if size else b"")
        except BaseException as e:
            raised.append(e)
        return len(raised)

    try:
        call(function, *arguments, WRITE_FN(receive), None)
    except Error:
        if not raised:
            raise
    if raised:
        raise raised[0]


def written(function, *arguments):
    """All that a writing function writes, as bytes."""
    pieces = []
    write_through(lambda piece: pieces.append(bytes(piece)), function, *arguments)
    return b"".join(pieces)


def write_file(path, function, *arguments):
    """Has a writing function write a file, which appears under its name when it is complete: until
    then, and if anything fails, what was there before stays."""
    path = os.path.realpath(path)
    if os.path.exists(path) and not os.path.isfile(path):  # a device or a pipe
        with open(path, "wb") as file:
            write_through(file.write, function, *arguments)
        return
    part = f"{path}.{os.getpid()}.{threading.get_ident()}.part"
    try:
        with open(part, "wb") as file:
            write_through(file.write, function, *arguments)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException as e:
        if os.path.exists(part):
            os.unlink(part)
        if isinstance(e, OSError) and e.filename == part:
            e.filename, e.filename2 = path, None
        raise
