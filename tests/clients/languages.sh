#!/bin/bash
# languages.sh BUILD go|rust - installs into a scratch folder and runs that language's example
# against what is installed.
. "$(dirname "$0")/../common.sh"

language=$2
case "$language" in
go) need go ;;
rust) need cargo ;;
*) echo "usage: $0 BUILD go|rust" >&2; exit 2 ;;
esac
set -e

scratch=$(mktemp -d)
trap 'chmod -R u+w "$scratch"; rm -rf "$scratch"' EXIT
cmake --install "$1" --prefix "$scratch/usr" >/dev/null
libdir=$(dirname "$(find "$scratch/usr" -name libsinter.a)")
cp -r "examples/$language" "$scratch/source"
cd "$scratch/source"
case "$language" in
go)
    export GOCACHE=$scratch/cache GOPATH=$scratch/path GOFLAGS=-mod=mod GOPROXY=off
    PKG_CONFIG_PATH=$libdir/pkgconfig go vet ./...
    PKG_CONFIG_PATH=$libdir/pkgconfig go build -o "$scratch/classify" .
    ;;
rust)
    SINTER_LIB_DIR=$libdir CARGO_TARGET_DIR=$scratch/target cargo build --quiet --offline --release
    mv "$scratch/target/release/classify" "$scratch/classify"
    ;;
esac
export LD_LIBRARY_PATH=$libdir
"$scratch/classify" "$top/demo/digits.onnx" | tee "$scratch/said"
grep -q "this is a 3" "$scratch/said"
grep -q "wrong shape is refused: .*\[1,1,2,2\]" "$scratch/said"
! "$scratch/classify" "$top/nowhere.onnx" 2>"$scratch/refused"
grep -q nowhere "$scratch/refused"
