#!/bin/bash
# run_page.sh PROGRAM [FOLDER] - the server's page in headless Chromium, driven by Playwright, which npm
# brings; screenshots go to FOLDER. Skipped where there is no Chromium or no npm registry.
. "$(dirname "$0")/source_files.sh"
data=${SINTER_TEST_DATA:-$top/build-test/data}
folder=${2:-$data/page}
command -v chromium >/dev/null && command -v npm >/dev/null || { echo "no Chromium or no npm"; exit 77; }
if [ ! -d "$data/playwright/node_modules/playwright-core" ]; then
    mkdir -p "$data/playwright"
    npm install --ignore-scripts --no-audit --no-fund --prefix "$data/playwright" playwright-core \
        >"$data/playwright.log" 2>&1 || { echo "Playwright is not to be had"; exit 77; }
fi
mkdir -p "$folder"
exec 3< <(exec "$1" serve demo/digits.onnx --http 0 --metrics off -q)
server=$!
read -r -u 3 _ url
"$1" load "$url" -m digits -c 4 -r 2000 -t 300 -q >/dev/null 2>&1 &
load=$!
trap 'kill $load $server' EXIT
NODE_PATH=$data/playwright/node_modules node tests/server/page.js "$url/" demo/3.png "$folder" | tee "$folder/said"
grep -q 'first index 3' "$folder/said"
