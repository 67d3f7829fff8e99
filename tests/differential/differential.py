#!/usr/bin/python3
"""differential.py SINTER [-n COUNT] [-o FOLDER] [--seed N] [FAMILY...]

Makes COUNT random graphs of each operator family, runs them in the real ONNX Runtime (npm package
onnxruntime-node) and in Sinter, and compares. Graphs that ONNX Runtime refuses are counted and left
out. The folder is in the layout of ONNX's backend tests, so `sinter test` can be asked again about
a case that differs.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import zlib

import numpy as np
import onnx
from onnx import numpy_helper

import contributed  # noqa: F401: adds its families
from case import FAMILIES, Case, family

HERE = os.path.dirname(os.path.abspath(__file__))


def broadcast_pair(c, dtype):
    shape = c.shape()
    other = [1 if c.chance(0.3) else d for d in shape][int(c.rng.integers(len(shape))):]
    pair = [c.data(shape, dtype), c.data(other, dtype)]
    return pair[::-1] if c.chance() else pair


@family
def arithmetic(c):
    op = c.pick('Add', 'Sub', 'Mul', 'Div', 'Max', 'Min')
    dtype = c.pick(np.float32, np.float64, np.int32, np.int64)
    a, b = broadcast_pair(c, dtype)
    if op == 'Div':
        b = np.where(b == 0, 1, b).astype(dtype)
    c.node(op, [c.either(a), c.input(b)])


@family
def compare(c):
    op = c.pick('Equal', 'Less', 'LessOrEqual', 'Greater', 'GreaterOrEqual', 'And', 'Or', 'Xor')
    dtype = np.bool_ if op in ('And', 'Or', 'Xor') else c.pick(np.float32, np.int32, np.int64)
    a, b = broadcast_pair(c, dtype)
    y = c.node(op, [c.input(a), c.input(b)])
    if c.chance(0.3):
        c.node('Not', [y])


@family
def unary(c):
    op = c.pick('Abs', 'Neg', 'Exp', 'Log', 'Sqrt', 'Sigmoid', 'Tanh', 'Erf', 'Sin', 'Cos', 'Ceil', 'Floor',
                'Round', 'Relu', 'Reciprocal', 'Softplus', 'Softsign', 'Sign', 'Elu', 'Selu', 'LeakyRelu',
                'HardSigmoid', 'HardSwish', 'Celu', 'ThresholdedRelu', 'Atan', 'Sinh', 'Asinh', 'Not', 'IsNaN')
    x = c.data(c.shape(), np.bool_ if op == 'Not' else np.float32)
    if op in ('Log', 'Sqrt'):
        x = np.abs(x) + np.float32(1e-3)
    attributes = {}
    if op in ('Elu', 'LeakyRelu', 'Celu', 'ThresholdedRelu') and c.chance():
        attributes['alpha'] = float(c.rng.random() + 0.1)
    c.node(op, [c.input(x)], **attributes)


@family
def reduce(c):
    op = c.pick('ReduceSum', 'ReduceMean', 'ReduceMax', 'ReduceMin', 'ReduceProd', 'ReduceL1', 'ReduceL2',
                'ReduceLogSumExp', 'ReduceSumSquare', 'ArgMax', 'ArgMin', 'CumSum')
    shape = c.shape()
    rank = len(shape)
    x = c.input(c.data(shape))
    if op in ('ArgMax', 'ArgMin'):
        c.node(op, [x], axis=int(c.rng.integers(-rank, rank)), keepdims=int(c.chance()),
               select_last_index=int(c.chance()))
    elif op == 'CumSum':
        c.node(op, [x, c.constant(np.array(c.rng.integers(-rank, rank), np.int64))],
               exclusive=int(c.chance()), reverse=int(c.chance()))
    else:
        axes = sorted(c.rng.choice(rank, int(c.rng.integers(1, rank + 1)), replace=False).tolist())
        if op == 'ReduceSum':
            c.node(op, [x, c.ints(axes)], keepdims=int(c.chance()))
        else:
            c.node(op, [x], axes=axes, keepdims=int(c.chance()))


@family
def convolution(c):
    spatial = c.pick(1, 2, 2, 2, 3)
    group = c.pick(1, 1, 2, 3)
    channels, outs = group * int(c.rng.integers(1, 5)), group * int(c.rng.integers(1, 6))
    if c.chance(0.2):
        group = outs = channels
    kernel = c.shape(spatial, 1, 4)
    dilations = c.shape(spatial, 1, 2)
    size = [(k - 1) * d + int(c.rng.integers(1, 12)) for k, d in zip(kernel, dilations)]
    x = c.input(c.data([int(c.rng.integers(1, 3)), channels] + size))
    attributes = {'group': group, 'strides': c.shape(spatial, 1, 3), 'dilations': dilations}
    if c.chance(0.7):
        attributes['pads'] = [int(c.rng.integers(0, 3)) for _ in range(2 * spatial)]
    elif c.chance() and max(dilations) == 1:
        attributes['auto_pad'] = c.pick('SAME_UPPER', 'SAME_LOWER', 'VALID')
    c.atol = 1e-4
    if c.chance(0.25):
        attributes.pop('auto_pad', None)
        w = c.either(c.data([channels, outs // group] + kernel, scale=0.5))
        c.node('ConvTranspose', [x, w], **attributes)
    else:
        w = c.either(c.data([outs, channels // group] + kernel, scale=0.5))
        bias = [c.constant(c.data([outs]))] if c.chance() else []
        c.node('Conv', [x, w] + bias, **attributes)


@family
def pooling(c):
    spatial = c.pick(1, 2, 2, 3)
    op = c.pick('MaxPool', 'AveragePool', 'LpPool', 'GlobalAveragePool', 'GlobalMaxPool')
    kernel = c.shape(spatial, 1, 4)
    size = [k + int(c.rng.integers(0, 10)) for k in kernel]
    x = c.input(c.data([int(c.rng.integers(1, 3)), int(c.rng.integers(1, 4))] + size))
    if op.startswith('Global'):
        c.node(op, [x])
        return
    attributes = {'kernel_shape': kernel, 'strides': c.shape(spatial, 1, 3)}
    if c.chance():
        attributes['pads'] = [int(c.rng.integers(0, (k + 1) // 2)) for k in kernel] * 2
    if op != 'LpPool' and c.chance(0.3):
        attributes['ceil_mode'] = 1
    if op == 'AveragePool':
        attributes['count_include_pad'] = int(c.chance())
    c.node(op, [x], outputs=2 if op == 'MaxPool' and c.chance() else 1, **attributes)


@family
def products(c):
    if c.chance(0.4):
        m, k, n = c.shape(3, 1, 40)
        ta, tb = int(c.chance()), int(c.chance())
        a = c.either(c.data([k, m] if ta else [m, k]))
        b = c.either(c.data([n, k] if tb else [k, n]))
        extra = [c.either(c.data(c.pick([n], [1, n], [m, 1], [m, n], [])))] if c.chance() else []
        c.node('Gemm', [a, b] + extra, transA=ta, transB=tb, alpha=c.pick(1.0, 0.5), beta=c.pick(1.0, 2.0))
    else:
        stack = c.shape(int(c.rng.integers(0, 3)), 1, 3)
        m, k, n = c.shape(3, 1, 40)
        left = [1 if c.chance(0.3) else d for d in stack][int(c.rng.integers(0, len(stack) + 1)):] + [m, k]
        right = stack + [k, n]
        if c.chance(0.15):
            left = [k]
        if c.chance(0.15):
            right = [k]
        c.node('MatMul', [c.either(c.data(left)), c.either(c.data(right))])
    c.atol = 1e-4


@family
def normalisation(c):
    op = c.pick('Softmax', 'LogSoftmax', 'Hardmax', 'BatchNormalization', 'InstanceNormalization',
                'LayerNormalization', 'LRN', 'LpNormalization')
    shape = c.shape(c.pick(3, 4), 2, 7)
    x = c.input(c.data(shape))
    channels = shape[1]
    if op in ('Softmax', 'LogSoftmax', 'Hardmax'):
        c.node(op, [x], axis=int(c.rng.integers(-len(shape), len(shape))))
    elif op == 'BatchNormalization':
        parts = [c.data([channels]) for _ in range(3)] + [np.abs(c.data([channels])) + np.float32(0.1)]
        c.node(op, [x] + [c.constant(p) for p in parts], epsilon=1e-3)
    elif op == 'InstanceNormalization':
        c.node(op, [x, c.constant(c.data([channels])), c.constant(c.data([channels]))])
    elif op == 'LayerNormalization':
        axis = int(c.rng.integers(-len(shape), len(shape)))
        tail = shape[axis:] if axis < 0 else shape[axis:]
        c.node(op, [x, c.constant(c.data(tail)), c.constant(c.data(tail))], axis=axis)
    elif op == 'LRN':
        c.node(op, [x], size=c.pick(1, 3, 5), alpha=0.01, beta=0.6, bias=1.5)
    else:
        c.node(op, [x], axis=int(c.rng.integers(-len(shape), len(shape))), p=c.pick(1, 2))
    c.atol = 1e-4


@family
def movers(c):
    op = c.pick('Transpose', 'Concat', 'Split', 'Slice', 'Pad', 'Tile', 'Expand', 'Squeeze', 'Unsqueeze',
                'Flatten', 'Reshape', 'DepthToSpace', 'SpaceToDepth', 'Trilu', 'ReverseSequence')
    dtype = c.pick(np.float32, np.int64, np.int32, np.uint8, np.float64)
    shape = c.shape(None if op not in ('Trilu', 'ReverseSequence') else int(c.rng.integers(2, 5)))
    rank = len(shape)
    data = c.data(shape, dtype)
    if op == 'Transpose':
        c.node(op, [c.input(data)], perm=c.rng.permutation(rank).tolist())
    elif op == 'Concat':
        axis = int(c.rng.integers(rank))
        parts = [c.either(c.data([int(c.rng.integers(1, 4)) if i == axis else d for i, d in enumerate(shape)], dtype))
                 for _ in range(int(c.rng.integers(1, 4)))] + [c.input(data)]
        c.node(op, parts, axis=axis - rank if c.chance() else axis)
    elif op == 'Split':
        axis = int(c.rng.integers(rank))
        first = int(c.rng.integers(0, shape[axis] + 1))
        c.node(op, [c.input(data), c.ints([first, shape[axis] - first])], outputs=2, axis=axis)
    elif op == 'Slice':
        axes = sorted(c.rng.choice(rank, int(c.rng.integers(1, rank + 1)), replace=False).tolist())
        starts = [int(c.rng.integers(-shape[a] - 1, shape[a] + 2)) for a in axes]
        ends = [int(c.rng.integers(-shape[a] - 1, shape[a] + 2)) for a in axes]
        steps = [int(c.pick(1, 1, 2, -1, -2)) for _ in axes]
        c.node(op, [c.input(data), c.ints(starts), c.ints(ends), c.ints(axes), c.ints(steps)])
    elif op == 'Pad':
        mode = c.pick('constant', 'edge', 'reflect')
        pads = [int(c.rng.integers(0, 3 if mode != 'reflect' else min(d, 3))) for d in shape] * 2
        c.node(op, [c.input(data), c.ints(pads)], mode=mode)
    elif op == 'Tile':
        c.node(op, [c.input(data), c.ints(c.shape(rank, 0, 3))])
    elif op == 'Expand':
        small = [1 if c.chance() else d for d in shape]
        c.node(op, [c.input(c.data(small, dtype)), c.ints(shape)])
    elif op == 'Squeeze':
        axis = int(c.rng.integers(rank + 1))
        c.node(op, [c.input(data.reshape(shape[:axis] + [1] + shape[axis:])), c.ints([axis])])
    elif op == 'Unsqueeze':
        c.node(op, [c.input(data), c.ints([int(c.rng.integers(-rank - 1, rank + 1))])])
    elif op == 'Flatten':
        c.node(op, [c.input(data)], axis=int(c.rng.integers(-rank, rank + 1)))
    elif op == 'Reshape':
        c.node(op, [c.input(data), c.ints([-1] if c.chance() else [0, -1] if rank > 1 else [-1, 1])])
    elif op in ('DepthToSpace', 'SpaceToDepth'):
        data = c.data([1, 8, 4, 6], np.float32)
        extra = {'mode': c.pick('DCR', 'CRD')} if op == 'DepthToSpace' else {}
        c.node(op, [c.input(data)], blocksize=2, **extra)
    elif op == 'Trilu':
        c.node(op, [c.input(c.data(shape)), c.constant(np.array(c.rng.integers(-3, 4), np.int64))],
               upper=int(c.chance()))
    else:
        lengths = c.rng.integers(0, shape[0] + 1, shape[1]).astype(np.int64)
        c.node(op, [c.input(c.data(shape)), c.input(lengths)], time_axis=0, batch_axis=1)


@family
def indices(c):
    op = c.pick('Gather', 'GatherElements', 'GatherND', 'ScatterElements', 'ScatterND', 'OneHot', 'TopK',
                'NonZero', 'Where', 'Compress', 'Unique')
    shape = c.shape(int(c.rng.integers(1, 4)), 2, 6)
    rank = len(shape)
    axis = int(c.rng.integers(rank))
    data = c.input(c.data(shape))
    def picks(size, limit):
        return c.rng.integers(-limit, limit, size).astype(c.pick(np.int64, np.int32))
    if op == 'Gather':
        c.node(op, [data, c.either(picks(c.shape(int(c.rng.integers(0, 3))), shape[axis]))], axis=axis)
    elif op == 'GatherElements':
        size = [int(c.rng.integers(1, d + 1)) for d in shape]
        c.node(op, [data, c.either(picks(size, shape[axis]))], axis=axis)
    elif op == 'ScatterElements':
        size = [int(c.rng.integers(1, d + 1)) for d in shape]
        size[axis] = 1
        c.node(op, [data, c.input(picks(size, shape[axis])), c.input(c.data(size))], axis=axis)
    elif op in ('GatherND', 'ScatterND'):
        depth = int(c.rng.integers(1, rank + 1))
        n = 1 if op == 'ScatterND' else int(c.rng.integers(1, 4))
        index = np.stack([c.rng.integers(0, shape[i], n) for i in range(depth)], -1).astype(np.int64)
        if op == 'GatherND':
            c.node(op, [data, c.input(index)])
        else:
            c.node(op, [data, c.input(index), c.input(c.data([n] + shape[depth:]))])
    elif op == 'OneHot':
        c.node(op, [c.input(picks(c.shape(2), 5).astype(np.int64)), c.constant(np.array(5, np.int64)),
                    c.constant(np.array([0.5, 2], np.float32))], axis=c.pick(-1, 0, 1))
    elif op == 'TopK':
        c.node(op, [data, c.ints([int(c.rng.integers(1, shape[axis] + 1))])], outputs=2, axis=axis,
               largest=int(c.chance()))
    elif op == 'NonZero':
        c.inputs = []
        c.node(op, [c.input(c.data(shape, np.int32) * (c.data(shape, np.bool_)))])
    elif op == 'Where':
        c.node(op, [c.input(c.data(shape, np.bool_)), data, c.input(c.data([shape[-1]]))])
    elif op == 'Compress':
        c.node(op, [data, c.input(c.data([shape[axis]], np.bool_))], axis=axis)
    else:
        c.inputs = []
        c.node(op, [c.input(c.data(shape, np.int64))], outputs=4, sorted=1)


@family
def resize(c):
    shape = [1, int(c.rng.integers(1, 3))] + c.shape(2, 2, 9)
    mode = c.pick('nearest', 'linear', 'cubic')
    attributes = {'mode': mode, 'coordinate_transformation_mode':
                  c.pick('half_pixel', 'asymmetric', 'align_corners', 'pytorch_half_pixel')}
    if mode == 'nearest':
        attributes['nearest_mode'] = c.pick('floor', 'ceil', 'round_prefer_floor', 'round_prefer_ceil')
    if mode == 'cubic' and c.chance():
        attributes['cubic_coeff_a'] = -0.5
    x = c.input(c.data(shape))
    scales = np.array([1, 1, c.pick(0.5, 2, 1.5), c.pick(0.5, 2, 3)], np.float32)
    # align_corners with a fractional product of size and scale: docs/DIFFERENCES.md
    whole = all((s * d) % 1 == 0 for s, d in zip(scales, shape))
    if c.chance() and (whole or attributes['coordinate_transformation_mode'] != 'align_corners'):
        c.node('Resize', [x, '', c.constant(scales)], **attributes)
    else:
        # Nearest between pixels of inexact scales: docs/DIFFERENCES.md
        exact = [d * c.pick(1, 2, 4) for d in shape[2:]]
        sizes = exact if mode == 'nearest' else c.shape(2, 1, 14)
        c.node('Resize', [x, '', '', c.ints(shape[:2] + sizes)], **attributes)
    c.atol = 1e-4


@family
def quantised(c):
    dtype = c.pick(np.uint8, np.int8)
    scale = np.array(abs(c.rng.standard_normal()) * 0.1 + 0.01, np.float32)
    zero = np.array(c.rng.integers(0, 20), dtype)
    op = c.pick('QuantizeLinear', 'DequantizeLinear', 'DynamicQuantizeLinear', 'MatMulInteger', 'QLinearMatMul',
                'ConvInteger', 'QLinearConv')
    if op == 'QuantizeLinear':
        c.node(op, [c.input(c.data(c.shape())), c.constant(scale), c.constant(zero)])
    elif op == 'DequantizeLinear':
        c.node(op, [c.input(c.data(c.shape(), dtype)), c.constant(scale), c.constant(zero)])
    elif op == 'DynamicQuantizeLinear':
        c.node(op, [c.input(c.data(c.shape()))], outputs=3)
    elif op in ('MatMulInteger', 'QLinearMatMul'):
        m, k, n = c.shape(3, 1, 12)
        a, b = c.input(c.data([m, k], np.uint8)), c.either(c.data([k, n], dtype))
        za, zb = c.constant(np.array(3, np.uint8)), c.constant(zero)
        if op == 'MatMulInteger':
            c.node(op, [a, b, za, zb])
        else:
            s = [c.constant(np.array(v, np.float32)) for v in (0.05, 0.03, 0.11)]
            c.node(op, [a, s[0], za, b, s[1], zb, s[2], c.constant(np.array(7, np.uint8))])
            c.atol = 1
    else:
        x, w = c.input(c.data([1, 3, 7, 8], np.uint8)), c.constant(c.data([4, 3, 3, 3], np.uint8))
        zx, zw = c.constant(np.array(3, np.uint8)), c.constant(np.array(2, np.uint8))
        pads = [int(c.chance())] * 4
        if op == 'ConvInteger':
            c.node(op, [x, w, zx, zw], pads=pads)
        else:
            s = [c.constant(np.array(v, np.float32)) for v in (0.05, 0.03, 0.31)]
            c.node(op, [x, s[0], zx, w, s[1], zw, s[2], c.constant(np.array(100, np.uint8))], pads=pads)
            c.atol = 1


@family
def recurrent(c):
    op = c.pick('LSTM', 'GRU', 'RNN')
    gates = {'LSTM': 4, 'GRU': 3, 'RNN': 1}[op]
    steps, batch, size, hidden = c.shape(4, 1, 5)
    direction = c.pick('forward', 'reverse', 'bidirectional')
    ways = 2 if direction == 'bidirectional' else 1
    parts = [c.input(c.data([steps, batch, size])), c.constant(c.data([ways, gates * hidden, size], scale=0.5)),
             c.constant(c.data([ways, gates * hidden, hidden], scale=0.5))]
    if c.chance():
        parts.append(c.constant(c.data([ways, 2 * gates * hidden])))
        if c.chance():
            parts.append(c.input(c.rng.integers(1, steps + 1, batch).astype(np.int32)))
    extra = {'linear_before_reset': int(c.chance())} if op == 'GRU' else {}
    c.node(op, parts, outputs=3 if op == 'LSTM' else 2, hidden_size=hidden, direction=direction, **extra)
    c.atol = 1e-4


@family
def casts(c):
    numbers = [np.float32, np.float64, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64,
               np.uint64, np.bool_, np.float16]
    source, target = c.pick(*numbers), c.pick(*numbers)
    x = np.abs(c.data(c.shape(), source, 5)) if source != np.bool_ else c.data(c.shape(), source)
    c.node('Cast', [c.input(x)], to=int(onnx.mapping.NP_TYPE_TO_TENSOR_TYPE[np.dtype(target)]))


@family
def chains(c):
    shape = c.shape(3, 1, 6)
    y = c.input(c.data(shape))
    for _ in range(int(c.rng.integers(2, 7))):
        op = c.pick('Relu', 'Sigmoid', 'Tanh', 'Add', 'Mul', 'Sub', 'Transpose', 'Softmax', 'Identity', 'Dropout')
        if op in ('Add', 'Mul', 'Sub'):
            y = c.node(op, [y, c.constant(c.data([1]))])
        elif op == 'Transpose':
            y = c.node(op, [y], perm=[1, 0, 2])
        elif op == 'Softmax':
            y = c.node(op, [y], axis=-1)
        else:
            y = c.node(op, [y])


def make_cases(names, count, seed, folder):
    for name in names:
        for i in range(count):
            rng = np.random.default_rng([seed, zlib.crc32(name.encode()), i])
            case = Case(rng)
            FAMILIES[name](case)
            case.write(os.path.join(folder, f'{name}_{i:03d}'))


TYPES = {'float32': np.float32, 'float64': np.float64, 'float16': np.float16, 'bool': np.bool_}


def keep_answers(folder):
    """Turns what ONNX Runtime gave into expected outputs; drops cases it refused."""
    refused = []
    for name in sorted(os.listdir(folder)):
        case = os.path.join(folder, name)
        with open(os.path.join(case, 'ort.json')) as f:
            verdict = json.load(f)
        if 'error' in verdict:
            refused.append((name, verdict['error']))
            shutil.rmtree(case)
            continue
        for i, output in enumerate(verdict['outputs']):
            dtype = np.dtype(TYPES.get(output['type'], output['type']))
            array = np.fromfile(os.path.join(case, f'ort_{i}.bin'), dtype).reshape(output['dims'])
            with open(os.path.join(case, 'test_data_set_0', f'output_{i}.pb'), 'wb') as f:
                f.write(numpy_helper.from_array(array, output['name']).SerializeToString())
    return refused


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('sinter')
    parser.add_argument('families', nargs='*', metavar="FAMILY", help=", ".join(sorted(FAMILIES)))
    parser.add_argument('-n', '--count', type=int, default=100)
    parser.add_argument('-o', '--folder', default='differential-cases')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--node-modules', default=os.environ.get('NODE_PATH', ''))
    args = parser.parse_intermixed_args()
    names = args.families or sorted(FAMILIES)
    unknown = set(names) - set(FAMILIES)
    if unknown:
        parser.error(f'no family {sorted(unknown)[0]!r}')
    shutil.rmtree(args.folder, ignore_errors=True)
    make_cases(names, args.count, args.seed, args.folder)
    subprocess.run(['node', os.path.join(HERE, 'run_ort.js'), args.folder], check=True,
                   env=dict(os.environ, NODE_PATH=args.node_modules))
    refused = keep_answers(args.folder)
    for name, error in refused:
        print(f'refused by ONNX Runtime: {name}: {error.splitlines()[0][:150]}')
    print(f'{len(names)} families, {len(names) * args.count} graphs, {len(refused)} refused by ONNX Runtime')
    sys.stdout.flush()
    sys.exit(subprocess.run([args.sinter, 'test', args.folder]).returncode)


if __name__ == '__main__':
    main()
