"""text.py - encoders, decoders and classifiers of text."""

import math

import torch
from torch import nn
from torch.nn import functional as F

import language

from .pieces import (
    Attention, Layer, Network, QuickGelu, RmsNorm, TanhGelu, cache_names, causal_mask, open_axes, padding_mask, tokens,
)

BATCH, ROWS = {0: "batch"}, {0: "batch", 1: "seq"}


def token_inputs(count, n, length, kinds=False):
    inputs = {"input_ids": tokens(count, n, length), "attention_mask": padding_mask(n, length)}
    return {**inputs, "token_type_ids": tokens(2, n, length)} if kinds else inputs


# ---- T5 ----


class T5Layer(nn.Module):
    """Attention whose scores are not scaled, so that the queries' weights are small, and gated layers."""

    def __init__(self, width=512, inner=1024):
        super().__init__()
        self.norm1, self.norm2 = RmsNorm(width), RmsNorm(width)
        self.attention = Attention(width, 6, 64, bias=False, scaled=False)
        self.attention.q.gain = 0.125
        self.gate, self.up = nn.Linear(width, inner, False), nn.Linear(width, inner, False)
        self.down, self.act = nn.Linear(inner, width, False), TanhGelu()

    def forward(self, x, bias):
        x = x + self.attention(self.norm1(x), mask=bias)
        h = self.norm2(x)
        return x + self.down(self.act(self.gate(h)) * self.up(h))


class T5Encoder(nn.Module):
    """tokens and mask (N, T) to states (N, T, 512); scores get a bias for how far apart two places are."""

    buckets, farthest = 16, 128

    def __init__(self):
        super().__init__()
        self.words, self.distances = nn.Embedding(8000, 512), nn.Embedding(2 * self.buckets, 6)
        self.layers, self.norm = nn.ModuleList(T5Layer() for _ in range(4)), RmsNorm(512)

    def bucket(self, distance):
        """Small distances have a bucket each, larger ones share them; later places have their own half."""
        later = (distance > 0).long() * self.buckets
        distance, exact = distance.abs(), self.buckets // 2
        share = torch.log(distance.float() / exact) / math.log(self.farthest / exact)
        large = exact + (share * (self.buckets - exact)).long()
        large = torch.min(large, torch.full_like(large, self.buckets - 1))
        return later + torch.where(distance < exact, distance, large)

    def forward(self, words, mask):
        places = torch.arange(words.shape[1])
        bias = self.distances(self.bucket(places[None] - places[:, None])).permute(2, 0, 1).unsqueeze(0)
        bias = bias + (1.0 - mask[:, None, None, :].float()) * -1e9
        x = self.words(words)
        for layer in self.layers:
            x = layer(x, bias)
        return self.norm(x)


def t5_encoder():
    model = T5Encoder()
    mask = torch.ones(1, 64, dtype=torch.long)
    mask[:, 58:] = 0
    inputs = {"input_ids": tokens(8000, 1, 64), "attention_mask": mask}
    return Network(model, inputs, ["last_hidden_state"], 16, open_axes([*inputs, "last_hidden_state"], ROWS))


# ---- Llama, with all sizes but the length fixed ----


class LlamaLayer(nn.Module):
    def __init__(self, width, heads, kv_heads, inner):
        super().__init__()
        self.heads, self.kv_heads, self.size = heads, kv_heads, width // heads
        self.q, self.k = nn.Linear(width, width, False), nn.Linear(width, kv_heads * self.size, False)
        self.v, self.out = nn.Linear(width, kv_heads * self.size, False), nn.Linear(width, width, False)
        self.gate, self.up = nn.Linear(width, inner, False), nn.Linear(width, inner, False)
        self.down = nn.Linear(inner, width, False)
        self.norm1, self.norm2 = RmsNorm(width), RmsNorm(width)

    def rotate(self, x, cosines, sines):
        half = self.size // 2
        return x * cosines + torch.cat([-x[..., half:], x[..., :half]], -1) * sines

    def repeat(self, x, n):
        """Keys or values (n, kv_heads, T, size) for every head of the queries."""
        y = x[:, :, None].expand(n, self.kv_heads, self.heads // self.kv_heads, x.shape[2], self.size)
        return y.reshape(n, self.heads, x.shape[2], self.size)

    def forward(self, x, angles, mask, past):
        n, length, width = x.shape
        h = self.norm1(x)
        q = self.q(h).view(n, length, self.heads, self.size).transpose(1, 2)
        k = self.k(h).view(n, length, self.kv_heads, self.size).transpose(1, 2)
        v = self.v(h).view(n, length, self.kv_heads, self.size).transpose(1, 2)
        q, k = self.rotate(q, *angles), self.rotate(k, *angles)
        if past:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        scores = torch.matmul(q, self.repeat(k, n).transpose(2, 3)) / math.sqrt(self.size)
        if mask is not None:
            scores = scores + mask
        y = torch.matmul(F.softmax(scores, -1, dtype=torch.float32), self.repeat(v, n)).transpose(1, 2)
        x = x + self.out(y.reshape(n, length, width))
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h)), k, v


class Llama(nn.Module):
    """tokens and places (N, T), and past keys and values (N, 2, P, 64) if there are any, to logits and new
    ones. With a past it makes one token: nothing is hidden from it."""

    layers_count = 3

    def __init__(self, words=8000, width=512, heads=8, kv_heads=2, inner=1376):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.layers = nn.ModuleList(LlamaLayer(width, heads, kv_heads, inner) for _ in range(self.layers_count))
        self.norm, self.head = RmsNorm(width), nn.Linear(width, words, False)
        self.angles = language.Angles(width // heads, True)

    def forward(self, words, places, *past):
        x = self.words(words)
        angles = [a[:, None] for a in self.angles(places)]
        mask = None if past else causal_mask(words.shape[1])[None, None]
        present = []
        for i, layer in enumerate(self.layers):
            x, key, value = layer(x, angles, mask, past[2 * i : 2 * i + 2])
            present += [key, value]
        return (self.head(self.norm(x)), *present)


def llama_prefill():
    model, present = Llama(), cache_names("present", Llama.layers_count)
    inputs = {"input_ids": tokens(8000, 1, 32), "position_ids": torch.arange(32)[None]}
    axes = {**open_axes([*inputs, "logits"], {1: "seq"}), **open_axes(present, {2: "seq"})}
    return Network(model, inputs, ["logits", *present], 17, axes)


def llama_decode():
    model, past, present = Llama(), cache_names("past", Llama.layers_count), cache_names("present", Llama.layers_count)
    inputs = {"input_ids": tokens(8000, 1, 1), "position_ids": torch.tensor([[128]])}
    inputs.update({name: torch.randn(1, 2, 128, 64) for name in past})
    axes = {**open_axes(past, {2: "past"}), **open_axes(present, {2: "total"})}
    return Network(model, inputs, ["logits", *present], 17, axes)


# ---- BERT and its kin ----


class Encoder(nn.Module):
    """tokens and mask (N, T), and kinds if it has them, to states (N, T, 768). Places are counted from the
    start, or are those among the words that are not padding (token 1)."""

    def __init__(self, kinds=False, counted=False, words=5000, width=768, longest=514):
        super().__init__()
        self.counted = counted
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(longest, width)
        self.kinds = nn.Embedding(2, width) if kinds else None
        self.norm = nn.LayerNorm(width, 1e-12)
        self.layers = nn.ModuleList(Layer(width, 12, 4 * width, before=False, eps=1e-12) for _ in range(2))
        self.register_buffer("numbers", torch.arange(longest)[None])

    def places_of(self, words):
        if not self.counted:
            return self.numbers[:, : words.shape[1]]
        real = words.ne(1).int()
        return (torch.cumsum(real, 1).type_as(real) * real).long() + 1

    def forward(self, words, mask, kinds=None):
        x = self.words(words) + self.places(self.places_of(words))
        if kinds is not None:
            x = x + self.kinds(kinds)
        x = self.norm(x)
        hidden = (1.0 - mask[:, None, None, :].float()) * torch.finfo(torch.float32).min
        for layer in self.layers:
            x = layer(x, hidden)
        return x


class SentenceClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.head = Encoder(), language.mlp(768, 768, 2)

    def forward(self, words, mask):
        return self.head(self.encoder(words, mask)[:, 0])


class Answers(nn.Module):
    """Where an answer starts and ends: two logits for each token."""

    def __init__(self):
        super().__init__()
        self.encoder, self.head = Encoder(kinds=True), nn.Linear(768, 2)

    def forward(self, words, mask, kinds):
        start, end = self.head(self.encoder(words, mask, kinds)).split(1, -1)
        return start.squeeze(-1), end.squeeze(-1)


def distilbert_b8_s32():
    model, inputs = SentenceClassifier(), token_inputs(5000, 8, 32)
    return Network(model, inputs, ["logits"], 13, {**open_axes(inputs, ROWS), "logits": BATCH})


def roberta_s256():
    model = Encoder(counted=True)
    inputs = {"input_ids": tokens(4990, 1, 256) + 2, "attention_mask": padding_mask(1, 256)}
    return Network(model, inputs, ["last_hidden_state"], 17, open_axes([*inputs, "last_hidden_state"], ROWS))


def bert_batch1_s384():
    return Network(Answers(), token_inputs(5000, 1, 384, True), ["start_logits", "end_logits"], 13)


class Albert(nn.Module):
    """One layer, run four times; words are narrower than states."""

    def __init__(self, narrow=128, width=768):
        super().__init__()
        self.words, self.places = nn.Embedding(8000, narrow), nn.Embedding(512, narrow)
        self.kinds, self.norm = nn.Embedding(2, narrow), nn.LayerNorm(narrow, 1e-12)
        self.widen = nn.Linear(narrow, width)
        self.layer = Layer(width, 12, 4 * width, TanhGelu, before=False, eps=1e-12)
        self.pool = nn.Sequential(nn.Linear(width, width), nn.Tanh())

    def forward(self, words, mask, kinds):
        x = self.words(words) + self.places.weight[: words.shape[1]][None] + self.kinds(kinds)
        x = self.widen(self.norm(x))
        hidden = (1.0 - mask[:, None, None, :].float()) * -10000.0
        for _ in range(4):
            x = self.layer(x, hidden)
        return x, self.pool(x[:, 0])


def albert():
    return Network(Albert(), token_inputs(8000, 1, 32, True), ["last_hidden_state", "pooler_output"])


class ClipText(nn.Module):
    """tokens (N, 77) to vectors (N, 512) of length 1: the state of the token with the highest number."""

    def __init__(self, width=512, length=77):
        super().__init__()
        self.words, self.places = nn.Embedding(8000, width), nn.Parameter(torch.randn(length, width) * 0.1)
        self.layers = nn.ModuleList(Layer(width, 8, 4 * width, QuickGelu) for _ in range(4))
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, width, False)
        self.register_buffer("mask", causal_mask(length))

    def forward(self, words):
        x = self.words(words) + self.places
        for layer in self.layers:
            x = layer(x, self.mask)
        x = self.norm(x)
        x = self.out(x[torch.arange(x.shape[0]), words.argmax(-1)])
        return x / x.norm(dim=-1, keepdim=True)


def clip_text():
    words = tokens(7900, 1, 77)
    words[:, 12] = 7999
    return Network(ClipText(), {"input_ids": words}, ["text_embeds"], 17, {"input_ids": BATCH, "text_embeds": BATCH})


# ---- Translation ----


class CrossDecoder(nn.Module):
    """PyTorch's own decoder. Targets (T, N, 512) see the memory (S, N, 512) but where `padding` (N, S) is
    set, and each other as the mask (T, T) has it."""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerDecoderLayer(512, 8, 2048, 0.0)
        self.decoder = nn.TransformerDecoder(layer, 2, nn.LayerNorm(512))

    def forward(self, target, memory, mask, padding):
        return self.decoder(target, memory, tgt_mask=mask, memory_key_padding_mask=padding)


def transformer_decoder_causal():
    model = CrossDecoder()
    padding = torch.zeros(1, 48, dtype=torch.bool)
    padding[:, 40:] = True
    inputs = {
        "tgt": torch.randn(32, 1, 512), "memory": torch.randn(48, 1, 512),
        "tgt_mask": causal_mask(32, -math.inf), "memory_key_padding_mask": padding,
    }
    axes = {
        "tgt": {0: "tgt"}, "tgt_mask": {0: "tgt", 1: "tgt"}, "output": {0: "tgt"}, "memory": {0: "src"},
        "memory_key_padding_mask": {1: "src"},
    }
    return Network(model, inputs, ["output"], 16, axes)


class AttendingGru(nn.Module):
    """One step of a decoder: a token (N), the state (N, 512) and the encoder's states (N, S, 1024) with
    their mask to log probabilities, the new state and the weights of attention."""

    def __init__(self, width=512, narrow=256, words=10000):
        super().__init__()
        both = 2 * width
        self.words = nn.Embedding(words, narrow)
        self.query, self.key = nn.Linear(width, width), nn.Linear(both, width)
        self.score = nn.Linear(width, 1, False)
        self.from_input, self.from_state = nn.Linear(narrow + both, 3 * width), nn.Linear(width, 3 * width)
        self.out = nn.Sequential(nn.Linear(width + both + narrow, width), nn.Tanh(), nn.Linear(width, words))

    def step(self, x, state):
        r, z, n = self.from_input(x).chunk(3, -1)
        state_r, state_z, state_n = self.from_state(state).chunk(3, -1)
        r, z = torch.sigmoid(r + state_r), torch.sigmoid(z + state_z)
        n = torch.tanh(n + r * state_n)
        return (1 - z) * n + z * state

    def forward(self, token, state, encoded, mask):
        x = self.words(token)
        scores = self.score(torch.tanh(self.query(state).unsqueeze(1) + self.key(encoded))).squeeze(-1)
        weights = scores.masked_fill(mask == 0, -1e10).softmax(-1)
        context = torch.bmm(weights.unsqueeze(1), encoded).squeeze(1)
        state = self.step(torch.cat([x, context], -1), state)
        return self.out(torch.cat([state, context, x], -1)).log_softmax(-1), state, weights


def seq2seq_attention():
    model = AttendingGru()
    inputs = {
        "token": tokens(10000, 8), "hidden": torch.randn(8, 512).tanh(), "enc": torch.randn(8, 40, 1024).tanh(),
        "src_mask": padding_mask(8, 40),
    }
    outputs = ["logits", "new_hidden", "attn"]
    axes = open_axes([*inputs, *outputs], BATCH)
    axes.update(open_axes(["enc", "src_mask", "attn"], {0: "batch", 1: "src"}))
    return Network(model, inputs, outputs, 13, axes)


# ---- Convolutions over text ----


class CharCnn(nn.Module):
    """Characters (N, 1014), each one of 70, to 14 classes."""

    def __init__(self):
        super().__init__()
        pool = nn.MaxPool1d(3)
        self.body = nn.Sequential(
            *self.conv(70, 7), pool, *self.conv(256, 7), pool,
            *(part for _ in range(4) for part in self.conv(256, 3)), pool,
        )
        self.head = language.mlp(8704, 1024, 1024, 14)

    @staticmethod
    def conv(c_in, kernel):
        return nn.Conv1d(c_in, 256, kernel), nn.ReLU()

    def forward(self, characters):
        x = F.one_hot(characters, 70).float().transpose(1, 2)
        return self.head(self.body(x).flatten(1))


def char_cnn():
    return Network(CharCnn(), {"chars": tokens(70, 1, 1014)}, ["logits"], 16, {"chars": BATCH, "logits": BATCH})


class TextCnn(nn.Module):
    """tokens (N, T) to 5 classes, by the largest results of windows of 3, 4 and 5 words."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(10000, 300)
        self.convs = nn.ModuleList(nn.Conv1d(300, 100, kernel) for kernel in (3, 4, 5))
        self.out = nn.Linear(300, 5)

    def forward(self, words):
        x = self.words(words).transpose(1, 2)
        return self.out(torch.cat([F.relu(conv(x)).max(-1)[0] for conv in self.convs], 1)).softmax(-1)


def textcnn():
    axes = {"input_ids": ROWS, "logits": BATCH}
    return Network(TextCnn(), {"input_ids": tokens(10000, 16, 50)}, ["logits"], 13, axes)


NETWORKS = (
    t5_encoder, llama_prefill, llama_decode, distilbert_b8_s32, roberta_s256, bert_batch1_s384, albert, clip_text,
    transformer_decoder_causal, seq2seq_attention, char_cnn, textcnn,
)
