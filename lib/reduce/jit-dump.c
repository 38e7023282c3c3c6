/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "reduce/jit-dump.h"

#include <errno.h>

#include "reduce/reduce-limit.h"
#include "util/macro.h"

/*
 * The format is that of tools/perf/Documentation/jitdump-specification.txt: a header, then records
 * with their size. Only JIT_CODE_LOAD names code. Of each record as many bytes are read as its
 * fields and a name can have. A record that is cut off is still being written, and ends the file.
 */

enum {
    MAGIC = 0x4a695444,
    HEADER_SIZE_AT = 8,
    HEADER_SIZE_MIN = 40,
    RECORD_HEADER = 16,
    CODE_LOAD = 0,
    LOAD_FIELDS = 40, /* of a JIT_CODE_LOAD, behind the header of the record */
};

typedef struct JitRecord {
    uint32_t id, size;
} JitRecord;

static int jit_dump_start(const ReduceSource *source, uint8_t start[HEADER_SIZE_MIN],
                          bool *ret_swap) {
    int r = reduce_read(source, 0, start, HEADER_SIZE_MIN);

    if (r < 0)
        return r;
    *ret_swap = load_u32(start, false) != MAGIC;
    return load_u32(start, *ret_swap) == MAGIC ? 0 : -EBADMSG;
}

bool jit_dump_is(const ReduceSource *source) {
    uint8_t start[HEADER_SIZE_MIN];
    bool swap;

    return jit_dump_start(source, start, &swap) == 0;
}

static int jit_dump_load(const ReduceSource *source, CodeLines *lines, uint64_t at,
                         const JitRecord *record, bool swap) {
    uint8_t bytes[LOAD_FIELDS + REDUCE_LINE_MAX];
    size_t n = MIN((size_t)record->size - RECORD_HEADER, sizeof(bytes));
    int r = reduce_read(source, at + RECORD_HEADER, bytes, n);
    Cursor c = cursor_of(bytes, n, swap);
    uint64_t address, size;

    if (r < 0)
        return r;
    (void)cursor_take(&c, 16); /* pid, tid, vma */
    address = cursor_u64(&c);
    size = cursor_u64(&c);
    (void)cursor_u64(&c); /* index */
    return c.failed ? 0 : code_lines_add(lines, address, size, cursor_string(&c));
}

int jit_dump_read(const ReduceSource *source, CodeLines *lines) {
    uint8_t start[HEADER_SIZE_MIN], head[RECORD_HEADER];
    uint64_t at;
    bool swap;
    int r = jit_dump_start(source, start, &swap);

    if (r < 0)
        return r == -EBADMSG ? -ENODATA : r;
    at = MAX(load_u32(start + HEADER_SIZE_AT, swap), (uint32_t)HEADER_SIZE_MIN);
    for (unsigned n = 0; r == 0 && n < REDUCE_LINES_MAX; n++) {
        JitRecord record;

        r = reduce_read(source, at, head, sizeof(head));
        record = (JitRecord){.id = load_u32(head, swap), .size = load_u32(head + 4, swap)};
        if (r < 0 || record.size < RECORD_HEADER)
            break;
        if (record.id == CODE_LOAD)
            r = jit_dump_load(source, lines, at, &record, swap);
        at += record.size;
    }
    return r == -EBADMSG ? 0 : r;
}
