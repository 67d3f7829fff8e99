#!/usr/bin/python3
"""test_cli.py PROGRAM [TEST]... - tests of the sinter program, all or those named. Ends with the
line "N passed, N failed, N skipped"; exit code 77 when numpy or onnx is not there."""
import sys

sys.dont_write_bytecode = True
try:
    import numpy  # noqa: F401
    import onnx  # noqa: F401
except ImportError as missing:
    print("skipped: %s" % missing)
    sys.exit(77)

import harness
import cases_limits  # noqa: F401
import cases_general  # noqa: F401
import cases_inputs  # noqa: F401
import cases_hostile  # noqa: F401
import cases_images  # noqa: F401
import cases_stages  # noqa: F401
import cases_test  # noqa: F401

if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: test_cli.py PROGRAM [TEST]...")
    sys.exit(harness.main(sys.argv[1], sys.argv[2:]))
