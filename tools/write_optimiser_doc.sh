#!/bin/bash
# write_optimiser_doc.sh TEST_REWRITE PROGRAM - puts the tables of rules and of the zoo's models into
# docs/OPTIMISER.md, in place of those that are there.
. "$(dirname "$0")/../tests/common.sh"

doc=docs/OPTIMISER.md
counts=$("$top/tests/models/optimised.sh" "$2" --markdown) || exit 1
rules=$("$1" --markdown) || exit 1
awk -v counts="$counts" -v rules="$rules" '
    /^<!-- end of / { skip = 0 }
    !skip { print }
    /^<!-- models/ {
        print "\n| model | opset 13 | after | opset 17 | after |\n|---|---|---|---|---|\n" counts "\n"
        skip = 1
    }
    /^<!-- rules/ { print rules "\n"; skip = 1 }' "$doc" >"$doc.new" && mv "$doc.new" "$doc"
