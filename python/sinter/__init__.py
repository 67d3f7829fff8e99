"""Sinter runs ONNX models.

Native:          session = sinter.Session("model.onnx"); y = session(x)
As ONNX Runtime: session = sinter.InferenceSession("model.onnx"); y, = session.run(None, {"x": x})
"""

from ._lib import (BadData, Cancelled, Error, InvalidArgument, InvalidGraph, InvalidProtobuf,
                   IOFailure, LimitReached, NoMemory, NoSuchFile, NotImplemented, TimedOut, lib, text)
from .compress import Report, prune, quantize
from .ort import (ExecutionMode, ExecutionOrder, GraphOptimizationLevel, InferenceSession, IOBinding,
                  ModelMetadata, NodeArg, OrtDevice, OrtValue, RunOptions, SessionOptions,
                  disable_telemetry_events, enable_telemetry_events, get_all_providers,
                  get_available_providers, get_device, register_execution_provider_library,
                  set_default_logger_severity, set_default_logger_verbosity, set_seed,
                  unregister_execution_provider_library)
from .session import (Cancel, Device, Info, Model, Session, devices, load_provider,
                      unload_provider)
from .values import Value, bfloat16_bits, bfloat16_values

__version__ = text(lib.sn_version())

__all__ = [
    "BadData", "Cancel", "Cancelled", "Device", "Error", "ExecutionMode", "ExecutionOrder",
    "GraphOptimizationLevel", "IOBinding", "IOFailure", "InferenceSession", "Info",
    "InvalidArgument", "InvalidGraph", "InvalidProtobuf", "LimitReached", "Model", "ModelMetadata",
    "NoMemory", "NoSuchFile", "NodeArg", "NotImplemented", "OrtDevice", "OrtValue", "Report",
    "RunOptions", "Session", "SessionOptions", "TimedOut", "Value", "bfloat16_bits",
    "bfloat16_values", "devices", "disable_telemetry_events", "enable_telemetry_events",
    "get_all_providers", "get_available_providers", "get_device", "load_provider", "prune",
    "quantize", "register_execution_provider_library", "set_default_logger_severity",
    "set_default_logger_verbosity", "set_seed", "unload_provider",
    "unregister_execution_provider_library"
]
