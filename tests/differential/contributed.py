"""contributed.py - families of com.microsoft and ai.onnx.ml operators for differential.py."""
import numpy as np

from case import family

MS = 'com.microsoft:'
ML = 'ai.onnx.ml:'


def scalar(c, value, dtype=np.float32):
    return c.constant(np.array(value, dtype))


@family
def contrib_gelu(c):
    op = c.pick('Gelu', 'BiasGelu', 'FastGelu', 'QuickGelu')
    shape = c.shape(c.pick(2, 3), 1, 9)
    x = c.input(c.data(shape))
    bias = c.either(c.data([shape[-1]]))
    if op == 'QuickGelu':
        c.node(MS + op, [x], alpha=c.pick(1.702, 1.0))
    elif op in ('BiasGelu', 'FastGelu'):
        c.node(MS + op, [x, bias] if op == 'BiasGelu' or c.chance() else [x])
    else:
        c.node(MS + 'Gelu', [x])
    # ONNX Runtime approximates erf and tanh to about 1e-6.
    c.atol = 1e-5


@family
def contrib_products(c):
    op = c.pick('FusedMatMul', 'FusedGemm', 'TransposeMatMul')
    m, k, n = c.shape(3, 1, 30)
    c.atol = 1e-4
    if op == 'FusedGemm':
        ta, tb = int(c.chance()), int(c.chance())
        a, b = c.data([k, m] if ta else [m, k]), c.data([n, k] if tb else [k, n])
        activation = c.pick('Relu', 'LeakyRelu', 'Sigmoid', 'Tanh')
        extra = {'activation_alpha': 0.1} if activation == 'LeakyRelu' else {}
        c.node(MS + op, [c.input(a), c.either(b), c.either(c.data([n]))], transA=ta, transB=tb,
               activation=activation, alpha=c.pick(1.0, 0.5), **extra)
        return
    ta, tb = int(c.chance()), int(c.chance())
    stack = c.shape(int(c.rng.integers(0, 3)), 1, 3)
    a = c.input(c.data(stack + ([k, m] if ta else [m, k])))
    b = c.either(c.data(stack + ([n, k] if tb else [k, n])))
    c.node(MS + op, [a, b], transA=ta, transB=tb, alpha=c.pick(1.0, 0.25))


@family
def contrib_conv(c):
    channels, outs = c.shape(2, 1, 20)
    kernel = c.pick(1, 3)
    x = c.input(c.data([1, channels] + c.shape(2, 3, 12)))
    activation = c.pick('Relu', 'LeakyRelu', 'Sigmoid', 'Tanh', 'Clip', 'HardSigmoid')
    params = {'LeakyRelu': [0.1], 'Clip': [-0.5, 0.75], 'HardSigmoid': [0.2, 0.5]}.get(activation)
    extra = {'activation_params': params} if params else {}
    w = c.constant(c.data([outs, channels, kernel, kernel], scale=0.5))
    c.node(MS + 'FusedConv', [x, w, c.constant(c.data([outs]))], activation=activation,
           kernel_shape=[kernel, kernel], pads=[int(c.chance())] * 4, strides=c.shape(2, 1, 2), **extra)
    c.atol = 1e-4


@family
def contrib_norms(c):
    op = c.pick('SkipLayerNormalization', 'SkipSimplifiedLayerNormalization', 'EmbedLayerNormalization',
                'SimplifiedLayerNormalization')
    batch, length, size = c.shape(2, 1, 5) + [int(c.rng.integers(2, 40))]
    gamma, beta, bias = (c.constant(c.data([size])) for _ in range(3))
    c.atol = 1e-4
    if op == 'EmbedLayerNormalization':
        ids = c.input(c.rng.integers(0, 7, [batch, length]).astype(np.int32))
        segments = c.input(c.rng.integers(0, 2, [batch, length]).astype(np.int32))
        tables = [c.constant(c.data([n, size])) for n in (7, length + 2, 2)]
        mask = [c.input(c.rng.integers(0, 2, [batch, length]).astype(np.int32))] if c.chance() else []
        c.node(MS + op, [ids, segments] + tables + [gamma, beta] + mask, outputs=2)
        return
    x = c.input(c.data([batch, length, size]))
    if op == 'SimplifiedLayerNormalization':
        c.node(op, [x, gamma], epsilon=1e-5)
        return
    skip = c.input(c.data([batch, length, size]))
    parts = [x, skip, gamma] + ([beta] if op == 'SkipLayerNormalization' else [])
    c.node(MS + op, parts + ([bias] if c.chance() else []), epsilon=1e-5)


@family
def contrib_attention(c):
    op = c.pick('MultiHeadAttention', 'MultiHeadAttention', 'Attention', 'GroupQueryAttention', 'RotaryEmbedding')
    heads, head = int(c.rng.integers(1, 5)), c.pick(8, 16) if op == 'GroupQueryAttention' else 2 * int(c.rng.integers(1, 9))
    batch, length = c.shape(2, 1, 7)
    width = heads * head
    c.atol = 1e-4
    if op == 'RotaryEmbedding':
        limit = length + 3
        tables = [c.constant(c.data([limit, head // 2])) for _ in range(2)]
        start = c.input(np.array([int(c.rng.integers(0, 3))], np.int64))
        c.node(MS + op, [c.input(c.data([batch, heads, length, head])), start] + tables,
               interleaved=int(c.chance()))
    elif op == 'Attention':
        mask = [c.input(c.rng.integers(1, length + 1, [batch]).astype(np.int32))] if c.chance() else []
        c.node(MS + op, [c.input(c.data([batch, length, width])), c.constant(c.data([width, 3 * width], scale=0.3)),
                         c.constant(c.data([3 * width]))] + mask, num_heads=heads,
               unidirectional=int(c.chance()))
    elif op == 'MultiHeadAttention':
        other = int(c.rng.integers(1, 9))
        q, k, v = (c.input(c.data([batch, n, width])) for n in (length, other, other))
        bias = c.constant(c.data([3 * width])) if c.chance(0.3) else ''
        added = c.input(c.data([c.pick(1, batch), c.pick(1, heads), length, other])) if c.chance() else ''
        c.node(MS + op, [q, k, v, bias, '', added], num_heads=heads)
    else:
        groups = c.pick(*[g for g in range(1, heads + 1) if heads % g == 0])
        q = c.input(c.data([batch, length, width]))
        k, v = (c.input(c.data([batch, length, groups * head])) for _ in range(2))
        lengths = c.input(np.full([batch], length - 1, np.int32))
        c.node(MS + op, [q, k, v, '', '', lengths, scalar(c, length, np.int32)], outputs=3, num_heads=heads,
               kv_num_heads=groups)


@family
def contrib_quantised(c):
    op = c.pick('QLinearAdd', 'QLinearMul', 'QLinearSigmoid', 'QLinearLeakyRelu', 'QLinearAveragePool',
                'QLinearGlobalAveragePool', 'QLinearConcat', 'DynamicQuantizeMatMul', 'MatMulIntegerToFloat', 'QGemm',
                'QLinearSoftmax')
    dtype = c.pick(np.uint8, np.int8)

    def params(scale, zero):
        return [scalar(c, scale), scalar(c, zero, dtype)]

    def data(shape):
        low, high = (0, 256) if dtype == np.uint8 else (-128, 128)
        return c.rng.integers(low, high, shape).astype(dtype)

    c.atol = 1  # a step of the quantised output
    shape = c.shape(c.pick(2, 3), 1, 8)
    if op in ('QLinearAdd', 'QLinearMul'):
        c.node(MS + op, [c.input(data(shape))] + params(0.05, 3) + [c.either(data(shape[-1:]))] + params(0.02, 5) +
               params(0.1, 7))
    elif op in ('QLinearSigmoid', 'QLinearLeakyRelu'):
        extra = {'alpha': 0.1} if op == 'QLinearLeakyRelu' else {}
        c.node(MS + op, [c.input(data(shape))] + params(0.05, 3) + params(0.01, 1), **extra)
    elif op == 'QLinearSoftmax':
        shape[-1] += 2
        c.node(MS + op, [c.input(data(shape))] + params(0.01, 3) + params(1 / 128, 0), axis=-1, opset=13)
    elif op == 'QLinearAveragePool':
        c.node(MS + op, [c.input(data([1, 3, 8, 9]))] + params(0.05, 3) + params(0.04, 1),
               kernel_shape=c.shape(2, 1, 3), strides=c.shape(2, 1, 2), count_include_pad=int(c.chance()))
    elif op == 'QLinearGlobalAveragePool':
        c.node(MS + op, [c.input(data([1, 5] + c.shape(2, 1, 9)))] + params(0.05, 3) + params(0.04, 1))
    elif op == 'QLinearConcat':
        parts = sum(([c.input(data(shape))] + params(s, z) for s, z in ((0.05, 3), (0.1, 2))), [])
        c.node(MS + op, params(0.07, 1) + parts, axis=int(c.rng.integers(len(shape))))
    else:
        products(c, op, dtype, data, params)


def products(c, op, dtype, data, params):
    m, k, n = c.shape(3, 1, 20)
    c.atol = 1e-3
    if op == 'DynamicQuantizeMatMul':
        bias = [c.constant(c.data([n]))] if c.chance() else []
        c.node(MS + op, [c.input(c.data([m, k])), c.constant(data([k, n]))] + params(0.02, 4) + bias)
        c.atol = 0.05  # a step of the quantised input, times a weight
    elif op == 'MatMulIntegerToFloat':
        a = c.input(c.rng.integers(0, 256, [m, k]).astype(np.uint8))
        c.node(MS + op, [a, c.constant(data([k, n])), scalar(c, 0.05), scalar(c, 0.02), scalar(c, 3, np.uint8),
                         scalar(c, 4, dtype)])
    else:
        a = c.input(c.rng.integers(0, 256, [m, k]).astype(np.uint8))
        bias = c.constant(c.rng.integers(-99, 99, [n]).astype(np.int32))
        c.node(MS + op, [a, scalar(c, 0.05), scalar(c, 3, np.uint8), c.constant(data([k, n]))] + params(0.02, 4) +
               [bias])


@family
def contrib_blocks(c):
    """Weights of 4 and 8 bits in blocks."""
    k, n, block = 32 * int(c.rng.integers(1, 4)), int(c.rng.integers(1, 12)), c.pick(16, 32)
    bits = c.pick(4, 4, 8)
    blocks = -(-k // block)
    c.atol = 1e-3
    weights = c.constant(c.rng.integers(0, 256, [n, blocks, block * bits // 8]).astype(np.uint8))
    parts = [c.input(c.data([int(c.rng.integers(1, 6)), k])), weights, c.constant(np.abs(c.data([n * blocks])) * 0.1)]
    if c.chance():
        zero_bytes = -(-blocks * bits // 8)
        parts.append(c.constant(c.rng.integers(0, 256, [n * zero_bytes]).astype(np.uint8)))
    c.node(MS + 'MatMulNBits', parts, K=k, N=n, bits=bits, block_size=block)


@family
def contrib_others(c):
    op = c.pick('Trilu', 'GridSample', 'ExpandDims')
    if op == 'Trilu':
        c.node(MS + op, [c.input(c.data(c.shape(3)))], upper=int(c.chance()))
    elif op == 'ExpandDims':
        c.node(MS + op, [c.input(c.data(c.shape(2))), scalar(c, c.pick(0, 1, 2, -1), np.int32)])
    else:
        c.node(MS + op, [c.input(c.data([1, 2, 5, 6])), c.input(c.data([1, 3, 4, 2], scale=0.6))],
               mode=c.pick('bilinear', 'nearest'), padding_mode=c.pick('zeros', 'border'),
               align_corners=int(c.chance()))
        c.atol = 1e-4


@family
def ml_linear(c):
    op = c.pick('LinearRegressor', 'LinearClassifier', 'Scaler', 'Normalizer', 'Binarizer', 'Imputer',
                'ArrayFeatureExtractor', 'LabelEncoder')
    rows, size = c.shape(2, 1, 6)
    x = c.input(c.data([rows, size]))
    if op == 'LinearRegressor':
        targets = int(c.rng.integers(1, 4))
        c.node(ML + op, [x], coefficients=c.data([targets * size]).tolist(), intercepts=c.data([targets]).tolist(),
               targets=targets)
    elif op == 'LinearClassifier':
        classes = int(c.rng.integers(2, 5))
        c.node(ML + op, [x], outputs=2, coefficients=c.data([classes * size]).tolist(),
               intercepts=c.data([classes]).tolist(), classlabels_ints=list(range(classes)),
               multi_class=1, post_transform=c.pick('NONE', 'SOFTMAX', 'LOGISTIC'))
    elif op == 'Scaler':
        c.node(ML + op, [x], offset=c.data([size]).tolist(), scale=c.data([size]).tolist())
    elif op == 'Normalizer':
        c.node(ML + op, [x], norm=c.pick('MAX', 'L1', 'L2'))
    elif op == 'Binarizer':
        c.node(ML + op, [x], threshold=0.25)
    elif op == 'Imputer':
        c.inputs[0][1][..., 0] = np.nan
        c.node(ML + op, [x], imputed_value_floats=c.data([size]).tolist(), replaced_value_float=float('nan'))
    elif op == 'ArrayFeatureExtractor':
        c.node(ML + op, [x, c.ints([int(c.rng.integers(size))])])
    else:
        c.inputs = []
        c.node(ML + op, [c.input(c.rng.integers(0, 5, [rows, size]).astype(np.int64))], keys_int64s=[0, 1, 2],
               values_floats=[0.5, 1.5, 2.5], default_float=-1.0)


@family
def ml_trees(c):
    """A forest of random complete trees, as a regressor or a classifier."""
    size, trees, depth = int(c.rng.integers(1, 6)), int(c.rng.integers(1, 9)), int(c.rng.integers(0, 5))
    classes = int(c.rng.integers(2, 5)) if c.chance() else 0
    # Votes for one of two classes, or positive ones for more: docs/DIFFERENCES.md has the rest.
    voted = {0: 1, 2: 1}.get(classes, classes)
    inner = 2 ** depth - 1
    ids = [(t, i) for t in range(trees) for i in range(2 * inner + 1)]
    leaves = [(t, i) for t, i in ids if i >= inner]
    mode = c.pick('BRANCH_LEQ', 'BRANCH_LT', 'BRANCH_GT', 'BRANCH_GTE')
    attributes = {
        'nodes_treeids': [t for t, _ in ids], 'nodes_nodeids': [i for _, i in ids],
        'nodes_featureids': [int(c.rng.integers(size)) for _ in ids],
        'nodes_values': c.data([len(ids)]).tolist(),
        'nodes_modes': [mode if i < inner else 'LEAF' for _, i in ids],
        'nodes_truenodeids': [2 * i + 1 if i < inner else 0 for _, i in ids],
        'nodes_falsenodeids': [2 * i + 2 if i < inner else 0 for _, i in ids],
        'nodes_missing_value_tracks_true': [int(c.chance()) for _ in ids],
    }
    x = c.data([int(c.rng.integers(1, 40)), size])
    x[c.rng.random(x.shape) < 0.05] = np.nan
    kind = 'class' if classes else 'target'
    weights = c.data([len(leaves)])
    attributes.update({
        f'{kind}_treeids': [t for t, _ in leaves], f'{kind}_nodeids': [i for _, i in leaves],
        f'{kind}_ids': [int(c.rng.integers(voted)) for _ in leaves],
        f'{kind}_weights': (np.abs(weights) if classes > 2 else weights).tolist(),
    })
    if classes:
        c.node(ML + 'TreeEnsembleClassifier', [c.input(x)], outputs=2, classlabels_int64s=list(range(classes)),
               post_transform=c.pick('NONE', 'LOGISTIC', 'NONE' if classes == 2 else 'SOFTMAX'), **attributes)
    else:
        c.node(ML + 'TreeEnsembleRegressor', [c.input(x)], n_targets=1,
               aggregate_function=c.pick('SUM', 'AVERAGE', 'MIN', 'MAX'), **attributes)
    c.atol = 1e-4
