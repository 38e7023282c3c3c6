/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/tracing/btf-name.h"

#include "util/macro.h"

/*
 * The part of BTF (Documentation/bpf/btf.rst) that gives the name of a type: a header, types of
 * different lengths, counted from 1, and their names as offsets into strings.
 */

enum {
    BTF_MAGIC = 0xeb9f,
    BTF_HEADER_SIZE = 24,
    BTF_TYPE_SIZE = 12,
    NAME_BYTES_MAX = 512, /* KSYM_NAME_LEN */
};

/* The data after a struct btf_type: a fixed number of bytes, and a number for each member. */
/* clang-format off */
static const struct {
    uint8_t fixed, each;
} kinds[] = {
    [1]  = {4, 0},  /* int */
    [2]  = {0, 0},  /* pointer */
    [3]  = {12, 0}, /* array */
    [4]  = {0, 12}, /* struct */
    [5]  = {0, 12}, /* union */
    [6]  = {0, 8},  /* enum */
    [7]  = {0, 0},  /* forward */
    [8]  = {0, 0},  /* typedef */
    [9]  = {0, 0},  /* volatile */
    [10] = {0, 0},  /* const */
    [11] = {0, 0},  /* restrict */
    [12] = {0, 0},  /* function */
    [13] = {0, 8},  /* prototype */
    [14] = {4, 0},  /* variable */
    [15] = {0, 12}, /* section */
    [16] = {0, 0},  /* float */
    [17] = {4, 0},  /* declaration tag */
    [18] = {0, 0},  /* type tag */
    [19] = {0, 12}, /* 64-bit enum */
};
/* clang-format on */

/* A part of the blob by its offset from the end of the header. */
static Cursor btf_name_part(Bytes btf, bool swap, uint32_t header, uint32_t at, uint32_t size) {
    Cursor c = cursor_of(btf.data, btf.size, swap);

    (void)cursor_take(&c, (uint64_t)header + at);
    if (c.failed || size > cursor_left(&c)) {
        cursor_fail(&c);
        return c;
    }
    c.end = c.at + size;
    return c;
}

/* Finds the type and returns the offset of its name; 0, the empty string, if it does not exist. */
static uint32_t btf_name_offset(Cursor types, uint32_t id, size_t *steps) {
    for (uint32_t i = 1; *steps > 0 && cursor_left(&types) >= BTF_TYPE_SIZE; i++, --*steps) {
        uint32_t name = cursor_u32(&types), info = cursor_u32(&types);
        uint32_t kind = info >> 24 & 0x1f, members = info & 0xffff;

        (void)cursor_u32(&types);
        if (i == id)
            return name;
        if (kind == 0 || kind >= ARRAY_SIZE(kinds))
            return 0;
        (void)cursor_take(&types, kinds[kind].fixed + (uint64_t)kinds[kind].each * members);
    }
    return 0;
}

Bytes btf_type_name(Bytes btf, bool swap, uint32_t id, size_t *steps) {
    uint32_t header, types_at, types_size, strings_at, strings_size, name;
    Cursor c, strings;
    size_t most;
    Bytes text;

    if (btf.size < BTF_HEADER_SIZE || load_u16(btf.data, swap) != BTF_MAGIC)
        return (Bytes){};
    c = cursor_of(btf.data + 4, BTF_HEADER_SIZE - 4, swap);
    header = cursor_u32(&c);
    types_at = cursor_u32(&c);
    types_size = cursor_u32(&c);
    strings_at = cursor_u32(&c);
    strings_size = cursor_u32(&c);
    name = btf_name_offset(btf_name_part(btf, swap, header, types_at, types_size), id, steps);
    strings = btf_name_part(btf, swap, header, strings_at, strings_size);
    if (name == 0 || !cursor_take(&strings, name))
        return (Bytes){};
    /* A long name that many functions share must cost neither its search nor its print each time.
     */
    most = MIN((size_t)NAME_BYTES_MAX, *steps);
    strings.end = strings.at + MIN(cursor_left(&strings), most);
    text = cursor_string(&strings);
    *steps -= text.size;
    return text;
}
