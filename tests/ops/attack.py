#!/usr/bin/python3
"""attack.py [--every N] FOLDER RUN_OPS FILE... - hostile variants of operator tests, run by run_ops.

Reads cases and writes files of cases that end in `%hostile`: whatever comes of them must come in time, within the memory limit, and not as an internal error. Each operand in turn, and all of them together,
lose their elements and get sizes up to 2^60; elements become NaN, infinite or the ends of their type; each
integer attribute gets the ends of its range. Every variant is made twice: with inputs that a run brings, and
with constants, which the optimiser computes with."""
import argparse
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HUGE = (1 << 60, 1 << 40, 1 << 20)
INTEGERS = (-1, 0, 1 << 31, 1 << 62, -(1 << 63))
FLOATS = {"float", "double", "float16", "bfloat16", "float32", "float64"}
SIGNED = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}
UNSIGNED = {"uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64}
TENSOR = re.compile(r"^\s*([a-z0-9]+)(?:\[([^\]]*)\])?\s*=?\s*(\{.*\})\s*$", re.S)
DECLARED = re.compile(r"^\s*([a-z0-9]+)(\[[^\]]*\])?\s+(\"[^\"]*\"|[^\s=]+)\s*(?:=\s*(.*))?$", re.S)
MOST_ELEMENTS = 4096


def closing(text, start):
    """The position behind the bracket that closes the one at `start`; strings may hold brackets."""
    pairs = {"(": ")", "<": ">", "{": "}", "[": "]"}
    stack, i = [], start
    while i < len(text):
        c = text[i]
        if c == '"':
            i = text.index('"', i + 1)
            while text[i - 1] == "\\":
                i = text.index('"', i + 1)
        elif c == "#":
            i = text.find("\n", i)
            if i < 0:
                break
        elif c == "=" and text[i + 1:i + 2] == ">":
            i += 1
        elif c in pairs:
            stack.append(pairs[c])
        elif stack and c == stack[-1]:
            stack.pop()
            if not stack:
                return i + 1
        i += 1
    raise ValueError("a bracket is not closed")


def split(text):
    """Parts between commas that stand in no bracket."""
    parts, depth, quoted, part = [], 0, False, ""
    for c in text:
        quoted ^= c == '"'
        if not quoted:
            depth += (c in "([{<") - (c in ")]}>")
        if c == "," and depth == 0 and not quoted:
            parts.append(part)
            part = ""
        else:
            part += c
    return [p for p in parts + [part] if p.strip()]


class Operand:
    """A tensor that a model takes: element type, dimensions, contents as text."""

    def __init__(self, name, dtype, dims, contents, constant):
        self.name, self.dtype, self.dims, self.contents, self.constant = name, dtype, dims, contents, constant

    def changed(self, dims=None, contents=None):
        return Operand(self.name, self.dtype, self.dims if dims is None else dims,
                       self.contents if contents is None else contents, self.constant)

    def type_text(self):
        return self.dtype + ("[%s]" % ",".join(map(str, self.dims)) if self.dims else "")


class Model:
    """A case's model in pieces, and its operands."""

    def __init__(self, text, inputs):
        at = 0
        self.header = ""
        body = text.lstrip()
        if body.startswith("<"):
            at = closing(body, 0)
            self.header, body = body[:at], body[at:]
        at = body.index("(")
        end = closing(body, at)
        self.name = body[:at]
        declared = split(body[at + 1:end - 1])
        at = body.index("(", end)
        end = closing(body, at)
        self.outputs = [self.open_type(d) for d in split(body[at + 1:end - 1])]
        body = body[end:].lstrip()
        self.operands, self.others, self.kept = [], [], []
        if body.startswith("<"):
            end = closing(body, 0)
            for d in split(body[1:end - 1]):
                self.add_constant(d)
            body = body[end:].lstrip()
        self.body = body
        self.values = []
        for d in declared:
            self.add_input(d, inputs)

    @staticmethod
    def open_type(text):
        m = DECLARED.match(text)
        return "%s[] %s" % (m.group(1), m.group(3)) if m else text

    def add_constant(self, text):
        m = DECLARED.match(text)
        tensor = m and m.group(4) and TENSOR.match(m.group(1) + (m.group(2) or "") + m.group(4))
        if tensor and numbers(tensor.group(2)) is not None:
            self.operands.append(Operand(m.group(3), m.group(1), numbers(tensor.group(2)), tensor.group(3), True))
        else:
            self.kept.append(text)

    def add_input(self, text, inputs):
        m = DECLARED.match(text)
        value = m and inputs.get(m.group(3))
        tensor = value and TENSOR.match(value)
        if tensor and not m.group(4):
            self.operands.append(
                Operand(m.group(3), tensor.group(1), numbers(tensor.group(2)) or [], tensor.group(3), False))
        else:
            self.others.append(text if not m or m.group(4) else self.open_type(text))
            if m and value:
                self.values.append((m.group(3), value))

    def write(self, operands, body, constant):
        fed = [o for o in operands if not (constant or o.constant)]
        made = [o for o in operands if constant or o.constant]
        text = [self.header, self.name, "("]
        text.append(", ".join(["%s[] %s" % (o.dtype, o.name) for o in fed] + self.others))
        text.append(") => (%s)" % ", ".join(self.outputs))
        if made or self.kept:
            text.append(" <%s>" % ", ".join(["%s %s = %s" % (o.type_text(), o.name, o.contents) for o in made]
                                            + self.kept))
        text.append(" " + body.rstrip() + "\n")
        text += ["%%input %s = %s %s\n" % (o.name, o.type_text(), o.contents) for o in fed]
        text += ["%%input %s = %s\n" % v for v in self.values]
        return "".join(text)


def numbers(text):
    """Dimensions; None if there are others than numbers."""
    if text is None or not text.strip():
        return []
    try:
        return [int(x) for x in text.split(",")]
    except ValueError:
        return None


def empties(dims):
    """Shapes without elements: one axis is 0, and none, each or all of the others are huge."""
    for axis in range(len(dims)):
        zero = dims[:axis] + [0] + dims[axis + 1:]
        yield zero
        for huge in HUGE:
            for other in range(len(dims)):
                if other != axis:
                    yield zero[:other] + [huge] + zero[other + 1:]
        yield [0 if a == axis else HUGE[-1] for a in range(len(dims))]
    if not dims:
        yield [0]


def is_shape(dims):
    """Sizes whose product without zeros fits 64 bits: others are refused where they are read."""
    return count([d for d in dims if d]) < 1 << 62


def count(dims):
    n = 1
    for d in dims:
        n *= d
    return n


def elements(dtype):
    """Elements worth trying for a type."""
    if dtype in FLOATS:
        return ["nan", "inf", "-inf", "-1.0", "0.0", "3e38", "1e-40"]
    if dtype in SIGNED:
        top = 1 << SIGNED[dtype]
        return [str(x) for x in (-top, -1, 0, 1, top - 1, min(top - 1, 1 << 40))]
    if dtype in UNSIGNED:
        return [str(x) for x in (0, 1, (1 << UNSIGNED[dtype]) - 1)]
    return []


def of_shapes(operands):
    for i, o in enumerate(operands):
        for dims in filter(is_shape, empties(o.dims)):
            yield operands[:i] + [o.changed(dims, "{}")] + operands[i + 1:]
    rank = max((len(o.dims) for o in operands), default=0)
    for axis in range(rank):  # all operands together, axes counted from the end and from the front
        for place in (lambda o: len(o.dims) - 1 - axis, lambda o: axis):
            for huge in (None,) + HUGE[:2]:
                made = []
                for o in operands:
                    at = place(o)
                    if not 0 <= at < len(o.dims) or "int" in o.dtype:
                        made.append(o)
                        continue
                    dims = [0 if a == at else huge or d for a, d in enumerate(o.dims)]
                    made.append(o.changed(dims, "{}") if is_shape(dims) else o)
                yield made


def of_elements(operands):
    for i, o in enumerate(operands):
        n = count(o.dims)
        if not 0 < n <= MOST_ELEMENTS:
            continue
        for e in elements(o.dtype):
            yield operands[:i] + [o.changed(contents="{%s}" % ", ".join([e] * n))] + operands[i + 1:]


def of_attributes(body):
    """The nodes with each integer of an attribute replaced in turn."""
    for m in re.finditer(r"(?<=[=\[,])\s*-?\d+\s*(?=[,>\]])", body):
        before = body[:m.start()]
        if before.count("{") != before.count("}") + 1:  # elements of a tensor, or a subgraph
            continue
        for value in INTEGERS:
            yield before + " %d" % value + body[m.end():]


def variants(model):
    for constant in (False, True):
        for operands in of_shapes(model.operands):
            yield operands, model.body, constant
        for operands in of_elements(model.operands):
            yield operands, model.body, constant
        for body in of_attributes(model.body):
            yield model.operands, body, constant


def cases(path):
    """(name, text of the model, inputs of the first run) of a file's cases that are not to fail."""
    for part in re.split(r"^== ", path.read_text(), flags=re.M)[1:]:
        name, rest = part.split("\n", 1)
        pieces = re.split(r"^%", rest, flags=re.M)
        first_run = []
        for piece in pieces[1:]:
            if piece.startswith("run"):
                break
            first_run.append(piece)
        if any(p.startswith(("skip", "error load")) for p in pieces[1:]):
            continue
        inputs = {}
        for piece in first_run:
            if piece.startswith("input"):
                key, value = piece[5:].split("=", 1)
                inputs[key.strip()] = value.strip()
        yield name, pieces[0], inputs


def write_variants(path, out, every):
    seen = set()
    with open(out, "w") as f:
        for name, text, inputs in cases(path):
            model = Model(text, inputs)
            for i, variant in enumerate(variants(model)):
                written = model.write(*variant)
                if written in seen:
                    continue
                seen.add(written)
                if len(seen) % every == 0:
                    f.write("== %s, %d\n%s%%hostile\n\n" % (name, i, written))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=1, help="one of so many variants")
    parser.add_argument("folder", type=Path)
    parser.add_argument("run_ops")
    parser.add_argument("files", nargs="+", type=Path)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    counts = [0, 0, 0]
    lines, slowest = [], (0.0, "none")

    def attack(path):
        out = args.folder / path.name
        write_variants(path, out, args.every)
        return subprocess.run([args.run_ops, out], stdout=subprocess.PIPE, text=True).stdout

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for text in pool.map(attack, args.files):
            found = re.search(r"(\d+) passed, (\d+) failed, (\d+) skipped\n$", text)
            counts = [a + int(b) for a, b in zip(counts, found.groups() if found else (0, 1, 0))]
            lines += [line for line in text.splitlines() if line.startswith("FAIL")] + ([] if found else [text])
            longest = re.search(r"^longest: ([\d.]+) ms of CPU time, (.*)$", text, re.M)
            slowest = max(slowest, (float(longest.group(1)), longest.group(2))) if longest else slowest
    print("\n".join(lines))
    print("longest: %.1f ms of CPU time, %s" % slowest)
    print("%d passed, %d failed, %d skipped" % tuple(counts))
    sys.exit(counts[1] != 0)


if __name__ == "__main__":
    main()
