#!/usr/bin/python3
"""export_models.py FOLDER [NAME...] - exports models from PyTorch with inputs and its own outputs.

Each model gets a folder in the layout of the ONNX backend tests (model.onnx, test_data_set_*/), with
data sets of two shapes, and a data.json whose tolerance follows the size of the outputs. Weights are
random but fixed; batch normalisations get the statistics of random pictures and random scales, and
are not folded away: that is left to the optimiser. A model that is already there is left alone.
"""

import json
import os
import sys
import tempfile

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import nn
from torch.nn import functional as F

# ---- Image networks ----


def settle(model, *shape):
    """Gives every batch normalisation statistics that fit, and scales that are not 1."""
    for m in model.modules():
        if isinstance(m, nn.BatchNorm2d):
            nn.init.uniform_(m.weight, 0.5, 1.5)
            nn.init.normal_(m.bias, 0, 0.1)
            m.momentum = None
    model.train()
    with torch.no_grad():
        for _ in range(2):
            model(torch.randn(4, *shape))
    return model.eval()


def torchvision_model(name, side):
    import torchvision

    return settle(getattr(torchvision.models, name)(weights=None), 3, side, side)


class ConvUnit(nn.Sequential):
    def __init__(self, c_in, c_out, kernel=3, stride=1):
        super().__init__(
            nn.Conv2d(c_in, c_out, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(c_out), nn.SiLU()
        )


class SplitBlock(nn.Module):
    """Half of the channels go through residual units; all stages are joined again."""

    def __init__(self, c):
        super().__init__()
        self.first = ConvUnit(c, c, 1)
        self.units = nn.ModuleList(nn.Sequential(ConvUnit(c // 2, c // 2), ConvUnit(c // 2, c // 2)) for _ in range(2))
        self.last = ConvUnit(c * 2, c, 1)

    def forward(self, x):
        parts = list(self.first(x).chunk(2, 1))
        for unit in self.units:
            parts.append(parts[-1] + unit(parts[-1]))
        return self.last(torch.cat(parts, 1))


class Pyramid(nn.Module):
    """SPP: the same pooling three times over, joined."""

    def __init__(self, c):
        super().__init__()
        self.first, self.last = ConvUnit(c, c // 2, 1), ConvUnit(c * 2, c, 1)

    def forward(self, x):
        parts = [self.first(x)]
        for _ in range(3):
            parts.append(F.max_pool2d(parts[-1], 5, 1, 2))
        return self.last(torch.cat(parts, 1))


class Detector(nn.Module):
    """A detector of the YOLO kind: two scales, boxes decoded on a grid. x is (N, 3, H, W)."""

    def __init__(self, classes=20):
        super().__init__()
        self.stem = nn.Sequential(ConvUnit(3, 16, 3, 2), ConvUnit(16, 32, 3, 2), SplitBlock(32), ConvUnit(32, 64, 3, 2))
        self.middle = SplitBlock(64)
        self.deep = nn.Sequential(ConvUnit(64, 128, 3, 2), SplitBlock(128), Pyramid(128))
        self.joined = nn.Sequential(ConvUnit(192, 64, 1), SplitBlock(64))
        self.heads = nn.ModuleList(nn.Conv2d(c, 4 + classes, 1) for c in (64, 128))

    def decode(self, y, stride):
        n, c, h, w = y.shape
        rows = torch.arange(h, dtype=y.dtype).view(1, 1, h, 1).expand(n, 1, h, w)
        columns = torch.arange(w, dtype=y.dtype).view(1, 1, 1, w).expand(n, 1, h, w)
        centre = (torch.cat([columns, rows], 1) + y[:, :2].sigmoid()) * stride
        size = y[:, 2:4].clamp(-4, 4).exp() * stride
        boxes = torch.cat([centre - size / 2, centre + size / 2, y[:, 4:].sigmoid()], 1)
        return boxes.flatten(2).transpose(1, 2)

    def forward(self, x):
        shallow = self.middle(self.stem(x))
        deep = self.deep(shallow)
        up = F.interpolate(deep, scale_factor=2.0, mode="nearest")
        joined = self.joined(torch.cat([up, shallow], 1))
        boxes = [self.decode(head(y), s) for head, y, s in zip(self.heads, (joined, deep), (8, 16))]
        return torch.cat(boxes, 1)


# ---- Language networks ----


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x, mask, past=None):
        """x is (N, T, C); mask is added to the scores; past is (2, N, heads, P, C / heads)."""
        n, t, c = x.shape
        q, k, v = (p.view(n, t, self.heads, self.size).transpose(1, 2) for p in self.qkv(x).chunk(3, -1))
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        scores = q @ k.transpose(-1, -2) / self.size**0.5 + mask
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(n, t, c)
        return self.out(y), torch.stack([k, v])


class EncoderLayer(nn.Module):
    """Normalises after each part, as BERT does."""

    def __init__(self, width, heads):
        super().__init__()
        self.attention = Attention(width, heads)
        self.norm1, self.norm2 = nn.LayerNorm(width, 1e-12), nn.LayerNorm(width, 1e-12)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, mask):
        x = self.norm1(x + self.attention(x, mask)[0])
        return self.norm2(x + self.mlp(x))


class Encoder(nn.Module):
    """A BERT-style encoder: tokens (N, T) and mask (N, T) to states (N, T, C) and a pooled vector."""

    def __init__(self, vocabulary=2000, width=192, heads=6, layers=4):
        super().__init__()
        self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(256, width)
        self.norm = nn.LayerNorm(width, 1e-12)
        self.layers = nn.ModuleList(EncoderLayer(width, heads) for _ in range(layers))
        self.pool = nn.Linear(width, width)

    def forward(self, tokens, mask):
        places = torch.arange(tokens.shape[1]).unsqueeze(0)
        x = self.norm(self.words(tokens) + self.places(places))
        bias = (1.0 - mask[:, None, None, :].float()) * -10000.0
        for layer in self.layers:
            x = layer(x, bias)
        return x, self.pool(x[:, 0]).tanh()


class DecoderLayer(nn.Module):
    """Normalises before each part, as GPT-2 does."""

    def __init__(self, width, heads):
        super().__init__()
        self.attention = Attention(width, heads)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, mask, past):
        y, present = self.attention(self.norm1(x), mask, past)
        x = x + y
        h = self.up(self.norm2(x))
        h = 0.5 * h * (1 + torch.tanh(0.7978845608 * (h + 0.044715 * h * h * h)))
        return x + self.down(h), present


class Decoder(nn.Module):
    """A GPT-2-style decoder: tokens (N, T) and past keys and values to logits and new ones."""

    def __init__(self, vocabulary=2000, width=192, heads=6, layers=3):
        super().__init__()
        self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(512, width)
        self.layers = nn.ModuleList(DecoderLayer(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens, *pasts):
        t, p = tokens.shape[1], pasts[0].shape[3]
        rows = torch.arange(t).unsqueeze(1) + p
        columns = torch.arange(t + p).unsqueeze(0)
        mask = (columns > rows).float() * -10000.0
        x = self.words(tokens) + self.places(rows.transpose(0, 1))
        presents = []
        for layer, past in zip(self.layers, pasts):
            x, present = layer(x, mask, past)
            presents.append(present)
        return (self.norm(x) @ self.words.weight.t(), *presents)


class Recurrent(nn.Module):
    """Two bidirectional LSTM layers and a GRU over x (N, T, 40), and a verdict per step."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(40, 64, 2, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(128, 64, batch_first=True)
        self.out = nn.Linear(64, 30)

    def forward(self, x):
        y, (h, c) = self.lstm(x)
        y, _ = self.gru(y)
        return self.out(y).log_softmax(-1), h, c


# ---- The list: how to make each model, its inputs at two shapes, and names ----


def tokens(n, t):
    return torch.randint(0, 2000, (n, t))


def encoder_inputs(n, t):
    mask = torch.ones(n, t, dtype=torch.int64)
    mask[-1, t - t // 4 :] = 0
    return tokens(n, t), mask


def decoder_inputs(n, t, past):
    return (tokens(n, t), *(torch.randn(2, n, 6, past, 32) for _ in range(3)))


def image(n, side):
    return (torch.rand(n, 3, side, side),)


def models():
    """name: (module, inputs at two shapes, input names, output names, dynamic axes)"""
    batch = {0: "N"}
    steps = {0: "N", 1: "T"}
    past, present = {1: "N", 3: "P"}, {1: "N", 3: "total"}
    names = ["past_%d" % i for i in range(3)]
    made = ["present_%d" % i for i in range(3)]
    return {
        "resnet50": (lambda: torchvision_model("resnet50", 64), [image(1, 64), image(2, 64)], ["x"], ["y"], {"x": batch, "y": batch}),
        "mobilenet_v2": (lambda: torchvision_model("mobilenet_v2", 96), [image(1, 96), image(3, 96)], ["x"], ["y"], {"x": batch, "y": batch}),
        "yolo": (
            lambda: settle(Detector(), 3, 64, 64), [image(1, 96), image(2, 64)], ["x"], ["boxes"],
            {"x": {0: "N", 2: "H", 3: "W"}, "boxes": steps},
        ),
        "bert": (
            Encoder, [encoder_inputs(1, 12), encoder_inputs(3, 33)], ["tokens", "mask"], ["states", "pooled"],
            {"tokens": steps, "mask": steps, "states": steps, "pooled": batch},
        ),
        "gpt2": (
            Decoder, [decoder_inputs(1, 9, 0), decoder_inputs(2, 1, 20)], ["tokens", *names], ["logits", *made],
            {"tokens": steps, "logits": steps, **{n: past for n in names}, **{n: present for n in made}},
        ),
        "lstm": (
            Recurrent, [(torch.randn(1, 10, 40),), (torch.randn(3, 25, 40),)], ["x"], ["y", "h", "c"],
            {"x": steps, "y": steps, "h": {1: "N"}, "c": {1: "N"}},
        ),
    }


def write_values(folder, kind, names, values):
    for i, (name, value) in enumerate(zip(names, values)):
        with open("%s/%s_%d.pb" % (folder, kind, i), "wb") as f:
            f.write(numpy_helper.from_array(np.ascontiguousarray(value.detach().numpy()), name).SerializeToString())


def export(folder, make, inputs, in_names, out_names, axes):
    model = make().eval()
    traced = inputs[-1]
    torch.onnx.export(
        model, traced, folder + "/model.onnx", input_names=in_names, output_names=out_names, dynamic_axes=axes,
        opset_version=17, training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False,
    )
    largest = 0.0
    with torch.no_grad():
        for i, values in enumerate(inputs):
            result = model(*values)
            result = result if isinstance(result, tuple) else (result,)
            largest = max(largest, *(float(r.abs().max()) for r in result))
            data = "%s/test_data_set_%d" % (folder, i)
            os.mkdir(data)
            write_values(data, "input", in_names, values)
            write_values(data, "output", out_names, result)
    with open(folder + "/data.json", "w") as f:
        json.dump({"rtol": 1e-3, "atol": 1e-5 * largest}, f)
    onnx.checker.check_model(folder + "/model.onnx")


def main(top, *wanted):
    os.makedirs(top, exist_ok=True)
    for name in wanted or models():
        if os.path.isdir(os.path.join(top, name)):
            continue
        torch.manual_seed(sum(map(ord, name)))
        recipe = models()[name]
        with tempfile.TemporaryDirectory(dir=top) as scratch:
            folder = os.path.join(scratch, name)
            os.mkdir(folder)
            export(folder, *recipe)
            os.rename(folder, os.path.join(top, name))


if __name__ == "__main__":
    main(*sys.argv[1:])
