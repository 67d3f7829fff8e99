#!/usr/bin/python3
"""train_digits.py FOLDER - trains the demonstration's model and writes it with sample pictures.

A small convolutional network learns scikit-learn's handwritten digits (8x8 pixels, 0 to 16, as
1x8x8 floats from 0 to 1). It is exported with its batch normalisations left as they are, so that
the optimiser has something to fold. The same seed gives the same model.
"""

import struct
import sys
import zlib

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn


def network():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(128, 64), nn.ReLU(), nn.Dropout(0.25),
        nn.Linear(64, 10),
    )


def train(model, x, y):
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
    steps = torch.optim.lr_scheduler.OneCycleLR(optimiser, 1e-2, epochs=40, steps_per_epoch=-(-len(x) // 64))
    for _ in range(40):
        for batch in torch.randperm(len(x)).split(64):
            loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            steps.step()


def export(model, path):
    torch.onnx.export(
        nn.Sequential(model, nn.Softmax(1)), torch.zeros(1, 1, 8, 8), path,
        input_names=["image"], output_names=["probabilities"], opset_version=17,
        dynamic_axes={"image": {0: "N"}, "probabilities": {0: "N"}},
        training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False,
        keep_initializers_as_inputs=False,
    )


def write_png(path, pixels):
    """`pixels` is (8, 8) from 0 to 16."""
    grey = np.rint(pixels * 255 / 16).astype(np.uint8)
    rows = b"".join(b"\0" + row.tobytes() for row in grey)

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", grey.shape[1], grey.shape[0], 8, 0, 0, 0, 0)
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b""))


def main(folder):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    digits = load_digits()
    split = train_test_split(digits.images, digits.target, test_size=0.2, random_state=0, stratify=digits.target)
    x_train, x_test, y_train, y_test = split
    as_input = lambda images: torch.tensor(images[:, None] / 16, dtype=torch.float32)
    model = network()
    train(model, as_input(x_train), torch.tensor(y_train))
    model.eval()
    with torch.no_grad():
        certain, guess = (t.numpy() for t in model(as_input(x_test)).softmax(1).max(1))
    right = guess == y_test
    print("%d of %d unseen digits are recognised (%.1f %%)" % (right.sum(), len(right), 100 * right.mean()))
    export(model, folder + "/digits.onnx")
    for digit in (3, 5, 8):
        first = np.flatnonzero(y_test == digit)[0]
        write_png("%s/%d.png" % (folder, digit), x_test[first])
    doubtful = np.where(right, certain, 1).argmin()
    write_png("%s/doubtful.png" % folder, x_test[doubtful])
    print("doubtful.png is a %d" % y_test[doubtful])


if __name__ == "__main__":
    main(sys.argv[1])
