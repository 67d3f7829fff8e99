#!/bin/bash
# run_optimised.sh PROGRAM [--markdown] - counts what the optimiser leaves of the zoo's models, exported at
# opsets 13 and 17 in their small form, which keeps the structure.
. "$(dirname "$0")/source_files.sh"

data=${SINTER_TEST_DATA:-$top/build-test/data}
names="resnet50 mobilenet_v2 mobilenet_v3_large efficientnet_b0 yolov8n densenet121 convnext_tiny vit_b_16
    swin_t bert_base gpt2 llama llama_angles llama_pairs"
for opset in 13 17; do
    mkdir -p "$data/models-$opset"
    /usr/bin/python3 -W ignore bench/zoo/export.py --small --opset $opset --out "$data/models-$opset" $names \
        >"$data/models-$opset.optimised.log" 2>&1
    [ -d "$data/models-$opset/llama" ] || { echo "PyTorch is not there"; exit 77; }
done
exec tests/models/optimised.py "$1" "$data/models-13" "$data/models-17" "${@:2}"
