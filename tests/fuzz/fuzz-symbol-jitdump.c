/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "symbol/jit/jit-map.h"
#include "symbol/table/stored-table.h"

/* A jitdump, as any program can write it. The input is what follows the first eight bytes, which
 * say that it is one. */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const uint8_t start[] = {0x44, 0x54, 0x69, 0x4a, 1, 0, 0, 0};
    int fd = memfd_create("dump", MFD_CLOEXEC);
    StoredTable table;
    NameBuild build;

    name_build_init(&build, NAME_BY_TIME);
    if (fd < 0 || write(fd, start, sizeof(start)) != (ssize_t)sizeof(start) ||
        write(fd, data, size) != (ssize_t)size)
        abort();
    if (jit_map_read(fd, &build) == 0 && stored_table_make(&build, &table) == 0)
        stored_table_done(&table);
    name_build_done(&build);
    (void)close(fd);
    return 0;
}
