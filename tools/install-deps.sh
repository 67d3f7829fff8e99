#!/bin/bash
# install-deps.sh build|test|export|clients|bench - installs the Debian packages that a job needs, if missing.
#   build   compiler, CMake, what the sinter program reads pictures with, and TLS for the server
#   test    what the tests need besides, with the rest of what ImageDecoder decodes with
#   export  PyTorch, to export models for tests and to train the demonstration's
#   clients compilers of the other languages that examples are written in, Node.js, a browser
#   bench   npm, which brings ONNX Runtime, and a quick BLAS for PyTorch, so that it is measured at its best;
#           Debian's default is the plain one
# Tools that come from elsewhere (Go, Cargo, Node.js) are not installed again. Needs root (or sudo) only
# when something is missing.
set -e

# from_elsewhere COMMAND PACKAGE... - adds the packages unless the command is there.
from_elsewhere() {
    command -v "$1" >/dev/null || packages="$packages ${*:2}"
}

case "$1" in
build) packages="gcc libc6-dev make cmake ninja-build pkg-config libpng-dev libjpeg-dev zlib1g-dev
    libgnutls28-dev libnghttp2-dev" ;;
test) packages="g++ clang clang-14 libclang-rt-14-dev lld clang-format-14 clang-tidy-14 abigail-tools binutils
    libcmocka-dev graphviz python3 python3-numpy python3-onnx libwebp-dev libtiff-dev libopenjp2-7-dev
    openssl git" ;;
export) packages="python3-torch python3-torchvision python3-sklearn python3-onnx" ;;
clients)
    packages="chromium python3-venv python3-grpcio python3-protobuf protobuf-compiler ca-certificates"
    from_elsewhere go golang-go
    from_elsewhere cargo cargo
    from_elsewhere node nodejs
    from_elsewhere npm npm
    ;;
bench)
    packages="libopenblas0-openmp ca-certificates"
    from_elsewhere npm npm
    ;;
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
