"""Models and sessions: the native interface."""

import ctypes
import os
import threading

from . import _lib
from ._lib import Binding, ErrorSlot, call, create, lib, raise_error, text
from .values import Value


class Info:
    """One input or output: `name`, `kind`, `dtype`, `shape` (None: unknown rank; ints, symbol names
    or None for each dimension), `type` (the whole type as text), `optional`."""

    def __init__(self, raw, optional=False):
        self.name = text(raw.name)
        self.kind = raw.kind
        self.number = raw.dtype
        self.dtype = text(lib.sn_dtype_name(raw.dtype))
        self.type = text(raw.type_text)
        self.optional = optional
        self.shape = None
        if raw.has_shape:
            self.shape = [raw.dims[i] if raw.dims[i] >= 0 else text(raw.symbols[i]) or None
                          for i in range(raw.rank)]

    def __repr__(self):
        return f"Info(name={self.name!r}, type={self.type!r})"


def _infos(handle, count, read, optional=None):
    out = []
    for i in range(count(handle)):
        raw = _lib.ValueInfo()
        call(read, handle, i, ctypes.byref(raw))
        out.append(Info(raw, bool(optional and optional(handle, i))))
    return out


def _encode(name):
    return name.encode("utf-8", "surrogateescape")


def _bytes(name, value):
    """A number of bytes; ctypes would take any number and keep its last 64 bits."""
    if not 0 <= value < 1 << 64:
        raise _lib.InvalidArgument(f"{name} is {value}, which is no number of bytes")
    return value


def _bindings(values):
    """An array of bindings from handles by name; handles may be None."""
    out = (Binding * max(len(values), 1))()
    for slot, (name, handle) in zip(out, values.items()):
        slot.name, slot.value = _encode(name), handle
    return out


def _put_dimensions(options, dimensions):
    entries = (_lib.Dimension * max(len(dimensions), 1))()
    for entry, (name, size) in zip(entries, dimensions.items()):
        name, by_denotation = name if isinstance(name, tuple) else (name, False)
        entry.name, entry.by_denotation, entry.size = _encode(name), by_denotation, size
    options.dimensions, options.dimension_count = entries, len(dimensions)


class _Operators:
    """The operators of some libraries (sinter_op.h)."""

    def __init__(self, paths):
        self.handle = create(lib.sn_operators_create)
        for path in paths:
            call(lib.sn_operators_load, self.handle, os.fsencode(path))

    def __del__(self):
        if getattr(self, "handle", None) and lib is not None:
            lib.sn_operators_destroy(self.handle)
            self.handle = None


class Model:
    """A model from a file (a path) or from memory (bytes). `text` reads ONNX's text syntax.

    dimensions: sizes of open dimensions by name ((name, True) for a denotation). weights: values to
    use in place of the model's weights, by name. op_libraries: paths of libraries of operators.
    strict: refuse what the specification forbids and other engines accept."""

    def __init__(self, source=None, *, text=None, base_path=None, copy=False, allow_links=False,
                 dimensions=None, weights=None, op_libraries=(), strict=False):
        options = _lib.LoadOptions()
        lib.sn_load_options_init(ctypes.byref(options), ctypes.sizeof(options))
        options.copy, options.allow_links, options.strict = copy, allow_links, strict
        _put_dimensions(options, dimensions or {})
        self._weights = {n: Value.of(v) for n, v in (weights or {}).items()}  # used as they are
        options.weights = _bindings({n: v.handle for n, v in self._weights.items()})
        options.weight_count = len(self._weights)
        self._operators = _Operators(op_libraries) if op_libraries else None
        if self._operators:
            options.operators = self._operators.handle
        if text is not None:
            raw = text.encode()
            self.handle = create(lib.sn_model_load_text, raw, len(raw))
        elif isinstance(source, (bytes, bytearray, memoryview)):
            raw = bytes(source)
            options.base_path = os.fsencode(base_path) if base_path else None
            self.handle = create(lib.sn_model_load_memory, raw, len(raw), ctypes.byref(options))
        else:
            self.handle = create(lib.sn_model_load, os.fsencode(source), ctypes.byref(options))
        self._read_ports()

    @classmethod
    def _of(cls, handle):
        """The model of a handle, which it takes over."""
        self = cls.__new__(cls)
        self.handle = handle
        self._read_ports()
        return self

    def _read_ports(self):
        self.inputs = _infos(self.handle, lib.sn_model_input_count, lib.sn_model_input,
                             lib.sn_model_input_is_optional)
        self.outputs = _infos(self.handle, lib.sn_model_output_count, lib.sn_model_output)

    def __del__(self):
        if getattr(self, "handle", None) and lib is not None:
            lib.sn_model_destroy(self.handle)
            self.handle = None

    @property
    def info(self):
        """Facts about the model, as a dict."""
        raw = _lib.ModelInfo()
        lib.sn_model_get_info(self.handle, ctypes.byref(raw))
        values = {name: getattr(raw, name) for name, _ in raw._fields_ if name[0] != "_"}
        return {k: text(v) if isinstance(v, bytes) else v for k, v in values.items()}

    @property
    def metadata(self):
        key, value, out = ctypes.c_char_p(), ctypes.c_char_p(), {}
        i = 0
        while lib.sn_model_metadata(self.handle, i, ctypes.byref(key), ctypes.byref(value)):
            out[text(key.value)] = text(value.value)
            i += 1
        return out

    @property
    def opsets(self):
        domain, version, out = ctypes.c_char_p(), ctypes.c_int64(), {}
        i = 0
        while lib.sn_model_opset(self.handle, i, ctypes.byref(domain), ctypes.byref(version)):
            out[text(domain.value)] = version.value
            i += 1
        return out

    def to_onnx(self):
        return _lib.written(lib.sn_model_write, self.handle, _lib.ONNX)

    def to_text(self):
        return text(_lib.written(lib.sn_model_write, self.handle, _lib.TEXT))


class Cancel:
    """Stops runs from another thread."""

    def __init__(self):
        self.handle = create(lib.sn_cancel_create)

    def __del__(self):
        if getattr(self, "handle", None) and lib is not None:
            lib.sn_cancel_destroy(self.handle)
            self.handle = None

    def trigger(self):
        lib.sn_cancel_trigger(self.handle)

    def reset(self):
        lib.sn_cancel_reset(self.handle)


_PRECISIONS = ("exact", "tf32-like", "bf16", "fp16")  # in the order of sn_precision


class Device:
    """Something that models can run on: `provider`, `index` (which of its devices), `kind`, `name`,
    `vendor`, `driver`, `revision`, `library`, `memory_bytes` (0: the host's), `unusable` (why it
    cannot be used, or None)."""

    def __init__(self, raw):
        for field in ("provider", "kind", "name", "vendor", "driver", "revision", "library"):
            setattr(self, field, text(getattr(raw, field)))
        self.index, self.memory_bytes = raw.index, raw.memory_bytes
        self.unusable = text(raw.unusable) if raw.unusable else None

    def __repr__(self):
        return f"Device({self.provider}:{self.index}, {self.kind}, {self.name!r})"


def devices(search=True):
    """The CPU and the devices of every provider; search: of those in the usual folders, too."""
    if search:
        lib.sn_provider_search(None, _lib.LOG_FN(), None)
    out, raw = [], _lib.DeviceInfo()
    while lib.sn_device(len(out), ctypes.byref(raw)):
        out.append(Device(raw))
        raw = _lib.DeviceInfo()
    return out


def load_provider(path, name=None):
    """Loads a provider's library; `name` calls it otherwise than it does itself."""
    call(lib.sn_provider_load, os.fsencode(os.path.abspath(path)), name.encode() if name else None)


def unload_provider(name):
    """Forgets a provider; sessions that use it keep it."""
    call(lib.sn_provider_unload, name.encode())


def _read_provider(provider, options):
    """Name, settings: of "name" or ("name", {...}), with a dict of options beside it."""
    settings = dict(options or {})
    if not isinstance(provider, str):
        if not isinstance(provider, (tuple, list)) or len(provider) != 2:
            raise ValueError(f"a provider is a name or a pair of name and options, not {provider!r}")
        if settings:
            raise ValueError("provider options are given in providers and in provider_options")
        provider, settings = provider[0], dict(provider[1])
    return provider, {str(k): str(v) for k, v in settings.items()}


def _put_providers(options, providers, provider_options):
    """Fills options; returns what must live as long as they are used."""
    providers = list(providers or ())
    beside = list(provider_options or ())
    if beside and len(beside) != len(providers):
        raise ValueError("providers and provider_options must have the same length")
    uses, kept = (_lib.ProviderUse * max(len(providers), 1))(), []
    for i, (use, provider) in enumerate(zip(uses, providers)):
        name, settings = _read_provider(provider, beside[i] if beside else None)
        use.optional = name.endswith("?")
        name, _, device = name.rstrip("?").partition(":")
        use.name = name.encode()
        use.device = int(settings.pop("device_id", device or 0))
        table = (_lib.ProviderSetting * max(len(settings), 1))()
        for slot, (key, value) in zip(table, settings.items()):
            slot.key, slot.value = key.encode(), value.encode()
        use.settings, use.setting_count = table, len(settings)
        kept.append(table)
    options.providers, options.provider_count = uses, len(providers)
    return uses, kept


class Session:
    """A model made ready to run. Any number of threads may run one session at once; the
    interpreter lock is not held while the library computes.

    threads: most threads of one run, 0 for all. optimize: 0 to 3. memory_limit: bytes, 0 for none.
    time_limit: seconds for one run, None for none; prepare_limit: for making the session.
    disabled_rules: names of optimiser rules. portable: use operators of ONNX and com.microsoft only,
    for to_onnx. plan_cache_bytes: of plans of shapes seen before to keep, 0 for a share of the
    weights. cache_folder: where compiled models are kept from process to process, None for nowhere;
    cache_limit: most bytes of them, 0 for none. providers: who may run nodes, in order of preference,
    each "name", "name:device" or ("name", {settings}), with '?' behind the name to do without it
    if need be; provider_options: settings beside it. precision: of products with constant float32
    weights, "exact", "tf32-like", "bf16" or "fp16". log: called with (level, text)."""

    def __init__(self, model, *, threads=0, optimize=3, memory_limit=0, time_limit=None,
                 prepare_limit=None, disabled_rules=(), portable=False, plan_cache_bytes=0,
                 cache_folder=None, cache_limit=0, precision="exact", providers=None,
                 provider_options=None, log=None):
        self.model = model if isinstance(model, Model) else Model(model)
        options = _lib.SessionOptionsStruct()
        lib.sn_session_options_init(ctypes.byref(options), ctypes.sizeof(options))
        options.threads, options.optimize = threads, optimize
        options.memory_limit = _bytes("memory_limit", memory_limit)
        options.time_limit_ns = int((time_limit or 0) * 1e9)
        options.prepare_limit_ns = int((prepare_limit or 0) * 1e9)
        options.portable = portable
        options.plan_cache_bytes = _bytes("plan_cache_bytes", plan_cache_bytes)
        options.cache_folder = os.fsencode(cache_folder) if cache_folder else None
        options.cache_limit = _bytes("cache_limit", cache_limit)
        if precision not in _PRECISIONS:
            raise _lib.InvalidArgument(f"precision is {precision!r}, not one of {', '.join(_PRECISIONS)}")
        options.precision = _PRECISIONS.index(precision)
        rules = [r.encode() for r in disabled_rules]
        options.disabled_rules = (ctypes.c_char_p * max(len(rules), 1))(*rules)
        options.disabled_rule_count = len(rules)
        keep = _put_providers(options, providers, provider_options)
        self._log = _lib.LOG_FN(lambda _, level, line: log(level, text(line))) if log else None
        if self._log:
            options.log = self._log
        self.handle = create(lib.sn_session_create, self.model.handle, ctypes.byref(options))
        del keep
        self.inputs, self.outputs = self.model.inputs, self.model.outputs
        self._types = {i.name: i.number for i in self.inputs}
        self._scratch = threading.local()

    def __del__(self):
        if getattr(self, "handle", None) and lib is not None:
            lib.sn_session_destroy(self.handle)
            self.handle = None

    def providers(self):
        """Who runs how many nodes: a list of (provider, device, nodes, parts), the CPU last; empty
        where no provider is used."""
        out, raw = [], _lib.ProviderShare()
        while lib.sn_session_provider(self.handle, len(out), ctypes.byref(raw)):
            out.append((text(raw.provider), text(raw.device), raw.nodes, raw.parts))
        return out

    def __call__(self, *args, **kwargs):
        """Runs with inputs by position and by name; one output is returned as it is, several as a
        list."""
        if len(args) > len(self.inputs):
            raise _lib.InvalidArgument(f"{len(args)} inputs given, the model has {len(self.inputs)}")
        feeds = {i.name: a for i, a in zip(self.inputs, args)}
        feeds.update(kwargs)
        results = list(self.run(feeds).values())
        return results[0] if len(results) == 1 else results

    def run(self, feeds, outputs=None, **options):
        """A dict of results by name. `outputs` lists the names wanted, None for all. Options as for
        run_values."""
        names = [o.name for o in self.outputs] if outputs is None else list(outputs)
        values = self.run_values({n: self._value(n, v) for n, v in feeds.items()}, names, **options)
        return {n: v.numpy() for n, v in zip(names, values)}

    def _value(self, name, obj):
        """A feed as a value of the type that the model declares, where bits need telling."""
        number = self._types.get(name, 0)
        if number >= 16 and not isinstance(obj, Value):
            return Value.of(obj, number)
        if isinstance(obj, (list, tuple)) and number:
            return Value.of(_typed_list(obj, number))
        return Value.of(obj)

    def run_values(self, feeds, names, into=None, cancel=None, time_limit=None, threads=0,
                   on_step=None):
        """Runs with Values by name and returns a list of Values. `into` maps output names to
        Values that are filled in place. on_step(event) is told of each step."""
        inputs = _bindings({name: value.handle for name, value in feeds.items()})
        wanted = _bindings({n: into[n].handle if into and n in into else None for n in names})
        options = self._run_options(cancel, time_limit, threads, on_step)
        error = ErrorSlot()
        if lib.sn_session_run(self.handle, options, inputs, len(feeds), wanted, len(names),
                              ctypes.byref(error)) != 0:
            raise_error(error)
        return [into[n] if into and n in into else Value(slot.value)
                for n, slot in zip(names, wanted)]

    @staticmethod
    def _run_options(cancel, time_limit, threads, on_step):
        if not (cancel or time_limit or threads or on_step):
            return None
        options = _lib.RunOptionsStruct()
        lib.sn_run_options_init(ctypes.byref(options), ctypes.sizeof(options))
        options.cancel = cancel.handle if cancel else None
        options.time_limit_ns = int((time_limit or 0) * 1e9)
        options.threads = threads
        if on_step:
            options.on_step = _lib.STEP_FN(lambda _, event: on_step(event.contents))
        return ctypes.byref(options)

    def tune(self, feeds):
        """Measures, with these inputs, the ways to compute each convolution and keeps those that are
        quicker than estimated; returns how many. No other thread may run the session meanwhile."""
        values = {n: self._value(n, v) for n, v in feeds.items()}
        inputs = _bindings({name: value.handle for name, value in values.items()})
        changed = ctypes.c_size_t()
        _lib.call(lib.sn_session_tune, self.handle, inputs, len(values), ctypes.byref(changed))
        return changed.value

    def compile(self, path):
        """Writes the session, with the weights that its runs so far have packed, as a compiled model.
        The file is there when it is complete; if that fails, what stood under its name stays."""
        _lib.write_file(path, lib.sn_session_compile, self.handle)

    def trim(self):
        """Frees memory that no run needs at the moment; returns the bytes."""
        return lib.sn_session_trim(self.handle)

    @property
    def rules(self):
        """How often each optimiser rule fired."""
        name, count, out = ctypes.c_char_p(), ctypes.c_size_t(), {}
        i = 0
        while lib.sn_session_rule(self.handle, i, ctypes.byref(name), ctypes.byref(count)):
            out[text(name.value)] = count.value
            i += 1
        return out

    def to_text(self, stage="opt"):
        """The session's graph or plan as text; stage is "import", "opt" or "plan"."""
        if stage == "import":
            return self.model.to_text()
        return text(_lib.written(lib.sn_session_write, self.handle, _lib.STAGES.index(stage),
                                 _lib.TEXT))

    def to_onnx(self):
        """The optimised graph as an ONNX file."""
        return _lib.written(lib.sn_session_write, self.handle, 1, _lib.ONNX)


def _typed_list(obj, number):
    """Numbers written out as a list take the declared type; lists of tensors stay sequences."""
    import numpy as np

    from .values import DTYPES, _is_plain

    if not _is_plain(obj):
        return obj
    return np.asarray(obj, DTYPES[number][1] or object)
