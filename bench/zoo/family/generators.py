"""generators.py - pictures out of noise, latents or other pictures: generators, diffusion, super-resolution."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from .pieces import Network, Residual, sine_steps

# ---- Generators ----


def dcgan_gen():
    def up(c_in, c_out, stride=2, padding=1):
        return nn.ConvTranspose2d(c_in, c_out, 4, stride, padding, bias=False), nn.BatchNorm2d(c_out), nn.ReLU()

    model = nn.Sequential(
        *up(100, 512, 1, 0), *up(512, 256), *up(256, 128), *up(128, 64),
        nn.ConvTranspose2d(64, 3, 4, 2, 1, bias=False), nn.Tanh(),
    )
    axes = {"z": {0: "batch"}, "image": {0: "batch"}}
    return Network(model, {"z": torch.randn(1, 100, 1, 1)}, ["image"], 16, axes)


def cyclegan_gen():
    def norm(c):
        return nn.InstanceNorm2d(c), nn.ReLU()

    def residual(c):
        first = nn.ReflectionPad2d(1), nn.Conv2d(c, c, 3), *norm(c)
        return Residual(*first, nn.ReflectionPad2d(1), nn.Conv2d(c, c, 3), nn.InstanceNorm2d(c))

    model = nn.Sequential(
        nn.ReflectionPad2d(3), nn.Conv2d(3, 64, 7), *norm(64), nn.Conv2d(64, 128, 3, 2, 1), *norm(128),
        nn.Conv2d(128, 256, 3, 2, 1), *norm(256), residual(256), residual(256),
        nn.ConvTranspose2d(256, 128, 3, 2, 1, 1), *norm(128), nn.ConvTranspose2d(128, 64, 3, 2, 1, 1), *norm(64),
        nn.ReflectionPad2d(3), nn.Conv2d(64, 3, 7), nn.Tanh(),
    )
    return Network(model, {"input": torch.randn(1, 3, 128, 128)}, ["output"])


def style_net():
    def conv(c_in, c_out, kernel, stride=1):
        return nn.ReflectionPad2d(kernel // 2), nn.Conv2d(c_in, c_out, kernel, stride)

    def unit(c_in, c_out, kernel, stride=1):
        return *conv(c_in, c_out, kernel, stride), nn.InstanceNorm2d(c_out, affine=True), nn.ReLU()

    def up(c_in, c_out):
        return nn.Upsample(scale_factor=2, mode="nearest"), *unit(c_in, c_out, 3)

    def residual(c):
        return Residual(*unit(c, c, 3), *unit(c, c, 3)[:-1])

    model = nn.Sequential(
        *unit(3, 32, 9), *unit(32, 64, 3, 2), *unit(64, 128, 3, 2), *(residual(128) for _ in range(4)),
        *up(128, 64), *up(64, 32), *conv(32, 3, 9),
    )
    sides = {2: "h", 3: "w"}
    return Network(model, {"image": torch.randn(1, 3, 128, 128)}, ["styled"], 13, {"image": sides, "styled": sides})


# ---- Diffusion ----


class PlaneAttention(nn.Module):
    """Each place of a picture (N, C, H, W) attends to all others; scaled before the product."""

    def __init__(self, c, heads=4):
        super().__init__()
        self.norm, self.heads = nn.GroupNorm(32, c), heads
        self.qkv, self.out = nn.Conv1d(c, 3 * c, 1), nn.Conv1d(c, c, 1)

    def forward(self, x):
        n, c, h, w = x.shape
        qkv = self.qkv(self.norm(x).reshape(n, c, -1)).reshape(n * self.heads, 3 * c // self.heads, -1)
        q, k, v = qkv.chunk(3, 1)
        scale = 1 / math.sqrt(math.sqrt(c // self.heads))
        weights = torch.einsum("bct,bcs->bts", q * scale, k * scale).softmax(-1)
        y = torch.einsum("bts,bcs->bct", weights, v).reshape(n, c, -1)
        return x + self.out(y).reshape(n, c, h, w)


def norm_conv(c_in, c_out):
    return nn.Sequential(nn.GroupNorm(32, c_in), nn.SiLU(), nn.Conv2d(c_in, c_out, 3, 1, 1))


class ResidualUnit(nn.Module):
    """Two convolutions; between them a vector of the time (N, time) is added, if there is one."""

    def __init__(self, c_in, c_out, time=None):
        super().__init__()
        self.first = norm_conv(c_in, c_out)
        self.shift = nn.Sequential(nn.SiLU(), nn.Linear(time, c_out)) if time else None
        self.last = norm_conv(c_out, c_out)
        self.skip = nn.Identity() if c_in == c_out else nn.Conv2d(c_in, c_out, 1)

    def forward(self, x, time=None):
        h = self.first(x)
        if self.shift is not None:
            h = h + self.shift(time)[:, :, None, None]
        return self.skip(x) + self.last(h)


class UpConv(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.conv = nn.Conv2d(c, c, 3, 1, 1)

    def forward(self, x):
        return self.conv(F.interpolate(x, scale_factor=2, mode="nearest"))


class Step(nn.Module):
    """A part that is given the time, and what follows it."""

    def __init__(self, timed, *rest):
        super().__init__()
        self.timed, self.rest = timed, nn.Sequential(*rest)

    def forward(self, x, time):
        return self.rest(self.timed(x, time))


class DiffusionUnet(nn.Module):
    """Noise of a picture (N, 3, H, W) at a time (N): three levels of two units, attention at the second."""

    levels = (1, 2, 2)

    def __init__(self, c=64):
        super().__init__()
        time = 4 * c
        self.time = nn.Sequential(nn.Linear(c, time), nn.SiLU(), nn.Linear(time, time))
        self.first = nn.Conv2d(3, c, 3, 1, 1)
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        widths = self.make_down(c, time)
        wide = widths[-1]
        self.middle1 = Step(ResidualUnit(wide, wide, time), PlaneAttention(wide))
        self.middle2 = ResidualUnit(wide, wide, time)
        self.make_up(c, time, widths)
        self.out = norm_conv(c, 3)
        self.register_buffer("steps", sine_steps(c))

    def make_down(self, c, time):
        """The widths of all stages, which the way up reads again."""
        widths = [c]
        for level, factor in enumerate(self.levels):
            wide = c * factor
            for _ in range(2):
                unit = ResidualUnit(widths[-1], wide, time)
                self.down.append(Step(unit, *([PlaneAttention(wide)] if level == 1 else [])))
                widths.append(wide)
            if level < len(self.levels) - 1:
                self.down.append(nn.Conv2d(wide, wide, 3, 2, 1))
                widths.append(wide)
        return widths

    def make_up(self, c, time, widths):
        before = widths[-1]
        for level, factor in reversed(list(enumerate(self.levels))):
            wide = c * factor
            for i in range(3):
                unit = ResidualUnit(before + widths.pop(), wide, time)
                rest = [PlaneAttention(wide)] if level == 1 else []
                self.up.append(Step(unit, *rest, *([UpConv(wide)] if i == 2 and level else [])))
                before = wide

    def forward(self, x, time):
        angles = time.float()[:, None] * self.steps[None]
        time = self.time(torch.cat([torch.cos(angles), torch.sin(angles)], -1))
        x = self.first(x)
        stages = [x]
        for part in self.down:
            x = part(x) if isinstance(part, nn.Conv2d) else part(x, time)
            stages.append(x)
        x = self.middle2(self.middle1(x, time), time)
        for part in self.up:
            x = part(torch.cat([x, stages.pop()], 1), time)
        return self.out(x)


def diffusion_unet():
    model = DiffusionUnet()
    return Network(model, {"sample": torch.randn(1, 3, 32, 32), "timestep": torch.tensor([437])}, ["noise"], 17)


def vae_decoder():
    model = nn.Sequential(
        nn.Conv2d(4, 4, 1), nn.Conv2d(4, 256, 3, 1, 1), ResidualUnit(256, 256), PlaneAttention(256, 1),
        ResidualUnit(256, 256), UpConv(256), ResidualUnit(256, 128), UpConv(128), ResidualUnit(128, 64),
        *norm_conv(64, 3),
    )
    return Network(model, {"latent": torch.randn(1, 4, 16, 16)}, ["image"])


# ---- Super-resolution ----


def conv3(c_in, c_out):
    return nn.Conv2d(c_in, c_out, 3, 1, 1)


def edsr():
    def block():
        return Residual(conv3(64, 64), nn.ReLU(), conv3(64, 64), scale=0.1)

    model = nn.Sequential(
        conv3(3, 64), Residual(*(block() for _ in range(6)), conv3(64, 64)), conv3(64, 256), nn.PixelShuffle(2),
        conv3(64, 3),
    )
    axes = {"lr": {2: "h", 3: "w"}, "hr": {2: "h2", 3: "w2"}}
    return Network(model, {"lr": torch.randn(1, 3, 48, 48)}, ["hr"], 13, axes)


class DenseBlock(nn.Module):
    """Five convolutions, each of which reads the input and all results before it."""

    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList(conv3(64 + 32 * i, 32 if i < 4 else 64) for i in range(5))

    def forward(self, x):
        parts = [x]
        for conv in self.convs[:4]:
            parts.append(F.leaky_relu(conv(torch.cat(parts, 1) if len(parts) > 1 else x), 0.2))
        return self.convs[4](torch.cat(parts, 1)) * 0.2 + x


def esrgan_blocks():
    def block():
        return Residual(DenseBlock(), DenseBlock(), DenseBlock(), scale=0.2)

    model = nn.Sequential(
        conv3(3, 64), Residual(block(), block(), conv3(64, 64)), nn.Upsample(scale_factor=2, mode="nearest"),
        conv3(64, 64), nn.LeakyReLU(0.2), conv3(64, 64), nn.LeakyReLU(0.2), conv3(64, 3),
    )
    return Network(model, {"lr": torch.randn(1, 3, 32, 32)}, ["hr"])


NETWORKS = (dcgan_gen, cyclegan_gen, style_net, diffusion_unet, vae_decoder, edsr, esrgan_blocks)
