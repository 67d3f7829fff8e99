"""Networks trained on scikit-learn's digits with numpy alone: what the tests of quantisation and
pruning work on. 1,797 pictures of 8 x 8 pixels; the last 500 are kept for testing.

    python3 digits.py FOLDER     writes cnn.onnx, mlp.onnx, calibrate/ and test.npz"""

import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits

TEST = 500


def data():
    digits = load_digits()
    x = (digits.images / 16).astype(np.float32)[:, None]
    y = digits.target
    order = np.random.default_rng(1).permutation(len(y))
    x, y = x[order], y[order]
    return x[:-TEST], y[:-TEST], x[-TEST:], y[-TEST:]


# ---- Layers: forward gives (result, backward); backward takes a gradient, adds to `grads` ----


class Net:
    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.weights, self.grads = {}, {}

    def weight(self, name, shape, fan_in):
        if name not in self.weights:
            bound = np.sqrt(2 / fan_in) if fan_in else 0
            self.weights[name] = (self.random.standard_normal(shape) * bound).astype(np.float32)
        return self.weights[name]

    def dense(self, name, x, n):
        w, b = self.weight(name + "_w", (x.shape[-1], n), x.shape[-1]), self.weight(name + "_b", (n,), 0)

        def back(g):
            self.grads[name + "_w"] = x.reshape(-1, x.shape[-1]).T @ g.reshape(-1, n)
            self.grads[name + "_b"] = g.reshape(-1, n).sum(0)
            return g @ w.T

        return x @ w + b, back

    def conv(self, name, x, n):
        """3 x 3, padded, on (batch, channels, h, w)."""
        b, c, h, w_ = x.shape
        w, bias = self.weight(name + "_w", (n, c, 3, 3), c * 9), self.weight(name + "_b", (n,), 0)
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        view = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
        columns = view.transpose(0, 2, 3, 1, 4, 5).reshape(-1, c * 9)
        y = (columns @ w.reshape(n, -1).T + bias).reshape(b, h, w_, n).transpose(0, 3, 1, 2)

        def back(g):
            flat = g.transpose(0, 2, 3, 1).reshape(-1, n)
            self.grads[name + "_w"] = (flat.T @ columns).reshape(w.shape)
            self.grads[name + "_b"] = flat.sum(0)
            gc = (flat @ w.reshape(n, -1)).reshape(b, h, w_, c, 3, 3)
            gx = np.zeros_like(padded)
            for i in range(3):
                for j in range(3):
                    gx[:, :, i:i + h, j:j + w_] += gc[:, :, :, :, i, j].transpose(0, 3, 1, 2)
            return gx[:, :, 1:-1, 1:-1]

        return y, back


def relu(x):
    mask = x > 0
    return x * mask, lambda g: g * mask


def pool(x):
    b, c, h, w = x.shape
    cells = x.reshape(b, c, h // 2, 2, w // 2, 2)
    y = cells.max((3, 5))
    mask = cells == y[:, :, :, None, :, None]
    return y, lambda g: (mask * g[:, :, :, None, :, None]).reshape(x.shape)


def cnn(net, x):
    a, b1 = net.conv("c1", x, 16)
    a, r1 = relu(a)
    p, b2 = pool(a)
    h, b3 = net.conv("c2", p, 16)
    h, r2 = relu(h)
    h, b4 = net.conv("c3", h, 16)
    s, r3 = relu(h + p)
    y, b5 = net.dense("out", s.reshape(len(x), -1), 10)

    def back(g):
        g = r3(b5(g).reshape(s.shape))
        g = b2(b3(r2(b4(g))) + g)
        b1(r1(g))

    return y, back


def mlp(net, x):
    a, b1 = net.dense("d1", x.reshape(len(x), -1), 128)
    a, r1 = relu(a)
    a, b2 = net.dense("d2", a, 128)
    a, r2 = relu(a)
    y, b3 = net.dense("out", a, 10)
    return y, lambda g: b1(r1(b2(r2(b3(g)))))


def train(forward, seed, rounds=25, batch=64, rate=2e-3):
    net, (x, y, _, _) = Net(seed), data()
    m, v, t = {}, {}, 0
    for _ in range(rounds):
        order = net.random.permutation(len(y))
        for at in range(0, len(y) - batch + 1, batch):
            pick = order[at:at + batch]
            logits, back = forward(net, x[pick])
            p = np.exp(logits - logits.max(1, keepdims=True))
            p /= p.sum(1, keepdims=True)
            p[np.arange(batch), y[pick]] -= 1
            back(p / batch)
            t += 1
            for k, g in net.grads.items():
                m[k] = 0.9 * m.get(k, 0) + 0.1 * g
                v[k] = 0.999 * v.get(k, 0) + 0.001 * g * g
                step = m[k] / (1 - 0.9**t) / (np.sqrt(v[k] / (1 - 0.999**t)) + 1e-8)
                net.weights[k] = (net.weights[k] - rate * step).astype(np.float32)
    return net.weights


# ---- ONNX ----


def write(path, nodes, weights, shape):
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "digits", [value("x", TensorProto.FLOAT, shape)],
                              [value("y", TensorProto.FLOAT, [shape[0], 10])],
                              [numpy_helper.from_array(np.ascontiguousarray(w), k) for k, w in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 7
    onnx.save(model, path)


def write_cnn(path, weights):
    node, conv = helper.make_node, dict(kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    write(path, [
        node("Conv", ["x", "c1_w", "c1_b"], ["a"], "first", **conv),
        node("Relu", ["a"], ["ar"]),
        node("MaxPool", ["ar"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", ["p", "c2_w", "c2_b"], ["b"], "second", **conv),
        node("Relu", ["b"], ["br"]),
        node("Conv", ["br", "c3_w", "c3_b"], ["c"], "third", **conv),
        node("Add", ["c", "p"], ["s"]),
        node("Relu", ["s"], ["sr"]),
        node("Flatten", ["sr"], ["f"]),
        node("Gemm", ["f", "out_w", "out_b"], ["y"], "last", transB=1),
    ], dict(weights, out_w=weights["out_w"].T), ["N", 1, 8, 8])


def write_mlp(path, weights):
    node = helper.make_node
    write(path, [
        node("Flatten", ["x"], ["f"]),
        node("MatMul", ["f", "d1_w"], ["h1"], "first"),
        node("Add", ["h1", "d1_b"], ["a1"]),
        node("Relu", ["a1"], ["r1"]),
        node("MatMul", ["r1", "d2_w"], ["h2"], "second"),
        node("Add", ["h2", "d2_b"], ["a2"]),
        node("Relu", ["a2"], ["r2"]),
        node("MatMul", ["r2", "out_w"], ["h3"], "last"),
        node("Add", ["h3", "out_b"], ["y"]),
    ], weights, ["N", 1, 8, 8])


def make(folder):
    os.makedirs(os.path.join(folder, "calibrate"), exist_ok=True)
    x, _, test_x, test_y = data()
    for i in range(16):
        np.save(os.path.join(folder, "calibrate", "%02d.npy" % i), x[i * 16:i * 16 + 16])
    np.savez(os.path.join(folder, "test.npz"), x=test_x, y=test_y)
    write_cnn(os.path.join(folder, "cnn.onnx"), train(cnn, 1, 12))
    write_mlp(os.path.join(folder, "mlp.onnx"), train(mlp, 2))


if __name__ == "__main__":
    make(sys.argv[1])
