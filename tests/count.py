#!/usr/bin/python3
"""count.py BROKEN FILE... - adds up what CTest's result files say.

A test that runs many cases counts as many as its output says ("12 passed, 0 failed, 1 skipped", or
cmocka's own lines); any other counts as one. BROKEN builds count as a failure each. Prints the
failures and, as the last line, the sum; exits with 1 if anything failed. With CI=true a test that was
skipped has failed, unless it lacks what lies beside the checkout.
"""

import os
import re
import sys
import xml.etree.ElementTree as ET

SUMMARY = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", re.M)
CMOCKA = {k: re.compile(r"^\[  %s  \] (\d+) test\(s\)" % k, re.M) for k in ("PASSED", "SKIPPED", "FAILED")}


def count(case):
    """(passed, failed, skipped) of one test."""
    status = case.get("status")
    output = case.findtext("system-out") or ""
    if status in ("notrun", "disabled") or case.find("skipped") is not None:
        excused = os.environ.get("CI") != "true" or "beside the checkout" in output
        return (0, 0, 1) if excused else (0, 1, 0)
    found = SUMMARY.findall(output)
    if found:
        passed, failed, skipped = map(int, found[-1])
    elif CMOCKA["PASSED"].search(output):
        passed, skipped, failed = (
            sum(map(int, CMOCKA[k].findall(output))) for k in ("PASSED", "SKIPPED", "FAILED")
        )
    else:
        return (1, 0, 0) if status == "run" else (0, 1, 0)
    if status != "run" and failed == 0:
        failed = 1  # it died, or something besides its cases went wrong
    return (passed, failed, skipped)


def main():
    total = [0, int(sys.argv[1]), 0]
    for path in sys.argv[2:]:
        kind = path.rsplit("/", 1)[-1][:-4]
        for case in ET.parse(path).getroot().iter("testcase"):
            result = count(case)
            total = [a + b for a, b in zip(total, result)]
            if result[1]:
                print("FAILED: %s in the %s build" % (case.get("name"), kind))
            elif result[2] and not result[0]:
                print("skipped: %s in the %s build" % (case.get("name"), kind))
    if int(sys.argv[1]):
        print("FAILED: %s of the builds and the fuzzers; see above" % sys.argv[1])
    if total[0] == 0:
        total[1] += 1
    print("%d passed, %d failed, %d skipped" % tuple(total))
    return 1 if total[1] else 0


if __name__ == "__main__":
    sys.exit(main())
