#!/bin/bash
# run_grpc.sh PROGRAM - tests of the gRPC door with python3-grpcio, and with @grpc/grpc-js where npm
# brings it.
. "$(dirname "$0")/source_files.sh"
data=${SINTER_TEST_DATA:-$top/build-test/data}
if command -v npm >/dev/null && [ ! -d "$data/grpc-js/node_modules/@grpc/proto-loader" ]; then
    mkdir -p "$data/grpc-js"
    npm install --ignore-scripts --no-audit --no-fund --prefix "$data/grpc-js" @grpc/grpc-js \
        @grpc/proto-loader >"$data/grpc-js.log" 2>&1 || echo "@grpc/grpc-js is not to be had"
fi
export SINTER_NODE_MODULES=$data/grpc-js/node_modules
exec /usr/bin/python3 -W ignore tests/server/test_grpc.py "$1"
