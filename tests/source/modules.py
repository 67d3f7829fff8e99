"""modules.py - the modules and which ones each may include.

In src: base <- graph <- ops <- {model, opt, ep <- plan} <- exec <- api. cpu, the engine behind ep, sees
ep and below; plan and api see it, too. quantize stands above api. codecs see base only; ort sees the
public headers and the protobuf reader and writer only, and its one header that others may see is
ort_abi.h, which stands alone. The program (cli) sees the public
headers, its own, common and two headers of the server. The server sees the public headers, its own,
common, base, and the protobuf reader and writer. common sees itself alone."""

import fnmatch
import os


from c_source import TOP, files

IN_SRC = {
    "base": "base",
    "graph": "base graph",
    "ops": "base codecs graph ops",
    "cpu": "base graph ops ep cpu",
    "codecs": "base codecs",
    "ep": "base graph ops ep",
    "model": "base graph ops model",
    "opt": "base graph ops opt",
    "plan": "base graph ops ep cpu plan",
    "exec": "base graph ops ep model opt plan exec",
    "api": "base cpu graph ops ep model opt plan exec api",
    "quantize": "base graph ops model opt exec api quantize",
    "ort": "ort",
}

# Headers of other modules: protobuf is read and written in one way.
ALSO_IN_SRC = {"ort": ("model/wire.h", "model/wire_write.h", "model/onnx_fields.h")}

OUTSIDE = {
    "cli": ("common/*", "cli/*", "server/serve.h", "server/load/load.h"),
    "server": ("common/*", "server/*", "base/*", "model/wire.h", "model/wire_write.h"),
    "common": ("common/*",),
    "examples": (),
    "demo": (),
    "bench": (),
}

STANDS_ALONE = "ort/ort_abi.h"


def complaint(path, target):
    """Why a file may not include another, or None."""
    home, _, rest = path.partition("/")
    if os.path.isfile(os.path.join(TOP, "include", target)):
        return None
    if home == "src":
        module = rest.partition("/")[0]
        if "/" not in target:
            return None if (path, target) == ("src/ort/ort_abi.h", "ort_slots.def") else "write module/file.h"
        if target in ALSO_IN_SRC.get(module, ()):
            return None
        if target.partition("/")[0] not in IN_SRC.get(module, "").split():
            return "%s may not see %s" % (module, target.partition("/")[0])
    elif home in OUTSIDE and "/" in target and target != STANDS_ALONE:
        if not any(fnmatch.fnmatch(target, pattern) for pattern in OUTSIDE[home]):
            return "%s may not see it" % home
    return None


def unknown_folders():
    """Folders with C that no rule knows, and rules for folders that are gone."""
    source = files(".c", ".h")
    bad = []
    for place, known in (("src", IN_SRC), ("", OUTSIDE)):
        there = {p[len(place):].lstrip("/").partition("/")[0] for p in source if p.startswith(place + "/" if place else "")}
        if not place:
            there -= {"src", "include", "tests", "python"}
        bad += ["%s: no rule in tests/source/modules.py" % os.path.join(place, f) for f in sorted(there - set(known))]
        bad += ["%s: tests/source/modules.py has a rule, but there is no such folder" % os.path.join(place, f)
                for f in sorted(set(known) - there)]
    return bad


