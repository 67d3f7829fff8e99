#!/usr/bin/python3
"""export.py [--small] [--opset N] [--list] [--out FOLDER] [NAME...] - writes the zoo's models.

Each model gets FOLDER/NAME in the layout of the ONNX backend tests (model.onnx, test_data_set_*/), with
PyTorch's own results and a data.json that names its cases and whose tolerance follows the outputs' size.
Weights are random but fixed. Full models are written as PyTorch does it by default. Small ones keep
the structure with little depth and width, and nothing is folded into anything: that is left to the
optimiser, which they test. A model that is already there is left alone.

The default FOLDER is build/zoo/full-17 or build/zoo/small-17 (with the opset), beside bench/.
"""

import argparse
import fcntl
import json
import os
import sys
import tempfile
import warnings

import numpy as np
import onnx
import torch
from onnx import numpy_helper

import forest
import language
import vision

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Entry:
    """A model: how to make it, and its cases, name to inputs; the last case is what is traced."""

    def __init__(self, make, cases, inputs, outputs, axes=None):
        self.make, self.cases, self.inputs, self.outputs, self.axes = make, cases, inputs, outputs, axes or {}


def picture(n, channels, side):
    return (torch.rand(n, channels, side, side),)


def picture_entry(make, full, small_side, channels, small, batches):
    side = small_side if small else full
    cases = {"b%d" % n: (lambda n=n: picture(n, channels, side)) for n in batches}
    axes = {"x": {0: "N"}, "y": {0: "N"}} if len(batches) > 1 else None
    return Entry(lambda: make(small), cases, ["x"], ["y"], axes)


def encoder_entry(make, small, lengths, outputs):
    def inputs(n, t):
        mask = torch.ones(n, t, dtype=torch.int64)
        if n > 1:
            mask[-1, t - t // 4 :] = 0
        kinds = (torch.arange(t) >= t // 2).long().expand(n, t).contiguous()
        return torch.randint(0, 500 if small else 30522, (n, t)), mask, kinds

    cases = {("s%d" % t if n == 1 else "b%d" % n): (lambda n=n, t=t: inputs(n, t)) for n, t in lengths}
    steps = {0: "N", 1: "T"}
    axes = {"tokens": steps, "mask": steps, "kinds": steps, outputs[0]: steps if len(outputs) > 1 else {0: "N"}}
    if len(outputs) > 1:
        axes[outputs[1]] = {0: "N"}
    return Entry(lambda: language.vary(make()), cases, ["tokens", "mask", "kinds"], outputs, axes)


def decoder_entry(small):
    size = (500, 48, 4, 2) if small else (50257, 768, 12, 12)
    words, width, heads, layers = size

    def inputs(n, t, past):
        shape = (n, heads, past, width // heads)
        return (torch.randint(0, words, (n, t)), *(torch.randn(shape) * 0.5 for _ in range(2 * layers)))

    past = ["past_%d_%s" % (i, k) for i in range(layers) for k in ("key", "value")]
    present = ["present_%d_%s" % (i, k) for i in range(layers) for k in ("key", "value")]
    axes = {"tokens": {0: "N", 1: "T"}, "logits": {0: "N", 1: "T"}}
    axes.update({n: {0: "N", 2: "P"} for n in past})
    axes.update({n: {0: "N", 2: "total"} for n in present})
    if small:
        cases = {"dec20": lambda: inputs(2, 1, 20), "prefill9": lambda: inputs(1, 9, 0), "mixed": lambda: inputs(2, 3, 7)}
    else:
        cases = {"dec128": lambda: inputs(1, 1, 128), "prefill64": lambda: inputs(1, 64, 0), "mixed": lambda: inputs(2, 3, 7)}
    return Entry(
        lambda: language.vary(language.Decoder(*size)), cases, ["tokens", *past], ["logits", *present], axes
    )


def llama_entry(small, looked_up, pairs):
    """A decoder with rotated positions, grouped heads and gates; the mask covers past and new tokens."""
    words, width, heads, kv_heads, layers = (500, 48, 6, 2, 2) if small else (32000, 1024, 16, 4, 8)

    def inputs(n, t, past):
        mask = torch.ones(n, past + t, dtype=torch.int64)
        if n > 1:
            mask[-1, : past // 2] = 0
        places = (mask.cumsum(-1) - 1).clamp(min=0)[:, past:]
        shape = (n, kv_heads, past, width // heads)
        caches = (torch.randn(shape) * 0.5 for _ in range(2 * layers))
        return (torch.randint(0, words, (n, t)), mask, places, *caches)

    past = ["past_%d_%s" % (i, k) for i in range(layers) for k in ("key", "value")]
    present = ["present_%d_%s" % (i, k) for i in range(layers) for k in ("key", "value")]
    steps = {0: "N", 1: "T"}
    axes = {"tokens": steps, "places": steps, "logits": steps, "mask": {0: "N", 1: "P + T"}}
    axes.update({n: {0: "N", 2: "P"} for n in past})
    axes.update({n: {0: "N", 2: "P + T"} for n in present})
    lengths = {"dec20": (2, 1, 20), "prefill9": (1, 9, 0), "mixed": (2, 3, 7)} if small else {
        "dec128": (1, 1, 128), "prefill64": (1, 64, 0), "mixed": (2, 3, 7)}
    cases = {name: (lambda sizes=sizes: inputs(*sizes)) for name, sizes in lengths.items()}
    return Entry(
        lambda: language.vary(language.Llama(words, width, heads, kv_heads, layers, looked_up, pairs)), cases,
        ["tokens", "mask", "places", *past], ["logits", *present], axes,
    )


def recurrent_entries(small):
    inputs, width, bi = (24, 20, 12) if small else (80, 320, 256)
    batch, both = {1: "N"}, {0: "N", 1: "T"}
    steps = ((1, 1), (3, 7)) if small else ((1, 1), (1, 50))

    def stream(n, t, states):
        return (torch.randn(n, t, inputs), *(torch.randn(2, n, width) * 0.3 for _ in range(states)))

    def cases(states):
        return {"t%d" % t: (lambda n=n, t=t: stream(n, t, states)) for n, t in steps}

    states = {"h0": batch, "c0": batch, "h1": batch, "c1": batch}
    return {
        "lstm_stream": Entry(
            lambda: language.StreamLstm(inputs, width, 2).eval(), cases(2), ["x", "h0", "c0"], ["y", "h1", "c1"],
            {"x": both, "y": both, **states},
        ),
        "gru_stream": Entry(
            lambda: language.StreamGru(inputs, width, 2).eval(), cases(1), ["x", "h0"], ["y", "h1"],
            {"x": both, "y": both, "h0": batch, "h1": batch},
        ),
        "lstm_bi": Entry(
            lambda: language.BothWaysLstm(inputs, bi, 2).eval(),
            {"b2": lambda: (torch.randn(2, 9, inputs),), "b1": lambda: (torch.randn(1, 11, inputs),)} if small else {"b1": lambda: (torch.randn(1, 100, inputs),)},
            ["x"], ["y"], {"x": both, "y": both} if small else None,
        ),
    }


def entries(small):
    found = {}
    for name, (make, full, small_side, channels) in vision.PICTURE_NETWORKS.items():
        batches = (1, 2) if small else (1, 8) if name == "resnet50" else (1,)
        if small and name in ("shufflenet_v2", "swin_t", "convnext_tiny", "vit_b_16"):
            batches = (1,)
        found[name] = picture_entry(make, full, small_side, channels, small, batches)
    for name, (make, full, small_side) in vision.DETECTORS.items():
        side = small_side if small else full
        found[name] = Entry(
            lambda make=make: make(small), {"b1": lambda side=side: (torch.rand(3, side, side),)},
            ["x"], ["boxes", "scores", "labels"],
        )
    tiny, mini = (500, 48, 4, 2), (500, 36, 6, 2)
    lengths = ((1, 12), (3, 33)) if small else ((1, 128), (1, 16), (8, 128))
    found["bert_base"] = encoder_entry(
        lambda: language.Bert(*(tiny if small else (30522, 768, 12, 12))), small, lengths, ["states", "pooled"]
    )
    found["minilm_l6"] = encoder_entry(
        lambda: language.SentenceEncoder(*(mini if small else (30522, 384, 12, 6))), small, lengths[:2] if small else lengths[:1], ["vector"]
    )
    found["gpt2"] = decoder_entry(small)
    found["llama"] = llama_entry(small, True, False)
    if small:  # the same graph but for how angles are found and what is turned
        found["llama_angles"] = llama_entry(small, False, False)
        found["llama_pairs"] = llama_entry(small, True, True)
    found.update(recurrent_entries(small))
    sizes = (784, 40, 24, 10) if small else (784, 512, 512, 10)
    found["mlp_tiny"] = Entry(lambda: language.mlp(8, 16, 4).eval(), {"b1": lambda: (torch.randn(1, 8),)}, ["x"], ["y"])
    found["mlp_mnist"] = Entry(lambda: language.mlp(*sizes).eval(), {"b1": lambda: (torch.randn(1, 784),)}, ["x"], ["y"])
    return found


NOT_TORCH = ("random_forest",)


def write_values(folder, kind, names, values):
    for i, (name, value) in enumerate(zip(names, values)):
        with open("%s/%s_%d.pb" % (folder, kind, i), "wb") as f:
            f.write(numpy_helper.from_array(np.ascontiguousarray(value), name).SerializeToString())


class Writer:
    """Writes data sets and, at the end, data.json."""

    def __init__(self, folder):
        self.folder, self.names, self.largest = folder, [], 0.0

    def add(self, case, in_names, inputs, out_names, outputs):
        data = "%s/test_data_set_%d" % (self.folder, len(self.names))
        os.mkdir(data)
        self.names.append(case)
        write_values(data, "input", in_names, inputs)
        write_values(data, "output", out_names, outputs)
        floats = [o for o in outputs if o.dtype.kind == "f" and o.size]
        self.largest = max(self.largest, *(float(np.abs(o).max()) for o in floats))

    def finish(self):
        with open(self.folder + "/data.json", "w") as f:
            json.dump({"rtol": 1e-3, "atol": 1e-5 * self.largest, "cases": self.names}, f)


def export_torch(folder, entry, opset, small):
    model = entry.make().eval()
    inputs = {name: make() for name, make in entry.cases.items()}
    raw = {"training": torch.onnx.TrainingMode.PRESERVE, "do_constant_folding": False} if small else {}
    torch.onnx.export(
        model, inputs[list(inputs)[-1]], folder + "/model.onnx", input_names=entry.inputs, output_names=entry.outputs,
        dynamic_axes=entry.axes, opset_version=opset, **raw,
    )
    if os.path.getsize(folder + "/model.onnx") < 100 << 20:
        repair(folder + "/model.onnx", opset)
    data = Writer(folder)
    with torch.no_grad():
        for case, values in inputs.items():
            result = model(*values)
            result = result if isinstance(result, tuple) else (result,)
            data.add(case, entry.inputs, [v.numpy() for v in values], entry.outputs, [r.numpy() for r in result])
    data.finish()


def repair(path, opset):
    """torchvision writes RoiAlign as of opset 10; since 16 the attribute it leaves out means another
    placing of samples by default."""
    model = onnx.load(path)
    found = [n for n in model.graph.node if n.op_type == "RoiAlign"]
    if opset >= 16 and found:
        for node in found:
            node.attribute.append(onnx.helper.make_attribute("coordinate_transformation_mode", "output_half_pixel"))
        onnx.save(model, path)


def export_forest(folder, opset, small):
    features = 12 if small else 30
    made = forest.train(8 if small else 100, features, 3, 300 if small else 8000)
    onnx.save(forest.to_onnx(made, features, opset), folder + "/model.onnx")
    rows = (1, 33) if small else (1, 1000)
    data = Writer(folder)
    for n, (x, y) in zip(rows, forest.cases(made, features, rows)):
        data.add("r%d" % n, ["x"], x, ["label", "probabilities"], y)
    data.finish()


def write_whole(top, name, write):
    """Has write(folder) make a model in a scratch folder first: what has the right name is whole. One that is
    there is left alone."""
    with open(os.path.join(top, name + ".lock"), "w") as lock, tempfile.TemporaryDirectory(dir=top) as scratch:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.isdir(os.path.join(top, name)):
            return
        folder = os.path.join(scratch, name)
        os.mkdir(folder)
        write(folder)
        if os.path.getsize(folder + "/model.onnx") < 100 << 20:
            onnx.checker.check_model(folder + "/model.onnx")
        os.rename(folder, os.path.join(top, name))


def write_all(top, names, write):
    """Makes the models by write(name, folder) and prints where they are; returns how many failed."""
    os.makedirs(top, exist_ok=True)
    warnings.filterwarnings("ignore")
    failed = 0
    for name in names:
        try:
            write_whole(top, name, lambda folder: write(name, folder))
            print(os.path.join(top, name), flush=True)
        except Exception as e:  # one model must not keep the others from being written
            print("%s: %s: %s" % (name, type(e).__name__, e), file=sys.stderr)
            failed += 1
    return failed


def export(name, folder, opset, small):
    torch.manual_seed(sum(map(ord, name)))
    if name in NOT_TORCH:
        export_forest(folder, opset, small)
    else:
        export_torch(folder, entries(small)[name], opset, small)


def choose(parser, args, known):
    """The models that were asked for by name, or all; an unknown one ends the program, as --list does."""
    for name in args.names:
        if name not in known:
            parser.error("there is no model '%s'" % name)
    if args.list:
        print("\n".join(known))
        sys.exit(0)
    return args.names or known


def main():
    parser = argparse.ArgumentParser(description="Writes the zoo's models.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="all of them if none is named")
    parser.add_argument("--small", action="store_true", help="little depth and width, for tests")
    parser.add_argument("--opset", type=int, default=17)
    parser.add_argument("--out", help="folder to write to")
    parser.add_argument("--list", action="store_true", help="print the names and end")
    args = parser.parse_args()
    names = choose(parser, args, sorted([*entries(args.small), *NOT_TORCH]))
    top = args.out or os.path.join(TOP, "build/zoo/%s-%d" % ("small" if args.small else "full", args.opset))
    return 1 if write_all(top, names, lambda name, folder: export(name, folder, args.opset, args.small)) else 0


if __name__ == "__main__":
    sys.exit(main())
