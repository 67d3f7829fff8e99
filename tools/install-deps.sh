#!/bin/bash
# install-deps.sh build|test|export|clients|bench - installs the Debian packages that a job needs, if missing.
#   build   compiler, CMake, what the sinter program reads pictures with, and TLS for the server
#   test    what the tests need besides, with the rest of what ImageDecoder decodes with
#   export  PyTorch, to export models for tests and to train the demonstration's
#   clients compilers of the other languages that examples are written in
#   bench   a quick BLAS for PyTorch, so that it is measured at its best; Debian's default is the plain one
# Needs root (or sudo) only when something is missing.
set -e

case "$1" in
build) packages="gcc cmake ninja-build pkg-config libpng-dev libjpeg-dev zlib1g-dev libgnutls28-dev
    libnghttp2-dev" ;;
test) packages="g++ clang libclang-rt-14-dev clang-format binutils libcmocka-dev graphviz python3 python3-numpy python3-onnx
    libwebp-dev libtiff-dev libopenjp2-7-dev" ;;
export) packages="python3-torch python3-torchvision python3-sklearn python3-onnx" ;;
clients) packages="golang-go chromium python3-grpcio python3-protobuf protobuf-compiler"
    command -v cargo >/dev/null || packages="$packages cargo" ;;
bench) packages="libopenblas0-openmp" ;;
*) echo "usage: $0 build|test|export|clients|bench" >&2; exit 2 ;;
esac

command -v dpkg-query >/dev/null || exit 0

missing=""
for p in $packages; do
    state=$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null || true)
    [ "$state" = installed ] || missing="$missing $p"
done
[ -n "$missing" ] || exit 0

as_root=""
[ "$(id -u)" = 0 ] || as_root=$(command -v sudo || true)
if [ "$(id -u)" != 0 ] && [ -z "$as_root" ]; then
    echo "missing packages:$missing (install them as root)" >&2
    exit 1
fi
echo "installing$missing" >&2
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086
install() { $as_root apt-get install -y --no-install-recommends $missing >&2; }
install || { $as_root apt-get update >&2 && install; }
