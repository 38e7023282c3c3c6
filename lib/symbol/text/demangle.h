/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Names of C++, Rust and D as their authors wrote them. */

#include "util/buffer.h"

enum {
    DEMANGLE_NAME_MAX = 16 << 10,   /* a longer name stays as it is */
    DEMANGLE_RESULT_MAX = 64 << 10, /* a name that would become longer stays as it is */
};

/* Appends the demangled name, without the types of parameters, as perf shows it; or the name as it
 * is. `name` is followed by a NUL. */
void demangle(Bytes name, Buffer *ret);
