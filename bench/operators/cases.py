"""cases.py - single operators with the sizes that real models give them, for operators.py."""

import numpy as np

R = np.random.RandomState(7)
F32, F16, F64 = np.float32, np.float16, np.float64
I8, U8, I32, I64, BOOL = np.int8, np.uint8, np.int32, np.int64, np.bool_


def rand(*shape, t=F32):
    """Random numbers of a type: floats around 0, integers from 1 to 100, any bools."""
    if t is BOOL:
        return R.rand(*shape) < 0.5
    if np.issubdtype(t, np.integer):
        return R.randint(1, 101, shape).astype(t)
    return R.randn(*shape).astype(t)


def below(n, *shape, t=I64):
    """Random indices below n."""
    return R.randint(0, n, shape).astype(t)


def ints(*v):
    return np.array(v, I64)


class Case:
    """A node: `inputs` come with each run, `constants` (by position among the inputs) with the model."""

    def __init__(self, name, op, *inputs, const=None, out=1, outtypes=None, domain="", **attrs):
        self.name, self.op, self.inputs = name, op, list(inputs)
        self.constants = const or {}
        self.outputs, self.outtypes, self.domain, self.attrs = out, outtypes, domain, attrs


IMAGE = (1, 64, 56, 56)
TOKENS = (1, 128, 768)
SMALL = (1, 32, 28, 28)


def elementwise():
    for op in (
        "Relu Sigmoid Tanh Exp Log Sqrt Abs Neg Erf Floor Ceil Round Sign Sin Cos Reciprocal Softplus HardSigmoid "
        "HardSwish LeakyRelu Elu Selu ThresholdedRelu Tan Atan Sinh Cosh Asinh"
    ).split():
        x = rand(*IMAGE)
        yield Case(op, op, np.abs(x) + F32(0.1) if op in ("Log", "Sqrt") else x)
    yield Case("IsNaN", "IsNaN", rand(*IMAGE), outtypes=[BOOL])
    yield Case("IsInf", "IsInf", rand(*IMAGE), outtypes=[BOOL])
    yield Case("Not", "Not", rand(*IMAGE, t=BOOL))
    for t in (F32, F64, I32, I64):
        for op in "Add Sub Mul Div Max Min".split():
            yield Case("%s %s" % (op, t.__name__), op, rand(*IMAGE, t=t), rand(*IMAGE, t=t))
        yield Case("Add %s, a scalar" % t.__name__, "Add", rand(*IMAGE, t=t), rand(1, t=t))
        yield Case("Abs %s" % t.__name__, "Abs", rand(*IMAGE, t=t))
        yield Case("Neg %s" % t.__name__, "Neg", rand(*IMAGE, t=t))
    yield Case("Mul per channel", "Mul", rand(*IMAGE), rand(1, 64, 1, 1))
    yield Case("Mul by a column", "Mul", rand(*TOKENS), rand(1, 128, 1))
    yield Case("Add of a row", "Add", rand(*TOKENS), rand(768))
    yield Case("Mul int64, small", "Mul", rand(16, t=I64), rand(16, t=I64))
    for t in (F32, I32, I64):
        for op in "Equal Less Greater GreaterOrEqual".split():
            yield Case("%s %s" % (op, t.__name__), op, rand(*IMAGE, t=t), rand(*IMAGE, t=t), outtypes=[BOOL])
        yield Case("Greater %s, a scalar" % t.__name__, "Greater", rand(*IMAGE, t=t), rand(1, t=t), outtypes=[BOOL])
    yield Case("And", "And", rand(*IMAGE, t=BOOL), rand(*IMAGE, t=BOOL))
    yield Case("Pow float32, 2", "Pow", rand(*IMAGE), const={1: np.array(2, F32)})
    yield Case("Pow float32, 0.5", "Pow", np.abs(rand(*IMAGE)), const={1: np.array(0.5, F32)})
    yield Case("Pow float32, 1.7", "Pow", np.abs(rand(*IMAGE)), const={1: np.array(1.7, F32)})
    yield Case("Pow float32, tensor", "Pow", np.abs(rand(*SMALL)), rand(*SMALL))
    yield Case("Pow int64, 2", "Pow", rand(*SMALL, t=I64), const={1: np.array(2, I64)})
    yield Case("Mod int64", "Mod", rand(*IMAGE, t=I64), rand(*IMAGE, t=I64))
    yield Case("Mod int32, a scalar", "Mod", rand(*IMAGE, t=I32), const={1: np.array(7, I32)})
    yield Case("Mod float32", "Mod", rand(*IMAGE), rand(*IMAGE), fmod=1)
    yield Case("Sum of 3", "Sum", rand(*IMAGE), rand(*IMAGE), rand(*IMAGE))
    yield Case("Max of 3", "Max", rand(*IMAGE), rand(*IMAGE), rand(*IMAGE))
    yield Case("Mean of 3", "Mean", rand(*IMAGE), rand(*IMAGE), rand(*IMAGE))
    yield Case("PRelu", "PRelu", rand(*IMAGE), const={1: rand(64, 1, 1)})
    yield Case("Clip int64", "Clip", rand(*IMAGE, t=I64), const={1: np.array(3, I64), 2: np.array(50, I64)})
    for t in (F32, I64, U8):
        yield Case("Where %s" % t.__name__, "Where", rand(*IMAGE, t=BOOL), rand(*IMAGE, t=t), rand(*IMAGE, t=t))
    yield Case("Where, a scalar", "Where", rand(*IMAGE, t=BOOL), rand(*IMAGE), const={2: np.array(-1e9, F32)})
    yield Case("Where, causal mask", "Where", rand(1, 1, 128, 128, t=BOOL), rand(1, 12, 128, 128), rand(1))


def sizes():
    """Functions of one tensor: a few elements, what fits into each level of the caches, and what comes from memory."""
    for op in "Relu Sigmoid Tanh Exp Log Erf Gelu Softplus Sin Cos Sqrt".split():
        for n in (7, 1003, 16384, 4000003):
            x = rand(n)
            domain = "com.microsoft" if op == "Gelu" else ""
            yield Case("%s of %d" % (op, n), op, np.abs(x) + F32(0.1) if op in ("Log", "Sqrt") else x, domain=domain)
    for op in "Add Mul Div".split():
        for n in (7, 1003, 16384, 4000003):
            yield Case("%s of %d" % (op, n), op, rand(n), rand(n))
    for n in (7, 1003, 100003):
        yield Case("Softmax of %d" % n, "Softmax", rand(1, n), axis=-1)
    wide = (R.rand(*IMAGE) * 240 - 120).astype(F32)
    for op in "Exp Tanh Sigmoid".split():
        yield Case("%s from -120 to 120" % op, op, wide)


def types():
    """Types beside float32."""
    for op in "Exp Log Sqrt Tanh Sigmoid Erf Relu Floor Sin Softplus Reciprocal".split():
        x = rand(*SMALL, t=F64)
        yield Case("%s float64" % op, op, np.abs(x) + 0.1 if op in ("Log", "Sqrt") else x)
    for t in (F64, I32, I64):
        yield Case("Softmax %s" % t.__name__ if t is F64 else "ReduceMean %s" % t.__name__, "Softmax" if t is F64 else "ReduceMean",
                   rand(*TOKENS, t=t), **({"axis": -1} if t is F64 else {"axes": [2]}))
    for op in "Ceil Round Cos Abs Neg Elu Selu Softsign LeakyRelu".split():
        yield Case("%s float64" % op, op, rand(*SMALL, t=F64))
    yield Case("Clip float64", "Clip", rand(*SMALL, t=F64), const={1: np.array(-1, F64), 2: np.array(1, F64)})
    for op in "LogSoftmax Softmax".split():
        yield Case("%s float64, channels" % op, op, rand(1, 21, 64, 64, t=F64), axis=1)
    for op in "ReduceMean ReduceMax ReduceMin ReduceL2 ReduceSumSquare ReduceLogSumExp".split():
        yield Case("%s float64 last" % op, op, rand(*TOKENS, t=F64), axes=[2])
    for name, axis in (("last", 2), ("first", 1)):
        yield Case("ReduceSum float64 %s" % name, "ReduceSum", rand(*TOKENS, t=F64), const={1: ints(axis)})
        yield Case("CumSum float64 %s" % name, "CumSum", rand(*TOKENS, t=F64), const={1: ints(axis)})
        yield Case("ArgMax float64 %s" % name, "ArgMax", rand(*TOKENS, t=F64), axis=axis, outtypes=[I64])
    yield Case("LayerNormalization float64", "LayerNormalization", rand(*TOKENS, t=F64), const={1: rand(768, t=F64), 2: rand(768, t=F64)})
    yield Case("Pow float64, 2", "Pow", rand(*SMALL, t=F64), const={1: np.array(2, F64)})
    yield Case("Pow float64, 0.5", "Pow", np.abs(rand(*SMALL, t=F64)), const={1: np.array(0.5, F64)})
    yield Case("Where float64", "Where", rand(*SMALL, t=BOOL), rand(*SMALL, t=F64), rand(*SMALL, t=F64))
    yield Case("Sum of 3 float64", "Sum", *(rand(*SMALL, t=F64) for _ in range(3)))
    for t in (F64, I32, I64):
        for op in "Add Mul Div Max".split():
            yield Case("%s %s, in cache" % (op, t.__name__), op, rand(*SMALL, t=t), rand(*SMALL, t=t))
        yield Case("Greater %s, in cache" % t.__name__, "Greater", rand(*SMALL, t=t), rand(*SMALL, t=t), outtypes=[BOOL])
    for t in (I8, U8, I32, I64):
        yield Case("Sign %s" % t.__name__, "Sign", rand(*SMALL, t=t))
        yield Case("Abs %s" % t.__name__, "Abs", rand(*SMALL, t=t))
        yield Case("Clip %s" % t.__name__, "Clip", rand(*SMALL, t=t), const={1: np.array(3, t), 2: np.array(50, t)})
        yield Case("Mod %s" % t.__name__, "Mod", rand(*SMALL, t=t), rand(*SMALL, t=t))
        yield Case("Equal %s, in cache" % t.__name__, "Equal", rand(*SMALL, t=t), rand(*SMALL, t=t), outtypes=[BOOL])
        yield Case("ReduceMin %s" % t.__name__, "ReduceMin", rand(*TOKENS, t=t), axes=[2])
    for op in "Relu Add Mul Sqrt Sigmoid Tanh Exp Gelu Softmax LayerNormalization".split():
        x = [rand(*TOKENS, t=F16) for _ in range(2 if op in ("Add", "Mul") else 1)]
        const = {i: rand(768, t=F16) for i in (1, 2)} if op == "LayerNormalization" else {}
        yield Case("%s float16" % op, op, *([np.abs(x[0])] if op == "Sqrt" else x), const=const, domain="com.microsoft" if op == "Gelu" else "")
    for t in (I32, I64):
        yield Case("Relu %s" % t.__name__, "Relu", rand(*IMAGE, t=t)) if t is I32 else Case("Sign int64", "Sign", rand(*IMAGE, t=t))
        yield Case("Sub %s of a row" % t.__name__, "Sub", rand(*TOKENS, t=t), rand(768, t=t))
        yield Case("MatMul %s" % t.__name__, "MatMul", rand(64, 96, t=t), rand(96, 80, t=t))
    for t in (I8, U8):
        yield Case("Max %s" % t.__name__, "Max", rand(*IMAGE, t=t), rand(*IMAGE, t=t))
        yield Case("ReduceMax %s" % t.__name__, "ReduceMax", rand(*TOKENS, t=t), axes=[2])
        yield Case("MaxPool %s" % t.__name__, "MaxPool", rand(*IMAGE, t=t), kernel_shape=[3, 3], strides=[2, 2])
    yield Case("Or", "Or", rand(*IMAGE, t=BOOL), rand(*IMAGE, t=BOOL))
    yield Case("Xor", "Xor", rand(*IMAGE, t=BOOL), rand(*IMAGE, t=BOOL))
    yield Case("Equal bool", "Equal", rand(*IMAGE, t=BOOL), rand(*IMAGE, t=BOOL))
    yield Case("BitShift", "BitShift", rand(*IMAGE, t=U8), np.full(IMAGE, 3, U8), direction="LEFT")
    for t in (F16, F64, BOOL):
        n = t.__name__
        yield Case("Transpose 0231 %s" % n, "Transpose", rand(*IMAGE, t=t), perm=[0, 2, 3, 1])
        yield Case("Concat channels %s" % n, "Concat", rand(*IMAGE, t=t), rand(*IMAGE, t=t), axis=1)
        yield Case("Gather rows %s" % n, "Gather", rand(5000, 255, t=t), below(5000, 1, 128))
        yield Case("Slice inner %s" % n, "Slice", rand(*IMAGE, t=t), const={1: ints(1), 2: ints(-1), 3: ints(3)})


def tiny():
    """A few elements: what a run costs beside its work."""
    yield Case("Add, 4", "Add", rand(4), rand(4))
    yield Case("Add int64, 4", "Add", rand(4, t=I64), rand(4, t=I64))
    yield Case("Relu, 4", "Relu", rand(4))
    yield Case("Shape", "Shape", rand(2, 3, 4), outtypes=[I64])
    yield Case("Reshape, 4", "Reshape", rand(2, 2), const={1: ints(4)})
    yield Case("Unsqueeze, 4", "Unsqueeze", rand(4), const={1: ints(0)})
    yield Case("Transpose, 4", "Transpose", rand(2, 2), perm=[1, 0])
    yield Case("Concat, 4", "Concat", rand(2, t=I64), rand(2, t=I64), axis=0)
    yield Case("Slice, 4", "Slice", rand(8, t=I64), const={1: ints(2), 2: ints(6), 3: ints(0)})
    yield Case("Gather, 1", "Gather", rand(4, t=I64), np.array(2, I64))
    yield Case("Cast, 4", "Cast", rand(4, t=I64), to=1, outtypes=[F32])
    yield Case("Where, 4", "Where", rand(4, t=BOOL), rand(4), rand(4))
    yield Case("Split, 4", "Split", rand(4), out=2)
    yield Case("Pad, 4", "Pad", rand(4), const={1: ints(1, 1)})
    yield Case("Tile, 4", "Tile", rand(4), const={1: ints(2)})
    yield Case("Expand, 4", "Expand", rand(1), const={1: ints(4)})
    yield Case("ReduceSum, 4", "ReduceSum", rand(4))
    yield Case("ReduceMean, 2x4", "ReduceMean", rand(2, 4), axes=[1])
    yield Case("ArgMax, 10", "ArgMax", rand(1, 10), axis=1, outtypes=[I64])
    yield Case("TopK, 3 of 10", "TopK", rand(1, 10), const={1: ints(3)}, out=2, outtypes=[F32, I64])
    yield Case("Softmax, 10", "Softmax", rand(1, 10))
    yield Case("LayerNormalization, 16", "LayerNormalization", rand(1, 16), const={1: rand(16), 2: rand(16)})
    yield Case("MatMul, 4x4", "MatMul", rand(4, 4), const={1: rand(4, 4)})
    yield Case("MatMul of inputs, 4x4", "MatMul", rand(4, 4), rand(4, 4))
    yield Case("Gemm, 1x16x8", "Gemm", rand(1, 16), const={1: rand(16, 8), 2: rand(8)})
    yield Case("Conv, 1x3x8x8", "Conv", rand(1, 3, 8, 8), const={1: rand(4, 3, 3, 3)})
    yield Case("MaxPool, 8x8", "MaxPool", rand(1, 2, 8, 8), kernel_shape=[2, 2], strides=[2, 2])
    yield Case("GlobalAveragePool, 4x4", "GlobalAveragePool", rand(1, 8, 4, 4))
    yield Case("BatchNormalization, 8", "BatchNormalization", rand(1, 8, 4, 4), const={i: np.abs(rand(8)) for i in (1, 2, 3, 4)})
    yield Case("Resize, 4x4", "Resize", rand(1, 1, 4, 4), const={1: np.array([], F32), 2: np.array([1, 1, 2, 2], F32)}, mode="linear")
    yield Case("NonZero, 4", "NonZero", rand(4, t=BOOL), outtypes=[I64])
    yield Case("Range, 10", "Range", np.array(0, I64), np.array(10, I64), np.array(1, I64))
    yield Case("ConstantOfShape, 4", "ConstantOfShape", ints(2, 2), outtypes=[F32])
    yield Case("CumSum, 8", "CumSum", rand(8), const={1: ints(0)})
    yield Case("ScatterND, 4", "ScatterND", rand(4), ints(1, 2).reshape(2, 1), rand(2))


def casts():
    from onnx import TensorProto as P

    types = {F32: P.FLOAT, F16: P.FLOAT16, F64: P.DOUBLE, I32: P.INT32, I64: P.INT64, U8: P.UINT8, I8: P.INT8, BOOL: P.BOOL}
    for a in types:
        for b in types:
            if a is not b:
                yield Case("Cast %s to %s" % (a.__name__, b.__name__), "Cast", rand(*IMAGE, t=a), to=types[b], outtypes=[b])


def reductions():
    shapes = {"last": (TOKENS, [2]), "spatial": (IMAGE, [2, 3]), "channels": (IMAGE, [1]), "all": (IMAGE, None),
              "middle": (TOKENS, [1]), "first": ((64, 4096), [0]), "0 and 2": ((16, 32, 64, 32), [0, 2])}
    for op in "ReduceMean ReduceSum ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSumExp".split():
        for name, (shape, axes) in shapes.items():
            if op not in ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceL2") and name in ("middle", "all", "0 and 2"):
                continue
            if op == "ReduceSum":
                const = {} if axes is None else {1: ints(*axes)}
                yield Case("%s %s" % (op, name), op, rand(*shape), const=const)
            else:
                yield Case("%s %s" % (op, name), op, rand(*shape), **({} if axes is None else {"axes": axes}))
    for t in (I32, I64):
        yield Case("ReduceSum %s last" % t.__name__, "ReduceSum", rand(*TOKENS, t=t), const={1: ints(2)})
        yield Case("ReduceMax %s last" % t.__name__, "ReduceMax", rand(*TOKENS, t=t), axes=[2])
        yield Case("ReduceSum %s first" % t.__name__, "ReduceSum", rand(64, 4096, t=t), const={1: ints(0)})
    for op in ("ArgMax", "ArgMin"):
        for name, shape, axis in (("last", (64, 1000), 1), ("channels", (1, 21, 128, 128), 1), ("first", (100, 1000), 0)):
            yield Case("%s %s" % (op, name), op, rand(*shape), axis=axis, outtypes=[I64])
    yield Case("ArgMax int32 last", "ArgMax", rand(64, 1000, t=I32), axis=1, outtypes=[I64])
    for t in (F32, I64, I32):
        yield Case("CumSum %s last" % t.__name__, "CumSum", rand(64, 1024, t=t), const={1: ints(1)})
        yield Case("CumSum %s first" % t.__name__, "CumSum", rand(64, 1024, t=t), const={1: ints(0)})


def norms():
    yield Case("InstanceNormalization", "InstanceNormalization", rand(*IMAGE), const={1: rand(64), 2: rand(64)})
    yield Case("InstanceNormalization small", "InstanceNormalization", rand(*SMALL), const={1: rand(32), 2: rand(32)})
    yield Case("InstanceNormalization 1-D", "InstanceNormalization", rand(1, 256, 1000), const={1: rand(256), 2: rand(256)})
    yield Case("LayerNormalization", "LayerNormalization", rand(*TOKENS), const={1: rand(768), 2: rand(768)})
    yield Case("BatchNormalization", "BatchNormalization", rand(*IMAGE), const={i: np.abs(rand(64)) for i in (1, 2, 3, 4)})
    yield Case("LRN", "LRN", rand(1, 96, 55, 55), size=5)
    yield Case("LpNormalization last", "LpNormalization", rand(*TOKENS), axis=-1, p=2)
    yield Case("LpNormalization channels", "LpNormalization", rand(*IMAGE), axis=1, p=2)
    yield Case("MeanVarianceNormalization", "MeanVarianceNormalization", rand(4, 64, 56, 56), axes=[0, 2, 3])
    for name, shape, axis in (("last", TOKENS, -1), ("channels", (1, 21, 128, 128), 1), ("middle", (8, 100, 64), 1), ("short rows", (4096, 10), 1)):
        yield Case("Softmax %s" % name, "Softmax", rand(*shape), axis=axis)
        yield Case("LogSoftmax %s" % name, "LogSoftmax", rand(*shape), axis=axis)


def movers():
    for t in (F32, I64, U8):
        n = t.__name__
        yield Case("Transpose 0231 %s" % n, "Transpose", rand(*IMAGE, t=t), perm=[0, 2, 3, 1])
        yield Case("Transpose 0312 %s" % n, "Transpose", rand(1, 56, 56, 64, t=t), perm=[0, 3, 1, 2])
        yield Case("Transpose 0213 %s" % n, "Transpose", rand(1, 128, 12, 64, t=t), perm=[0, 2, 1, 3])
        yield Case("Transpose 10 %s" % n, "Transpose", rand(768, 768, t=t), perm=[1, 0])
        yield Case("Concat channels %s" % n, "Concat", rand(*IMAGE, t=t), rand(*IMAGE, t=t), axis=1)
        yield Case("Concat last %s" % n, "Concat", rand(1, 1000, 85, t=t), rand(1, 1000, 4, t=t), axis=2)
        yield Case("Slice step %s" % n, "Slice", rand(*IMAGE, t=t), const={1: ints(0), 2: ints(9999), 3: ints(3), 4: ints(2)})
        yield Case("Slice inner %s" % n, "Slice", rand(*IMAGE, t=t), const={1: ints(1), 2: ints(-1), 3: ints(3)})
        yield Case("Expand %s" % n, "Expand", rand(1, 64, 1, 1, t=t), const={1: ints(*IMAGE)})
        yield Case("Expand middle %s" % n, "Expand", rand(64, 1, 56, t=t), const={1: ints(64, 56, 56)})
        yield Case("Tile %s" % n, "Tile", rand(1, 64, 28, 28, t=t), const={1: ints(1, 1, 2, 2)})
        yield Case("Gather rows %s" % n, "Gather", rand(5000, 256, t=t), below(5000, 1, 128))
        yield Case("Gather last %s" % n, "Gather", rand(256, 512, t=t), below(512, 100), axis=1)
        yield Case("GatherElements last %s" % n, "GatherElements", rand(256, 1024, t=t), below(1024, 256, 512), axis=1)
        yield Case("GatherElements first %s" % n, "GatherElements", rand(1024, 256, t=t), below(1024, 512, 256), axis=0)
        yield Case("GatherND %s" % n, "GatherND", rand(64, 64, 64, t=t), below(64, 4000, 2))
        yield Case("ScatterElements %s" % n, "ScatterElements", rand(256, 1024, t=t), below(1024, 256, 512), rand(256, 512, t=t), axis=1)
        yield Case("ScatterND %s" % n, "ScatterND", rand(1000, 256, t=t), below(1000, 500, 1), rand(500, 256, t=t))
        yield Case("ScatterND points %s" % n, "ScatterND", rand(64, 4096, t=t), below(64, 20000, 2), rand(20000, t=t))
        yield Case("DepthToSpace %s" % n, "DepthToSpace", rand(*IMAGE, t=t), blocksize=2) if t is not U8 else Case("Identity", "Identity", rand(*IMAGE))
    yield Case("Split channels", "Split", rand(*IMAGE), out=2, axis=1)
    yield Case("Split last", "Split", rand(1, 1000, 84), const={1: ints(4, 80)}, out=2, axis=2)
    yield Case("SpaceToDepth", "SpaceToDepth", rand(1, 16, 224, 224), blocksize=2)
    for mode in ("constant", "reflect", "edge"):
        yield Case("Pad %s" % mode, "Pad", rand(*IMAGE), const={1: ints(0, 0, 1, 1, 0, 0, 1, 1)}, mode=mode)
    for mode in ("constant", "reflect", "edge"):
        yield Case("Pad 1-D %s" % mode, "Pad", rand(1, 1, 16000), const={1: ints(0, 0, 200, 0, 0, 200)}, mode=mode)
        yield Case("Pad 1-D %s, long" % mode, "Pad", rand(1, 1, 1000000), const={1: ints(0, 0, 512, 0, 0, 512)}, mode=mode)
        yield Case("Pad rows %s" % mode, "Pad", rand(1, 80, 3000), const={1: ints(0, 0, 1, 0, 0, 1)}, mode=mode)
        yield Case("Pad short rows %s" % mode, "Pad", rand(4096, 10), const={1: ints(0, 1, 0, 1)}, mode=mode)
    for t in (I64, U8):
        yield Case("Pad constant %s" % t.__name__, "Pad", rand(*IMAGE, t=t), const={1: ints(0, 0, 1, 1, 0, 0, 1, 1)})
    yield Case("Pad channels", "Pad", rand(*IMAGE), const={1: ints(0, 0, 0, 0, 0, 64, 0, 0)})
    yield Case("Pad cut", "Pad", rand(1, 64, 58, 58), const={1: ints(0, 0, -1, -1, 0, 0, -1, -1)})
    for name, shape, times in (("pixels", (1, 64, 1, 1), (1, 1, 28, 28)), ("of columns", (4096, 1), (1, 32)), ("of threes", (4096, 3), (1, 8)),
                               ("a row", (1, 768), (128, 1)), ("1-D", (1000,), (200,)), ("batch", IMAGE, (4, 1, 1, 1)), ("a number", (1,), (100000,))):
        yield Case("Tile %s" % name, "Tile", rand(*shape), const={1: ints(*times)})
    yield Case("OneHot", "OneHot", below(1000, 128), const={1: ints(1000), 2: np.array([0, 1], F32)}, outtypes=[F32])
    yield Case("OneHot first", "OneHot", below(100, 64, 64), const={1: ints(100), 2: np.array([0, 1], F32)}, outtypes=[F32], axis=0)
    yield Case("Range", "Range", np.array(0, I64), np.array(10000, I64), np.array(1, I64))
    yield Case("ConstantOfShape", "ConstantOfShape", ints(64, 112, 112), outtypes=[F32])
    yield Case("Trilu", "Trilu", rand(12, 256, 256), upper=0)
    yield Case("Compress", "Compress", rand(1000, 256), rand(1000, t=BOOL), axis=0)
    yield Case("ReverseSequence", "ReverseSequence", rand(100, 8, 64), const={1: ints(*[80] * 8)})
    yield Case("Reshape", "Reshape", rand(*IMAGE), const={1: ints(1, 64, -1)})
    yield Case("EyeLike", "EyeLike", rand(256, 256))
    for interleaved in (0, 1):
        yield Case("RotaryEmbedding" + ", interleaved" * interleaved, "RotaryEmbedding", rand(1, 32, 128, 128), ints(0),
                   const={2: rand(256, 64), 3: rand(256, 64)}, domain="com.microsoft", interleaved=interleaved)


def pools():
    for name, k, s, p in (("3x3 s2", 3, 2, 1), ("2x2 s2", 2, 2, 0), ("5x5 s1", 5, 1, 2), ("3x3 s1", 3, 1, 1)):
        for op in ("MaxPool", "AveragePool"):
            yield Case("%s %s" % (op, name), op, rand(1, 64, 56, 56), kernel_shape=[k, k], strides=[s, s], pads=[p] * 4)
    yield Case("MaxPool with indices", "MaxPool", rand(1, 64, 56, 56), kernel_shape=[2, 2], strides=[2, 2], out=2, outtypes=[F32, I64])
    yield Case("MaxPool 1-D", "MaxPool", rand(1, 128, 1000), kernel_shape=[3], strides=[2])
    yield Case("MaxPool 3-D", "MaxPool", rand(1, 16, 16, 56, 56), kernel_shape=[2, 2, 2], strides=[2, 2, 2])
    yield Case("AveragePool 1-D", "AveragePool", rand(1, 128, 1000), kernel_shape=[4], strides=[4])
    yield Case("AveragePool 3-D", "AveragePool", rand(1, 16, 16, 56, 56), kernel_shape=[2, 2, 2], strides=[2, 2, 2])
    yield Case("LpPool", "LpPool", rand(1, 64, 56, 56), kernel_shape=[2, 2], strides=[2, 2])
    yield Case("GlobalAveragePool", "GlobalAveragePool", rand(1, 1280, 7, 7))
    yield Case("GlobalMaxPool", "GlobalMaxPool", rand(1, 512, 28, 28))
    values = rand(1, 32, 28, 28)
    at = (np.arange(32 * 28 * 28, dtype=I64) * 4).reshape(values.shape)
    yield Case("MaxUnpool", "MaxUnpool", values, at, kernel_shape=[2, 2], strides=[2, 2])


def images():
    def resize(name, shape, scale, **attrs):
        scales = np.array([1, 1] + [scale] * (len(shape) - 2), F32)
        return Case("Resize " + name, "Resize", rand(*shape), const={1: np.array([], F32), 2: scales}, **attrs)

    yield resize("nearest x2", (1, 64, 56, 56), 2, mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    yield resize("nearest x1.5", (1, 64, 56, 56), 1.5, mode="nearest")
    yield resize("linear x2", (1, 64, 56, 56), 2, mode="linear")
    yield resize("linear align x4", (1, 21, 65, 65), 4, mode="linear", coordinate_transformation_mode="align_corners")
    yield resize("linear x0.5", (1, 3, 512, 512), 0.5, mode="linear")
    yield resize("cubic x2", (1, 16, 56, 56), 2, mode="cubic")
    yield resize("linear 1-D x2", (1, 64, 500), 2, mode="linear")
    yield resize("linear 3-D x2", (1, 8, 16, 28, 28), 2, mode="linear")
    grid = (R.rand(1, 56, 56, 2) * 2 - 1).astype(F32)
    for mode in ("bilinear", "nearest", "bicubic"):
        yield Case("GridSample %s" % mode, "GridSample", rand(1, 32, 56, 56), grid, mode=mode)
    yield Case("GridSample border", "GridSample", rand(1, 32, 56, 56), grid, mode="bilinear", padding_mode="border", align_corners=1)
    boxes = np.sort(R.rand(200, 2, 2) * 200, axis=1).reshape(200, 4).astype(F32)
    for mode in ("avg", "max"):
        yield Case("RoiAlign %s" % mode, "RoiAlign", rand(1, 256, 50, 50), boxes, np.zeros(200, I64), output_height=7, output_width=7,
                   sampling_ratio=2, spatial_scale=0.25, mode=mode)
    rois = np.concatenate([np.zeros((50, 1), F32), boxes[:50]], 1)
    yield Case("MaxRoiPool", "MaxRoiPool", rand(1, 64, 50, 50), rois, pooled_shape=[7, 7], spatial_scale=0.25)


def search():
    yield Case("TopK 5 of 1000", "TopK", rand(1, 1000), const={1: ints(5)}, out=2, outtypes=[F32, I64])
    yield Case("TopK 100 of 8400", "TopK", rand(1, 8400), const={1: ints(100)}, out=2, outtypes=[F32, I64])
    yield Case("TopK 300 of 8400, 80 rows", "TopK", rand(80, 8400), const={1: ints(300)}, out=2, outtypes=[F32, I64])
    yield Case("TopK 1000 of 2000", "TopK", rand(1, 2000), const={1: ints(1000)}, out=2, outtypes=[F32, I64])
    yield Case("TopK 4 of 64, 512 rows", "TopK", rand(512, 64), const={1: ints(4)}, out=2, outtypes=[F32, I64])
    yield Case("TopK first axis", "TopK", rand(1000, 64), const={1: ints(5)}, out=2, outtypes=[F32, I64], axis=0)
    yield Case("TopK int64", "TopK", rand(1, 8400, t=I64), const={1: ints(100)}, out=2, outtypes=[I64, I64])
    for t in (F32, I64, I32):
        x = rand(1, 10007) if t is F32 else R.randint(-(2**31), 2**31 - 1, (1, 10007)).astype(t)
        for k in (1, 5, 10, 100, 5000):
            yield Case("TopK %s, %d of 10007" % (t.__name__, k), "TopK", x, const={1: ints(k)}, out=2, outtypes=[t, I64])
        yield Case("TopK %s, smallest 10 of 10007" % t.__name__, "TopK", x, const={1: ints(10)}, out=2, outtypes=[t, I64], largest=0)
        yield Case("TopK %s, unsorted 100 of 10007" % t.__name__, "TopK", x, const={1: ints(100)}, out=2, outtypes=[t, I64], sorted=0)
        yield Case("TopK %s, 1 of 1000, 64 rows" % t.__name__, "TopK", rand(64, 1000, t=t), const={1: ints(1)}, out=2, outtypes=[t, I64])
        yield Case("TopK %s, middle axis" % t.__name__, "TopK", rand(4, 300, 65, t=t), const={1: ints(7)}, out=2, outtypes=[t, I64], axis=1)
    rising = np.arange(10007, dtype=F32).reshape(1, -1)
    yield Case("TopK 100 of 10007 that rise", "TopK", rising, const={1: ints(100)}, out=2, outtypes=[F32, I64])
    yield Case("TopK 10 of 1000000", "TopK", rand(1, 1000000), const={1: ints(10)}, out=2, outtypes=[F32, I64])
    yield Case("NonZero", "NonZero", rand(100, 1000, t=BOOL), outtypes=[I64])
    yield Case("NonZero few", "NonZero", rand(100, 1000) > 2.5, outtypes=[I64])
    yield Case("Unique", "Unique", below(1000, 10000), out=4, outtypes=[I64] * 4)
    boxes = R.rand(1, 1000, 4).astype(F32)
    boxes[..., 2:] += boxes[..., :2]
    yield Case("NonMaxSuppression", "NonMaxSuppression", boxes, R.rand(1, 4, 1000).astype(F32),
               const={2: ints(100), 3: np.array([0.5], F32), 4: np.array([0.1], F32)}, outtypes=[I64])


def products():
    yield Case("Conv 1-D", "Conv", rand(1, 128, 1000), const={1: rand(128, 128, 3)}, pads=[1, 1])
    yield Case("Conv 1-D, first layer", "Conv", rand(1, 1, 16000), const={1: rand(256, 1, 16)}, strides=[8])
    for k in (3, 16, 64, 400):
        yield Case("Conv 1-D, one channel, %d taps" % k, "Conv", rand(1, 1, 16000), const={1: rand(1, 1, k)})
    yield Case("Conv 1-D, one channel, padded", "Conv", rand(1, 1, 16000), const={1: rand(1, 1, 31)}, pads=[15, 15])
    yield Case("Conv 1-D, one channel, stride 2", "Conv", rand(1, 1, 16000), const={1: rand(1, 1, 32)}, strides=[2])
    yield Case("Conv 1-D, one channel, dilated", "Conv", rand(1, 1, 16000), const={1: rand(1, 1, 9)}, dilations=[3])
    yield Case("Conv 1-D, one to 8 channels", "Conv", rand(1, 1, 16000), const={1: rand(8, 1, 25)})
    yield Case("Conv 1-D, 2 to 1 channels", "Conv", rand(1, 2, 16000), const={1: rand(1, 2, 25)})
    yield Case("Conv 1-D, one channel, batch 8", "Conv", rand(8, 1, 4000), const={1: rand(1, 1, 25)})
    yield Case("Conv 2-D, one channel 5x5", "Conv", rand(1, 1, 256, 256), const={1: rand(1, 1, 5, 5)}, pads=[2] * 4)
    yield Case("Conv 1-D depthwise", "Conv", rand(1, 256, 1000), const={1: rand(256, 1, 7)}, pads=[3, 3], group=256)
    yield Case("Conv 1-D dilated", "Conv", rand(1, 64, 2000), const={1: rand(64, 64, 3)}, pads=[4, 4], dilations=[4])
    yield Case("Conv 3-D", "Conv", rand(1, 16, 16, 28, 28), const={1: rand(32, 16, 3, 3, 3)}, pads=[1] * 6)
    yield Case("ConvTranspose", "ConvTranspose", rand(1, 64, 28, 28), const={1: rand(64, 32, 2, 2)}, strides=[2, 2])
    yield Case("ConvTranspose 4x4", "ConvTranspose", rand(1, 64, 28, 28), const={1: rand(64, 32, 4, 4)}, strides=[2, 2], pads=[1] * 4)
    yield Case("ConvTranspose 1-D", "ConvTranspose", rand(1, 128, 200), const={1: rand(128, 64, 16)}, strides=[8], pads=[4, 4])
    yield Case("Einsum bhid,bhjd", "Einsum", rand(1, 12, 128, 64), rand(1, 12, 128, 64), equation="bhid,bhjd->bhij")
    yield Case("Einsum bij,jk", "Einsum", rand(1, 128, 256), rand(256, 256), equation="bij,jk->bik")
    yield Case("Einsum nchw,nc", "Einsum", rand(1, 64, 56, 56), rand(1, 64), equation="nchw,nc->nhw")
    yield Case("MatMul int32", "MatMul", rand(64, 64, t=I32), rand(64, 64, t=I32))
    yield Case("MatMul float64", "MatMul", rand(128, 128, t=F64), rand(128, 128, t=F64))
    yield Case("MatMul vector", "MatMul", rand(1, 768), const={1: rand(768, 768)})
    yield Case("DFT", "DFT", rand(8, 512, 1), axis=1, onesided=1)
    yield Case("STFT", "STFT", rand(1, 16000, 1), const={1: np.array(160, I64), 2: rand(400)})
    yield Case("Det", "Det", rand(64, 4, 4))


def recurrent():
    w, r = rand(1, 512, 64) * F32(0.1), rand(1, 512, 128) * F32(0.1)
    yield Case("LSTM 128", "LSTM", rand(50, 1, 64), const={1: w, 2: r}, hidden_size=128)
    yield Case("GRU 128", "GRU", rand(50, 1, 64), const={1: w[:, :384], 2: r[:, :384]}, hidden_size=128)
    yield Case("RNN 128", "RNN", rand(50, 1, 64), const={1: w[:, :128], 2: r[:, :128]}, hidden_size=128)
    yield Case("LSTM 128, batch 8", "LSTM", rand(50, 8, 64), const={1: w, 2: r}, hidden_size=128)


FAMILIES = {f.__name__: f for f in (elementwise, sizes, types, tiny, casts, reductions, norms, movers, pools, images, search, products, recurrent)}
