/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "symbol/text/demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdlib.h>

#include "util/macro.h"

/*
 * libiberty knows the manglings. A name of a few hundred bytes can stand for one of gigabytes,
 * because parts of it can be repeated by reference, so the demangler is left by a jump once its
 * output is too long; while it prints, it holds nothing but its stack.
 */

enum { D_NAME_MAX = 1024 }; /* D's demangler has no limit of its own */

typedef struct DemangleOutput {
    Buffer *to;
    size_t start;
    jmp_buf too_long;
} DemangleOutput;

static void demangle_append(const char *text, size_t n, void *opaque) {
    DemangleOutput *out = opaque;

    if (n > DEMANGLE_RESULT_MAX - (out->to->size - out->start))
        longjmp(out->too_long, 1);
    buffer_append(out->to, text, n);
}

static bool demangle_printed(const char *name, DemangleOutput *out) {
    if (setjmp(out->too_long) != 0)
        return false;
    return rust_demangle_callback(name, DMGL_NO_OPTS, demangle_append, out) ||
           cplus_demangle_v3_callback(name, DMGL_NO_OPTS, demangle_append, out);
}

static bool demangle_d(Bytes name, Buffer *ret) {
    _cleanup_free_ char *text =
        name.size <= D_NAME_MAX ? dlang_demangle((const char *)name.data, DMGL_NO_OPTS) : NULL;

    if (!text || strlen(text) > DEMANGLE_RESULT_MAX)
        return false;
    buffer_append(ret, text, strlen(text));
    return true;
}

void demangle(Bytes name, Buffer *ret) {
    DemangleOutput out = {.to = ret, .start = ret->size};

    if (name.size > 2 && name.size <= DEMANGLE_NAME_MAX && name.data[0] == '_') {
        if (name.data[1] == 'D' ? demangle_d(name, ret)
                                : demangle_printed((const char *)name.data, &out))
            return;
        ret->size = out.start;
    }
    buffer_append(ret, name.data, name.size);
}
