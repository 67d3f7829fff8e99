#!/usr/bin/python3
"""check_spills.py OBJECT... - inner loops of vector kernels keep their sums in registers.

A loop without another inside it that mostly multiplies and adds (eight such instructions or more, and
a third of all that do not touch the stack) may store a vector register on the stack twice, or once
for every eight of them: what a compiler does with the last register or two. Reading constants from
the stack counts for nothing. Loops that are known to need more registers than there are have a limit of
their own, with the reason. Exit code 77 when the objects cannot be read, because they are of another
machine or not there."""

import re
import subprocess
import sys

LEAST_PRODUCTS = 8
PRODUCTS_FOR_A_SPILL, FREE_SPILLS = 8, 2
KNOWN = {
    # 12 sums stay in registers; of three transformed taps beside them, AVX2 has no room for all
    ("winograd.isa.c.o", "taps"): 4,
    # once for each weight of a model, not in runs
    ("winograd.isa.c.o", "weights"): 5,
    # the gates of a block of units after the sums: three sigmoids and two hyperbolic tangents at once
    ("rnn.isa.c.o", "lstm"): 16,
    # the last rows of a piece, fewer than sixteen; decoding needs registers of its own before them
    ("compressed.isa.c.o", "first_6"): 4,
    ("compressed.isa.c.o", "first_14"): 12,
    ("compressed.isa.c.o", "first_14_vbmi2"): 12,
}
HEAD = re.compile(r"^[0-9a-f]+ <(.+)>:$")
LINE = re.compile(r"^\s*([0-9a-f]+):\s+(\S+)\s*(.*)$")
STORE = re.compile(r"^v?mov[a-z0-9]*$")


def functions(path):
    """Name and instructions (address, mnemonic, operands) of each function."""
    done = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], capture_output=True, text=True)
    if done.returncode:
        print("skipped: " + done.stderr.strip())
        sys.exit(77)
    name, body = None, []
    for text in done.stdout.splitlines():
        if head := HEAD.match(text):
            if name:
                yield name, body
            name, body = head.group(1), []
        elif name and (line := LINE.match(text)):
            body.append((int(line.group(1), 16), line.group(2), line.group(3)))
    if name:
        yield name, body


def inner_loops(body):
    """Runs of instructions from the target of a jump back to the jump, with no such run inside."""
    at = {address: i for i, (address, _, _) in enumerate(body)}
    loops = []
    for i, (address, word, rest) in enumerate(body):
        target = re.match(r"^([0-9a-f]+)\b", rest)
        if word.startswith("j") and target and (start := at.get(int(target.group(1), 16))) is not None and start <= i:
            loops.append((start, i))
    return [a for a in loops if not any(b != a and a[0] <= b[0] and b[1] <= a[1] for b in loops)]


def is_spill(word, rest):
    """A vector register moved to memory at the stack pointer."""
    parts = rest.split(",")
    return bool(STORE.match(word)) and re.search(r"%[xyz]mm", parts[0]) and re.search(r"\(%r[sb]p", ",".join(parts[1:]))


def main(paths):
    bad, seen = 0, 0
    for path in paths:
        for name, body in functions(path):
            for start, end in inner_loops(body):
                loop = body[start : end + 1]
                products = sum("fmadd" in word or "fnmadd" in word for _, word, _ in loop)
                other = sum(not re.search(r"\(%r[sb]p", rest) for _, _, rest in loop)
                if products < LEAST_PRODUCTS or 3 * products < other:
                    continue
                seen += 1
                spills = sum(bool(is_spill(word, rest)) for _, word, rest in loop)
                file = path.rsplit("/", 1)[-1]
                if spills > max(FREE_SPILLS, products // PRODUCTS_FOR_A_SPILL, KNOWN.get((file, name), 0)):
                    bad += 1
                    print("%s: %s: the loop at %x stores %d vectors on the stack for %d products"
                          % (file, name, loop[0][0], spills, products))
    if not seen:
        print("skipped: no loops with fused multiply-adds")
        return 77
    print("%d inner loops, %d with spills" % (seen, bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
