"""cases_hostile.py - broken and hostile input files end in clean errors."""
import random

from harness import *


def check_clean(result, what):
    clean = result.code in (0, 2, 3, 4) and "Sanitizer" not in result.err
    check(clean, "a clean end with " + what, result)


def attack(folder, path, good, ending, rounds):
    """Truncations and random changes of a good file."""
    dice = random.Random(1)
    for i in range(rounds):
        bad = bytearray(good)
        if i % 2 == 0:
            del bad[dice.randrange(len(bad)):]
        else:
            for _ in range(dice.randrange(1, 8)):
                bad[dice.randrange(len(bad))] = dice.choice([0, 1, 0x7f, 0x80, 0xff])
        file = os.path.join(folder, "bad." + ending)
        write(file, bad)
        check_clean(sinter("run", path, "-i", "x=" + file), "%s %d" % (ending, i))


@test
def broken_files(folder):
    path = identity(folder, TensorProto.FLOAT, ["n"])
    values = np.arange(40, dtype=np.float32)
    npy, npz, pb = (os.path.join(folder, "x." + e) for e in ("npy", "npz", "pb"))
    np.save(npy, values)
    attack(folder, path, content(npy), "npy", 40)
    np.savez(npz, x=values)
    attack(folder, path, content(npz), "npz", 40)
    np.savez_compressed(npz, x=values)
    attack(folder, path, content(npz), "npz", 40)
    save_pb(pb, values)
    attack(folder, path, content(pb), "pb", 40)
    attack(folder, path, b'[1, 2.5e3, "NaN", true, [1], {"a": "\\u00e9"}]', "json", 40)


@test
def lying_headers(folder):
    path = identity(folder, TensorProto.FLOAT, ["n"])
    file = os.path.join(folder, "x.npy")

    def header(text, version=1):
        length = struct.pack("<H" if version == 1 else "<I", len(text))
        write(file, b"\x93NUMPY" + bytes([version, 0]) + length + text.encode() + b"\0" * 16)
        return sinter("run", path, "-i", file)

    def entry(descr, shape, fortran="False"):
        return "{'descr': '%s', 'fortran_order': %s, 'shape': %s}" % (descr, fortran, shape)
    good = entry("<f4", "(4,)")
    check_code(header(good), 0)
    for text in [entry("<f4", "(5,)"), entry("<f4", "(4611686018427387904,4)"),
                 entry("<f4", "(99999999999999999999,)"), entry("<f4", "(-4,)"),
                 entry("<f4", "(0, 9223372036854775807, 9)"), entry("<f4", "(" + "1," * 17 + ")"),
                 entry("|O", "(4,)"), entry("<f3", "(4,)"), entry("|S0", "(1000000000000,)"),
                 entry("<U99999999", "(1,)"), entry("<f4", "(4,)", "Maybe"), "{}", "", "{",
                 "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (4,)}",
                 "{'descr': '<f4'}", good + "x"]:
        check_error(header(text), 3, "x.npy")
    check_error(header("{" * 70000, version=2), 3, "x.npy")
    check_error(header(good, version=9), 3, "version 9")


@test
def archive_bombs(folder):
    path = identity(folder, TensorProto.FLOAT, ["n"])
    file = os.path.join(folder, "x.npz")
    np.savez_compressed(file, x=np.zeros(1000, np.float32))
    bad = bytearray(content(file))
    at = bad.index(b"PK\x01\x02")
    bad[at + 24:at + 28] = b"\xff\xff\xff\x7f"
    write(file, bad)
    check_error(sinter("run", path, "-i", "x=" + file), 3, "packed")
    np.savez(file, x=np.ones(1000, np.float32))
    bad = bytearray(content(file))
    bad[2000] ^= 1
    write(file, bad)
    check_error(sinter("run", path, "-i", "x=" + file), 3, "checksum")
