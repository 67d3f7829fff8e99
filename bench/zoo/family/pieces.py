"""pieces.py - what networks of several families are made of, and how their weights get values."""

import math
from typing import NamedTuple

import torch
from torch import nn

import language

TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d, *TRANSPOSED)
BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


class Network(NamedTuple):
    """A network that has no values yet, its inputs by name, the names of its outputs, the opset to write
    and the axes whose size stays open, {name: {axis: label}}.

    The order of random numbers is part of a network: what is drawn before what, here and in `vary`,
    decides about its weights and inputs. Parts are therefore made in the order in which they are kept."""

    model: nn.Module
    inputs: dict
    outputs: list
    opset: int = 16
    axes: dict = {}


def tokens(count, *shape):
    return torch.randint(0, count, shape)


def padding_mask(n, length):
    """1 for what counts (n, length); each row has five places less of it than the one before."""
    mask = torch.ones(n, length, dtype=torch.long)
    for row in range(n):
        mask[row, length - row * 5 % (length // 2) :] = 0
    return mask


def cache_names(kind, layers):
    return ["%s.%d.%s" % (kind, i, part) for i in range(layers) for part in ("key", "value")]


def open_axes(names, axes):
    return {name: axes for name in names}


# ---- Values ----


def fan_in(conv):
    """How many products each result of a convolution is the sum of."""
    w = conv.weight
    if isinstance(conv, TRANSPOSED):
        return w.shape[0] // conv.groups * w[0, 0].numel() / math.prod(conv.stride)
    return w[0].numel()


def vary_linear(m, std):
    nn.init.normal_(m.weight, std=std)
    if m.bias is not None:
        nn.init.normal_(m.bias, std=0.05)


def vary(model):
    """Random weights that keep signals near unit size, scales and offsets that are not 1 and 0, and
    statistics of batches. A linear layer may have a `gain` that its weights are multiplied by."""
    for m in model.modules():
        if isinstance(m, CONVOLUTIONS):
            vary_linear(m, math.sqrt(1.5 / fan_in(m)))
        elif isinstance(m, nn.Linear):
            vary_linear(m, math.sqrt(1.0 / m.in_features) * getattr(m, "gain", 1.0))
        elif isinstance(m, BATCH_NORMS):
            nn.init.normal_(m.running_mean, 0, 0.1)
            nn.init.uniform_(m.running_var, 0.5, 1.5)
        if isinstance(m, (*BATCH_NORMS, nn.LayerNorm, nn.GroupNorm, RmsNorm)):
            nn.init.uniform_(m.weight, 0.8, 1.2)
            if getattr(m, "bias", None) is not None:
                nn.init.normal_(m.bias, 0, 0.1)
    return model.eval()


# ---- Convolutions ----


def conv_unit(c_in, c_out, kernel=3, stride=1, act=nn.ReLU, groups=1, padding=None):
    """A convolution that keeps the size but for its stride, normalisation and, if any, an activation."""
    padding = (kernel - 1) // 2 if padding is None else padding
    conv = nn.Conv2d(c_in, c_out, kernel, stride, padding, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(c_out), *([act()] if act else []))


class Residual(nn.Module):
    """x + scale * body(x); without a scale nothing is multiplied."""

    def __init__(self, *body, scale=None):
        super().__init__()
        self.body, self.scale = nn.Sequential(*body), scale

    def forward(self, x):
        y = self.body(x)
        return x + (y if self.scale is None else y * self.scale)


class BasicBlock(nn.Module):
    """Two convolutions, and what is added to them: the input itself or, if sizes differ, a third one's."""

    def __init__(self, c_in, c_out, stride=1):
        super().__init__()
        self.body = nn.Sequential(conv_unit(c_in, c_out, 3, stride), conv_unit(c_out, c_out, act=None))
        same = stride == 1 and c_in == c_out
        self.skip = nn.Identity() if same else conv_unit(c_in, c_out, 1, stride, act=None)

    def forward(self, x):
        return nn.functional.relu(self.body(x) + self.skip(x))


def resnet18_stages():
    """ResNet-18 without its head: 64, 128, 256 and 512 channels at a 4th to a 32nd of the size."""
    stem = conv_unit(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)
    stages = [nn.Sequential(*stem, BasicBlock(64, 64), BasicBlock(64, 64))]
    for c_in, c_out in ((64, 128), (128, 256), (256, 512)):
        stages.append(nn.Sequential(BasicBlock(c_in, c_out, 2), BasicBlock(c_out, c_out)))
    return nn.ModuleList(stages)


# ---- Transformers ----


class RmsNorm(language.RmsNorm):
    """The zoo's, without casts."""

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class TanhGelu(nn.Module):
    def forward(self, x):
        inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))
        return 0.5 * x * (1.0 + torch.tanh(inner))


class QuickGelu(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(1.702 * x)


class Attention(nn.Module):
    """Heads of attention of x (N, T, C) to a context (N, S, C), itself by default; the mask is added to
    scores (N, heads, T, S)."""

    def __init__(self, width, heads, size=None, bias=True, key_bias=True, scaled=True):
        super().__init__()
        size = size or width // heads
        self.heads, self.size, self.scaled = heads, size, scaled
        self.q = nn.Linear(width, heads * size, bias)
        self.k = nn.Linear(width, heads * size, bias and key_bias)
        self.v = nn.Linear(width, heads * size, bias)
        self.out = nn.Linear(heads * size, width, bias)

    def split(self, x):
        return x.view(x.size(0), -1, self.heads, self.size).transpose(1, 2)

    def attend(self, q, k, v, mask=None):
        scores = torch.matmul(q, k.transpose(-1, -2))
        if self.scaled:
            scores = scores / math.sqrt(self.size)
        if mask is not None:
            scores = scores + mask
        y = torch.matmul(scores.softmax(-1), v).transpose(1, 2).contiguous()
        return self.out(y.view(y.size(0), -1, self.heads * self.size))

    def forward(self, x, context=None, mask=None):
        context = x if context is None else context
        return self.attend(self.split(self.q(x)), self.split(self.k(context)), self.split(self.v(context)), mask)


def feed_forward(width, inner, act=nn.GELU):
    return nn.Sequential(nn.Linear(width, inner), act(), nn.Linear(inner, width))


class Layer(nn.Module):
    """Attention and two linear layers; it normalises before each part, or after."""

    def __init__(self, width, heads, inner, act=nn.GELU, before=True, eps=1e-5):
        super().__init__()
        self.before, self.attention = before, Attention(width, heads)
        self.norm1, self.norm2 = nn.LayerNorm(width, eps), nn.LayerNorm(width, eps)
        self.mlp = feed_forward(width, inner, act)

    def forward(self, x, mask=None):
        if self.before:
            x = x + self.attention(self.norm1(x), mask=mask)
            return x + self.mlp(self.norm2(x))
        x = self.norm1(x + self.attention(x, mask=mask))
        return self.norm2(x + self.mlp(x))


def causal_mask(length, hidden=-1e9):
    """What hides later places from earlier ones (length, length)."""
    return torch.triu(torch.full((length, length), hidden), 1)


def sine_steps(width):
    """Frequencies (width / 2) from 1 down to almost 1 / 10000."""
    return torch.exp(-math.log(10000) * torch.arange(0, width, 2).float() / width)
