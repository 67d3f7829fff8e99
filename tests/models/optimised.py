#!/usr/bin/python3
"""optimised.py PROGRAM FOLDER... [--markdown] - what the optimiser leaves of the zoo's models.

Each FOLDER holds exports of the zoo (bench/zoo/export.py). Asserts that no batch normalisation is left, that no
activation stands alone after a convolution or dense layer, that each attention block and each normalisation is
one node (with one more for each rotation of queries and keys), that encoders keep no arithmetic on shapes, and that
elementwise operators which are left over are in groups; that the file that `sinter optimize` writes is valid and
has these nodes, too; and that plans take at most 1.05 times the memory that is alive at once. --markdown prints nodes before and after instead.
"""

import os
import re
import subprocess
import sys
import tempfile

import onnx

# Model: attention blocks, normalisations, rotations of queries and keys, whether no arithmetic on shapes may be left.
MODELS = {
    "resnet50": (0, 0, 0, True),
    "mobilenet_v2": (0, 0, 0, True),
    "mobilenet_v3_large": (0, 0, 0, True),
    "efficientnet_b0": (0, 0, 0, True),
    "yolov8n": (0, 0, 0, False),
    "densenet121": (0, 0, 0, True),
    "convnext_tiny": (0, 10, 0, True),
    "vit_b_16": (2, 5, 0, True),
    "swin_t": (4, 11, 0, True),
    "bert_base": (2, 5, 0, True),
    "gpt2": (2, 5, 0, False),
    "llama": (2, 5, 4, False),
    "llama_angles": (2, 5, 4, False),
    "llama_pairs": (2, 5, 4, False),
}

# Groups of elementwise operators: the sum of embeddings and the mask; corners of boxes.
GROUPS = {"bert_base": 2, "yolov8n": 1, "llama": 1, "llama_angles": 1, "llama_pairs": 1}

LAYERS = {"Conv", "ConvTranspose", "Gemm", "com.microsoft.FusedConv", "ai.sinter.Linear", "ai.sinter.BlockedConv", "ai.sinter.ExpandDepthwise"}
ACTIVATIONS = {
    "Relu", "LeakyRelu", "Clip", "Sigmoid", "HardSigmoid", "HardSwish", "Swish", "Mish", "Gelu", "Tanh", "Elu", "Erf",
}
NORMS = {
    "LayerNormalization", "RMSNormalization", "com.microsoft.SkipLayerNormalization",
    "com.microsoft.SkipSimplifiedLayerNormalization", "GroupNormalization", "InstanceNormalization",
}
PARTS = {"ReduceMean", "Softmax", "Sqrt", "Pow", "Erf"}  # of what should be one node
SHAPES = {"Shape", "Size", "Range", "ConstantOfShape", "Expand", "Where"}

NAME = r'"(?:[^"\\]|\\.)*"|[A-Za-z_][A-Za-z0-9_.:/]*'
NODE = re.compile(r"^\s*(?:\[(?:%s)\] )?((?:%s)(?:, (?:%s))*) = ([A-Za-z0-9_.]+)(?: <.*?>)? \((.*?)\)(?: <)?(?:  # (.*))?$" % (NAME, NAME, NAME))


def nodes(program, stage, model):
    """[(outputs, operator, inputs, types)] of a stage, and those that are members of groups."""
    text = subprocess.run([program, "inspect", "--stage", stage, model], check=True, capture_output=True, text=True).stdout
    found, members = [], []
    group = None  # indentation of the group whose body these lines are
    for line in text.splitlines():
        if group is not None and line == group + ">":
            group = None
        m = NODE.match(line)
        if m:
            names = [re.findall(NAME, part) for part in (m.group(1), m.group(3))]
            into = found if group is None else members
            into.append((names[0], m.group(2), names[1], m.group(4) or ""))
            if m.group(2) == "ai.sinter.Group":
                group = line[: len(line) - len(line.lstrip())]
    return found, members


def complaints(name, graph):
    blocks, norms, rotations, shapeless = MODELS[name]
    made_by = {out: op for outs, op, _, _ in graph for out in outs}
    ops = [op for _, op, _, _ in graph]
    for _, op, inputs, _ in graph:
        if op in ACTIVATIONS and inputs and made_by.get(inputs[0]) in LAYERS:
            yield "%s after %s" % (op, made_by[inputs[0]])
    if "BatchNormalization" in ops:
        yield "%d BatchNormalization" % ops.count("BatchNormalization")
    attending = ops.count("Attention") + ops.count("ai.sinter.PackedAttention")
    if attending != blocks:
        yield "%d Attention for %d blocks" % (attending, blocks)
    if ops.count("RotaryEmbedding") != rotations:
        yield "%d RotaryEmbedding instead of %d" % (ops.count("RotaryEmbedding"), rotations)
    if rotations:  # heads are split and joined by the nodes themselves
        for _, op, _, types in graph:
            if op == "Transpose" and types.count(",") == 3:
                yield "a Transpose of heads"
    if ops.count("ai.sinter.Group") != GROUPS.get(name, 0):
        yield "%d groups instead of %d" % (ops.count("ai.sinter.Group"), GROUPS.get(name, 0))
    found = sum(op in NORMS for op in ops)
    if found != norms:
        yield "%d normalisations instead of %d" % (found, norms)
    if blocks or norms:  # a mean over a picture in blocked layout, of rank 5, is a pool
        for part in PARTS & {op for _, op, _, types in graph if types.count(",") < 4}:
            yield "%d %s left" % (ops.count(part), part)
    if shapeless:
        for outs, op, _, types in graph:
            if op in SHAPES or (op in ("Gather", "Concat", "Slice", "Unsqueeze", "Squeeze") and re.match(r"int64(\[\d\])?$", types)):
                yield "%s makes %s, %s" % (op, outs[0], types)


def planned(program, model):
    """Complaints about the memory of a plan: at most 1.05 times what is alive at once."""
    with open(model, "rb") as f:
        names = {d.dim_param for v in onnx.load_model(f).graph.input for d in v.type.tensor_type.shape.dim}
    for size in (1, 40):
        sizes = [o for s in sorted(names & {"N", "T", "P"}) for o in ("--dim", "%s=%d" % (s, 2 if s == "N" else size))]
        run = subprocess.run([program, "inspect", "--stage", "plan", model, *sizes], check=True, capture_output=True, text=True)
        found = re.search(r"arena (\d+) bytes, lower bound (\d+) bytes", run.stdout)
        if not found or int(found[2]) == 0:
            yield "no plan was read"
        elif int(found[1]) > 1.05 * int(found[2]):
            yield "a plan of %s bytes where %s are alive at once" % found.groups()


def written(program, name, model):
    """Complaints about the file that `sinter optimize` writes: it must be valid, agree, and have fused nodes as
    operators or calls of functions."""
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "optimised.onnx")
        run = subprocess.run([program, "optimize", model, "-o", path], capture_output=True, text=True)
        if run.returncode or "outputs on random inputs agree" not in run.stdout:
            yield "sinter optimize: %s %s" % (run.stdout[-200:], run.stderr)
            return
        file = onnx.load(path)
    try:
        onnx.checker.check_model(file)
    except onnx.checker.ValidationError as e:
        yield "the written file is not valid: %s" % e
    calls = [n.op_type.split("_")[0] for n in file.graph.node]
    blocks, _, rotations, _ = MODELS[name]
    if calls.count("Attention") != blocks or calls.count("RotaryEmbedding") != rotations:
        yield "the written file has %d Attention and %d RotaryEmbedding" % (
            calls.count("Attention"), calls.count("RotaryEmbedding"))
    if blocks and "Linear" not in calls:
        yield "the written file has no Linear"
    if "BatchNormalization" in calls:
        yield "the written file has BatchNormalization"


def main(program, *folders):
    markdown = "--markdown" in folders
    folders = [f for f in folders if f != "--markdown"]
    bad = 0
    for name in MODELS:
        row = ["`%s`" % name]
        for folder in folders:
            model = "%s/%s/model.onnx" % (folder, name)
            (before, _), (after, members) = nodes(program, "import", model), nodes(program, "opt", model)
            if not before or not after:
                sys.exit("%s: no nodes were read" % model)
            row += [str(len(before)), str(len(after))]
            for text in [*complaints(name, after + members), *([] if markdown else [*written(program, name, model), *planned(program, model)])]:
                print("%s: %s" % (model, text), file=sys.stderr)
                bad += 1
        if markdown:
            print("| " + " | ".join(row) + " |")
    if not markdown:
        print("%d models, %d complaints" % (len(MODELS) * len(folders), bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
