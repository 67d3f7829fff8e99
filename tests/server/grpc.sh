#!/bin/bash
# grpc.sh PROGRAM - tests of the gRPC listener with python3-grpcio, and with @grpc/grpc-js, which npm brings.
. "$(dirname "$0")/../common.sh"
need node npm
need_python grpc
SINTER_NODE_MODULES=$(npm_modules grpc-js @grpc/grpc-js @grpc/proto-loader) || missing "@grpc/grpc-js"
export SINTER_NODE_MODULES
exec /usr/bin/python3 -W ignore tests/server/test_grpc.py "$1"
