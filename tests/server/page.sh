#!/bin/bash
# page.sh PROGRAM [FOLDER] - the server's page in headless Chromium, driven by Playwright, which npm
# brings; screenshots go to FOLDER.
. "$(dirname "$0")/../common.sh"
folder=${2:-$data/page}
need chromium node npm
NODE_PATH=$(npm_modules playwright playwright-core) || missing "Playwright"
export NODE_PATH
mkdir -p "$folder"
exec 3< <(exec "$1" serve demo/digits.onnx --http 0 --metrics off -q)
server=$!
read -r -u 3 _ url
"$1" load "$url" -m digits -c 4 -r 2000 -t 300 -q >/dev/null 2>&1 &
load=$!
trap 'kill $load $server' EXIT
node tests/server/page.js "$url/" demo/3.png "$folder" | tee "$folder/said"
grep -q 'first index 3' "$folder/said"
