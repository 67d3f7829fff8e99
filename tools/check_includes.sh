#!/bin/bash
# check_includes.sh - includes go one way: base <- graph <- ops <- {model, opt, ep <- plan} <- exec
# <- api; cpu and codecs see base only; the program sees the public header only.
. "$(dirname "$0")/source_files.sh"

allowed() { # the rooms that a room may include
    case "$1" in
    base) echo "base" ;;
    graph) echo "base graph" ;;
    ops) echo "base codecs graph ops" ;;
    cpu) echo "base cpu" ;;
    codecs) echo "base codecs" ;;
    ep) echo "base cpu graph ops ep" ;;
    model) echo "base graph ops model" ;;
    opt) echo "base graph ops opt" ;;
    plan) echo "base graph ops ep plan" ;;
    exec) echo "base graph ops ep model opt plan exec" ;;
    api) echo "base graph ops ep model opt plan exec api" ;;
    esac
}

bad=0
complain() {
    echo "$1"
    bad=1
}

for file in $(source_files '*.c' '*.h' '*.def'); do
    case "$file" in
    src/*) room=${file#src/}; room=${room%%/*} ;;
    cli/* | server/* | examples/* | demo/*) room=outside ;;
    *) continue ;;
    esac
    rooms=" $(allowed "$room") "
    while read -r line; do
        target=${line#*\"}
        target=${target%%\"*}
        if [ "$target" = sinter.h ]; then
            continue
        elif [ "$room" = outside ]; then
            case "$target" in
            */*) complain "$file includes $target: only sinter.h and its own headers may be" ;;
            esac
        elif [ "${target#*/}" = "$target" ]; then
            complain "$file includes $target: write room/file.h"
        elif [ "${rooms/ ${target%%/*} /}" = "$rooms" ]; then
            complain "$file includes $target: $room may not see ${target%%/*}"
        fi
    done < <(grep -E '^ *# *include +"' "$file")
done
exit $bad
