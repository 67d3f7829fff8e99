"""speech.py - recognition, separation and synthesis of sound, by convolutions over time and Transformers."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from .pieces import Attention, Layer, Network, Residual, cache_names, feed_forward, open_axes, sine_steps, tokens

# ---- Whisper ----


class WhisperEncoder(nn.Module):
    """Spectra (N, 80, 750) to states (N, 375, 384)."""

    def __init__(self, width=384):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv1d(80, width, 3, 1, 1), nn.Conv1d(width, width, 3, 2, 1)
        self.places = nn.Parameter(torch.randn(375, width) * 0.3)
        self.layers = nn.ModuleList(Layer(width, 6, 4 * width) for _ in range(4))
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        x = F.gelu(self.conv2(F.gelu(self.conv1(x)))).permute(0, 2, 1) + self.places
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


def whisper_encoder():
    return Network(WhisperEncoder(), {"mel": torch.randn(1, 80, 750)}, ["last_hidden_state"], 17)


class WhisperLayer(nn.Module):
    """Attention to what was said, whose keys and values are kept, and to the sound, whose are given."""

    def __init__(self, width):
        super().__init__()
        self.own, self.cross = Attention(width, 6, key_bias=False), Attention(width, 6, key_bias=False)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(width) for _ in range(3))
        self.mlp = feed_forward(width, 4 * width)

    def forward(self, x, past_key, past_value, cross_key, cross_value):
        own, cross, h = self.own, self.cross, self.norm1(x)
        key = torch.cat([past_key, own.split(own.k(h))], 2)
        value = torch.cat([past_value, own.split(own.v(h))], 2)
        x = x + own.attend(own.split(own.q(h)), key, value)
        x = x + cross.attend(cross.split(cross.q(self.norm2(x))), cross_key, cross_value)
        return x + self.mlp(self.norm3(x)), key, value


class WhisperDecoder(nn.Module):
    """tokens (N, T), past keys and values (N, 6, P, 64) and the sound's (N, 6, 375, 64) to logits and new
    ones. Logits are products with the words' own vectors."""

    layers_count = 4

    def __init__(self, words=12966, width=384):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(448, width)
        self.layers = nn.ModuleList(WhisperLayer(width) for _ in range(self.layers_count))
        self.norm = nn.LayerNorm(width)

    def forward(self, words, *caches):
        past, cross = caches[: 2 * self.layers_count], caches[2 * self.layers_count :]
        x = self.words(words) + self.places.weight[past[0].shape[2] : past[0].shape[2] + words.shape[1]]
        present = []
        for i, layer in enumerate(self.layers):
            x, key, value = layer(x, *past[2 * i : 2 * i + 2], *cross[2 * i : 2 * i + 2])
            present += [key, value]
        return (torch.matmul(self.norm(x), self.words.weight.t()), *present)


def whisper_decoder():
    model = WhisperDecoder()
    past, cross, present = (cache_names(kind, model.layers_count) for kind in ("past", "cross", "present"))
    inputs = {"input_ids": tokens(12966, 1, 1)}
    inputs.update({name: torch.randn(1, 6, 32, 64) for name in past})
    inputs.update({name: torch.randn(1, 6, 375, 64) for name in cross})
    axes = {**open_axes(past, {2: "past"}), **open_axes(present, {2: "total"})}
    return Network(model, inputs, ["logits", *present], 17, axes)


# ---- wav2vec 2.0 ----


class Wav2Vec2(nn.Module):
    """Samples (N, L) to logits (N, T, 32); a wide convolution tells where places are."""

    windows = (10, 5), (3, 2), (3, 2), (3, 2), (3, 2), (2, 2), (2, 2)

    def __init__(self, width=768):
        super().__init__()
        self.features = nn.Sequential(*self.make_features())
        self.norm1, self.widen = nn.LayerNorm(512), nn.Linear(512, width)
        self.places = nn.Conv1d(width, width, 128, padding=64, groups=16)
        self.norm2 = nn.LayerNorm(width)
        self.layers = nn.ModuleList(Layer(width, 12, 4 * width, before=False) for _ in range(2))
        self.out = nn.Linear(width, 32)

    def make_features(self):
        for i, (kernel, stride) in enumerate(self.windows):
            yield nn.Conv1d(512 if i else 1, 512, kernel, stride, bias=False)
            if i == 0:
                yield nn.GroupNorm(512, 512)
            yield nn.GELU()

    def forward(self, samples):
        x = self.widen(self.norm1(self.features(samples[:, None]).transpose(1, 2)))
        places = F.gelu(self.places(x.transpose(1, 2))[:, :, :-1])
        x = self.norm2(x + places.transpose(1, 2))
        for layer in self.layers:
            x = layer(x)
        return self.out(x)


def wav2vec2():
    return Network(Wav2Vec2(), {"input_values": torch.randn(1, 8000)}, ["logits"])


# ---- Conformer ----


class RelativeAttention(nn.Module):
    """Attention of x (N, T, C) to itself with scores for how far apart two places are (1, 2T - 1, C)."""

    def __init__(self, width=256, heads=4):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
        self.p = nn.Linear(width, width, bias=False)
        self.content, self.place = (nn.Parameter(torch.randn(heads, self.size) * 0.1) for _ in range(2))

    def shift(self, x, n, length):
        """Scores by distance (N, heads, T, 2T - 1) to scores by place (N, heads, T, T)."""
        count = x.shape[3]
        x = F.pad(x, (1, 0)).view(n, self.heads, count + 1, length)
        return x[:, :, 1:].reshape(n, self.heads, length, count)[:, :, :, :length]

    def forward(self, x, places):
        n, length, width = x.shape
        q = self.q(x).view(n, length, self.heads, self.size)
        k = self.k(x).view(n, length, self.heads, self.size).permute(0, 2, 3, 1)
        v = self.v(x).view(n, length, self.heads, self.size).transpose(1, 2)
        p = self.p(places).view(1, -1, self.heads, self.size).permute(0, 2, 3, 1)
        by_content = torch.matmul((q + self.content).transpose(1, 2), k)
        by_place = self.shift(torch.matmul((q + self.place).transpose(1, 2), p), n, length)
        weights = ((by_content + by_place) / math.sqrt(self.size)).softmax(-1)
        return self.out(torch.matmul(weights, v).transpose(1, 2).reshape(n, length, width))


class ConformerLayer(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.first, self.last = (
            nn.Sequential(nn.LayerNorm(width), *feed_forward(width, 1024, nn.SiLU)) for _ in range(2)
        )
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(width) for _ in range(3))
        self.attention = RelativeAttention(width)
        self.conv = nn.Sequential(
            nn.Conv1d(width, 2 * width, 1), nn.GLU(1), nn.Conv1d(width, width, 31, padding=15, groups=width),
            nn.BatchNorm1d(width), nn.SiLU(), nn.Conv1d(width, width, 1),
        )

    def forward(self, x, places):
        x = x + 0.5 * self.first(x)
        x = x + self.attention(self.norm1(x), places)
        x = x + self.conv(self.norm2(x).transpose(1, 2)).transpose(1, 2)
        return self.norm3(x + 0.5 * self.last(x))


class Conformer(nn.Module):
    """Features (N, T, 320) of at most 512 steps to log probabilities (N, T, 128)."""

    longest = 512

    def __init__(self, width=256):
        super().__init__()
        self.first = nn.Sequential(nn.Linear(320, width), nn.LayerNorm(width))
        self.layers, self.out = nn.ModuleList(ConformerLayer(width) for _ in range(4)), nn.Linear(width, 128)
        angles = torch.arange(self.longest - 1, -self.longest, -1).float()[:, None] * sine_steps(width)
        self.register_buffer("places", torch.stack([angles.sin(), angles.cos()], -1).reshape(1, -1, width))

    def forward(self, x):
        length = x.shape[1]
        places = self.places[:, self.longest - length : self.longest - 1 + length]
        x = self.first(x)
        for layer in self.layers:
            x = layer(x, places)
        return self.out(x).log_softmax(-1)


def conformer():
    axes = {"feats": {1: "time"}, "log_probs": {1: "time"}}
    return Network(Conformer(), {"feats": torch.randn(1, 200, 320)}, ["log_probs"], 16, axes)


# ---- Conv-TasNet ----


class GlobalNorm(nn.Module):
    """Normalises over channels and time (N, C, T), written out."""

    def __init__(self, c):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(1, c, 1) * 0.4 + 0.8)
        self.bias = nn.Parameter(torch.randn(1, c, 1) * 0.1)

    def forward(self, x):
        mean = x.mean(1, keepdim=True).mean(2, keepdim=True)
        variance = ((x - mean) ** 2).mean(1, keepdim=True).mean(2, keepdim=True)
        return self.weight * (x - mean) / torch.pow(variance + 1e-8, 0.5) + self.bias


def separator_block(narrow, wide, dilation):
    def conv(c_in, c_out, **more):
        return nn.Conv1d(c_in, c_out, bias=False, **more)

    return Residual(
        conv(narrow, wide, kernel_size=1), nn.PReLU(), GlobalNorm(wide),
        conv(wide, wide, kernel_size=3, padding=dilation, dilation=dilation, groups=wide), nn.PReLU(), GlobalNorm(wide),
        conv(wide, narrow, kernel_size=1),
    )


class ConvTasnet(nn.Module):
    """A mixture (N, L) to two sources (N, 2, L): masks of learnt features."""

    def __init__(self, features=256, window=20, narrow=128, wide=256):
        super().__init__()
        self.count = features
        self.encode = nn.Conv1d(1, features, window, window // 2, bias=False)
        self.norm, self.first = GlobalNorm(features), nn.Conv1d(features, narrow, 1, bias=False)
        self.blocks = nn.Sequential(*(separator_block(narrow, wide, 1 << i) for _ in range(2) for i in range(8)))
        self.masks = nn.Conv1d(narrow, 2 * features, 1, bias=False)
        self.decode = nn.ConvTranspose1d(features, 1, window, window // 2, bias=False)

    def forward(self, mixture):
        n = mixture.shape[0]
        x = F.relu(self.encode(mixture[:, None]))
        masks = F.relu(self.masks(self.blocks(self.first(self.norm(x))))).view(n, 2, self.count, -1)
        return self.decode((x[:, None] * masks).view(2 * n, self.count, -1)).view(n, 2, -1)


def conv_tasnet():
    return Network(ConvTasnet(), {"mixture": torch.randn(1, 8000)}, ["sources"])


# ---- Synthesis ----


class WaveNet(nn.Module):
    """Samples (N, T) as one of 256 levels to logits (N, 256, T) of the next: gated causal convolutions
    whose dilation doubles, and the sum of what each of them skips to the end."""

    dilations = tuple(1 << i for i in range(10))

    def __init__(self, width=64, skip=256):
        super().__init__()
        self.levels = nn.Embedding(256, width)
        self.gated = nn.ModuleList(nn.Conv1d(width, 2 * width, 2, dilation=d) for d in self.dilations)
        self.residual = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in self.dilations)
        self.skip = nn.ModuleList(nn.Conv1d(width, skip, 1) for _ in self.dilations)
        self.out = nn.Sequential(nn.ReLU(), nn.Conv1d(skip, skip, 1), nn.ReLU(), nn.Conv1d(skip, 256, 1))

    def forward(self, samples):
        x, skipped = self.levels(samples).transpose(1, 2), 0
        for dilation, gated, residual, skip in zip(self.dilations, self.gated, self.residual, self.skip):
            a, b = gated(F.pad(x, (dilation, 0))).chunk(2, 1)
            h = torch.tanh(a) * torch.sigmoid(b)
            skipped = skipped + skip(h)
            x = x + residual(h)
        return self.out(skipped)


def wavenet():
    return Network(WaveNet(), {"mulaw": tokens(256, 1, 1600)}, ["logits"], 13)


def dilated_block(c, kernel):
    """Three residual pairs of convolutions, the first of a pair ever wider."""

    def conv(dilation):
        return nn.Conv1d(c, c, kernel, padding=dilation * (kernel - 1) // 2, dilation=dilation)

    return nn.Sequential(*(Residual(nn.LeakyReLU(0.1), conv(d), nn.LeakyReLU(0.1), conv(1)) for d in (1, 3, 5)))


class HifiGan(nn.Module):
    """Spectra (N, 80, T) to samples (N, 1, 256 T): at each stage the mean of three blocks."""

    stages = (8, 16), (8, 16), (2, 4), (2, 4)

    def __init__(self, c=128):
        super().__init__()
        self.first = nn.Conv1d(80, c, 7, padding=3)
        self.up, self.blocks = nn.ModuleList(), nn.ModuleList()
        for factor, kernel in self.stages:
            self.up.append(nn.ConvTranspose1d(c, c // 2, kernel, factor, (kernel - factor) // 2))
            c //= 2
            self.blocks.append(nn.ModuleList(dilated_block(c, kernel) for kernel in (3, 7, 11)))
        self.last = nn.Conv1d(c, 1, 7, padding=3)

    def forward(self, x):
        x = self.first(x)
        for up, (first, *others) in zip(self.up, self.blocks):
            x = up(F.leaky_relu(x, 0.1))
            x = sum([block(x) for block in others], first(x)) / 3
        return torch.tanh(self.last(F.leaky_relu(x)) * 0.02)


def hifigan():
    axes = {"mel": {2: "frames"}, "wave": {2: "samples"}}
    return Network(HifiGan(), {"mel": torch.randn(1, 80, 40)}, ["wave"], 16, axes)


NETWORKS = (whisper_encoder, whisper_decoder, wav2vec2, conformer, conv_tasnet, wavenet, hifigan)
