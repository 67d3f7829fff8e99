#!/bin/bash
# run_written.sh PROGRAM - files that `sinter optimize` writes, in the real ONNX Runtime, which npm brings; skipped
# where there is no Node.js or no npm registry. Models of the zoo take part where PyTorch is there.
. "$(dirname "$0")/source_files.sh"
data=${SINTER_TEST_DATA:-$top/build-test/data}
command -v node >/dev/null && command -v npm >/dev/null || { echo "Node.js is not there"; exit 77; }
bench/versus/install-ort.sh "$data/onnxruntime" >/dev/null || exit 77
/usr/bin/python3 -c 'import onnx, numpy' 2>/dev/null || { echo "python3-onnx is not there"; exit 77; }
names="mobilenet_v3_large yolov8n convnext_tiny vit_b_16 swin_t bert_base gpt2 llama llama_angles llama_pairs"
zoo=()
for opset in 13 17; do
    mkdir -p "$data/models-$opset"
    # shellcheck disable=SC2086
    /usr/bin/python3 -W ignore bench/zoo/export.py --small --opset $opset --out "$data/models-$opset" $names \
        >"$data/models-$opset.written.log" 2>&1
    [ -d "$data/models-$opset/llama" ] && zoo+=("$data/models-$opset")
done
exec /usr/bin/python3 -W ignore tests/clients/written.py "$1" "$data/written" "${zoo[@]}" \
    --node-modules "$data/onnxruntime/node_modules"
