#!/usr/bin/python3
"""quantized.py [--out FOLDER] [--activations u8|s8] [--from FOLDER] [NAME...] - the zoo's models in int8.

Quantises models that export.py wrote with ONNX Runtime's own tool: static, QuantizeLinear and DequantizeLinear around
every operator, activations of one scale (uint8 with a zero point, or int8 without), weights int8 with a scale for each
channel. Each gets FOLDER/NAME-int8/model.onnx (NAME-int8s for int8 activations). Calibration takes the zoo's inputs and
random ones of the same sizes. A model that is already there is left alone. Needs the packages onnx and onnxruntime.
"""

import argparse
import glob
import os
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NAMES = "resnet18 resnet50 mobilenet_v2 efficientnet_b0 yolov8n vit_b_16 bert_base minilm_l6".split()
SAMPLES = 4


class Samples(CalibrationDataReader):
    """The inputs of a model's first case, and others of their sizes."""

    def __init__(self, folder):
        model = onnx.load(folder + "/model.onnx", load_external_data=False)
        names = [v.name for v in model.graph.input]
        values = {}
        for path in sorted(glob.glob(folder + "/test_data_set_0/input_*.pb")):
            tensor = onnx.TensorProto()
            with open(path, "rb") as f:
                tensor.ParseFromString(f.read())
            values[tensor.name or names[len(values)]] = numpy_helper.to_array(tensor)
        random = np.random.default_rng(1)
        self.samples = [values]
        for _ in range(SAMPLES - 1):
            self.samples.append({name: self.like(random, v) for name, v in values.items()})

    @staticmethod
    def like(random, v):
        if v.dtype.kind != "f":
            return v if v.max() <= 1 else random.integers(0, v.max() + 1, v.shape, dtype=v.dtype)
        return random.uniform(v.min(), v.max(), v.shape).astype(v.dtype)

    def get_next(self):
        return self.samples.pop() if self.samples else None


def quantise(source, target, activations):
    with tempfile.TemporaryDirectory() as scratch:
        prepared = scratch + "/model.onnx"
        quant_pre_process(source + "/model.onnx", prepared, skip_symbolic_shape=True)
        os.makedirs(target + ".part", exist_ok=True)
        quantize_static(
            prepared, target + ".part/model.onnx", Samples(source), quant_format=QuantFormat.QDQ, per_channel=True,
            activation_type=QuantType.QUInt8 if activations == "u8" else QuantType.QInt8,
            weight_type=QuantType.QInt8,
            extra_options={"ActivationSymmetric": activations == "s8"},
        )
        os.rename(target + ".part", target)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=None)
    parser.add_argument("--activations", choices=("u8", "s8"), default="u8")
    parser.add_argument("--from", dest="source", default=os.path.join(TOP, "build/zoo/full-17"))
    parser.add_argument("--out", help="default: where the models are")
    args = parser.parse_args()
    out = args.out or args.source
    for name in args.names or NAMES:
        source, target = os.path.join(args.source, name), os.path.join(out, name + ("-int8" if args.activations == "u8" else "-int8s"))
        if not os.path.exists(target):
            if not os.path.exists(source + "/model.onnx"):
                sys.exit("there is no %s: export.py writes it" % source)
            quantise(source, target, args.activations)
        print(target, flush=True)


if __name__ == "__main__":
    main()
