/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "symbol/table/name-table.h"

#include <errno.h>

#include "symbol/table/name-image.h"

/*
 * An image may come from a file of a cache, so its counts are held against its size when it is
 * opened, and the place of a name when it is used. Rows that are not in order find wrong names, but
 * nothing outside of the image.
 */

int name_table_open(Bytes image, NameTable *ret) {
    Cursor c = cursor_of(image.data, image.size, false);
    NameImage header;
    const uint8_t *bytes = cursor_take(&c, sizeof(header));
    Bytes rows, segments, strings;

    if (!bytes || (uintptr_t)image.data % 8 != 0)
        return -EBADMSG;
    memcpy(&header, bytes, sizeof(header));
    if (header.magic != NAME_IMAGE_MAGIC)
        return -EBADMSG;
    rows = cursor_array(&c, header.n_rows, sizeof(NameRow));
    segments = cursor_array(&c, header.n_segments, sizeof(NameSegment));
    strings = cursor_bytes(&c, header.strings_size);
    if (c.failed || cursor_left(&c) > 0 || strings.size == 0 || strings.data[strings.size - 1] != 0)
        return -EBADMSG;
    *ret = (NameTable){.rows = (const NameRow *)rows.data,
                       .n_rows = (size_t)header.n_rows,
                       .segments = (const NameSegment *)segments.data,
                       .n_segments = (size_t)header.n_segments,
                       .strings = strings};
    return 0;
}

bool name_table_find(const NameTable *table, uint64_t address, NameFound *ret) {
    size_t low = 0, high = table->n_rows;
    const NameRow *row;
    const uint8_t *name;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (table->rows[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return false;
    row = &table->rows[low - 1];
    if (row->name == 0 || row->name >= table->strings.size)
        return false;
    name = table->strings.data + row->name;
    *ret = (NameFound){.name = {.data = name, .size = strlen((const char *)name)},
                       .start = row->start};
    return true;
}

bool name_table_address(const NameTable *table, uint64_t offset, uint64_t *ret) {
    for (size_t i = 0; i < table->n_segments; i++) {
        const NameSegment *s = &table->segments[i];

        if (offset - s->offset < s->size) {
            *ret = s->address + (offset - s->offset);
            return true;
        }
    }
    return false;
}
