#!/usr/bin/python3
"""written.py SINTER FOLDER --node-modules MODULES [ZOO...] - files that `sinter optimize` writes, in the real ONNX
Runtime.

Models made here (convolutions and dense layers before every activation, quantised ones) and those below the folders
ZOO (bench/zoo/export.py) are optimised at levels 2 and 3. ONNX Runtime runs each model and both files on the same
inputs, and must give the same: within 1e-3 and 1e-4 of the largest number of an output, or one step of a quantised
one. A file must also have fewer nodes than its model, and the fused ones that are expected of it.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import onnx
from onnx import numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
DIFFERENTIAL = os.path.join(os.path.dirname(HERE), 'differential')
sys.path.insert(0, DIFFERENTIAL)
from case import Case  # noqa: E402

LEVELS = ('2', '3')
STEP = 0.05  # of quantised results

# Operators, or functions of the file whose names begin so, that must be in the files of a model.
EXPECTED = {
    'activations': {'FusedConv', 'ConvTranspose', 'Linear'},
    'norms': {'GroupNormalization', 'InstanceNormalization', 'RMSNormalization', 'LayerNormalization', 'Gelu'},
    'quantised': {'QLinearConv', 'QLinearAdd', 'QGemm', 'QLinearGlobalAveragePool'},
    'dynamic': {'MatMulIntegerToFloat'},
    'mobilenet_v3_large': {'FusedConv'},
    'yolov8n': {'FusedConv'},
    'convnext_tiny': {'Linear'},
    'vit_b_16': {'Attention', 'Linear', 'SkipLayerNormalization'},
    'swin_t': {'Attention', 'Linear'},
    'bert_base': {'Attention', 'Linear', 'LayerNormalization'},
    'gpt2': {'Attention', 'Linear'},
    'llama': {'Attention', 'RotaryEmbedding', 'RMSNormalization'},
    'llama_angles': {'Attention', 'RotaryEmbedding'},
    'llama_pairs': {'Attention', 'RotaryEmbedding'},
}


# ---- Models ----

def activation(c, kind, x, slopes=()):
    """An activation in operators of opset 17, with slopes of this shape."""
    number = lambda v: c.constant(np.array(v, np.float32))
    if kind == 'Clip':
        return c.node('Clip', [x, number(0), number(6)])
    if kind == 'Silu':
        return c.node('Mul', [x, c.node('Sigmoid', [x])])
    if kind == 'Mish':
        return c.node('Mul', [x, c.node('Tanh', [c.node('Softplus', [x])])])
    if kind == 'Gelu':
        erf = c.node('Erf', [c.node('Div', [x, number(2 ** 0.5)])])
        return c.node('Mul', [c.node('Mul', [x, c.node('Add', [erf, number(1)])]), number(0.5)])
    if kind == 'LeakyRelu':
        return c.node('LeakyRelu', [x], alpha=0.2)
    if kind == 'HardSigmoid':
        return c.node('HardSigmoid', [x], alpha=0.3, beta=0.4)
    if kind == 'PRelu':
        return c.node('PRelu', [x, c.constant(c.data(slopes))])
    return c.node(kind, [x])


KINDS = ('Relu', 'LeakyRelu', 'Clip', 'Sigmoid', 'HardSwish', 'HardSigmoid', 'Silu', 'Mish', 'Gelu', 'Tanh', 'PRelu',
         'Elu', 'Softplus')


def weights(c, *shape):
    return c.constant(c.data(shape, scale=(2 / max(1, np.prod(shape[1:]))) ** 0.5))


def activations(c):
    """Every activation after Conv, Conv with a sum, ConvTranspose, MatMul with a bias, and Gemm."""
    x, rows, ends = c.input(c.data([2, 4, 6, 6])), c.input(c.data([3, 8])), []
    for kind in KINDS:
        a = activation(c, kind, c.node('Conv', [x, weights(c, 4, 4, 3, 3), weights(c, 4)], pads=[1, 1, 1, 1]), (4, 1, 1))
        b = activation(c, kind, c.node('Add', [c.node('Conv', [a, weights(c, 4, 4, 1, 1)]), x]), (4, 1, 1))
        t = activation(c, kind, c.node('ConvTranspose', [b, weights(c, 4, 3, 2, 2)], strides=[2, 2]), (3, 1, 1))
        d = activation(c, kind, c.node('Add', [c.node('MatMul', [rows, weights(c, 8, 5)]), weights(c, 5)]), (5,))
        e = activation(c, kind, c.node('Gemm', [d, weights(c, 7, 5), weights(c, 7)], transB=1), (7,))
        ends += [t, e]
    c.outputs = ends


def norms(c):
    """Normalisations in their parts."""
    x = c.input(c.data([2, 6, 4, 4]))
    number = lambda v: c.constant(np.array(v, np.float32))

    def spread(d, axes):
        square = c.node('ReduceMean', [c.node('Mul', [d, d])], axes=axes, keepdims=1)
        return c.node('Sqrt', [c.node('Add', [square, number(1e-5)])])

    def normalise(v, axes):
        d = c.node('Sub', [v, c.node('ReduceMean', [v], axes=axes, keepdims=1)])
        return c.node('Div', [d, spread(d, axes)])

    instance = normalise(x, [2, 3])
    ones, zeros = c.constant(np.ones(3, np.float32)), c.constant(np.zeros(3, np.float32))
    flat = c.node('Reshape', [instance, c.ints([0, 3, -1])])
    group = c.node('Reshape', [c.node('InstanceNormalization', [flat, ones, zeros]), c.ints([2, 6, 4, 4])])
    group = c.node('Add', [c.node('Mul', [group, weights(c, 6, 1, 1)]), weights(c, 6, 1, 1)])
    layer = c.node('Add', [c.node('Mul', [normalise(group, [-1]), weights(c, 4)]), weights(c, 4)])
    gelu = activation(c, 'Gelu', layer)
    c.node('Mul', [c.node('Div', [gelu, spread(gelu, [-1])]), weights(c, 4)])


def quantised(c):
    """Convolutions, a sum, a mean and a dense layer between QuantizeLinear and DequantizeLinear."""
    zero = c.constant(np.array(128, np.uint8))
    scale = c.constant(np.array(STEP, np.float32))

    def both(v):
        return c.node('DequantizeLinear', [c.node('QuantizeLinear', [v, scale, zero]), scale, zero])

    def coded(*shape):
        scales = c.constant((c.rng.random(shape[0]) * 0.01 + 0.005).astype(np.float32))
        zeros = c.constant(np.zeros(shape[0], np.int8))
        w = c.constant(c.rng.integers(-60, 60, shape).astype(np.int8))
        return c.node('DequantizeLinear', [w, scales, zeros], axis=0)

    x = both(c.input(c.data([1, 8, 9, 9])))
    a = both(c.node('Relu', [c.node('Conv', [x, coded(8, 8, 3, 3), weights(c, 8)], pads=[1, 1, 1, 1])]))
    b = both(c.node('Conv', [a, coded(8, 1, 3, 3)], pads=[1, 1, 1, 1], group=8))
    s = both(c.node('Add', [b, x]))
    p = both(c.node('Flatten', [both(c.node('GlobalAveragePool', [s]))]))
    both(c.node('Gemm', [p, coded(5, 8), weights(c, 5)], transB=1))


def dynamic(c):
    """A dense layer whose input is quantised while it runs."""
    x = c.input(c.data([4, 16]))
    q = c.node('DynamicQuantizeLinear', [x], 3)
    code, scale, zero = c.outputs
    w = c.constant(c.rng.integers(-100, 100, (16, 6)).astype(np.int8))
    total = c.node('Cast', [c.node('MatMulInteger', [q, w, zero, c.constant(np.array(0, np.int8))])], to=1)
    factor = c.node('Mul', [scale, c.constant(np.array(0.01, np.float32))])
    c.node('Relu', [c.node('Add', [c.node('Mul', [total, factor]), weights(c, 6)])])


def make_own(folder):
    for make in (activations, norms, quantised, dynamic):
        c = Case(np.random.default_rng(7))
        make(c)
        path = os.path.join(folder, make.__name__)
        c.write(path)
        yield make.__name__, path


def take_zoo(folder, zoo):
    """Models of a folder of exports, with their first case as files that run_ort.js reads."""
    for name in sorted(set(EXPECTED) & set(os.listdir(zoo))):
        path = os.path.join(folder, f'{name}.{os.path.basename(zoo)}')
        os.mkdir(path)
        shutil.copy(os.path.join(zoo, name, 'model.onnx'), path)
        described = []
        data = os.path.join(zoo, name, 'test_data_set_0')
        for i in range(sum(f.startswith('input_') for f in os.listdir(data))):
            tensor = onnx.load_tensor(os.path.join(data, f'input_{i}.pb'))
            array = numpy_helper.to_array(tensor)
            array.tofile(os.path.join(path, f'in_{i}.bin'))
            described.append({'name': tensor.name, 'type': str(array.dtype), 'dims': list(array.shape),
                              'file': f'in_{i}.bin'})
        with open(os.path.join(path, 'inputs.json'), 'w') as f:
            json.dump(described, f)
        yield name, path


# ---- Files ----

def optimise(sinter, path, level):
    """Writes the optimised model into a folder of its own, with the same inputs: the folder, and what went wrong."""
    to = f'{path}.level{level}'
    shutil.copytree(path, to)
    file = os.path.join(to, 'model.onnx')
    run = subprocess.run([sinter, 'optimize', os.path.join(path, 'model.onnx'), '-o', file, '--level', level],
                         capture_output=True, text=True)
    return to, [] if run.returncode == 0 else [f'sinter optimize: {run.stderr or run.stdout[-200:]}']


def file_complaints(name, path, to):
    before, after = (onnx.load(os.path.join(p, 'model.onnx')) for p in (path, to))
    calls = {n.op_type.split('_')[0] for n in after.graph.node}
    if len(after.graph.node) >= len(before.graph.node):
        yield f'{len(after.graph.node)} nodes of {len(before.graph.node)}'
    for op in EXPECTED[name] - calls:
        yield f'no {op}'


def read_outputs(path):
    with open(os.path.join(path, 'ort.json')) as f:
        verdict = json.load(f)
    if 'error' in verdict:
        raise ValueError(verdict['error'].splitlines()[0])
    for i, output in enumerate(verdict['outputs']):
        array = np.fromfile(os.path.join(path, f'ort_{i}.bin'), np.dtype(output['type']))
        yield output['name'], array.reshape(output['dims'])


def result_complaints(name, path, to):
    want, got = list(read_outputs(path)), list(read_outputs(to))
    if [n for n, _ in want] != [n for n, _ in got]:
        yield 'other outputs'
        return
    for (output, a), (_, b) in zip(want, got):
        if a.shape != b.shape or a.dtype != b.dtype:
            yield f'{output} is {b.dtype}{b.shape} instead of {a.dtype}{a.shape}'
            continue
        a, b = a.astype(np.float64), b.astype(np.float64)
        slack = STEP * 1.01 if name == 'quantised' else 1e-7 + 1e-4 * np.abs(a).max(initial=0)
        if not np.allclose(b, a, rtol=1e-3, atol=slack, equal_nan=True):
            yield f'{output} differs by {np.abs(a - b).max()}, largest number {np.abs(a).max()}'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('sinter')
    parser.add_argument('folder')
    parser.add_argument('zoo', nargs='*')
    parser.add_argument('--node-modules', required=True)
    args = parser.parse_intermixed_args()
    shutil.rmtree(args.folder, ignore_errors=True)
    os.makedirs(args.folder)
    models = [*make_own(args.folder), *(m for zoo in args.zoo for m in take_zoo(args.folder, zoo))]
    files = [(name, path, *optimise(args.sinter, path, level)) for name, path in models for level in LEVELS]
    subprocess.run(['node', os.path.join(DIFFERENTIAL, 'run_ort.js'), args.folder, 'all'], check=True,
                   env=dict(os.environ, NODE_PATH=args.node_modules))
    bad = 0
    for name, path, to, found in files:
        try:
            found += [*file_complaints(name, path, to), *result_complaints(name, path, to)]
        except ValueError as e:
            found.append(f'ONNX Runtime refuses it: {e}')
        for text in found:
            print(f'{os.path.basename(to)}: {text}')
        bad += len(found)
    print(f'{len(files)} files of {len(models)} models in ONNX Runtime, {bad} complaints')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
