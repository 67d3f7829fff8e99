#!/bin/bash
# export.sh OPSET - writes the zoo's small models for the tests that use them.
. "$(dirname "$0")/../common.sh"
need_python torch torchvision
zoo "$1" || { tail -20 "$data/models-$1.log"; exit 1; }
