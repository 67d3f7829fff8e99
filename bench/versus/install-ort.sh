#!/bin/bash
# install-ort.sh FOLDER - puts the real ONNX Runtime of npm into FOLDER and prints the path of its
# library. No script of the package runs. Who comes while another one installs waits for it.
set -e
folder=$1
version=${ORT_VERSION:-1.30}
case "$(uname -m)" in x86_64) arch=x64 ;; aarch64) arch=arm64 ;; *) arch=$(uname -m) ;; esac
library() { find "$folder/node_modules/onnxruntime-node/bin" -path "*linux/$arch/libonnxruntime.so.1" 2>/dev/null | head -1; }
mkdir -p "$folder"
exec 9>"$folder.lock"
flock 9
if [ -z "$(library)" ]; then
    npm install --ignore-scripts --no-audit --no-fund --prefix "$folder" "onnxruntime-node@$version" >"$folder/npm.log" 2>&1 ||
        { echo "ONNX Runtime is not to be had; see $folder/npm.log" >&2; exit 1; }
fi
library
