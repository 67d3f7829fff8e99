"""InferenceSession and its companions, which behave as ONNX Runtime's Python package does, so that
`import sinter as onnxruntime` is all that a program has to change."""

import json
import os
import re
import time

import numpy as np

from . import _lib
from .session import Cancel, Model, Session, devices, load_provider, unload_provider
from .values import DTYPES, Value

_CPU = "CPUExecutionProvider"


class GraphOptimizationLevel:
    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode:
    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder:
    DEFAULT = 0
    PRIORITY_BASED = 1


def get_available_providers():
    """Providers with a device that can be used, the CPU last."""
    found = [d.provider for d in devices() if not d.unusable and d.provider != "cpu"]
    return list(dict.fromkeys(found)) + [_CPU]


def get_all_providers():
    found = [d.provider for d in devices() if d.provider != "cpu"]
    return list(dict.fromkeys(found)) + [_CPU]


def register_execution_provider_library(registration_name, library_path):
    """Loads a provider that is written against sinter_ep.h."""
    load_provider(library_path, registration_name)


def unregister_execution_provider_library(registration_name):
    unload_provider(registration_name)


def get_device():
    return "CPU"


def set_default_logger_severity(severity):
    """Kept for programs that call it: the library itself never prints."""


def set_default_logger_verbosity(verbosity):
    """Kept for programs that call it: the library itself never prints."""


def set_seed(seed):
    """Kept for programs that call it: random operators take their seed from the model."""


def disable_telemetry_events():
    """There are none."""


def enable_telemetry_events():
    """There are none."""


class SessionOptions:
    """Options of a session. Those that mean nothing here are kept and have no effect."""

    def __init__(self):
        self.intra_op_num_threads = 0
        self.inter_op_num_threads = 0
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.execution_order = ExecutionOrder.DEFAULT
        self.enable_profiling = False
        self.profile_file_prefix = "onnxruntime_profile_"
        self.optimized_model_filepath = ""
        self.enable_cpu_mem_arena = True
        self.enable_mem_pattern = True
        self.enable_mem_reuse = True
        self.use_deterministic_compute = False
        self.log_severity_level = 2
        self.log_verbosity_level = 0
        self.logid = ""
        self._entries = {}
        self._dimensions = {}
        self._initializers = {}
        self._op_libraries = []

    def add_session_config_entry(self, key, value):
        self._entries[str(key)] = str(value)

    def get_session_config_entry(self, key):
        if key not in self._entries:
            raise _lib.InvalidArgument(f"the session has no configuration entry {key!r}")
        return self._entries[key]

    def _cache(self):
        """The folder for compiled models and its limit, by the keys that the C library knows."""
        limit = self._entries.get("sinter.cache_limit", "0")
        if not (limit.isascii() and limit.isdigit()):
            raise _lib.InvalidArgument(f"sinter.cache_limit is {limit!r}, which is no number of bytes")
        return {"cache_folder": self._entries.get("sinter.cache_folder"), "cache_limit": int(limit)}

    def add_free_dimension_override_by_name(self, name, size):
        self._dimensions[name] = int(size)

    def add_free_dimension_override_by_denotation(self, denotation, size):
        self._dimensions[(denotation, True)] = int(size)

    def add_initializer(self, name, value):
        self._initializers[name] = value if isinstance(value, OrtValue) else OrtValue(Value.of(value))

    def register_custom_ops_library(self, path):
        """A library of operators written against sinter_op.h; those written for ONNX Runtime's
        interface are loaded through libonnxruntime.so.1 alone."""
        self._op_libraries.append(path)


class RunOptions:
    """Options of one run. Setting `terminate` stops the runs that use it."""

    def __init__(self):
        self.logid = ""
        self.log_severity_level = 2
        self.log_verbosity_level = 0
        self.only_execute_path_to_fetches = False
        self.training_mode = False
        self._cancel = Cancel()
        self._terminate = False
        self._entries = {}

    @property
    def terminate(self):
        return self._terminate

    @terminate.setter
    def terminate(self, value):
        self._terminate = bool(value)
        self._cancel.trigger() if value else self._cancel.reset()

    def add_run_config_entry(self, key, value):
        self._entries[str(key)] = str(value)

    def get_run_config_entry(self, key):
        return self._entries[key]


# ONNX Runtime's names of element types, where they differ from ours.
_TYPE_NAMES = {"float32": "float", "float64": "double"}


def _type_text(text):
    """A type as ONNX Runtime writes it: without shapes, with its names of element types."""
    text = re.sub(r"\[[^\]]*\]", "", text)
    text = re.sub(r"[a-z]+[0-9a-z]*", lambda m: _TYPE_NAMES.get(m.group(), m.group()), text)
    return text.replace(" ", "")


class NodeArg:
    """An input or output of a model."""

    def __init__(self, info):
        self.name = info.name
        self.type = _type_text(info.type)
        self.shape = [] if info.shape is None else list(info.shape)

    def __repr__(self):
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"

    __str__ = __repr__


class ModelMetadata:
    def __init__(self, model):
        info = model.info
        self.producer_name = info["producer_name"]
        self.graph_name = info["graph_name"]
        self.domain = info["domain"]
        self.description = info["doc"]
        self.graph_description = info["graph_doc"]
        self.version = info["model_version"] if info["has_model_version"] else (1 << 63) - 1
        self.custom_metadata_map = model.metadata


class OrtDevice:
    def __init__(self, kind="cpu", index=0):
        self._kind, self._index = kind, index

    def device_type(self):
        return self._kind

    def device_id(self):
        return self._index


def _check_device(kind):
    if str(kind).lower() != "cpu":
        raise _lib.InvalidArgument(f"there is no device {kind!r}: values live in CPU memory")


class OrtValue:
    """A value in CPU memory."""

    def __init__(self, value):
        self._value = value

    @staticmethod
    def ortvalue_from_numpy(array, device_type="cpu", device_id=0):
        _check_device(device_type)
        return OrtValue(Value.of(np.asarray(array)))

    @staticmethod
    def ortvalue_from_numpy_with_onnx_type(array, onnx_element_type):
        return OrtValue(Value.of(np.asarray(array), onnx_element_type))

    @staticmethod
    def ortvalue_from_shape_and_type(shape, element_type, device_type="cpu", device_id=0):
        _check_device(device_type)
        return OrtValue(Value.zeros(tuple(shape), _element_name(element_type)))

    def numpy(self):
        return self._value.numpy()

    def shape(self):
        return list(self._value.shape)

    def data_type(self):
        if self._value.kind != _lib.TENSOR:
            return {_lib.SEQUENCE: "seq", _lib.MAP: "map"}.get(self._value.kind, "none")
        return f"tensor({_TYPE_NAMES.get(self._value.dtype, self._value.dtype)})"

    def element_type(self):
        return _lib.lib.sn_tensor_dtype(self._value.handle)

    def has_value(self):
        return self._value.kind != _lib.NONE

    def is_tensor(self):
        return self._value.kind == _lib.TENSOR

    def is_tensor_sequence(self):
        return self._value.kind == _lib.SEQUENCE

    def is_sparse_tensor(self):
        return False

    def device_name(self):
        return "cpu"

    def data_ptr(self):
        return _lib.lib.sn_tensor_const_data(self._value.handle)

    def tensor_size_in_bytes(self):
        return _lib.lib.sn_tensor_bytes(self._value.handle)

    def update_inplace(self, array):
        mine = self.numpy()
        array = np.asarray(array)
        if mine.shape != array.shape or mine.dtype != array.dtype:
            raise _lib.InvalidArgument(f"the value is {mine.dtype} {mine.shape}, the array "
                                       f"{array.dtype} {array.shape}")
        mine.flags.writeable = True
        mine[...] = array


def _element_name(element_type):
    """The name of an element type given as a numpy type or as an ONNX number."""
    if isinstance(element_type, int):
        return DTYPES[element_type][0]
    dtype = np.dtype(element_type)
    if dtype.kind in "OUS":
        return "string"
    return {"bool": "bool"}.get(dtype.name, dtype.name)


class IOBinding:
    """Inputs and outputs bound to memory, for runs without copies."""

    def __init__(self, session):
        self._session = session
        self._inputs, self._outputs = {}, {}
        self._results = []

    def bind_cpu_input(self, name, array):
        self._inputs[name] = self._session._session._value(name, array)

    def bind_ortvalue_input(self, name, value):
        self._inputs[name] = value._value

    def bind_input(self, name, device_type, device_id, element_type, shape, buffer_ptr):
        _check_device(device_type)
        self._inputs[name] = _wrap(element_type, shape, buffer_ptr)

    def bind_output(self, name, device_type="cpu", device_id=0, element_type=None, shape=None,
                    buffer_ptr=None):
        _check_device(device_type)
        self._outputs[name] = None if buffer_ptr is None else _wrap(element_type, shape, buffer_ptr)

    def bind_ortvalue_output(self, name, value):
        self._outputs[name] = value._value

    def synchronize_inputs(self):
        """Values live in CPU memory: there is nothing to wait for."""

    def synchronize_outputs(self):
        """Values live in CPU memory: there is nothing to wait for."""

    def get_outputs(self):
        return [OrtValue(v) for v in self._results]

    def copy_outputs_to_cpu(self):
        return [v.numpy() for v in self._results]

    def clear_binding_inputs(self):
        self._inputs.clear()

    def clear_binding_outputs(self):
        self._outputs.clear()
        self._results = []


def _wrap(element_type, shape, address):
    """A tensor over memory at an address, which the caller keeps alive."""
    from .values import NUMBERS, _dims

    number = NUMBERS[_element_name(element_type)]
    count = int(np.prod(shape, dtype=np.int64))
    return Value(_lib.create(_lib.lib.sn_tensor_wrap, number, len(shape), _dims(shape), address,
                             _lib.lib.sn_dtype_bytes(number, count)))


class InferenceSession:
    """A model made ready to run, from a path or from bytes."""

    def __init__(self, path_or_bytes, sess_options=None, providers=None, provider_options=None,
                 **kwargs):
        if not isinstance(path_or_bytes, (str, bytes, bytearray, os.PathLike)):
            raise TypeError(f"a model is a path or bytes, not {type(path_or_bytes).__name__}")
        self._options = sess_options or SessionOptions()
        self._model = Model(path_or_bytes, dimensions=self._options._dimensions,
                            weights={n: v._value for n, v in self._options._initializers.items()},
                            op_libraries=self._options._op_libraries)
        self._make_session(providers, provider_options)
        if self._options.optimized_model_filepath:
            with open(self._options.optimized_model_filepath, "wb") as f:
                f.write(self._session.to_onnx())
        self._inputs = [NodeArg(i) for i in self._model.inputs if not i.optional]
        self._defaults = [NodeArg(i) for i in self._model.inputs if i.optional]
        self._outputs = [NodeArg(o) for o in self._model.outputs]
        self._profile = [] if self._options.enable_profiling else None
        self._profile_start = time.monotonic_ns()

    def _make_session(self, providers, provider_options):
        level = self._options.graph_optimization_level
        self._provider_options = {}
        self._session = Session(self._model, threads=max(int(self._options.intra_op_num_threads), 0),
                                optimize=min(int(level), 3), providers=providers,
                                provider_options=provider_options, **self._options._cache())
        for i, provider in enumerate(providers or ()):
            beside = provider_options[i] if provider_options else {}
            name, given = (provider, beside) if isinstance(provider, str) else provider
            self._provider_options[name.rstrip("?").partition(":")[0].lower()] = dict(given)

    def get_inputs(self):
        return list(self._inputs)

    def get_outputs(self):
        return list(self._outputs)

    def get_overridable_initializers(self):
        return list(self._defaults)

    def get_modelmeta(self):
        return ModelMetadata(self._model)

    def get_session_options(self):
        return self._options

    def get_providers(self):
        return [p[0] for p in self._session.providers() if p[0] != "cpu"] + [_CPU]

    def get_provider_options(self):
        return {p: self._provider_options.get(p.lower(), {}) for p in self.get_providers()}

    def set_providers(self, providers=None, provider_options=None):
        """Makes the session anew with other providers."""
        self._make_session(providers, provider_options)

    def enable_fallback(self):
        """There is nothing to fall back to."""

    def disable_fallback(self):
        """There is nothing to fall back to."""

    def io_binding(self):
        return IOBinding(self)

    def run(self, output_names, input_feed, run_options=None):
        """A list of results: numpy arrays, lists for sequences, dicts for maps."""
        feeds = {n: self._session._value(n, v._value if isinstance(v, OrtValue) else v)
                 for n, v in input_feed.items()}
        return [v.numpy() for v in self._run(output_names, feeds, run_options)]

    def run_with_ort_values(self, output_names, input_dict_ort_values, run_options=None):
        feeds = {n: v._value for n, v in input_dict_ort_values.items()}
        return [OrtValue(v) for v in self._run(output_names, feeds, run_options)]

    def run_with_iobinding(self, iobinding, run_options=None):
        names = list(iobinding._outputs)
        into = {n: v for n, v in iobinding._outputs.items() if v is not None}
        iobinding._results = self._run(names, dict(iobinding._inputs), run_options, into)

    def run_async(self, output_names, input_feed, callback, user_data, run_options=None):
        """Runs in a thread of its own and calls callback(results, user_data, error_text)."""
        import threading

        def work():
            try:
                results, failure = self.run(output_names, input_feed, run_options), ""
            except Exception as e:  # handed to the caller as text
                results, failure = [], str(e)
            callback(results, user_data, failure)

        threading.Thread(target=work, daemon=True).start()

    def _run(self, names, feeds, run_options, into=None):
        names = list(names) if names else [o.name for o in self._outputs]
        known = {o.name for o in self._outputs}
        for name in names:
            if name not in known:
                raise _lib.InvalidArgument(f"Invalid output name: {name}")
        on_step = self._note if self._profile is not None else None
        cancel = run_options._cancel if run_options else None
        return self._session.run_values(feeds, names, into, cancel, on_step=on_step)

    def _note(self, event):
        self._profile.append({
            "cat": "Node", "pid": os.getpid(), "tid": 0, "ph": "X",
            "name": _lib.text(event.node) + "_kernel_time",
            "ts": (event.start_ns - self._profile_start) // 1000,
            "dur": (event.end_ns - event.start_ns) / 1000,
            "args": {"op_name": _lib.text(event.op), "output_size": str(event.output_bytes),
                     "provider": _CPU},
        })

    def get_profiling_start_time_ns(self):
        return self._profile_start

    def end_profiling(self):
        """Writes the trace (Chrome's format) and returns its path; "" without profiling."""
        if self._profile is None:
            return ""
        stamp = time.strftime("%Y-%m-%d_%H-%M-%S")
        path = f"{self._options.profile_file_prefix}_{stamp}.json"
        with open(path, "w", encoding="utf-8") as f:
            json.dump(self._profile, f)
        self._profile = []
        return path
