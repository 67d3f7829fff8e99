# source_files.sh - for other scripts: `source_files PATTERN...` prints the project's own files.
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$top" || exit 1

source_files() {
    local names=()
    for pattern in "$@"; do names+=(-o -name "$pattern"); done
    find . \( -name 'build*' -o -name .git -o -name '__pycache__' -o -name .cache \) -prune -o \
        -type f \( "${names[@]:1}" \) -print | sed 's|^\./||' | LC_ALL=C sort
}
