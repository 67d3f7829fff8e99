"""c_source.py - finds the project's files, and functions, types and includes in C.

It reads text as clang-format writes it: definitions begin in the first column and end with a brace
there. That is enough for rules about layout and needs no compiler."""

import os
import re
from collections import namedtuple

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
Function = namedtuple("Function", "name line lines parameters")

INCLUDE = re.compile(r'^ *# *include +"([^"]+)"', re.M)
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')


def skipped_folder(name, hidden):
    return (name.startswith("build") or name in (".git", "__pycache__", ".cache", "node_modules", "target")
            or (name.startswith(".") and not hidden))


def files(*endings, under="", hidden=False):
    """The project's files whose names end so, sorted."""
    found = []
    for folder, folders, names in os.walk(os.path.join(TOP, under)):
        folders[:] = [f for f in folders if not skipped_folder(f, hidden or folder == TOP and f == ".ci")]
        found += [os.path.relpath(os.path.join(folder, n), TOP) for n in names if n.endswith(endings)]
    return sorted(found)


def read(path):
    with open(os.path.join(TOP, path), errors="replace") as f:
        return f.read()


def includes(path):
    return INCLUDE.findall(read(path))


def plain(text):
    """The text with comments and strings blanked, line by line the same."""
    blank = lambda m: re.sub(r"[^\n]", " ", m.group())
    return STRING.sub(blank, COMMENT.sub(blank, text))


def parameters(head):
    """How many parameters the head of a function has."""
    start = head.find("(")
    depth, count = 0, 1
    for i in range(start, len(head)):
        depth += (head[i] == "(") - (head[i] == ")")
        count += head[i] == "," and depth == 1
        if depth == 0:
            inside = head[start + 1 : i].strip()
            return 0 if inside in ("", "void") else count
    return count


def functions(text):
    """The functions that a file defines."""
    head, start, body = "", 0, 0
    for number, line in enumerate(plain(text).split("\n"), 1):
        line = line.rstrip()
        if body:
            if line.startswith("}"):
                name = re.search(r"(\w+(?:\(\w+\))?)\s*\(", head)
                # FN(name)(...) is a function whose name a macro makes
                yield Function(name.group(1) if name else "?", start, number - body - 1,
                               parameters(re.sub(r"^[^(]*\b[A-Z_0-9]+\(\w+\)(?=\()", "", head)))
                head, body = "", 0
            continue
        if re.match(r"[A-Za-z_]", line) and not head:
            start = number
        if head or re.match(r"[A-Za-z_]", line):
            head += line + " "
            if line.endswith("{"):
                if "(" in head and "=" not in head:
                    body = number
                else:
                    head = ""
            elif line.endswith((";", "}")):
                head = ""


TYPE_BODY = re.compile(r"^(?:typedef\s+)?(?:struct|union|enum)\s+(\w+)\s*\{", re.M)
TYPE_END = re.compile(r"^\}\s*(\w+)\s*;", re.M)
TYPE_PLAIN = re.compile(r"^typedef\s+([^;{]*?)\b(\w+)\s*;", re.M)
TYPE_FUNCTION = re.compile(r"^typedef\s+[^;{]*?\(\*?(\w+)\)\s*\(", re.M)


def types(text):
    """Names of types that a file defines, each once, with the line: struct sni_x { ... } sni_x is one."""
    text = plain(text)
    line = lambda m: text.count("\n", 0, m.start()) + 1
    bodies = [(m.group(1), line(m)) for m in TYPE_BODY.finditer(text)]
    tags = {name for name, _ in bodies}
    yield from bodies
    for m in TYPE_END.finditer(text):
        if m.group(1) not in tags:
            yield m.group(1), line(m)
    for m in TYPE_FUNCTION.finditer(text):
        yield m.group(1), line(m)
    for m in TYPE_PLAIN.finditer(text):
        # typedef struct sni_x sni_x; only announces it
        if m.group(1).split()[-1:] != [m.group(2)] and "(" not in m.group(1):
            yield m.group(2), line(m)
