"""series.py - recurrent networks and others of sequences and time series."""

import math

import torch
from torch import nn
from torch.nn import functional as F

import language

from .pieces import Network, causal_mask, tokens

# ---- Recurrent ----


class Crnn(nn.Module):
    """Lines of text (N, 1, 32, W) to log probabilities (W / 4 + 1, N, 37) of letters."""

    def __init__(self):
        super().__init__()
        conv = self.conv
        self.convs = nn.Sequential(
            *conv(1, 64), nn.MaxPool2d(2), *conv(64, 128), nn.MaxPool2d(2), *conv(128, 256, True), *conv(256, 256),
            self.flatten(), *conv(256, 512, True), *conv(512, 512), self.flatten(), *conv(512, 512, True, 2, 0),
        )
        self.lstm1, self.middle = nn.LSTM(512, 256, bidirectional=True), nn.Linear(512, 256)
        self.lstm2, self.out = nn.LSTM(256, 256, bidirectional=True), nn.Linear(512, 37)

    @staticmethod
    def conv(c_in, c_out, norm=False, kernel=3, padding=1):
        conv = nn.Conv2d(c_in, c_out, kernel, 1, padding)
        return [conv, *([nn.BatchNorm2d(c_out)] if norm else []), nn.ReLU()]

    @staticmethod
    def flatten():
        """Halves the height alone."""
        return nn.MaxPool2d((2, 2), (2, 1), (0, 1))

    def forward(self, x):
        x = self.convs(x).squeeze(2).permute(2, 0, 1)
        x = self.middle(self.lstm1(x)[0])
        return self.out(self.lstm2(x)[0]).log_softmax(-1)


def crnn_ocr():
    return Network(Crnn(), {"image": torch.randn(1, 1, 32, 160)}, ["logp"], 13)


def gru_batch16():
    model = language.StreamGru(128, 256, 2)
    return Network(model, {"x": torch.randn(16, 50, 128), "h0": torch.randn(2, 16, 256) * 0.3}, ["y", "hn"])


class LastState(nn.Module):
    """tokens (N, T) to the last state's results (N, 128)."""

    def __init__(self):
        super().__init__()
        self.words, self.lstm = nn.Embedding(5000, 256), nn.LSTM(256, 512, 1, batch_first=True)
        self.out = nn.Linear(512, 128)

    def forward(self, words):
        return self.out(self.lstm(self.words(words))[0][:, -1])


def lstm_batch32():
    return Network(LastState(), {"tokens": tokens(5000, 32, 24)}, ["y"])


# ---- Temporal convolutions ----


class Cut(nn.Module):
    """Takes away what a causal convolution made beyond the end."""

    def __init__(self, count):
        super().__init__()
        self.count = count

    def forward(self, x):
        return x[:, :, : -self.count].contiguous()


class TemporalBlock(nn.Module):
    def __init__(self, c_in, c_out, dilation, kernel=7):
        super().__init__()
        beyond = (kernel - 1) * dilation
        self.body = nn.Sequential(
            nn.Conv1d(c_in, c_out, kernel, padding=beyond, dilation=dilation), Cut(beyond), nn.ReLU(),
            nn.Conv1d(c_out, c_out, kernel, padding=beyond, dilation=dilation), Cut(beyond), nn.ReLU(),
        )
        self.skip = nn.Identity() if c_in == c_out else nn.Conv1d(c_in, c_out, 1)

    def forward(self, x):
        return F.relu(self.body(x) + self.skip(x))


class Tcn(nn.Module):
    """A sequence (N, 1, T) to log probabilities (N, 10), by what the last step sees."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(*(TemporalBlock(64 if i else 1, 64, 1 << i) for i in range(6)))
        self.out = nn.Linear(64, 10)

    def forward(self, x):
        return self.out(self.blocks(x)[:, :, -1]).log_softmax(1)


def tcn():
    return Network(Tcn(), {"x": torch.randn(1, 1, 784)}, ["logp"], 13)


# ---- Forecasts ----


class NBeats(nn.Module):
    """A history (N, 60) to a forecast (N, 12): each block takes away what it explains."""

    def __init__(self, blocks=12, width=512):
        super().__init__()
        sizes = 60, width, width, width, width
        self.blocks = nn.ModuleList(language.mlp(*sizes).append(nn.ReLU()) for _ in range(blocks))
        self.heads = nn.ModuleList(nn.Linear(width, 72) for _ in range(blocks))

    def forward(self, x):
        forecast = 0
        for block, head in zip(self.blocks, self.heads):
            explained, more = head(block(x)).split([60, 12], 1)
            x = x - explained
            forecast = forecast + more
        return forecast


def nbeats():
    axes = {"history": {0: "batch"}, "forecast": {0: "batch"}}
    return Network(NBeats(), {"history": torch.randn(32, 60)}, ["forecast"], 13, axes)


class GatedUnit(nn.Module):
    """Two layers behind a gate, added to the input and normalised; a context (N, ..., width) may be added
    to the first."""

    def __init__(self, c_in, width, c_out=None, context=False):
        super().__init__()
        c_out = c_out or width
        self.first, self.second = nn.Linear(c_in, width), nn.Linear(width, width)
        self.gate = nn.Linear(width, 2 * c_out)
        self.context = nn.Linear(width, width, False) if context else None
        self.skip = nn.Identity() if c_in == c_out else nn.Linear(c_in, c_out)
        self.norm = nn.LayerNorm(c_out)

    def forward(self, x, context=None):
        h = self.first(x)
        if context is not None:
            h = h + self.context(context)
        return self.norm(self.skip(x) + F.glu(self.gate(self.second(F.elu(h))), -1))


class Selection(nn.Module):
    """Variables (N, T, count, width) to their weighted sum (N, T, width)."""

    def __init__(self, count, width):
        super().__init__()
        self.weights = GatedUnit(count * width, width, count, True)
        self.units = nn.ModuleList(GatedUnit(width, width) for _ in range(count))

    def forward(self, x, context):
        weights = self.weights(x.flatten(2), context).softmax(-1).unsqueeze(-1)
        parts = torch.stack([unit(x[:, :, i]) for i, unit in enumerate(self.units)], 2)
        return (parts * weights).sum(2)


class TemporalFusion(nn.Module):
    """Eight variables of 48 past steps, four that are known of 12 future ones, and a kind (N), to three
    quantiles of each future step (N, 12, 3)."""

    past, future, heads = 48, 12, 4

    def __init__(self, width=160):
        super().__init__()
        self.size = width // self.heads
        self.scale, self.offset = nn.Parameter(torch.randn(8, width)), nn.Parameter(torch.randn(8, width))
        self.kinds = nn.Embedding(100, width)
        self.choose, self.hidden, self.cell, self.enrich = (GatedUnit(width, width) for _ in range(4))
        self.select_past, self.select_future = Selection(8, width), Selection(4, width)
        self.lstm_past, self.lstm_future = (nn.LSTM(width, width, batch_first=True) for _ in range(2))
        self.gate1, self.norm1 = nn.Linear(width, 2 * width), nn.LayerNorm(width)
        self.enriched = GatedUnit(width, width, context=True)
        self.q, self.k, self.v = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, self.size)
        self.joined = nn.Linear(self.size, width)
        self.gate2, self.norm2, self.unit = nn.Linear(width, 2 * width), nn.LayerNorm(width), GatedUnit(width, width)
        self.gate3, self.norm3, self.out = nn.Linear(width, 2 * width), nn.LayerNorm(width), nn.Linear(width, 3)
        self.register_buffer("mask", causal_mask(self.past + self.future)[self.past :])

    def encode(self, past, future, kind):
        """What the recurrent networks make of all steps (N, 60, width)."""
        past = past[..., None] * self.scale + self.offset
        past = self.select_past(past, self.choose(kind)[:, None])
        future = future[..., None] * self.scale[:4] + self.offset[:4]
        future = self.select_future(future, self.choose(kind)[:, None])
        y, state = self.lstm_past(past, (self.hidden(kind)[None], self.cell(kind)[None]))
        z, _ = self.lstm_future(future, state)
        x = torch.cat([past, future], 1)
        return self.norm1(x + F.glu(self.gate1(torch.cat([y, z], 1)), -1))

    def attend(self, x):
        """Future steps look at all before them; heads share their values."""
        q = self.q(x[:, self.past :]).view(-1, self.future, self.heads, self.size).transpose(1, 2)
        k = self.k(x).view(-1, self.past + self.future, self.heads, self.size).permute(0, 2, 3, 1)
        weights = (q @ k / math.sqrt(self.size) + self.mask).softmax(-1)
        return self.joined((weights @ self.v(x)[:, None]).mean(1))

    def forward(self, past, future, kind):
        kind = self.kinds(kind)
        x = self.encode(past, future, kind)
        y = self.enriched(x, self.enrich(kind)[:, None])
        h = self.norm2(y[:, self.past :] + F.glu(self.gate2(self.attend(y)), -1))
        return self.out(self.norm3(x[:, self.past :] + F.glu(self.gate3(self.unit(h)), -1)))


def temporal_fusion():
    model = TemporalFusion()
    inputs = {"past": torch.randn(8, 48, 8), "future": torch.randn(8, 12, 4), "static": tokens(100, 8)}
    return Network(model, inputs, ["quantiles"])


NETWORKS = (crnn_ocr, gru_batch16, lstm_batch32, tcn, nbeats, temporal_fusion)
