"""tables.py - recommendation and other networks of tables' rows."""

import math

import torch
from torch import nn
from torch.nn import functional as F

import language

from .pieces import Attention, Network, open_axes, tokens

BATCH = {0: "batch"}

# ---- Recommendation ----


class Dlrm(nn.Module):
    """13 numbers (N, 13) and an index (N) into each table to a probability (N, 1); all pairs of vectors are
    multiplied with each other."""

    sizes = tuple(1000 + 150 * i for i in range(26))

    def __init__(self, width=64):
        super().__init__()
        self.width, self.count = width, len(self.sizes) + 1
        self.tables = nn.ModuleList(nn.Embedding(size, width) for size in self.sizes)
        self.bottom = language.mlp(13, 512, 256, width).append(nn.ReLU())
        pairs = self.count * (self.count - 1) // 2
        self.top = language.mlp(width + pairs, 512, 256, 1).append(nn.Sigmoid())
        rows, columns = torch.tril_indices(self.count, self.count, -1)
        self.register_buffer("below", rows * self.count + columns)

    def forward(self, dense, *indices):
        x = self.bottom(dense)
        vectors = torch.cat([x] + [table(i) for table, i in zip(self.tables, indices)], 1)
        vectors = vectors.view(x.shape[0], -1, self.width)
        products = torch.bmm(vectors, vectors.transpose(1, 2)).view(x.shape[0], self.count**2)
        return self.top(torch.cat([x, products.index_select(1, self.below) * 0.125], 1))


def dlrm():
    model, inputs = Dlrm(), {"dense": torch.rand(128, 13)}
    inputs.update({"idx_%d" % i: tokens(size, 128) for i, size in enumerate(Dlrm.sizes)})
    return Network(model, inputs, ["prob"], 16, open_axes([*inputs, "prob"], BATCH))


class DeepFm(nn.Module):
    """Indices (N, 26) to probabilities (N): a factorisation machine and layers on the same vectors."""

    def __init__(self, fields=26, size=1000, width=16):
        super().__init__()
        self.vectors, self.weights = nn.Embedding(fields * size, width), nn.Embedding(fields * size, 1)
        self.deep = nn.Sequential()
        for c_in in (fields * width, 400, 400):
            for part in (nn.Linear(c_in, 400), nn.BatchNorm1d(400), nn.ReLU()):
                self.deep.append(part)
        self.deep.append(nn.Linear(400, 1))
        self.register_buffer("starts", torch.arange(fields) * size)
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, indices):
        indices = indices + self.starts
        vectors = self.vectors(indices)
        pairs = 0.5 * (vectors.sum(1).pow(2) - vectors.pow(2).sum(1)).sum(1, keepdim=True)
        wide = self.weights(indices).sum(1) + self.bias + pairs * 0.05
        return torch.sigmoid((wide + self.deep(vectors.flatten(1))).squeeze(1))


def deepfm():
    return Network(DeepFm(), {"ids": tokens(1000, 64, 26)}, ["prob"], 13, {"ids": BATCH, "prob": BATCH})


class WideAndDeep(nn.Module):
    """13 numbers, an index into each of 20 tables and 30 into a table of crosses to probabilities (N, 1)."""

    def __init__(self, count=20, width=32):
        super().__init__()
        self.crosses = nn.Embedding(50000, 1)
        self.tables = nn.ModuleList(nn.Embedding(2000, width) for _ in range(count))
        self.deep = language.mlp(count * width + 13, 1024, 512, 256, 1)

    def forward(self, dense, indices, crosses):
        wide = self.crosses(crosses).sum(1)
        vectors = [table(indices[:, i]) for i, table in enumerate(self.tables)]
        return torch.sigmoid(wide + self.deep(torch.cat([dense] + vectors, 1)))


def wide_and_deep_b1():
    model = WideAndDeep()
    inputs = {"dense": torch.rand(1, 13), "cats": tokens(2000, 1, 20), "crosses": tokens(50000, 1, 30)}
    return Network(model, inputs, ["prob"], 17)


# ---- Tables ----


class GatedLayer(nn.Module):
    def __init__(self, width=192, inner=256):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, 8)
        self.up, self.down = nn.Linear(width, 2 * inner), nn.Linear(inner, width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        a, b = self.up(self.norm2(x)).chunk(2, -1)
        return x + self.down(a * F.relu(b))


class FtTransformer(nn.Module):
    """12 numbers and 8 categories of a row, each of which becomes a token, to a number (N, 1)."""

    def __init__(self, numbers=12, categories=8, size=50, width=192):
        super().__init__()
        self.scale, self.offset = nn.Parameter(torch.randn(numbers, width)), nn.Parameter(torch.randn(numbers, width))
        self.first, self.kind = nn.Parameter(torch.randn(1, 1, width)), nn.Parameter(torch.randn(categories, width))
        self.values = nn.Embedding(categories * size, width)
        self.register_buffer("starts", torch.arange(categories) * size)
        self.layers = nn.Sequential(*(GatedLayer(width) for _ in range(3)))
        self.out = nn.Sequential(nn.LayerNorm(width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, numbers, categories):
        first = self.first.expand(numbers.shape[0], -1, -1)
        numbers = numbers[:, :, None] * self.scale + self.offset
        x = torch.cat([first, numbers, self.values(categories + self.starts) + self.kind], 1)
        return self.out(self.layers(x)[:, 0])


def ft_transformer():
    model, inputs = FtTransformer(), {"x_num": torch.randn(32, 12), "x_cat": tokens(50, 32, 8)}
    return Network(model, inputs, ["y"], 17, open_axes([*inputs, "y"], BATCH))


class GatedUnit(nn.Module):
    def __init__(self, c_in, c_out):
        super().__init__()
        self.linear, self.norm = nn.Linear(c_in, 2 * c_out, False), nn.BatchNorm1d(2 * c_out)

    def forward(self, x):
        return F.glu(self.norm(self.linear(x)), -1)


class FeatureTransformer(nn.Module):
    """Units that all steps share and two of its own, each added to what is before it."""

    def __init__(self, shared, width):
        super().__init__()
        self.units = nn.ModuleList([*shared, GatedUnit(width, width), GatedUnit(width, width)])

    def forward(self, x):
        first, *others = self.units
        x = first(x)
        for unit in others:
            x = (x + unit(x)) * math.sqrt(0.5)
        return x


def sparsemax(x, width):
    """The nearest point to each row (N, width) whose parts are not negative and sum to 1."""
    x = x - x.max(1, keepdim=True)[0]
    largest, _ = torch.sort(x, 1, descending=True)
    sums = torch.cumsum(largest, 1) - 1
    ranks = torch.arange(1, width + 1).float()[None]
    support = (ranks * largest > sums).long().sum(1, keepdim=True)
    threshold = sums.gather(1, support - 1) / support.float()
    return torch.clamp(x - threshold, min=0)


class TabNet(nn.Module):
    """Rows (N, 54) to 7 classes: each step chooses columns that earlier ones used little."""

    def __init__(self, columns=54, width=64, steps=4):
        super().__init__()
        self.columns, self.width = columns, width
        self.norm = nn.BatchNorm1d(columns)
        shared = [GatedUnit(columns, 2 * width), GatedUnit(2 * width, 2 * width)]
        self.first = FeatureTransformer(shared, 2 * width)
        self.steps = nn.ModuleList(FeatureTransformer(shared, 2 * width) for _ in range(steps))
        self.choices = nn.ModuleList(
            nn.Sequential(nn.Linear(width, columns, False), nn.BatchNorm1d(columns)) for _ in range(steps)
        )
        self.out = nn.Linear(width, 7, False)

    def forward(self, x):
        x = self.norm(x)
        chosen, prior, y = self.first(x)[:, self.width :], torch.ones_like(x), 0
        for step, choice in zip(self.steps, self.choices):
            mask = sparsemax(choice(chosen) * prior, self.columns)
            prior = prior * (1.3 - mask)
            h = step(x * mask)
            y = y + F.relu(h[:, : self.width])
            chosen = h[:, self.width :]
        return self.out(y)


def tabnet():
    return Network(TabNet(), {"x": torch.randn(256, 54)}, ["logits"], 16, {"x": BATCH, "logits": BATCH})


class Autoencoder(nn.Module):
    """Rows (N, 784) to themselves by a code (N, 32)."""

    def __init__(self):
        super().__init__()
        self.encode = language.mlp(784, 1024, 512, 256, 32)
        self.decode = language.mlp(32, 256, 512, 1024, 784).append(nn.Sigmoid())

    def forward(self, x):
        code = self.encode(x)
        return self.decode(code), code


def autoencoder_mlp():
    axes = open_axes(["x", "recon", "code"], BATCH)
    return Network(Autoencoder(), {"x": torch.rand(16, 784)}, ["recon", "code"], 13, axes)


NETWORKS = (dlrm, deepfm, wide_and_deep_b1, ft_transformer, tabnet, autoencoder_mlp)
