#!/bin/bash
# run_big_model.sh PROGRAM LAZY_WEIGHTS - a model of 1 GB is inspected in 100 ms and 50 MB, and a run
# touches only the weight it needs.
. "$(dirname "$0")/source_files.sh"

data=${SINTER_TEST_DATA:-$top/build-test/data}
mkdir -p "$data"
model=$data/big.onnx
[ -f "$model" ] || /usr/bin/python3 tools/make_big_model.py "$model.part" && mv -f "$model.part" "$model" 2>/dev/null
[ -f "$model" ] || { echo "python3-onnx is not there"; exit 77; }

/usr/bin/python3 - "$1" "$model" <<'PYTHON' || exit 1
import resource, subprocess, sys, time

best = 1e9
for turn in range(100):  # a busy machine may need more than one to let one pass undisturbed
    start = time.monotonic()
    subprocess.run([sys.argv[1], "inspect", sys.argv[2]], check=True, stdout=subprocess.DEVNULL)
    best = min(best, time.monotonic() - start)
    if turn >= 4 and best < 0.1:
        break
memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
print("inspected in %.1f ms with at most %.1f MB in memory" % (best * 1e3, memory))
sys.exit(0 if best < 0.1 and memory < 50 else 1)
PYTHON
"$2" "$model"
