#!/usr/bin/python3
"""test_backend.py SUITE - runs ONNX's own Python backend tests with Sinter as the backend. SUITE is
what tests/onnx/generate.sh wrote: Debian's package carries the generators alone. Cases that are known to fail are named, with reasons, in expected_failures_backend.txt; one
of them that passes is a failure, too. Exits with 77 where onnx is not installed."""

import os
import sys
import unittest
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "python"))
warnings.simplefilter("ignore")

try:
    import numpy as np

    # onnx 1.12 uses numpy's old names of Python types.
    for alias, kind in (("float", float), ("int", int), ("bool", bool), ("object", object)):
        setattr(np, alias, kind)
    import onnx.backend.test
    import onnx.backend.test.loader
except ImportError as e:
    print("skipped:", e)
    sys.exit(77)

import sinter.backend


def expected_failures():
    with open(os.path.join(HERE, "expected_failures_backend.txt"), encoding="utf-8") as f:
        return {line.split()[0] for line in f if line.strip() and not line.startswith("#")}


def find_cases(suite):
    """Points the runner at a suite; kinds of cases that the suite has not are empty."""
    for kind in ("node", "simple", "real", "pytorch-converted", "pytorch-operator"):
        os.makedirs(os.path.join(suite, kind), exist_ok=True)
    onnx.backend.test.loader.load_model_tests.__defaults__ = (suite, None)


def main():
    find_cases(sys.argv[1])
    tests = onnx.backend.test.BackendTest(sinter.backend, __name__)
    tests.exclude("OnnxBackendRealModelTest")  # fetches models from outside
    suite = unittest.TestSuite()
    for case in tests.test_cases.values():
        if case.__name__ != "OnnxBackendRealModelTest":
            suite.addTests(t for t in unittest.defaultTestLoader.loadTestsFromTestCase(case)
                           if "_cuda" not in t.id())
    with open(os.devnull, "w", encoding="utf-8") as null:
        result = unittest.TextTestRunner(stream=null).run(suite)
    failed = {t.id().split(".")[-1]: why for t, why in result.failures + result.errors}
    expected = expected_failures()
    for name in sorted(set(failed) - expected):
        print(f"FAIL {name}: {failed[name].strip().splitlines()[-1]}")
    for name in sorted(expected - set(failed)):
        print(f"{name} is on the list of expected failures, but passes")
    passed = result.testsRun - len(failed) - len(result.skipped)
    print(f"{passed} passed, {len(failed)} failed ({len(expected & set(failed))} expected), "
          f"{len(result.skipped)} skipped")
    return 0 if set(failed) == expected and passed else 1


if __name__ == "__main__":
    sys.exit(main())
