#!/usr/bin/python3
"""families.py [--list] OUT [NAME...] - writes networks of other families than the zoo's own.

58 networks of speech, text, tables, time series, graphs, generators, detection, segmentation and volumes,
with real widths and fewer layers than their models have, at the opset (13, 16 or 17) and with the open
sizes that suit each. Each gets OUT/NAME as export.py has it, with one data set; bench/versus/versus.py
--folders OUT measures them. Weights and inputs are random but fixed. One that is already there is left alone.
"""

import argparse
import hashlib
import sys

import onnx
import torch
from onnx import numpy_helper

import export
from family import classifiers, generators, graphs, pieces, scenes, series, speech, tables, text, volumes

MODULES = classifiers, generators, graphs, scenes, series, speech, tables, text, volumes
NETWORKS = {make.__name__: make for module in MODULES for make in module.NETWORKS}


def share_weights(path):
    """Keeps one of several equal weights: what the exporter folds is copied for each of its readers."""
    model = onnx.load(path)
    first, instead = {}, {}
    for tensor in list(model.graph.initializer):
        values = numpy_helper.to_array(tensor)
        key = tensor.data_type, values.shape, hashlib.sha1(values.tobytes()).digest()
        same = first.setdefault(key, tensor.name)
        if same != tensor.name and values.size > 256:
            instead[tensor.name] = same
            model.graph.initializer.remove(tensor)
    if instead:
        for node in model.graph.node:
            node.input[:] = [instead.get(name, name) for name in node.input]
        onnx.save(model, path)


def write(name, folder):
    torch.manual_seed(0)
    network = NETWORKS[name]()
    model, inputs = pieces.vary(network.model), network.inputs
    entry = export.Entry(
        lambda: model, {"0": lambda: tuple(inputs.values())}, list(inputs), network.outputs, network.axes
    )
    export.export_torch(folder, entry, network.opset, False)
    share_weights(folder + "/model.onnx")


def main():
    parser = argparse.ArgumentParser(description="Writes networks of other families than the zoo's own.")
    parser.add_argument("out", nargs="?", metavar="OUT", help="folder to write to")
    parser.add_argument("names", nargs="*", metavar="NAME", help="all of them if none is named")
    parser.add_argument("--list", action="store_true", help="print the names and end")
    args = parser.parse_args()
    names = export.choose(parser, args, sorted(NETWORKS))
    if not args.out:
        parser.error("the folder to write to is missing")
    return 1 if export.write_all(args.out, names, write) else 0


if __name__ == "__main__":
    sys.exit(main())
