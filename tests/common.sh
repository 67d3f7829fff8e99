# common.sh - for the scripts that run tests, which begin with
#     . "$(dirname "$0")/../common.sh"
# They then stand in the checkout, $top; generated models and what npm brings lie in $data.
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$top" || exit 1
data=${SINTER_TEST_DATA:-$top/build-test/data}
mkdir -p "$data"

# missing WHAT - ends a test that cannot run here: it is skipped, but in continuous integration (CI=true),
# where tools/install-deps.sh brought everything, it has failed.
missing() {
    echo "$1 is not there"
    [ "$CI" = true ] && exit 1
    exit 77
}

# need COMMAND... - all of them are there, or the test ends.
need() {
    local command
    for command in "$@"; do command -v "$command" >/dev/null || missing "$command"; done
}

# need_python MODULE... - Debian's Python has them, or the test ends.
need_python() {
    local module
    for module in "$@"; do /usr/bin/python3 -c "import $module" 2>/dev/null || missing "Python's $module"; done
}

# npm_modules NAME PACKAGE... - prints the folder that npm installed the packages into, once for all
# tests. Fails where the registry cannot be reached.
npm_modules() {
    local folder=$data/$1
    (
        flock 9
        [ -f "$folder/.complete" ] && exit 0
        mkdir -p "$folder"
        npm install --ignore-scripts --no-audit --no-fund --prefix "$folder" "${@:2}" >"$folder.log" 2>&1 &&
            touch "$folder/.complete"
    ) 9>"$folder.lock" || return 1
    echo "$folder/node_modules"
}

# zoo OPSET - exports the small models of the zoo, unless that was done, and prints their folder. Fails
# without PyTorch.
zoo() {
    local folder=$data/models-$1
    mkdir -p "$folder"
    (
        flock 9
        [ -f "$folder/.complete" ] &&
            [ -z "$(find bench/zoo -name '*.py' -newer "$folder/.complete")" ] && exit 0
        /usr/bin/python3 -W ignore bench/zoo/export.py --small --opset "$1" --out "$folder" \
            >"$folder.log" 2>&1 && touch "$folder/.complete"
    ) 9>"$folder.lock" || return 1
    echo "$folder"
}
