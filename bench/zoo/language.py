"""language.py - encoders and decoders of text, recurrent networks and plain layers, as exporters of
the well-known model libraries write them: shapes are asked for, not known."""

import torch
from torch import nn


def vary(model):
    """Scales and offsets of normalisations that are not 1 and 0."""
    for m in model.modules():
        if isinstance(m, nn.LayerNorm):
            nn.init.uniform_(m.weight, 0.5, 1.5)
            nn.init.normal_(m.bias, 0, 0.1)
        if isinstance(m, RmsNorm):
            nn.init.uniform_(m.weight, 0.5, 1.5)
    return model.eval()


# ---- BERT ----


class EncoderAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, width)

    def split(self, x):
        return x.view(x.size()[:-1] + (self.heads, self.size)).permute(0, 2, 1, 3)

    def forward(self, x, mask):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = torch.matmul(q, k.transpose(-1, -2)) / self.size**0.5 + mask
        y = torch.matmul(scores.softmax(-1), v).permute(0, 2, 1, 3).contiguous()
        return self.out(y.view(y.size()[:-2] + (self.heads * self.size,)))


class EncoderLayer(nn.Module):
    """Normalises after each part."""

    def __init__(self, width, heads):
        super().__init__()
        self.attention = EncoderAttention(width, heads)
        self.norm1, self.norm2 = nn.LayerNorm(width, 1e-12), nn.LayerNorm(width, 1e-12)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, mask):
        x = self.norm1(self.attention(x, mask) + x)
        return self.norm2(self.mlp(x) + x)


class Encoder(nn.Module):
    """tokens, mask and kinds (N, T) to states (N, T, C)."""

    def __init__(self, vocabulary, width, heads, layers):
        super().__init__()
        self.words, self.places, self.kinds = nn.Embedding(vocabulary, width), nn.Embedding(512, width), nn.Embedding(2, width)
        self.register_buffer("numbers", torch.arange(512).expand((1, -1)))
        self.norm = nn.LayerNorm(width, 1e-12)
        self.layers = nn.ModuleList(EncoderLayer(width, heads) for _ in range(layers))

    def forward(self, tokens, mask, kinds):
        places = self.numbers[:, : tokens.size(1)]
        x = self.norm(self.words(tokens) + self.kinds(kinds) + self.places(places))
        bias = (1.0 - mask[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
        for layer in self.layers:
            x = layer(x, bias)
        return x


class Bert(nn.Module):
    """An encoder with the pooled vector of its first token."""

    def __init__(self, *size):
        super().__init__()
        self.encoder, self.pool = Encoder(*size), nn.Linear(size[1], size[1])

    def forward(self, tokens, mask, kinds):
        x = self.encoder(tokens, mask, kinds)
        return x, self.pool(x[:, 0]).tanh()


class SentenceEncoder(nn.Module):
    """An encoder whose states are averaged where the mask is set, to vectors of length 1."""

    def __init__(self, *size):
        super().__init__()
        self.encoder = Encoder(*size)

    def forward(self, tokens, mask, kinds):
        x = self.encoder(tokens, mask, kinds)
        weights = mask.unsqueeze(-1).expand(x.size()).float()
        mean = (x * weights).sum(1) / weights.sum(1).clamp(min=1e-9)
        return nn.functional.normalize(mean, p=2.0, dim=1)


# ---- GPT-2 ----


class Conv1D(nn.Module):
    """A linear layer with its weight as (in, out), applied to rows."""

    def __init__(self, c_in, c_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(c_in, c_out) * c_in**-0.5)
        self.bias = nn.Parameter(torch.randn(c_out) * 0.02)
        self.c_out = c_out

    def forward(self, x):
        shape = x.size()[:-1] + (self.c_out,)
        return torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight).view(shape)


class DecoderAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.size, self.width = heads, width // heads, width
        self.qkv, self.out = Conv1D(width, 3 * width), Conv1D(width, width)
        self.register_buffer("seen", torch.tril(torch.ones(1024, 1024, dtype=torch.bool)).view(1, 1, 1024, 1024))

    def split(self, x):
        return x.view(x.size()[:-1] + (self.heads, self.size)).permute(0, 2, 1, 3)

    def forward(self, x, past_key, past_value):
        q, k, v = (self.split(p) for p in self.qkv(x).split(self.width, dim=2))
        k, v = torch.cat([past_key, k], -2), torch.cat([past_value, v], -2)
        scores = torch.matmul(q, k.transpose(-1, -2)) / torch.full([], self.size**0.5)
        total, new = k.size(-2), q.size(-2)
        seen = self.seen[:, :, total - new : total, :total]
        scores = torch.where(seen, scores, torch.full([], torch.finfo(scores.dtype).min))
        y = torch.matmul(scores.softmax(-1), v).permute(0, 2, 1, 3).contiguous()
        return self.out(y.view(y.size()[:-2] + (self.width,))), k, v


class DecoderLayer(nn.Module):
    """Normalises before each part."""

    def __init__(self, width, heads):
        super().__init__()
        self.attention = DecoderAttention(width, heads)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = Conv1D(width, 4 * width), Conv1D(4 * width, width)

    def forward(self, x, past_key, past_value):
        y, key, value = self.attention(self.norm1(x), past_key, past_value)
        x = x + y
        h = self.up(self.norm2(x))
        h = 0.5 * h * (1.0 + torch.tanh(0.7978845608028654 * (h + 0.044715 * torch.pow(h, 3.0))))
        return x + self.down(h), key, value


class Decoder(nn.Module):
    """tokens (N, T) and past keys and values (N, heads, P, size) to logits (N, T, words) and new ones."""

    def __init__(self, vocabulary, width, heads, layers):
        super().__init__()
        self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(1024, width)
        nn.init.normal_(self.words.weight, 0, 0.05)
        nn.init.normal_(self.places.weight, 0, 0.02)
        self.layers = nn.ModuleList(DecoderLayer(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens, *past):
        before = past[0].size(-2)
        places = torch.arange(before, tokens.size(-1) + before, dtype=torch.long).unsqueeze(0)
        x = self.words(tokens) + self.places(places)
        present = []
        for i, layer in enumerate(self.layers):
            x, key, value = layer(x, past[2 * i], past[2 * i + 1])
            present += [key, value]
        return (nn.functional.linear(self.norm(x), self.words.weight), *present)


# ---- Llama ----


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        mean = x.to(torch.float32).pow(2).mean(-1, keepdim=True)
        return self.weight * (x * torch.rsqrt(mean + 1e-6)).to(x.dtype)


class Angles(nn.Module):
    """Cosines and sines (N, T, size) of positions (N, T): looked up in tables, or computed."""

    def __init__(self, size, looked_up):
        super().__init__()
        self.looked_up = looked_up
        self.register_buffer("steps", 10000.0 ** (-torch.arange(0, size, 2).float() / size))
        angles = torch.outer(torch.arange(512).float(), self.steps)
        angles = torch.cat((angles, angles), -1)
        self.register_buffer("cosines", angles.cos())
        self.register_buffer("sines", angles.sin())

    def forward(self, places):
        if self.looked_up:
            return self.cosines[places], self.sines[places]
        steps = self.steps[None, :, None].float().expand(places.shape[0], -1, 1)
        angles = (steps @ places[:, None, :].float()).transpose(1, 2)
        angles = torch.cat((angles, angles), -1)
        return angles.cos(), angles.sin()


def turn_halves(x):
    return torch.cat((-x[..., x.shape[-1] // 2 :], x[..., : x.shape[-1] // 2]), -1)


def turn_pairs(x):
    return torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)


class GroupedAttention(nn.Module):
    """Rotated queries and keys; heads of keys and values are shared by groups of queries."""

    def __init__(self, width, heads, kv_heads, pairs):
        super().__init__()
        self.heads, self.kv_heads, self.size, self.pairs = heads, kv_heads, width // heads, pairs
        self.q = nn.Linear(width, heads * self.size, bias=False)
        self.k = nn.Linear(width, kv_heads * self.size, bias=False)
        self.v = nn.Linear(width, kv_heads * self.size, bias=False)
        self.out = nn.Linear(heads * self.size, width, bias=False)

    def rotate(self, x, angles):
        cosines, sines = (a.unsqueeze(1) for a in angles)
        if not self.pairs:
            return x * cosines + turn_halves(x) * sines
        cosines, sines = (a[..., : self.size // 2] for a in (cosines, sines))
        cosines, sines = (torch.stack((a, a), -1).flatten(-2) for a in (cosines, sines))
        return x * cosines + turn_pairs(x) * sines

    def repeat(self, x):
        n, heads, length, size = x.shape
        x = x[:, :, None, :, :].expand(n, heads, self.heads // heads, length, size)
        return x.reshape(n, self.heads, length, size)

    def forward(self, x, mask, angles, past_key, past_value):
        n, length, _ = x.size()
        q = self.q(x).view(n, length, self.heads, self.size).transpose(1, 2)
        k = self.k(x).view(n, length, self.kv_heads, self.size).transpose(1, 2)
        v = self.v(x).view(n, length, self.kv_heads, self.size).transpose(1, 2)
        q, k = self.rotate(q, angles), self.rotate(k, angles)
        k, v = torch.cat([past_key, k], 2), torch.cat([past_value, v], 2)
        scores = torch.matmul(q, self.repeat(k).transpose(2, 3)) / self.size**0.5 + mask
        weights = nn.functional.softmax(scores, -1, dtype=torch.float32).to(q.dtype)
        y = torch.matmul(weights, self.repeat(v)).transpose(1, 2).contiguous()
        return self.out(y.reshape(n, length, -1)), k, v


class GatedLayer(nn.Module):
    def __init__(self, width, heads, kv_heads, pairs):
        super().__init__()
        self.attention = GroupedAttention(width, heads, kv_heads, pairs)
        self.norm1, self.norm2 = RmsNorm(width), RmsNorm(width)
        inner = width * 8 // 3
        self.gate, self.up = nn.Linear(width, inner, bias=False), nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x, *more):
        y, key, value = self.attention(self.norm1(x), *more)
        x = x + y
        h = self.norm2(x)
        return x + self.down(nn.functional.silu(self.gate(h)) * self.up(h)), key, value


class Llama(nn.Module):
    """tokens, mask (N, P + T) and positions (N, T), and past keys and values (N, heads, P, size), to
    logits (N, T, words) and new ones."""

    def __init__(self, vocabulary, width, heads, kv_heads, layers, looked_up=True, pairs=False):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.angles = Angles(width // heads, looked_up)
        self.layers = nn.ModuleList(GatedLayer(width, heads, kv_heads, pairs) for _ in range(layers))
        self.norm = RmsNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def hide(self, mask, length, total):
        """What is added to scores: causal, and where the mask is 0."""
        later = torch.arange(total)[None, :] > torch.arange(total - length, total)[:, None]
        causal = later.float() * torch.finfo(torch.float32).min
        return causal[None, None, :, :] + (1.0 - mask[:, None, None, :].float()) * -1e9

    def forward(self, tokens, mask, places, *past):
        x = self.words(tokens)
        hidden = self.hide(mask, tokens.shape[1], mask.shape[1])
        angles = self.angles(places)
        present = []
        for i, layer in enumerate(self.layers):
            x, key, value = layer(x, hidden, angles, past[2 * i], past[2 * i + 1])
            present += [key, value]
        return (self.head(self.norm(x)), *present)


# ---- Recurrent ----


class StreamLstm(nn.Module):
    """Layers of LSTM whose state the caller keeps: x (N, T, 80), h and c (layers, N, C)."""

    def __init__(self, inputs, width, layers):
        super().__init__()
        self.lstm, self.out = nn.LSTM(inputs, width, layers, batch_first=True), nn.Linear(width, 40)

    def forward(self, x, h, c):
        y, (h, c) = self.lstm(x, (h, c))
        return self.out(y), h, c


class BothWaysLstm(nn.Module):
    def __init__(self, inputs, width, layers):
        super().__init__()
        self.lstm = nn.LSTM(inputs, width, layers, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * width, 40)

    def forward(self, x):
        return self.out(self.lstm(x)[0]).log_softmax(-1)


class StreamGru(nn.Module):
    def __init__(self, inputs, width, layers):
        super().__init__()
        self.gru, self.out = nn.GRU(inputs, width, layers, batch_first=True), nn.Linear(width, 40)

    def forward(self, x, h):
        y, h = self.gru(x, h)
        return self.out(y), h


def mlp(*sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])
