"""smollm.py GGUF FOLDER [TOKENS]: the weights of a Llama-style model in a GGUF file as an ONNX model
of fixed length, and samples of token ids, for judging quantisers on a real language model. Needs the
packages onnx, gguf and tokenizers.

Writes FOLDER/model.onnx (ids -> logits), FOLDER/calibrate/*.npy and FOLDER/test/*.npy: pieces of
Python's own documentation of its language."""

import os
import pydoc_data.topics
import sys

import gguf
import numpy as np
import onnx
from onnx import TensorProto, helper

from graph import Graph


def text_field(reader, key):
    f = reader.fields[key]
    return [bytes(f.parts[i]).decode() for i in f.data]


def number(reader, key):
    f = reader.fields[key]
    return f.parts[f.data[0]][0]


def build(reader, length):
    tensors = {t.name: gguf.quants.dequantize(t.data, t.tensor_type).astype(np.float32)
               for t in reader.tensors}
    heads, kv = int(number(reader, "llama.attention.head_count")), int(number(reader, "llama.attention.head_count_kv"))
    width, blocks = int(number(reader, "llama.embedding_length")), int(number(reader, "llama.block_count"))
    eps = float(number(reader, "llama.attention.layer_norm_rms_epsilon"))
    base, dim = float(number(reader, "llama.rope.freq_base")), width // heads
    g = Graph()

    angle = np.arange(length)[:, None] * base**(-np.arange(0, dim, 2) / dim)[None]
    cos = g.weight(np.cos(angle).astype(np.float32)[None, None])
    sin = g.weight(np.sin(angle).astype(np.float32)[None, None])
    mask = g.weight(np.triu(np.full((length, length), -1e30, np.float32), 1)[None, None])
    two, tiny = g.weight(np.float32(2)), g.weight(np.float32(eps))
    scale = g.weight(np.float32(dim**-0.5))

    def norm(x, w):
        mean = g.add("ReduceMean", g.add("Pow", x, two), g.ints(-1), keepdims=1)
        return g.add("Mul", g.add("Div", x, g.add("Sqrt", g.add("Add", mean, tiny))), g.weight(tensors[w]))

    def dense(x, w):
        return g.add("MatMul", x, g.weight(tensors[w].T, w), name=w)

    def split(x, n):
        return g.add("Transpose", g.add("Reshape", x, g.ints(1, length, n, dim)), perm=[0, 2, 1, 3])

    def rotate(x, n):  # GGUF has the two halves of a pair side by side
        pairs = g.add("Reshape", x, g.ints(1, n, length, dim // 2, 2))
        a, b = g.add("Split", pairs, axis=-1, outputs=2, num_outputs=2)
        a, b = (g.add("Squeeze", v, g.ints(-1)) for v in (a, b))
        even = g.add("Sub", g.add("Mul", a, cos), g.add("Mul", b, sin))
        odd = g.add("Add", g.add("Mul", a, sin), g.add("Mul", b, cos))
        return g.add("Concat", even, odd, axis=-1)

    def repeat(x):
        wide = g.add("Expand", g.add("Unsqueeze", x, g.ints(2)), g.ints(1, kv, heads // kv, length, dim))
        return g.add("Reshape", wide, g.ints(1, heads, length, dim))

    x = g.add("Gather", g.weight(tensors["token_embd.weight"], "token_embd.weight"), "ids", name="token_embd")
    for i in range(blocks):
        p = "blk.%d." % i
        h = norm(x, p + "attn_norm.weight")
        q = rotate(split(dense(h, p + "attn_q.weight"), heads), heads)
        k = repeat(rotate(split(dense(h, p + "attn_k.weight"), kv), kv))
        v = repeat(split(dense(h, p + "attn_v.weight"), kv))
        scores = g.add("Mul", g.add("MatMul", q, g.add("Transpose", k, perm=[0, 1, 3, 2])), scale)
        weights = g.add("Softmax", g.add("Add", scores, mask), axis=-1)
        mixed = g.add("Transpose", g.add("MatMul", weights, v), perm=[0, 2, 1, 3])
        mixed = g.add("Reshape", mixed, g.ints(1, length, width))
        x = g.add("Add", x, dense(mixed, p + "attn_output.weight"))
        h = norm(x, p + "ffn_norm.weight")
        gate = dense(h, p + "ffn_gate.weight")
        gate = g.add("Mul", gate, g.add("Sigmoid", gate))
        x = g.add("Add", x, dense(g.add("Mul", gate, dense(h, p + "ffn_up.weight")), p + "ffn_down.weight"))
    head = g.add("Transpose", "token_embd.weight", perm=[1, 0])
    g.nodes.append(helper.make_node("MatMul", [norm(x, "output_norm.weight"), head], ["logits"], "head"))
    value = helper.make_tensor_value_info
    return g.model([value("ids", TensorProto.INT64, [1, length])],
                   [value("logits", TensorProto.FLOAT, [1, length, tensors["token_embd.weight"].shape[0]])])


def tokens(reader):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    words = text_field(reader, "tokenizer.ggml.tokens")
    merges = [tuple(m.split(" ")) for m in text_field(reader, "tokenizer.ggml.merges")]
    t = Tokenizer(models.BPE({w: i for i, w in enumerate(words)}, merges))
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(False)])
    t.decoder = decoders.ByteLevel()
    text = "\n".join(pydoc_data.topics.topics[k] for k in sorted(pydoc_data.topics.topics))
    return np.array(t.encode(text).ids, np.int64)


def main():
    reader, folder = gguf.GGUFReader(sys.argv[1]), sys.argv[2]
    length = int(sys.argv[3]) if len(sys.argv) > 3 else 256
    os.makedirs(folder, exist_ok=True)
    onnx.save(build(reader, length), os.path.join(folder, "model.onnx"))
    ids = tokens(reader)
    for part, first in (("calibrate", 0), ("test", len(ids) // 2)):
        os.makedirs(os.path.join(folder, part), exist_ok=True)
        for i in range(16):
            at = first + i * length
            np.save(os.path.join(folder, part, "%02d.npy" % i), ids[None, at:at + length])


if __name__ == "__main__":
    main()
