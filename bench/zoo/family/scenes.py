"""scenes.py - what is where in a picture: detection, segmentation, joints and motion."""

import math
from functools import partial

import torch
from torch import nn
from torch.nn import functional as F

import language
import vision

from .pieces import Attention, BasicBlock, Network, Residual, conv_unit, feed_forward, resnet18_stages

# ---- Segmentation ----


class ReducedLayer(nn.Module):
    """Attention to a picture `reduce` times smaller, and layers with a convolution between them."""

    def __init__(self, width, heads, reduce):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.reduce = nn.Conv2d(width, width, reduce, reduce) if reduce > 1 else None
        self.norm3 = nn.LayerNorm(width) if reduce > 1 else None
        wide = 4 * width
        self.up, self.conv = nn.Linear(width, wide), nn.Conv2d(wide, wide, 3, 1, 1, groups=wide)
        self.down = nn.Linear(wide, width)

    def forward(self, x, height, width):
        n, _, c = x.shape
        h = context = self.norm1(x)
        if self.reduce is not None:
            context = self.reduce(h.permute(0, 2, 1).reshape(n, c, height, width))
            context = self.norm3(context.reshape(n, c, -1).permute(0, 2, 1))
        x = x + self.attention(h, context)
        h = self.up(self.norm2(x))
        h = self.conv(h.transpose(1, 2).reshape(n, -1, height, width)).flatten(2).transpose(1, 2)
        return x + self.down(F.gelu(h))


class SegFormer(nn.Module):
    """(N, 3, H, W) to logits (N, 19, H / 4, W / 4)."""

    widths = 32, 64, 160, 256

    def __init__(self):
        super().__init__()
        sizes = zip((3, *self.widths), self.widths, (7, 3, 3, 3), (4, 2, 2, 2))
        self.patches = nn.ModuleList(nn.Conv2d(a, b, kernel, stride, kernel // 2) for a, b, kernel, stride in sizes)
        self.first, self.last = (nn.ModuleList(nn.LayerNorm(width) for width in self.widths) for _ in range(2))
        sizes = zip(self.widths, (1, 2, 5, 8), (8, 4, 2, 1))
        self.stages = nn.ModuleList(nn.ModuleList(ReducedLayer(*size) for _ in range(2)) for size in sizes)
        self.heads = nn.ModuleList(nn.Linear(width, 256) for width in self.widths)
        self.join, self.out = conv_unit(1024, 256, 1), nn.Conv2d(256, 19, 1)

    def forward(self, x):
        found = []
        for patches, first, last, stage, head in zip(self.patches, self.first, self.last, self.stages, self.heads):
            x = patches(x)
            n, c, height, width = x.shape
            t = first(x.flatten(2).transpose(1, 2))
            for layer in stage:
                t = layer(t, height, width)
            t = last(t)
            x = t.reshape(n, height, width, c).permute(0, 3, 1, 2).contiguous()
            found.append(head(t).permute(0, 2, 1).reshape(n, 256, height, width))
        size = found[0].shape[2:]
        found[1:] = [F.interpolate(y, size=size, mode="bilinear", align_corners=False) for y in found[1:]]
        return self.out(self.join(torch.cat(found[::-1], 1)))


def segformer():
    return Network(SegFormer(), {"image": torch.randn(1, 3, 192, 192)}, ["logits"], 17)


def channel_gate(c, inner=None):
    """Weights (N, C, 1, 1) of channels by their means."""
    if inner:
        parts = nn.Conv2d(c, inner, 1, bias=False), nn.ReLU(), nn.Conv2d(inner, c, 1, bias=False)
    else:
        parts = nn.Conv2d(c, c, 1, bias=False), nn.BatchNorm2d(c)
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), *parts, nn.Sigmoid())


class Refinement(nn.Module):
    def __init__(self, c_in):
        super().__init__()
        self.conv, self.gate = conv_unit(c_in, 128), channel_gate(128)

    def forward(self, x):
        x = self.conv(x)
        return x * self.gate(x)


def doubled(x):
    return F.interpolate(x, scale_factor=2, mode="nearest")


class BiseNet(nn.Module):
    """(N, 3, 192, 192) to logits (N, 19, 192, 192): a deep path for what is seen, a short one for where."""

    def __init__(self):
        super().__init__()
        self.deep = resnet18_stages()
        self.short = nn.Sequential(
            conv_unit(3, 64, 7, 2), conv_unit(64, 64, 3, 2), conv_unit(64, 64, 3, 2), conv_unit(64, 128, 1)
        )
        self.refine16, self.refine32 = Refinement(256), Refinement(512)
        self.head16, self.head32, self.whole = conv_unit(128, 128), conv_unit(128, 128), conv_unit(512, 128, 1)
        self.join, self.gate = conv_unit(256, 256, 1), channel_gate(256, 64)
        self.out = nn.Sequential(conv_unit(256, 256), nn.Conv2d(256, 19, 1, bias=False))

    def context(self, x):
        stages = []
        for stage in self.deep:
            x = stage(x)
            stages.append(x)
        whole = F.interpolate(self.whole(F.adaptive_avg_pool2d(x, 1)), scale_factor=6, mode="nearest")
        y = self.head32(doubled(self.refine32(x) + whole))
        return self.head16(doubled(self.refine16(stages[2]) + y))

    def forward(self, x):
        y = self.join(torch.cat([self.short(x), self.context(x)], 1))
        y = y + y * self.gate(y)
        return F.interpolate(self.out(y), scale_factor=8, mode="bilinear", align_corners=True)


def bisenet():
    return Network(BiseNet(), {"image": torch.randn(1, 3, 192, 192)}, ["logits"])


# ---- Joints ----


class Bottleneck(nn.Module):
    def __init__(self, c_in):
        super().__init__()
        self.body = nn.Sequential(conv_unit(c_in, 64, 1), conv_unit(64, 64), conv_unit(64, 256, 1, act=None))
        self.skip = nn.Identity() if c_in == 256 else conv_unit(c_in, 256, 1, act=None)

    def forward(self, x):
        return F.relu(self.body(x) + self.skip(x))


class Exchange(nn.Module):
    """Pictures of the first `count` widths, each half the size of the one before: two blocks for each, then
    every one becomes the sum of all of them, brought to its size."""

    widths = 18, 36, 72, 144

    def __init__(self, count):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(BasicBlock(c, c), BasicBlock(c, c)) for c in self.widths[:count])
        self.ways = nn.ModuleList(nn.ModuleList(self.way(j, i) for j in range(count)) for i in range(count))

    def way(self, source, target):
        c_in, c_out, steps = self.widths[source], self.widths[target], target - source
        if steps == 0:
            return nn.Identity()
        if steps < 0:
            up = nn.Upsample(scale_factor=2**-steps, mode="nearest")
            return nn.Sequential(conv_unit(c_in, c_out, 1, act=None), up)
        down = [conv_unit(c_in, c_in, 3, 2) for _ in range(steps - 1)]
        return nn.Sequential(*down, conv_unit(c_in, c_out, 3, 2, act=None))

    def forward(self, pictures):
        pictures = [block(x) for block, x in zip(self.blocks, pictures)]
        found = []
        for first, *others in self.ways:
            y = first(pictures[0])
            for way, x in zip(others, pictures[1:]):
                y = y + way(x)
            found.append(F.relu(y))
        return found


class Hrnet(nn.Module):
    """(N, 3, H, W) to heat maps of 17 joints (N, 17, H / 4, W / 4)."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(conv_unit(3, 64, 3, 2), conv_unit(64, 64, 3, 2), Bottleneck(64), Bottleneck(256))
        self.start1, self.start2 = conv_unit(256, 18), conv_unit(256, 36, 3, 2)
        self.start3, self.start4 = conv_unit(36, 72, 3, 2), conv_unit(72, 144, 3, 2)
        self.exchange2, self.exchange3, self.exchange4 = Exchange(2), Exchange(3), Exchange(4)
        self.out = nn.Conv2d(18, 17, 1)

    def forward(self, x):
        x = self.stem(x)
        x = self.exchange2([self.start1(x), self.start2(x)])
        x = self.exchange3(x + [self.start3(x[-1])])
        x = self.exchange4(x + [self.start4(x[-1])])
        return self.out(x[0])


def hrnet_small():
    return Network(Hrnet(), {"image": torch.randn(1, 3, 192, 192)}, ["heatmaps"], 13)


# ---- Detection ----


class DetrEncoderLayer(nn.Module):
    """Places are added to queries and keys of each layer, but not to values (T, N, C)."""

    def __init__(self, width=256):
        super().__init__()
        self.attention, self.mlp = nn.MultiheadAttention(width, 8), feed_forward(width, 2048, nn.ReLU)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x, places):
        q = x + places
        x = self.norm1(x + self.attention(q, q, x, need_weights=False)[0])
        return self.norm2(x + self.mlp(x))


class DetrDecoderLayer(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.own, self.cross = nn.MultiheadAttention(width, 8), nn.MultiheadAttention(width, 8)
        self.mlp = feed_forward(width, 2048, nn.ReLU)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(width) for _ in range(3))

    def forward(self, x, queries, memory, places):
        q = x + queries
        x = self.norm1(x + self.own(q, q, x, need_weights=False)[0])
        x = self.norm2(x + self.cross(x + queries, memory + places, memory, need_weights=False)[0])
        return self.norm3(x + self.mlp(x))


class Detr(nn.Module):
    """(N, 3, H, W) to the classes (N, 100, 92) and boxes (N, 100, 4) of 100 queries."""

    def __init__(self, width=256):
        super().__init__()
        self.backbone, self.narrow = resnet18_stages(), nn.Conv2d(512, width, 1)
        self.queries = nn.Parameter(torch.randn(100, 1, width))
        self.rows, self.columns = (nn.Parameter(torch.randn(50, width // 2)) for _ in range(2))
        self.encoder = nn.ModuleList(DetrEncoderLayer(width) for _ in range(2))
        self.decoder = nn.ModuleList(DetrDecoderLayer(width) for _ in range(2))
        self.norm, self.classes = nn.LayerNorm(width), nn.Linear(width, 92)
        self.boxes = language.mlp(width, width, width, 4)

    def places(self, height, width):
        columns = self.columns[:width].unsqueeze(0).repeat(height, 1, 1)
        rows = self.rows[:height].unsqueeze(1).repeat(1, width, 1)
        return torch.cat([columns, rows], -1).flatten(0, 1).unsqueeze(1)

    def forward(self, x):
        for stage in self.backbone:
            x = stage(x)
        x = self.narrow(x)
        places = self.places(*x.shape[-2:])
        x = x.flatten(2).permute(2, 0, 1)
        for layer in self.encoder:
            x = layer(x, places)
        y = torch.zeros_like(self.queries)
        for layer in self.decoder:
            y = layer(y, self.queries, x, places)
        y = self.norm(y).transpose(0, 1)
        return self.classes(y), self.boxes(y).sigmoid()


def detr():
    return Network(Detr(), {"image": torch.randn(1, 3, 192, 192)}, ["logits", "boxes"])


def leaky_unit(c_in, c_out, kernel=3):
    return conv_unit(c_in, c_out, kernel, act=partial(nn.LeakyReLU, 0.1))


class YoloV3Tiny(nn.Module):
    """(N, 3, H, W) to what each cell of two grids says, (N, 255, H / 32, W / 32) and twice as fine."""

    def __init__(self):
        super().__init__()
        unit = leaky_unit
        self.fine = nn.Sequential(unit(3, 16))
        for c in (16, 32, 64, 128):
            self.fine.append(nn.MaxPool2d(2, 2)).append(unit(c, 2 * c))
        self.coarse = nn.Sequential(
            nn.MaxPool2d(2, 2), unit(256, 512), nn.ZeroPad2d((0, 1, 0, 1)), nn.MaxPool2d(2, 1), unit(512, 1024),
            unit(1024, 256, 1),
        )
        self.out5 = nn.Sequential(unit(256, 512), nn.Conv2d(512, 255, 1))
        self.up = nn.Sequential(unit(256, 128, 1), nn.Upsample(scale_factor=2))
        self.out4 = nn.Sequential(unit(384, 256), nn.Conv2d(256, 255, 1))

    def forward(self, x):
        fine = self.fine(x)
        coarse = self.coarse(fine)
        return self.out5(coarse), self.out4(torch.cat([self.up(coarse), fine], 1))


def yolov3_tiny():
    return Network(YoloV3Tiny(), {"image": torch.randn(1, 3, 416, 416)}, ["p5", "p4"], 13)


class JoinedBlock(nn.Module):
    """Two ways of half the width, one of which has `depth` pairs of convolutions, joined."""

    def __init__(self, c_in, c_out, depth=1, add=True):
        super().__init__()
        unit, half = vision.ConvUnit, c_out // 2
        self.long, self.short, self.join = unit(c_in, half, 1), unit(c_in, half, 1), unit(2 * half, c_out, 1)
        kind = Residual if add else nn.Sequential
        self.units = nn.Sequential(*(kind(unit(half, half, 1), unit(half, half)) for _ in range(depth)))

    def forward(self, x):
        return self.join(torch.cat((self.units(self.long(x)), self.short(x)), 1))


class YoloV5(nn.Module):
    """A detector of the YOLOv5 kind with its boxes worked out: (1, 3, 320, 320) to (1, 6300, 85)."""

    sides = 40, 20, 10

    def __init__(self):
        super().__init__()
        unit, block = vision.ConvUnit, JoinedBlock
        self.stage3 = nn.Sequential(
            conv_unit(3, 32, 6, 2, nn.SiLU, padding=2), unit(32, 64, 3, 2), block(64, 64), unit(64, 128, 3, 2),
            block(128, 128, 2),
        )
        self.stage4 = nn.Sequential(unit(128, 256, 3, 2), block(256, 256, 3))
        self.stage5 = nn.Sequential(unit(256, 512, 3, 2), block(512, 512), vision.Pyramid(512))
        self.up = nn.Upsample(scale_factor=2)
        self.narrow5, self.up4 = unit(512, 256, 1), block(512, 256, 1, False)
        self.narrow4, self.up3 = unit(256, 128, 1), block(256, 128, 1, False)
        self.down3, self.mid4 = unit(128, 128, 3, 2), block(256, 256, 1, False)
        self.down4, self.mid5 = unit(256, 256, 3, 2), block(512, 512, 1, False)
        self.heads = nn.ModuleList(nn.Conv2d(c, 255, 1) for c in (128, 256, 512))
        for i, side in enumerate(self.sides):
            rows, columns = torch.meshgrid(*[torch.arange(side).float()] * 2, indexing="ij")
            self.register_buffer("grid%d" % i, torch.stack([columns, rows], -1)[None, None] - 0.5)
            self.register_buffer("anchors%d" % i, torch.rand(1, 3, 1, 1, 2) * 30 * 2**i + 10)

    def boxes(self, x, i):
        side = self.sides[i]
        y = self.heads[i](x).view(1, 3, 85, side, side).permute(0, 1, 3, 4, 2).contiguous().sigmoid()
        centre, size, scores = y.split((2, 2, 81), 4)
        centre = (centre * 2 + getattr(self, "grid%d" % i)) * (8 << i)
        size = (size * 2) ** 2 * getattr(self, "anchors%d" % i)
        return torch.cat((centre, size, scores), 4).view(1, 3 * side * side, 85)

    def forward(self, x):
        a = self.stage3(x)
        b = self.stage4(a)
        c = self.narrow5(self.stage5(b))
        d = self.narrow4(self.up4(torch.cat([self.up(c), b], 1)))
        p3 = self.up3(torch.cat([self.up(d), a], 1))
        p4 = self.mid4(torch.cat([self.down3(p3), d], 1))
        p5 = self.mid5(torch.cat([self.down4(p4), c], 1))
        return torch.cat([self.boxes(p, i) for i, p in enumerate((p3, p4, p5))], 1)


def yolov5s_like():
    return Network(YoloV5(), {"image": torch.rand(1, 3, 320, 320)}, ["detections"])


# ---- Motion ----


class RaftStep(nn.Module):
    """Two steps that refine the motion (1, 2, H, W) between two pictures' features (1, 128, H, W): how alike
    places are is looked up around where each is thought to have moved, at four scales, and a convolutional
    GRU with the state `net` decides."""

    height, width, radius = 24, 32, 3

    def __init__(self):
        super().__init__()
        conv = nn.Conv2d
        self.alike, self.motion1, self.motion2 = conv(196, 96, 1), conv(2, 64, 7, 1, 3), conv(64, 32, 3, 1, 1)
        self.join = conv(128, 80, 3, 1, 1)
        self.update, self.reset, self.new = (conv(96 + 146, 96, 3, 1, 1) for _ in range(3))
        self.head = nn.Sequential(conv(96, 128, 3, 1, 1), nn.ReLU(), conv(128, 2, 3, 1, 1))
        steps = torch.linspace(-self.radius, self.radius, 2 * self.radius + 1)
        around = torch.stack(torch.meshgrid(steps, steps, indexing="ij"), -1)
        self.register_buffer("around", around[None])
        sides = torch.arange(self.height).float(), torch.arange(self.width).float()
        rows, columns = torch.meshgrid(*sides, indexing="ij")
        self.register_buffer("places", torch.stack([columns, rows])[None])

    def likeness(self, a, b):
        """How alike each place of `a` is to all of `b` (HW, 1, H, W), and at three coarser scales."""
        count = self.height * self.width
        products = torch.matmul(a.view(1, 128, count).transpose(1, 2), b.view(1, 128, count)) / math.sqrt(128.0)
        scales = [products.view(count, 1, self.height, self.width)]
        for _ in range(3):
            scales.append(F.avg_pool2d(scales[-1], 2, 2))
        return scales

    def look_up(self, scales, flow):
        where = (self.places + flow).permute(0, 2, 3, 1).reshape(self.height * self.width, 1, 1, 2)
        found = []
        for i, likeness in enumerate(scales):
            height, width = self.height >> i, self.width >> i
            x, y = (where / 2**i + self.around).split([1, 1], -1)
            grid = torch.cat([2 * x / (width - 1) - 1, 2 * y / (height - 1) - 1], -1)
            sampled = F.grid_sample(likeness, grid, align_corners=True)
            found.append(sampled.view(1, self.height, self.width, (2 * self.radius + 1) ** 2))
        return torch.cat(found, -1).permute(0, 3, 1, 2).contiguous()

    def refine(self, scales, net, context, flow):
        alike = F.relu(self.alike(self.look_up(scales, flow)))
        motion = F.relu(self.motion2(F.relu(self.motion1(flow))))
        motion = torch.cat([F.relu(self.join(torch.cat([alike, motion], 1))), flow], 1)
        x = torch.cat([context, motion], 1)
        both = torch.cat([net, x], 1)
        z, r = torch.sigmoid(self.update(both)), torch.sigmoid(self.reset(both))
        q = torch.tanh(self.new(torch.cat([r * net, x], 1)))
        net = (1 - z) * net + z * q
        return net, flow + self.head(net)

    def forward(self, a, b, net, context, flow):
        scales = self.likeness(a, b)
        for _ in range(2):
            net, flow = self.refine(scales, net, context, flow)
        return flow, net


def raft_small_step():
    model, size = RaftStep(), (RaftStep.height, RaftStep.width)
    inputs = {
        "fmap1": torch.randn(1, 128, *size), "fmap2": torch.randn(1, 128, *size),
        "net": torch.randn(1, 96, *size).tanh(), "inp": torch.randn(1, 64, *size).relu(),
        "flow": torch.randn(1, 2, *size) * 2,
    }
    return Network(model, inputs, ["flow_out", "net_out"])


NETWORKS = (segformer, bisenet, hrnet_small, detr, yolov3_tiny, yolov5s_like, raft_small_step)
