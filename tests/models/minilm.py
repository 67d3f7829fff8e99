"""minilm.py MODEL FOLDER - all-MiniLM-L6-v2 (a folder with config.json, model.safetensors and
tokenizer.json) as an ONNX model that gives a sentence's vector, and sentences as samples, for judging
quantisers on a real encoder. Needs the packages onnx, safetensors and tokenizers.

Writes FOLDER/model.onnx (ids, mask -> vector), FOLDER/calibrate/*.npz and FOLDER/test/*.npz."""

import json
import os
import pydoc_data.topics
import re
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from graph import Graph

LENGTH = 48


def build(weights, config):
    g, width, heads = Graph(), config["hidden_size"], config["num_attention_heads"]
    dim = width // heads
    eps, half, root = (g.weight(np.float32(v)) for v in (config["layer_norm_eps"], 0.5, 2**-0.5))
    one, two, scale = (g.weight(np.float32(v)) for v in (1, 2, dim**-0.5))

    def norm(x, name):
        d = g.add("Sub", x, g.add("ReduceMean", x, g.ints(-1), keepdims=1))
        v = g.add("ReduceMean", g.add("Pow", d, two), g.ints(-1), keepdims=1)
        d = g.add("Div", d, g.add("Sqrt", g.add("Add", v, eps)))
        return g.add("Add", g.add("Mul", d, g.weight(weights[name + ".weight"])), g.weight(weights[name + ".bias"]))

    def dense(x, name):
        y = g.add("MatMul", x, g.weight(weights[name + ".weight"].T, name + ".weight"), name=name)
        return g.add("Add", y, g.weight(weights[name + ".bias"]))

    def split(x, perm):
        return g.add("Transpose", g.add("Reshape", x, g.ints(-1, LENGTH, heads, dim)), perm=perm)

    e = "embeddings."
    places = weights[e + "position_embeddings.weight"][:LENGTH] + weights[e + "token_type_embeddings.weight"][0]
    x = g.add("Gather", g.weight(weights[e + "word_embeddings.weight"], "words"), "ids", name="words_of_ids")
    x = norm(g.add("Add", x, g.weight(places[None])), e + "LayerNorm")
    seen = g.add("Cast", "mask", to=TensorProto.FLOAT)
    hidden = g.add("Mul", g.add("Sub", one, g.add("Unsqueeze", seen, g.ints(1, 2))), g.weight(np.float32(-1e4)))
    for i in range(config["num_hidden_layers"]):
        p = "encoder.layer.%d." % i
        q = split(dense(x, p + "attention.self.query"), [0, 2, 1, 3])
        k = split(dense(x, p + "attention.self.key"), [0, 2, 3, 1])
        v = split(dense(x, p + "attention.self.value"), [0, 2, 1, 3])
        scores = g.add("Add", g.add("Mul", g.add("MatMul", q, k), scale), hidden)
        mixed = g.add("Transpose", g.add("MatMul", g.add("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        mixed = g.add("Reshape", mixed, g.ints(-1, LENGTH, width))
        x = norm(g.add("Add", dense(mixed, p + "attention.output.dense"), x), p + "attention.output.LayerNorm")
        h = dense(x, p + "intermediate.dense")
        h = g.add("Mul", g.add("Mul", h, g.add("Add", g.add("Erf", g.add("Mul", h, root)), one)), half)
        x = norm(g.add("Add", dense(h, p + "output.dense"), x), p + "output.LayerNorm")
    wide = g.add("Unsqueeze", seen, g.ints(2))
    sums = g.add("ReduceSum", g.add("Mul", x, wide), g.ints(1), keepdims=0)
    g.nodes.append(helper.make_node("Div", [sums, g.add("ReduceSum", wide, g.ints(1), keepdims=0)], ["vector"]))
    value = helper.make_tensor_value_info
    return g.model([value("ids", TensorProto.INT64, ["N", LENGTH]), value("mask", TensorProto.INT64, ["N", LENGTH])],
                   [value("vector", TensorProto.FLOAT, ["N", width])])


def main():
    source, folder = sys.argv[1:3]
    with open(os.path.join(source, "config.json")) as f:
        config = json.load(f)
    os.makedirs(folder, exist_ok=True)
    onnx.save(build(load_file(os.path.join(source, "model.safetensors")), config), os.path.join(folder, "model.onnx"))
    tokenizer = Tokenizer.from_file(os.path.join(source, "tokenizer.json"))
    tokenizer.enable_truncation(LENGTH)
    tokenizer.enable_padding(length=LENGTH)
    text = " ".join(pydoc_data.topics.topics[k] for k in sorted(pydoc_data.topics.topics))
    sentences = [s for s in re.split(r"(?<=[.])\s+", re.sub(r"\s+", " ", text)) if 40 < len(s) < 250]
    for part, first in (("calibrate", 0), ("test", len(sentences) // 2)):
        os.makedirs(os.path.join(folder, part), exist_ok=True)
        for i in range(32):
            coded = tokenizer.encode_batch(sentences[first + i * 8:first + i * 8 + 8])
            np.savez(os.path.join(folder, part, "%02d.npz" % i), ids=np.array([c.ids for c in coded], np.int64),
                     mask=np.array([c.attention_mask for c in coded], np.int64))


if __name__ == "__main__":
    main()
