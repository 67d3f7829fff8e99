#!/usr/bin/python3
"""test_server.py PROGRAM [MATCH] - tests of `sinter serve`; exit code 77 when something is missing."""
import os
import sys

# numpy's threads would wait for each other on a busy machine
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
try:
    import numpy  # noqa: F401
    import onnx  # noqa: F401
except ImportError as missing:
    print("skipped: %s" % missing)
    sys.exit(77)

import harness
import cases_protocol  # noqa: F401
import cases_hostile  # noqa: F401
import cases_schedule  # noqa: F401
import cases_operations  # noqa: F401
import cases_loading  # noqa: F401

if __name__ == "__main__":
    sys.exit(harness.run_all(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None))
