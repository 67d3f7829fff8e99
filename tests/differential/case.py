"""case.py - a random graph under construction, and the list of operator families."""
import json
import os

import numpy as np
import onnx
from onnx import helper, numpy_helper

OPSETS = {'': 17, 'com.microsoft': 1, 'ai.onnx.ml': 3}


class Case:
    """One graph under construction: inputs with data, constants, nodes."""

    def __init__(self, rng):
        self.rng = rng
        self.inputs, self.constants, self.nodes, self.outputs = [], [], [], []
        self.rtol, self.atol = 1e-4, 1e-5

    def shape(self, rank=None, low=1, high=6):
        rank = self.rng.integers(1, 5) if rank is None else rank
        return [int(self.rng.integers(low, high + 1)) for _ in range(rank)]

    def data(self, shape, dtype=np.float32, scale=2.0):
        dtype = np.dtype(dtype)
        if dtype == np.bool_:
            return self.rng.integers(0, 2, shape).astype(bool)
        if dtype.kind in 'iu':
            low = 0 if dtype.kind == 'u' else -9
            return self.rng.integers(low, 10, shape).astype(dtype)
        return (self.rng.standard_normal(shape) * scale).astype(dtype)

    def input(self, array):
        name = f'x{len(self.inputs)}'
        self.inputs.append((name, np.array(array, order='C')))
        return name

    def constant(self, array):
        name = f'c{len(self.constants)}'
        self.constants.append(numpy_helper.from_array(np.array(array, order='C'), name))
        return name

    def either(self, array):
        return self.input(array) if self.rng.integers(2) else self.constant(array)

    def ints(self, values):
        return self.constant(np.array(values, np.int64))

    def node(self, op, inputs, outputs=1, **attributes):
        """Adds a node, of another domain as "domain:Operator"; its first output's name."""
        names = [f'y{len(self.nodes)}_{i}' for i in range(outputs)]
        domain, _, op = op.rpartition(':')
        self.nodes.append(helper.make_node(op, inputs, names, domain=domain, **attributes))
        self.outputs = names
        return names[0]

    def pick(self, *options):
        return options[int(self.rng.integers(len(options)))]

    def chance(self, p=0.5):
        return bool(self.rng.random() < p)

    def write(self, folder):
        os.makedirs(os.path.join(folder, 'test_data_set_0'))
        infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype) if hasattr(
            helper, 'np_dtype_to_tensor_dtype') else onnx.mapping.NP_TYPE_TO_TENSOR_TYPE[a.dtype], a.shape)
                 for n, a in self.inputs]
        outputs = [helper.make_empty_tensor_value_info(n) for n in self.outputs]
        graph = helper.make_graph(self.nodes, 'case', infos, outputs, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid(d, v) for d, v in OPSETS.items()])
        model.ir_version = 8
        onnx.save(model, os.path.join(folder, 'model.onnx'))
        described = []
        for i, (name, array) in enumerate(self.inputs):
            with open(os.path.join(folder, 'test_data_set_0', f'input_{i}.pb'), 'wb') as f:
                f.write(numpy_helper.from_array(array, name).SerializeToString())
            array.tofile(os.path.join(folder, f'in_{i}.bin'))
            described.append({'name': name, 'type': str(array.dtype), 'dims': list(array.shape),
                              'file': f'in_{i}.bin'})
        with open(os.path.join(folder, 'inputs.json'), 'w') as f:
            json.dump(described, f)
        with open(os.path.join(folder, 'data.json'), 'w') as f:
            json.dump({'rtol': self.rtol, 'atol': self.atol}, f)


FAMILIES = {}


def family(make):
    FAMILIES[make.__name__] = make
    return make
