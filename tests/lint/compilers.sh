#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# compilers.sh ID: everything compiles without a word under the compiler that ID, the one of the
# build at hand, is not.
set -u

other=clang
[ "$1" != clang ] || other=gcc
name=everything_compiles_under_$other
if ! command -v "$other" >/dev/null; then
    echo "ok 1 - $name # SKIP $other is not installed"
    echo 1..1
    exit 0
fi
folder=$PROFD_BUILD/lint-$other
said=$(
    exec 2>&1
    if ! [ -f "$folder/build.ninja" ]; then
        CC=$other meson setup "$folder" "$PROFD_SOURCE" --werror -Doptimization=0 -Ddebug=false || exit
    fi
    ninja -C "$folder" --quiet
)
status=$?
if [ $status -eq 0 ]; then
    echo "ok 1 - $name"
else
    printf '%s\n' "$said" | grep -v '^ninja: \|^\[' | sed 's/^/# /'
    echo "not ok 1 - $name"
fi
echo 1..1
[ $status -eq 0 ]
