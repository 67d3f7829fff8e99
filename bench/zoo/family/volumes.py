"""volumes.py - networks over three axes: segmentation of volumes, and video."""

import torch
from torch import nn
from torch.nn import functional as F

from .pieces import Network

# ---- Segmentation of volumes ----


class DoubleConv(nn.Sequential):
    def __init__(self, c_in, c_middle, c_out):
        super().__init__(
            nn.Conv3d(c_in, c_middle, 3, 1, 1, bias=False), nn.BatchNorm3d(c_middle), nn.ReLU(),
            nn.Conv3d(c_middle, c_out, 3, 1, 1, bias=False), nn.BatchNorm3d(c_out), nn.ReLU(),
        )


class UNet3d(nn.Module):
    """(N, 1, D, H, W) to probabilities (N, 3, D, H, W)."""

    def __init__(self):
        super().__init__()
        self.down1, self.down2, self.down3 = DoubleConv(1, 8, 16), DoubleConv(16, 16, 32), DoubleConv(32, 32, 64)
        self.pool = nn.MaxPool3d(2)
        self.up2, self.up1 = nn.ConvTranspose3d(64, 64, 2, 2), nn.ConvTranspose3d(32, 32, 2, 2)
        self.join2, self.join1 = DoubleConv(96, 32, 32), DoubleConv(48, 16, 16)
        self.out = nn.Conv3d(16, 3, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(self.pool(a))
        c = self.down3(self.pool(b))
        b = self.join2(torch.cat([self.up2(c), b], 1))
        return self.out(self.join1(torch.cat([self.up1(b), a], 1))).softmax(1)


def unet3d():
    return Network(UNet3d(), {"volume": torch.randn(1, 1, 32, 32, 32)}, ["seg"], 13)


class VnetLevel(nn.Module):
    """`depth` wide convolutions, added to the input."""

    def __init__(self, c, depth):
        super().__init__()
        self.body = nn.Sequential(nn.Conv3d(c, c, 5, 1, 2), nn.BatchNorm3d(c))
        for _ in range(depth - 1):
            for part in (nn.PReLU(c), nn.Conv3d(c, c, 5, 1, 2), nn.BatchNorm3d(c)):
                self.body.append(part)
        self.act = nn.PReLU(c)

    def forward(self, x):
        return self.act(self.body(x) + x)


def vnet_unit(conv, c_out):
    return nn.Sequential(conv, nn.BatchNorm3d(c_out), nn.PReLU(c_out))


def vnet_down(c_in, c_out):
    return vnet_unit(nn.Conv3d(c_in, c_out, 2, 2), c_out)


def vnet_up(c_in, c_out):
    return vnet_unit(nn.ConvTranspose3d(c_in, c_out, 2, 2), c_out)


class Vnet(nn.Module):
    """(N, 1, D, H, W) to log probabilities (N D H W, 2)."""

    def __init__(self):
        super().__init__()
        self.first, self.act = nn.Sequential(nn.Conv3d(1, 16, 5, 1, 2), nn.BatchNorm3d(16)), nn.PReLU(16)
        self.down1, self.level1 = vnet_down(16, 32), VnetLevel(32, 2)
        self.down2, self.level2 = vnet_down(32, 64), VnetLevel(64, 2)
        self.up2, self.join2 = vnet_up(64, 32), VnetLevel(64, 1)
        self.up1, self.join1 = vnet_up(64, 16), VnetLevel(32, 1)
        self.out = nn.Sequential(*vnet_unit(nn.Conv3d(32, 2, 5, 1, 2), 2), nn.Conv3d(2, 2, 1))

    def forward(self, x):
        a = self.act(self.first(x) + x.repeat(1, 16, 1, 1, 1))
        b = self.level1(self.down1(a))
        c = self.level2(self.down2(b))
        b = self.join2(torch.cat([self.up2(c), b], 1))
        a = self.join1(torch.cat([self.up1(b), a], 1))
        y = self.out(a).permute(0, 2, 3, 4, 1).contiguous()
        return y.view(-1, 2).log_softmax(1)


def vnet():
    return Network(Vnet(), {"volume": torch.randn(1, 1, 16, 24, 24)}, ["logp"])


# ---- Video ----


class CausalUnit(nn.Module):
    """A convolution that sees no later frame, normalisation and, if asked for, an activation."""

    def __init__(self, c_in, c_out, kernel=(1, 1, 1), stride=(1, 1, 1), groups=1, act=True):
        super().__init__()
        time, rows, columns = kernel
        self.padding = columns // 2, columns // 2, rows // 2, rows // 2, time - 1, 0
        self.conv = nn.Conv3d(c_in, c_out, kernel, stride, groups=groups, bias=False)
        self.norm, self.act = nn.BatchNorm3d(c_out), nn.Hardswish() if act else nn.Identity()

    def forward(self, x):
        return self.act(self.norm(self.conv(F.pad(x, self.padding) if any(self.padding) else x)))


class Squeeze(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.down, self.up = nn.Conv3d(c, c // 4, 1), nn.Conv3d(c // 4, c, 1)

    def forward(self, x):
        mean = x.mean([2, 3, 4], keepdim=True)
        return x * F.hardsigmoid(self.up(F.hardswish(self.down(mean))))


class VideoBlock(nn.Module):
    """Wider, by each channel alone, weighed, and narrower again; added to the input if sizes agree."""

    def __init__(self, c_in, wide, c_out, kernel, stride=1):
        super().__init__()
        self.body = nn.Sequential(
            CausalUnit(c_in, wide), CausalUnit(wide, wide, kernel, (1, stride, stride), wide), Squeeze(wide),
            CausalUnit(wide, c_out, act=False),
        )
        self.add = stride == 1 and c_in == c_out

    def forward(self, x):
        return x + self.body(x) if self.add else self.body(x)


def movinet_like():
    flat, short, long, block = (1, 5, 5), (3, 3, 3), (5, 3, 3), VideoBlock
    model = nn.Sequential(
        CausalUnit(3, 8, (1, 3, 3), (1, 2, 2)), block(8, 24, 8, flat, 2), block(8, 80, 32, short, 2),
        block(32, 80, 32, short), block(32, 80, 32, short), block(32, 184, 56, long, 2), block(56, 112, 56, short),
        block(56, 184, 56, short), block(56, 184, 56, long), block(56, 384, 104, long, 2), block(104, 280, 104, flat),
        block(104, 280, 104, flat), CausalUnit(104, 480), nn.AdaptiveAvgPool3d(1), nn.Flatten(),
        nn.Linear(480, 2048), nn.Hardswish(), nn.Linear(2048, 600),
    )
    return Network(model, {"video": torch.randn(1, 3, 8, 160, 160)}, ["logits"])


NETWORKS = (unet3d, vnet, movinet_like)
