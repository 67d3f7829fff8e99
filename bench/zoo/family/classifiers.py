"""classifiers.py - classifiers of pictures that mix places otherwise than by convolutions alone, and a comparison
of two pictures."""

import torch
from torch import nn
from torch.nn import functional as F

from .pieces import Layer, Network, Residual, conv_unit, feed_forward

# ---- Mixers ----


class MixerLayer(nn.Module):
    """Layers over places, then over channels (N, places, C)."""

    def __init__(self, width, places):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mix, self.mlp = feed_forward(places, 256), feed_forward(width, 4 * width)

    def forward(self, x):
        x = x + self.mix(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.mlp(self.norm2(x))


class MlpMixer(nn.Module):
    def __init__(self, width=512):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.layers = nn.Sequential(*(MixerLayer(width, 196) for _ in range(3)))
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, 1000)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        return self.out(self.norm(self.layers(x)).mean(1))


def mlp_mixer():
    axes = {"image": {0: "batch"}, "logits": {0: "batch"}}
    return Network(MlpMixer(), {"image": torch.randn(1, 3, 224, 224)}, ["logits"], 17, axes)


class PoolLayer(nn.Module):
    """What is around each place in the mean, then layers over channels; both are scaled by channel."""

    def __init__(self, c):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(1, c), nn.GroupNorm(1, c)
        self.pool = nn.AvgPool2d(3, 1, 1, count_include_pad=False)
        self.mlp = nn.Sequential(nn.Conv2d(c, 4 * c, 1), nn.GELU(), nn.Conv2d(4 * c, c, 1))
        self.scale1, self.scale2 = nn.Parameter(torch.rand(c)), nn.Parameter(torch.rand(c))

    def forward(self, x):
        h = self.norm1(x)
        x = x + self.scale1[:, None, None] * (self.pool(h) - h)
        return x + self.scale2[:, None, None] * self.mlp(self.norm2(x))


class PoolFormer(nn.Module):
    stages = (64, 1), (128, 1), (320, 2), (512, 1)

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(*self.make_body())
        self.norm, self.out = nn.GroupNorm(1, 512), nn.Linear(512, 1000)

    def make_body(self):
        before = 3
        for c, depth in self.stages:
            yield nn.Conv2d(3, c, 7, 4, 2) if before == 3 else nn.Conv2d(before, c, 3, 2, 1)
            for _ in range(depth):
                yield PoolLayer(c)
            before = c

    def forward(self, x):
        return self.out(self.norm(self.body(x)).mean([-2, -1]))


def poolformer():
    return Network(PoolFormer(), {"image": torch.randn(1, 3, 224, 224)}, ["logits"])


# ---- Convolutions and attention ----


class InvertedResidual(nn.Module):
    """Wider, by each channel alone, and narrower again; added to the input if sizes agree."""

    def __init__(self, c_in, c_out, stride=1, factor=4, act=nn.SiLU):
        super().__init__()
        wide = c_in * factor
        self.body = nn.Sequential(
            conv_unit(c_in, wide, 1, act=act), conv_unit(wide, wide, 3, stride, act, wide),
            conv_unit(wide, c_out, 1, act=None),
        )
        self.add = stride == 1 and c_in == c_out

    def forward(self, x):
        return x + self.body(x) if self.add else self.body(x)


class MobileVitBlock(nn.Module):
    """Places that are the same in their squares of 2 x 2 attend to each other; joined with the input."""

    def __init__(self, c, width, depth):
        super().__init__()
        self.first = nn.Sequential(conv_unit(c, c, act=nn.SiLU), nn.Conv2d(c, width, 1, bias=False))
        self.layers = nn.Sequential(*(Layer(width, 4, 2 * width, nn.SiLU) for _ in range(depth)))
        self.norm = nn.LayerNorm(width)
        self.narrow, self.join = conv_unit(width, c, 1, act=nn.SiLU), conv_unit(2 * c, c, act=nn.SiLU)

    def forward(self, x):
        y = self.first(x)
        n, c, height, width = y.shape
        rows, columns = height // 2, width // 2
        squares = rows * columns
        y = y.reshape(n * c * rows, 2, columns, 2).transpose(1, 2)
        y = y.reshape(n, c, squares, 4).transpose(1, 3).reshape(n * 4, squares, c)
        y = self.norm(self.layers(y))
        y = y.reshape(n, 4, squares, c).transpose(1, 3).reshape(n * c * rows, columns, 2, 2)
        y = y.transpose(1, 2).reshape(n, c, height, width)
        return self.join(torch.cat((x, self.narrow(y)), 1))


def mobilevit():
    unit, block = InvertedResidual, MobileVitBlock
    model = nn.Sequential(
        conv_unit(3, 16, 3, 2, nn.SiLU), unit(16, 32), unit(32, 48, 2), unit(48, 48), unit(48, 48),
        unit(48, 64, 2), block(64, 96, 2), unit(64, 80, 2), block(80, 120, 4), unit(80, 96, 2), block(96, 144, 3),
        conv_unit(96, 384, 1, act=nn.SiLU), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(384, 1000),
    )
    return Network(model, {"image": torch.randn(1, 3, 192, 192)}, ["logits"], 13)


class LinearAttention(nn.Module):
    """Attention without softmax, by which keys and values are multiplied first; of two scales."""

    def __init__(self, c, size=16):
        super().__init__()
        self.size = size
        self.qkv = nn.Conv2d(c, 3 * c, 1, bias=False)
        self.around = nn.Sequential(
            nn.Conv2d(3 * c, 3 * c, 5, 1, 2, groups=3 * c, bias=False),
            nn.Conv2d(3 * c, 3 * c, 1, groups=3 * c // size, bias=False),
        )
        self.out = conv_unit(2 * c, c, 1, act=None)

    def forward(self, x):
        qkv = self.qkv(x)
        y = torch.cat([qkv, self.around(qkv)], 1)
        n, _, height, width = y.shape
        y = y.reshape(n, -1, 3 * self.size, height * width).transpose(-1, -2)
        q, k, v = y[..., : self.size], y[..., self.size : 2 * self.size], y[..., 2 * self.size :]
        q, k = F.relu(q), F.relu(k)
        v = F.pad(v, (0, 1), value=1)
        y = torch.matmul(q, torch.matmul(k.transpose(-1, -2), v))
        y = y[..., :-1] / (y[..., -1:] + 1e-5)
        return x + self.out(y.transpose(-1, -2).reshape(n, -1, height, width))


def efficientvit_linear_attention():
    act = nn.Hardswish

    def unit(c_in, c_out, stride=1, factor=4):
        return InvertedResidual(c_in, c_out, stride, factor, act)

    def blocks(c, count):
        return [part for _ in range(count) for part in (LinearAttention(c), unit(c, c))]

    model = nn.Sequential(
        conv_unit(3, 16, 3, 2, act), Residual(conv_unit(16, 16, 3, 1, act, 16), conv_unit(16, 16, 1, act=None)),
        unit(16, 32, 2), unit(32, 32), unit(32, 64, 2), unit(64, 64), unit(64, 64), unit(64, 128, 2), *blocks(128, 3),
        unit(128, 256, 2, 6), *blocks(256, 4), conv_unit(256, 1536, 1, act=act), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(1536, 1600, False), nn.LayerNorm(1600), nn.Hardswish(), nn.Linear(1600, 1000),
    )
    return Network(model, {"image": torch.randn(1, 3, 224, 224)}, ["logits"])


# ---- Comparison ----


class Siamese(nn.Module):
    """How alike two pictures (N, 1, 105, 105) are, as the cosine between their vectors."""

    def __init__(self):
        super().__init__()
        conv = self.conv
        self.vector = nn.Sequential(
            *conv(1, 64, 10), nn.MaxPool2d(2), *conv(64, 128, 7), nn.MaxPool2d(2), *conv(128, 128, 4), nn.MaxPool2d(2),
            *conv(128, 256, 4), nn.Flatten(), nn.Linear(9216, 512),
        )

    @staticmethod
    def conv(c_in, c_out, kernel):
        return nn.Conv2d(c_in, c_out, kernel), nn.ReLU()

    def forward(self, a, b):
        return F.cosine_similarity(self.vector(a), self.vector(b), 1)


def siamese_cosine():
    model = Siamese()
    return Network(model, {"a": torch.randn(1, 1, 105, 105), "b": torch.randn(1, 1, 105, 105)}, ["similarity"])


NETWORKS = (mlp_mixer, poolformer, mobilevit, efficientvit_linear_attention, siamese_cosine)
