#!/usr/bin/python3
"""export.py DIR - a PyTorch model with an operator of its own, as DIR/model.onnx.

The operator is defined for PyTorch with torch.library, and for the exporter by a symbolic function
that names the ONNX node. DIR/x.npy and DIR/y.npy are an input and PyTorch's answer."""
import sys
import numpy as np
import torch

# 1. The operator in PyTorch.
library = torch.library.Library("example", "DEF")
library.define("shifted_gelu(Tensor x, float shift) -> Tensor")


def shifted_gelu(x, shift):
    return torch.nn.functional.gelu(x + shift)


library.impl("shifted_gelu", shifted_gelu, "CPU")


# 2. Its ONNX node: domain::Name, attributes end in the first letter of their type.
def symbolic(g, x, shift):
    shift = torch.onnx.symbolic_helper._maybe_get_const(shift, "f")
    node = g.op("example.ops::ShiftedGelu", x, shift_f=shift)
    return node.setType(x.type())


torch.onnx.register_custom_op_symbolic("example::shifted_gelu", symbolic, 15)


# 3. A model that uses it.
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(8, 32)
        self.second = torch.nn.Linear(32, 4)

    def forward(self, x):
        return self.second(torch.ops.example.shifted_gelu(self.first(x), 0.25))


folder = sys.argv[1]
torch.manual_seed(1)
net = Net().eval()
x = torch.randn(5, 8)
torch.onnx.export(net, x, f"{folder}/model.onnx", input_names=["x"], output_names=["y"],
                  dynamic_axes={"x": {0: "N"}, "y": {0: "N"}}, opset_version=15,
                  custom_opsets={"example.ops": 1})
np.save(f"{folder}/x.npy", x.numpy())
np.save(f"{folder}/y.npy", net(x).detach().numpy())
