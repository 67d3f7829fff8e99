#!/bin/bash
# check_includes.sh - includes go one way: base <- graph <- ops <- {model, opt, ep <- plan} <- exec
# <- api; cpu, the engine behind ep, sees ep and below, plan and api see it, too; codecs see base only; ort sees the public headers only. The one
# header of ort that others may see is ort_abi.h, which stands alone. The program (cli) sees the public
# headers, its own, common, server/serve.h and server/load/load.h. The server sees the public headers, its own, common,
# base, and the protobuf reader and writer (model/wire.h, model/wire_write.h). common sees itself alone.
. "$(dirname "$0")/source_files.sh"

allowed() { # the rooms that a room may include
    case "$1" in
    base) echo "base" ;;
    graph) echo "base graph" ;;
    ops) echo "base codecs graph ops" ;;
    cpu) echo "base graph ops ep cpu" ;;
    codecs) echo "base codecs" ;;
    ep) echo "base graph ops ep" ;;
    model) echo "base graph ops model" ;;
    opt) echo "base graph ops opt" ;;
    plan) echo "base graph ops ep cpu plan" ;;
    exec) echo "base graph ops ep model opt plan exec" ;;
    api) echo "base cpu graph ops ep model opt plan exec api" ;;
    ort) echo "ort" ;;
    esac
}

# What rooms outside src/ may include of other rooms, by pattern.
outside() {
    case "$1" in
    cli) echo "common/*|cli/*|server/serve.h|server/load/load.h" ;;
    server) echo "common/*|server/*|base/*|model/wire.h|model/wire_write.h" ;;
    common) echo "common/*" ;;
    *) echo "" ;;
    esac
}

matches() { # whether text matches one of the patterns between bars
    local pattern IFS='|'
    set -f
    for pattern in $2; do
        # shellcheck disable=SC2053
        [[ $1 == $pattern ]] && { set +f; return 0; }
    done
    set +f
    return 1
}

bad=0
complain() {
    echo "$1"
    bad=1
}

for file in $(source_files '*.c' '*.h' '*.def'); do
    case "$file" in
    src/*) room=${file#src/}; room=${room%%/*} ;;
    cli/* | server/* | common/* | examples/* | demo/* | bench/*) room=outside; home=${file%%/*} ;;
    *) continue ;;
    esac
    rooms=" $(allowed "$room") "
    while read -r line; do
        target=${line#*\"}
        target=${target%%\"*}
        if [ -f "include/$target" ]; then
            continue
        elif [ "$file $target" = "src/ort/ort_abi.h ort_slots.def" ]; then
            continue
        elif [ "$room" = outside ]; then
            case "$target" in
            ort/ort_abi.h) ;;
            */*) matches "$target" "$(outside "$home")" ||
                complain "$file includes $target: $home may not see it" ;;
            esac
        elif [ "${target#*/}" = "$target" ]; then
            complain "$file includes $target: write room/file.h"
        elif [ "${rooms/ ${target%%/*} /}" = "$rooms" ]; then
            complain "$file includes $target: $room may not see ${target%%/*}"
        fi
    done < <(grep -E '^ *# *include +"' "$file")
done
exit $bad
