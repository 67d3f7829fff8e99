"""abi.py - what the shared libraries show: exported names, and their binary interface beside that of the
last version, which abidw wrote to libsinter.abi and libonnxruntime.abi in this folder."""

import os
import re
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
LIBRARIES = {"libsinter.so": "libsinter.abi", "libonnxruntime.so.1": "libonnxruntime.abi"}
REMOVED_OR_CHANGED = 8  # of abidiff's exit code: programs that were linked before break

C_LIBRARY = re.compile(r"^(libc|libm|libpthread|libdl|ld-linux[^.]*)\.so")


def said(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def exported(library):
    return sorted(line.split()[-1] for line in said("nm", "-D", "--defined-only", library).splitlines())


def foreign(facts):
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", facts)
    return ["needs " + name for name in needed if not C_LIBRARY.match(name)]


def check_exports(library):
    names = exported(library)
    bad = ["exported: " + name for name in names if not name.startswith("sn_")]
    if len(names) < 20:
        bad.append("only %d functions exported" % len(names))
    return bad + foreign(said("readelf", "-d", library))


def check_ort_exports(library):
    names = exported(library)
    facts = said("readelf", "-dV", library)
    bad = foreign(facts)
    if names != ["OrtGetApiBase", "OrtSessionOptionsAppendExecutionProvider_CPU"]:
        bad.append("exported: " + " ".join(names))
    if not re.search(r"SONAME.*\[libonnxruntime\.so\.1\]", facts):
        bad.append("its SONAME is another")
    if "NODELETE" not in facts:
        bad.append("it can be unloaded")
    if "Version definition" in facts:
        bad.append("its symbols have versions")
    return bad


def write_abi(build):
    """Writes the interface of the libraries of a build: what later ones are compared with."""
    for library, kept in LIBRARIES.items():
        subprocess.run(["abidw", "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--drop-private-types",
                        "--headers-dir", "include", "--out-file", os.path.join(HERE, kept),
                        os.path.join(build, library)], check=True)
    return []


def check_abi(build):
    """Complaints about what a program that was linked against the last version would not find."""
    bad = []
    for library, kept in LIBRARIES.items():
        done = subprocess.run(["abidiff", "--no-added-syms", os.path.join(HERE, kept), os.path.join(build, library)],
                              stdout=subprocess.PIPE, text=True)
        if done.returncode & (REMOVED_OR_CHANGED | 3):
            bad += ["%s breaks programs that were linked against the last version:" % library]
            bad += done.stdout.splitlines()[:60]
        elif done.stdout:
            print(done.stdout)
    return bad
