/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scan/cache/mapped-table.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "elf/elf-request.h"
#include "elf/sealed-file.h"
#include "util/hash.h"

/*
 * The helper that made the table may have been taken over by the file that it read. So the
 * descriptor must be plain memory that can neither change nor shrink (a mapping of a file that
 * shrinks would kill the recorder), and its size must match the header of the table. lib/unwind
 * checks the content at each look-up.
 */

int mapped_table_new(int fd, uint64_t size, MappedTable **ret) {
    _cleanup_(mapped_table_freep) MappedTable *table = NULL;
    void *image;

    if (size == 0 || size > ELF_TABLE_BYTES_MAX || !sealed_file_stays(fd, size))
        return -EBADMSG;
    table = calloc(1, sizeof(*table));
    if (!table)
        return -ENOMEM;
    /* Private: kernels before 6.7 refuse a shared mapping of a memfd that is sealed against
     * writing. */
    image = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
    if (image == MAP_FAILED)
        return -errno;
    table->image = (Bytes){.data = image, .size = size};
    if (unwind_table_open(table->image, &table->table) < 0 ||
        unwind_image_size(&table->table.header) != size)
        return -EBADMSG;
    table->hash = hash_bytes(hash_seed(), table->image);
    *ret = TAKE_PTR(table);
    return 0;
}

MappedTable *mapped_table_free(MappedTable *table) {
    if (!table)
        return NULL;
    if (table->image.size > 0)
        (void)munmap((void *)table->image.data, table->image.size);
    free(table);
    return NULL;
}

bool mapped_table_equals(const MappedTable *a, const MappedTable *b) {
    return a->image.size == b->image.size && a->hash == b->hash &&
           memcmp(a->image.data, b->image.data, a->image.size) == 0;
}
