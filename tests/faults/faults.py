"""faults.py - the test's side of faults.c: which call of which kind fails, or which file hangs."""
import mmap
import os
import struct
import tempfile

KINDS = ["alloc", "read", "write", "mmap", "open", "sync", "thread", "socket"]
SLOW = 16 * len(KINDS)  # where the size is whose allocation hangs
HANG = SLOW + 8  # where the path begins that hangs


class Faults:
    """A file that both sides map. `environment` makes a program listen to it."""

    def __init__(self, library):
        self.file = tempfile.NamedTemporaryFile(prefix="sinter-faults-")
        self.file.truncate(HANG + 64)
        self.shared = mmap.mmap(self.file.fileno(), HANG + 64)
        self.environment = {**os.environ, "LD_PRELOAD": library, "FAULTS": self.file.name}

    def seen(self, kind):
        return struct.unpack_from("q", self.shared, 8 * KINDS.index(kind))[0]

    def clear(self):
        """Nothing fails, and counting begins anew."""
        self.shared[:] = bytes(len(self.shared))

    def fail(self, kind, number):
        """The call of that number, from 1 and from now on, fails; 0: none does."""
        at = self.seen(kind) + number if number else 0
        struct.pack_into("q", self.shared, 8 * (len(KINDS) + KINDS.index(kind)), at)

    def slow(self, size=0):
        """Allocating so many bytes or more waits until this is called again."""
        struct.pack_into("q", self.shared, SLOW, size)

    def hang(self, path=""):
        """Opening a file whose path has `path` in it waits until this is called again."""
        self.shared[HANG:] = path.encode().ljust(64, b"\0")
