"""ONNX's backend interface (onnx.backend.base), so that ONNX's own test runner and other tools that
speak it can drive Sinter: prepare(model).run(inputs), run_model(model, inputs), run_node(...)."""

import numpy as np
import onnx
from onnx.backend.base import Backend as _Base
from onnx.backend.base import BackendRep as _RepBase
from onnx.backend.base import namedtupledict

from .session import Model, Session
from .values import bfloat16_bits

_BFLOAT16 = 16


class BackendRep(_RepBase):
    """A model made ready. Inputs are given in order, as a list, or by name; bfloat16 goes in
    as float32 or as its bits, and comes out as its bits."""

    def __init__(self, session):
        self.session = session
        self._names = [o.name for o in session.outputs]

    def run(self, inputs, **kwargs):
        if isinstance(inputs, dict):
            feeds = dict(inputs)
        else:
            if not isinstance(inputs, (list, tuple)):
                inputs = [inputs]
            feeds = {i.name: x for i, x in zip(self.session.inputs, inputs)}
        for info in self.session.inputs:
            given = feeds.get(info.name)
            if info.number == _BFLOAT16 and isinstance(given, np.ndarray) and given.dtype == np.float32:
                feeds[info.name] = bfloat16_bits(given)
        return namedtupledict("Outputs", self._names)(*self.session.run(feeds).values())


class Backend(_Base):
    @classmethod
    def is_compatible(cls, model, device="CPU", **kwargs):
        if not cls.supports_device(device):
            return False
        try:
            cls.prepare(model, device, **kwargs)
        except Exception:  # whatever the reason, it cannot be run
            return False
        return True

    @classmethod
    def prepare(cls, model, device="CPU", **kwargs):
        if not cls.supports_device(device):
            raise ValueError(f"there is no device {device!r}: models run on the CPU")
        if isinstance(model, onnx.ModelProto):
            model = model.SerializeToString()
        return BackendRep(Session(Model(model), **kwargs))

    @classmethod
    def run_model(cls, model, inputs, device="CPU", **kwargs):
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(cls, node, inputs, device="CPU", outputs_info=None, **kwargs):
        super().run_node(node, inputs, device, outputs_info=outputs_info, **kwargs)
        return cls.prepare(_model_of(node, inputs, kwargs), device).run(inputs)

    @classmethod
    def supports_device(cls, device):
        return device.split(":")[0].upper() == "CPU"


def _model_of(node, inputs, options):
    """A model of one node, whose inputs have the types of the arrays given."""
    def info(name, array):
        number = onnx.mapping.NP_TYPE_TO_TENSOR_TYPE[np.asarray(array).dtype]
        return onnx.helper.make_tensor_value_info(name, number, np.shape(array))

    names = [n for n in node.input if n]
    outputs = [onnx.ValueInfoProto(name=n) for n in node.output if n]
    graph = onnx.helper.make_graph([node], "node", [info(n, x) for n, x in zip(names, inputs)],
                                   outputs)
    version = options.get("opset_version", onnx.defs.onnx_opset_version())
    return onnx.helper.make_model(graph, opset_imports=[
        onnx.helper.make_opsetid(node.domain, 1 if node.domain else version),
        onnx.helper.make_opsetid("", version)])


is_compatible = Backend.is_compatible
prepare = Backend.prepare
run = Backend.run_model
run_model = Backend.run_model
run_node = Backend.run_node
supports_device = Backend.supports_device
