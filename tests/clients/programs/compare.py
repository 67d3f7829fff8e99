"""compare.py REAL OURS - answers of programs, a line of "NAME JSON" each: texts the same, numbers within half a percent."""
import json
import sys


def differs(a, b):
    if isinstance(a, list):
        return not isinstance(b, list) or len(a) != len(b) or any(differs(x, y) for x, y in zip(a, b))
    if isinstance(a, (int, float)):
        return not isinstance(b, (int, float)) or abs(a - b) > 5e-3 * max(1, abs(a))
    return a != b


real, ours = ([line.rstrip("\n").split(" ", 1) for line in open(path)] for path in sys.argv[1:3])
failed = len(real) != len(ours)
for (name, a), (_, b) in zip(real, ours):
    try:
        a, b = json.loads(a), json.loads(b)
        bad = not isinstance(a, list) or not a or differs(a, b)
    except ValueError:
        bad = True
    print(f"{name}: {'DIFFERS' if bad else 'the same'}: {str(b)[:120]}")
    if bad:
        print(f"  where ONNX Runtime gives {str(a)[:400]}")
    failed |= bad
sys.exit(failed)
