#!/usr/bin/python3
"""check.py CHECK [ARGUMENT...] - checks of the source and of what is built from it, one by name:

    includes                 includes go one way between the modules
    length                   lengths of files and functions, parameters of functions
    names                    no sni_ type has two meanings
    inc                      an .inc.c file has at least two users
    heads                    a file that names itself does so rightly
    words                    nothing unfinished, no path of one machine
    docs                     files and functions that documents name are there
    format                   C files are as clang-format 14 writes them
    header COMPILER          public headers stand alone as C11 and C++17
    tidy BUILD               clang-tidy 14 finds nothing in what reads foreign bytes
    exports LIBRARY          libsinter exports sn_* and needs the C library alone
    ort_exports LIBRARY      the same for libonnxruntime.so.1
    abi BUILD                the libraries' binary interface is the last version's, or more
    operators PROGRAM        docs/OPERATORS.md is what the program says

    prune                    takes what is no longer needed out of exceptions.txt
    write_abi BUILD          keeps the interface of a new version

exceptions.txt lists what is older than a rule. A line there that is no longer needed fails, too: the
list only gets shorter. Exit code 77 means that a tool is not there; in continuous integration
(CI=true) that is a failure.
"""

import fnmatch
import os
import re
import subprocess
import sys

import abi
import c_source
import modules
from c_source import TOP, files, read

EXCEPTIONS = os.path.join(TOP, "tests/source/exceptions.txt")
FILE_LINES, FUNCTION_LINES, PARAMETERS = 500, 60, 7
TEST_FILE_LINES, TEST_FUNCTION_LINES = 1000, 90


def missing(what):
    """A tool that a check needs is not there."""
    print(what + " is not there")
    sys.exit(1 if os.environ.get("CI") == "true" else 77)


def exceptions(kind):
    """The names that exceptions.txt lists for a rule."""
    with open(EXCEPTIONS) as f:
        pairs = (line.split() for line in f if line.strip() and line[0] != "#")
        return {pair[1] for pair in pairs if pair[0] == kind}


def compare(kind, found):
    """Complaints about what breaks a rule without being listed, and about lines that are not needed.
    `found` maps names to complaints."""
    known = exceptions(kind)
    bad = [text for name, text in sorted(found.items()) if name not in known]
    bad += ["exceptions.txt: '%s %s' is no longer needed: take the line out" % (kind, name)
            for name in sorted(known - set(found))]
    return bad


# ---- Rules about the source ----


def check_includes():
    bad = []
    for path in files(".c", ".h", ".def"):
        for target in c_source.includes(path):
            if complaint := modules.complaint(path, target):
                bad.append("%s includes %s: %s" % (path, target, complaint))
    return bad + modules.unknown_folders()


def long_things():
    """What is too long: {rule: {name: complaint}}."""
    found = {"file-lines": {}, "function-lines": {}, "parameters": {}}
    for path in files(".c", ".h"):
        test = path.startswith("tests/")
        lines, most = (TEST_FILE_LINES, TEST_FUNCTION_LINES) if test else (FILE_LINES, FUNCTION_LINES)
        text = read(path)
        count = text.count("\n")
        if count > lines:
            found["file-lines"][os.path.basename(path)] = "%s: %d lines, more than %d" % (path, count, lines)
        for f in c_source.functions(text):
            where = "%s:%d: %s" % (path, f.line, f.name)
            if f.lines > most:
                found["function-lines"][f.name] = "%s has %d lines, more than %d" % (where, f.lines, most)
            if f.parameters > PARAMETERS and not test:
                found["parameters"][f.name] = "%s has %d parameters: put them into a struct" % (where, f.parameters)
    return found


def check_length():
    return [text for kind, found in long_things().items() for text in compare(kind, found)]


def check_names():
    places = {}
    for path in files(".c", ".h", ".def", under="src"):
        for name, line in c_source.types(read(path)):
            if name.startswith("sni_"):
                places.setdefault(name, []).append("%s:%d" % (path, line))
    return ["%s is defined more than once: %s" % (name, ", ".join(at)) for name, at in sorted(places.items())
            if len(at) > 1]


def lonely_includes():
    """Files x.inc.c that stand for one piece of text: included once, or never. Those that a macro
    names (#define BODY "x.inc.c") are included for one type after another."""
    users = {}
    for path in files(".c", ".h"):
        for kind, name in re.findall(r'^ *# *(include|define \w+) +"([^"]+)"', read(path), re.M):
            name = os.path.basename(name)
            users[name] = users.get(name, 0) + (1 if kind == "include" else 2)
    return {os.path.basename(path): "%s is included once: put its text there" % path
            for path in files(".inc.c") if users.get(os.path.basename(path), 0) < 2}


def check_heads():
    """The comment that begins a file names this file, or none."""
    bad = []
    for path in files(".c", ".h", ".def"):
        head = re.match(r"/\* ([\w.]+\.(?:c|h|def)) - ", read(path))
        if head and head.group(1) != os.path.basename(path):
            bad.append("%s calls itself %s" % (path, head.group(1)))
    return bad


def check_inc():
    return compare("inc", lonely_includes())


def check_words():
    words = re.compile(r"\b(TODO|FIXME|HACK|XXX|not implemented yet|for now)\b")
    paths = re.compile(r"(^|[^A-Za-z0-9_.}])/(root|work|home/[a-z]+|Users)/")
    bad = []
    for path in files(".c", ".h", ".def", ".py", ".sh", ".md", ".txt", ".cmake", ".in", "Makefile", "run"):
        if path == "tests/source/check.py":
            continue
        for number, line in enumerate(read(path).splitlines(), 1):
            if words.search(line) or paths.search(line):
                bad.append("%s:%d:%s" % (path, number, line))
    return bad


# ---- Documents ----

FILE_NAME = re.compile(r"^[\w.*/-]+\.(c|h|def|py|sh|md|txt|cmake|svg|json|png|rs|go|js)$")
FUNCTION_NAME = re.compile(r"^(sn|sni|srv|ort|cli)_[a-z0-9_]+(\(\))?$")
UNIT_TEST = re.compile(r"^unit\.[a-z0-9_]+$")
ELSEWHERE = {"docs/Syntax.md"}  # files of other projects


def names_in(text):
    """What stands between backticks in a document, without blocks of code, and targets of links."""
    prose = re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.M | re.S)
    for name in re.findall(r"`([^`\s]+)`", prose):
        yield name.rstrip(".,;:")


def check_docs():
    everything = files("", hidden=True)
    code = "\n".join(read(p) for p in files(".c", ".h", ".def", ".py", ".md") if not p.startswith("docs/"))
    known = set(re.findall(r"\w+", code))
    bad = []
    documents = [p for p in files(".md") if not p.startswith("docs/notes/") and p != "CHANGELOG.md"]
    for path in documents:
        text = read(path)
        made = set(re.findall(r"[Cc]reate `([^`]+)`", text))  # by who follows an instruction
        for name in sorted(set(names_in(text)) - made):
            if UNIT_TEST.match(name) and not any(p.endswith("/test_%s.c" % name[5:]) for p in everything):
                bad.append("%s names %s, but there is no such test" % (path, name))
            elif FUNCTION_NAME.match(name) and name.removesuffix("()") not in known:
                bad.append("%s names %s, which is not in the source" % (path, name))
            elif not FILE_NAME.match(name) or "/" not in name or name in ELSEWHERE or name.startswith("build"):
                continue
            elif not any(fnmatch.fnmatch("/" + p, "*/" + name.lstrip("./")) for p in everything):
                bad.append("%s names %s, which is not there" % (path, name))
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
            if "://" in target or target.startswith("mailto:"):
                continue
            if not os.path.exists(os.path.join(TOP, os.path.dirname(path), target)):
                bad.append("%s links to %s, which is not there" % (path, target))
    return bad


# ---- What tools say ----


def check_format():
    # Other versions write some lines differently; Debian 12 has this one.
    formatter = "clang-format-14"
    try:
        done = subprocess.run([formatter, "--dry-run", "-Werror"] + files(".c", ".h"), cwd=TOP, text=True,
                              stderr=subprocess.PIPE)
    except FileNotFoundError:
        missing(formatter)
    return done.stderr.splitlines()[:40] if done.returncode else []


def check_header(compiler):
    strict = ["-Wall", "-Wextra", "-Wshadow", "-pedantic", "-Werror", "-fsyntax-only", "-Iinclude"]
    bad = []
    for command in ([compiler, "-std=c11", "-x", "c"], ["c++", "-std=c++17", "-x", "c++"]):
        for header in files(".h", under="include") + ["src/ort/ort_abi.h"]:
            try:
                done = subprocess.run(command[:1] + strict + command[1:] + [header], cwd=TOP, text=True,
                                      stderr=subprocess.PIPE)
            except FileNotFoundError:
                missing(command[0])
            bad += done.stderr.splitlines()
    return bad


# What reads files, requests and answers, and what everything else stands on: a minute for one CPU.
TIDY = ("src/base/", "src/model/", "src/codecs/", "common/", "cli/formats/", "server/net/")


def check_tidy(build):
    from concurrent.futures import ThreadPoolExecutor

    def tidy(path):
        done = subprocess.run(["clang-tidy-14", "-p", build, "--quiet", path], cwd=TOP, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return done.stdout.splitlines() if done.returncode else []

    with open(os.path.join(build, "compile_commands.json")) as f:
        built = f.read()  # libraries that are not there leave files out
    paths = [p for p in files(".c") if p.startswith(TIDY) and not p.endswith(".inc.c") and p in built]
    try:
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            return [line for lines in pool.map(tidy, paths) for line in lines]
    except FileNotFoundError:
        missing("clang-tidy-14")


def check_abi(build):
    try:
        return abi.check_abi(build)
    except FileNotFoundError:
        missing("abidiff")


def check_operators(program):
    said = subprocess.run([program, "ops", "--markdown"], stdout=subprocess.PIPE, text=True, check=True).stdout
    if said == read("docs/OPERATORS.md"):
        return []
    return ["docs/OPERATORS.md is not up to date: sinter ops --markdown > docs/OPERATORS.md"]


def prune():
    """Writes exceptions.txt again without what is no longer needed."""
    found = long_things()
    found["inc"] = lonely_includes()
    with open(EXCEPTIONS) as f:
        lines = f.readlines()
    with open(EXCEPTIONS, "w") as f:
        for line in lines:
            pair = line.split()
            if line[0] == "#" or not pair or pair[1] in found[pair[0]]:
                f.write(line)
    return []


CHECKS = {
    "includes": check_includes, "length": check_length, "names": check_names, "inc": check_inc,
    "heads": check_heads, "words": check_words, "docs": check_docs, "format": check_format,
    "header": check_header, "tidy": check_tidy,
    "exports": abi.check_exports, "ort_exports": abi.check_ort_exports, "operators": check_operators,
    "abi": check_abi, "prune": prune, "write_abi": abi.write_abi,
}


def main():
    if len(sys.argv) < 2 or sys.argv[1] not in CHECKS:
        print(__doc__)
        return 2
    bad = CHECKS[sys.argv[1]](*sys.argv[2:])
    print("\n".join(bad) if bad else "%s: nothing to complain about" % sys.argv[1])
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
