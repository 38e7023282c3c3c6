/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "symbol/elf/debug-data.h"

#include <errno.h>

#include "symbol/elf/unpack.h"
#include "util/macro.h"

/* The section is a stream of xz. Its author chose what comes out, so both sides have a limit. */

enum { COMPRESSED_MAX = 16 << 20 };

int debug_data_read(const ElfView *view, Buffer *ret) {
    _cleanup_(buffer_done) Buffer compressed = {};
    size_t section = elf_view_find(view, ".gnu_debugdata");
    int r;

    if (section == 0)
        return -ENODATA;
    r = elf_view_read(view, &view->sections[section], COMPRESSED_MAX, &compressed);
    return r < 0 ? r : unpack_xz(buffer_bytes(&compressed), DEBUG_DATA_MAX, ret);
}
