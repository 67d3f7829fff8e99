"""Models in fewer bits and with fewer weights: quantize() and prune()."""

import ctypes
import os
from ctypes import POINTER, c_bool, c_char_p, c_double, c_float, c_int, c_size_t, c_uint64, c_void_p

from . import _lib
from ._lib import Binding, ErrorSlot, lib, raise_error, text
from .session import Model, Session
from .values import Value

_PRECISIONS = ("float32", "int8", "int8-dynamic", "int4", "int2", "fp16", "bf16", "mixed")
_TARGETS = ("this", "any", "avx2", "vnni", "amx", "neon")
_METRICS = ("cosine", "top1", "kl", "score")
_CALIBRATIONS = ("auto", "minmax", "percentile", "entropy", "mse")
_PATTERNS = ("unstructured", "2:4")

_GET_FN = ctypes.CFUNCTYPE(c_int, c_void_p, c_size_t, POINTER(Binding), POINTER(c_size_t),
                           POINTER(ErrorSlot))
_PROGRESS_FN = ctypes.CFUNCTYPE(c_int, c_void_p, c_char_p, c_size_t, c_size_t)
_SCORE_FN = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, POINTER(c_double), POINTER(ErrorSlot))
_BAD_DATA, _CANCELLED = 11, 9


class _Samples(ctypes.Structure):
    _fields_ = [("count", c_size_t), ("get", _GET_FN), ("ctx", c_void_p)]


class _Options(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("to", c_int), ("target", c_int), ("samples", POINTER(_Samples)),
                ("max_loss", c_double), ("metric", c_int), ("calibration", c_int),
                ("may_be_slower", c_bool), ("block_size", c_int), ("teacher", c_void_p),
                ("keep", POINTER(c_char_p)), ("keep_count", c_size_t), ("score", _SCORE_FN),
                ("score_ctx", c_void_p), ("threads", c_int), ("progress", _PROGRESS_FN),
                ("progress_ctx", c_void_p), ("state_path", c_char_p), ("memory_limit", c_uint64),
                _lib._ROOM]


class _PruneOptions(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("pattern", c_int), ("sparsity", c_double),
                ("common", POINTER(_Options)), _lib._ROOM]


class _Summary(ctypes.Structure):
    _fields_ = [("loss", c_double), ("cosine", c_double), ("top1", c_double), ("kl", c_double),
                ("ns_before", c_uint64), ("ns_after", c_uint64), ("bytes_before", c_uint64),
                ("bytes_after", c_uint64), ("layer_count", c_size_t), ("quantized_count", c_size_t),
                ("sample_count", c_size_t), ("calibration", c_char_p), ("smoothed", c_bool),
                ("bias_corrected", c_bool), ("sparsity", c_double), _lib._ROOM]


class _Layer(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("op", c_char_p), ("precision", c_int), ("note", c_char_p),
                ("loss", c_double), ("ns_before", c_uint64), ("ns_after", c_uint64),
                ("bytes_before", c_uint64), ("bytes_after", c_uint64), ("weight_error", c_double),
                ("sparsity", c_double), ("low", c_float), ("high", c_float), ("seen_low", c_float),
                ("seen_high", c_float), ("_histogram", c_void_p), ("_bins", c_size_t), _lib._ROOM]


_OUT = POINTER(c_void_p)
_SIGNATURES = {
    "sn_value_retain": (c_void_p, [c_void_p]),
    "sn_quantize_options_init": (None, [POINTER(_Options), c_size_t]),
    "sn_prune_options_init": (None, [POINTER(_PruneOptions), c_size_t]),
    "sn_quantize": (c_int, [c_void_p, POINTER(_Options), _OUT, _OUT, POINTER(ErrorSlot)]),
    "sn_prune": (c_int, [c_void_p, POINTER(_PruneOptions), _OUT, _OUT, POINTER(ErrorSlot)]),
    "sn_quantize_report_summary": (None, [c_void_p, POINTER(_Summary)]),
    "sn_quantize_report_layer": (c_bool, [c_void_p, c_size_t, POINTER(_Layer)]),
    "sn_quantize_report_destroy": (None, [c_void_p]),
}
for _name, (_result, _arguments) in _SIGNATURES.items():
    _function = getattr(lib, _name)
    _function.restype, _function.argtypes = _result, _arguments


def _index(what, value, names):
    if value not in names:
        raise _lib.InvalidArgument(f"{what} is {value!r}, not one of {', '.join(names)}")
    return names.index(value)


def _facts(raw):
    out = {n: getattr(raw, n) for n, *_ in raw._fields_ if n[0] != "_"}
    return {k: text(v) if isinstance(v, bytes) else v for k, v in out.items()}


class Report:
    """What was found out: `summary`, a dict, and `layers`, a list of dicts (sinter_quantize.h tells
    what their members mean)."""

    def __init__(self, handle):
        summary, layer = _Summary(), _Layer()
        lib.sn_quantize_report_summary(handle, ctypes.byref(summary))
        self.summary, self.layers = _facts(summary), []
        while lib.sn_quantize_report_layer(handle, len(self.layers), ctypes.byref(layer)):
            facts = _facts(layer)
            facts["precision"] = _PRECISIONS[facts["precision"]]
            self.layers.append(facts)


class _Work:
    """The options of one call, and what its callbacks need. What they raise is raised by finish()."""

    def __init__(self, model, samples, max_loss, metric, teacher, keep, score, threads, progress,
                 state):
        self.model = model if isinstance(model, Model) else Model(model)
        self.teacher = teacher if isinstance(teacher, Model) or not teacher else Model(teacher)
        self.samples, self.score, self.raised, self.current = samples, score, None, None
        self.options = o = _Options()
        lib.sn_quantize_options_init(ctypes.byref(o), ctypes.sizeof(o))
        if samples is not None:
            self.list = _Samples(len(samples), _GET_FN(self._get), None)
            o.samples = ctypes.pointer(self.list)
        o.max_loss = -1 if max_loss is None else max_loss
        o.metric = _METRICS.index("score") if score else _index("metric", metric, _METRICS[:3])
        if score:
            o.score = self._score_fn = _SCORE_FN(self._tell)
        if progress:
            o.progress = self._progress_fn = _PROGRESS_FN(
                lambda _, phase, done, total: self._guard(lambda: progress(text(phase), done, total)))
        o.teacher = self.teacher.handle if self.teacher else None
        names = [n.encode("utf-8", "surrogateescape") for n in keep]
        o.keep, o.keep_count = (c_char_p * max(len(names), 1))(*names), len(names)
        o.threads = threads
        o.state_path = os.fsencode(state) if state else None

    def _guard(self, work):
        try:
            work()
            return 0
        except BaseException as e:
            self.raised = e
            return _BAD_DATA

    def _get(self, _, index, inputs, count, slot):
        def work():
            sample = self.samples[index]
            if not isinstance(sample, dict):
                sample = {self.model.inputs[0].name: sample}
            self.current = [(n.encode("utf-8", "surrogateescape"), Value.of(v))
                            for n, v in sample.items()]
            if len(self.current) > len(self.model.inputs):
                raise _lib.InvalidArgument(f"sample {index} has more values than the model has inputs")
            for i, (name, value) in enumerate(self.current):
                inputs[i].name, inputs[i].value = name, lib.sn_value_retain(value.handle)
            count[0] = len(self.current)

        return self._guard(work)

    def _tell(self, _, handle, out, slot):
        def work():
            borrowed = Model.__new__(Model)
            borrowed.handle = handle
            try:
                onnx = borrowed.to_onnx()
            finally:
                borrowed.handle = None
            out[0] = float(self.score(Session(onnx)))

        return self._guard(work)

    def finish(self, function, options):
        made, report, slot = c_void_p(), c_void_p(), ErrorSlot()
        status = function(self.model.handle, ctypes.byref(options), ctypes.byref(made),
                          ctypes.byref(report), ctypes.byref(slot))
        facts = Report(report.value) if report.value else None
        lib.sn_quantize_report_destroy(report.value)
        if self.raised:
            raise self.raised
        if status:
            try:
                raise_error(slot)
            except _lib.Error as e:
                e.report = facts
                raise
        return Model._of(made.value), facts


def quantize(model, samples=None, *, to="int8", target="this", max_loss=None, metric="cosine",
             calibration="auto", block_size=32, may_be_slower=False, teacher=None, keep=(),
             score=None, threads=0, progress=None, state=None):
    """Quantises a model (a Model, a path or bytes); returns (Model, Report).

    samples: a sequence (anything with a length and an index) of inputs: dicts by name, or arrays
    where the model has one input. to: "int8", "int8-dynamic", "int4", "int2", "fp16", "bf16" or
    "mixed". max_loss: by metric ("cosine", "top1", "kl"), None for any. score: a function of a
    Session that says how good it is; the loss is then that of its result. keep: names of layers to
    leave alone. progress: called with (phase, done, total). state: a file from which work that was
    broken off goes on. LimitReached (its `report` tells how far it came): the loss or the speed
    cannot be reached."""
    work = _Work(model, samples, max_loss, metric, teacher, keep, score, threads, progress, state)
    o = work.options
    o.to, o.target = _index("to", to, _PRECISIONS), _index("target", target, _TARGETS)
    o.calibration = _index("calibration", calibration, _CALIBRATIONS)
    o.block_size, o.may_be_slower = block_size, may_be_slower
    return work.finish(lib.sn_quantize, o)


def prune(model, samples=None, *, sparsity=0.5, pattern="unstructured", max_loss=None,
          metric="cosine", teacher=None, keep=(), score=None, threads=0, progress=None, state=None):
    """Sets the weights of convolutions and products to 0 that matter least; returns
    (Model, Report). pattern: "unstructured" or "2:4". The rest is as in quantize()."""
    work = _Work(model, samples, max_loss, metric, teacher, keep, score, threads, progress, state)
    o = _PruneOptions()
    lib.sn_prune_options_init(ctypes.byref(o), ctypes.sizeof(o))
    o.pattern, o.sparsity = _index("pattern", pattern, _PATTERNS), sparsity
    o.common = ctypes.pointer(work.options)
    return work.finish(lib.sn_prune, o)
