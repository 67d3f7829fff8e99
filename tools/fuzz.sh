#!/bin/bash
# fuzz.sh - runs every fuzzer for FUZZ_SECONDS (60), starting from the kept corpus; as many at once as
# there are CPUs. FUZZ_SEED sets where their random numbers start; without it the commit does, so that a
# finding comes again when the same commit is run again, and another commit looks elsewhere. The last
# lines tell every finding: what the fuzzer said of it and, if it is small, the input itself.
cd "$(dirname "$0")/.." || exit 1
tools/install-deps.sh build && tools/install-deps.sh test || exit 1
seconds=${FUZZ_SECONDS:-60}
commit=$(git rev-parse --short=7 HEAD 2>/dev/null || echo 1)
seed=${FUZZ_SEED:-$((0x$commit))}
build=build-test/asan
out=build-test/fuzz
mkdir -p "$out"
tools/build.sh asan fuzzers || exit 1
# Small models and texts to start from, besides the kept corpus.
seeds=$out/seeds
if [ ! -d "$seeds" ]; then
    mkdir -p "$seeds/models" "$seeds/texts"
    data=${SINTER_TEST_DATA:-build-test/data}/onnx-suite
    tests/onnx/generate.sh &&
        find "$data" -name model.onnx -size -5k | while read -r model; do
            cp "$model" "$seeds/models/$(basename "$(dirname "$model")")"
        done
    for file in tests/ops/*.txt; do # one case a file
        csplit -s -z -n 4 -f "$seeds/texts/$(basename "$file" .txt)-" "$file" '/^== /' '{*}'
    done
    sed -i -e '/^==/d' -e '/^%/,$d' "$seeds"/texts/*
fi

# fuzz FUZZER - runs one and says what came of it.
fuzz() {
    local name
    name=$(basename "$1")
    mkdir -p "$out/corpus/$name" "$out/found"
    local kept=("$seeds/models")
    [ "$name" = fuzz_text ] && kept=("$seeds/texts")
    case "$name" in fuzz_load | fuzz_run | fuzz_text) ;; *) kept=() ;; esac
    [ -d "tests/fuzz/corpus/$name" ] && kept+=("tests/fuzz/corpus/$name")
    if "$1" -seed="$seed" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 \
        -artifact_prefix="$out/found/$name-" "$out/corpus/$name" "${kept[@]}" >"$out/$name.log" 2>&1; then
        echo "$name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$out/$name.log") inputs, no finding"
    else
        echo "$name: FINDING, see $out/found"
        return 1
    fi
}

# tell_finding FILE - what is known of an input that a fuzzer kept.
tell_finding() {
    local name
    name=$(basename "$1")
    echo "FUZZ: $name, seed $seed"
    grep -hE 'ERROR|runtime error|SUMMARY|^ +#[0-9]+ .* in ' "$out/${name%%-*}.log" | grep -v compiler-rt | head -15
    [ "$(stat -c %s "$1")" -le 3000 ] && base64 "$1"
}

touch "$out/started"
status=0
running=()
for fuzzer in "$build"/fuzz_*; do
    [ -x "$fuzzer" ] && [ -f "$fuzzer" ] || continue
    if [ ${#running[@]} -ge "$(nproc)" ]; then
        wait "${running[0]}" || status=1
        running=("${running[@]:1}")
    fi
    fuzz "$fuzzer" &
    running+=($!)
done
for job in "${running[@]}"; do wait "$job" || status=1; done
find "$out/found" -type f -newer "$out/started" 2>/dev/null | while read -r file; do tell_finding "$file"; done
exit $status
