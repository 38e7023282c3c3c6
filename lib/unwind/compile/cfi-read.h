/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Numbers as DWARF and .eh_frame write them, over a Cursor that fails at the end of its bytes. */

#include "util/bytes.h"

enum {
    CFI_ENCODING_ABSOLUTE = 0,
    CFI_ENCODING_FORM = 0x0f,
    CFI_ENCODING_RELATIVE = 0x70,
    CFI_ENCODING_PC_RELATIVE = 0x10,
    CFI_ENCODING_INDIRECT = 0x80,
    CFI_ENCODING_OMIT = 0xff,
};

/* Bits beyond 64 are dropped. */
static inline uint64_t cfi_uleb(Cursor *c) {
    uint64_t value = 0;
    uint8_t byte;

    for (unsigned shift = 0;; shift += shift < 64 ? 7 : 0) {
        byte = cursor_u8(c);
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
}

static inline int64_t cfi_sleb(Cursor *c) {
    uint64_t value = 0;
    unsigned shift = 0;
    uint8_t byte;

    do {
        byte = cursor_u8(c);
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        shift += shift < 64 ? 7 : 0;
    } while (byte & 0x80);
    if (byte & 0x40 && shift < 64)
        value |= UINT64_MAX << shift;
    return (int64_t)value;
}

/* The number in the form of a DW_EH_PE_ encoding; the cursor fails at an unknown one. */
static inline uint64_t cfi_form(Cursor *c, uint8_t encoding) {
    switch (encoding & CFI_ENCODING_FORM) {
    case 0x00:
    case 0x04:
    case 0x0c:
        return cursor_u64(c);
    case 0x01:
        return cfi_uleb(c);
    case 0x02:
        return cursor_u16(c);
    case 0x03:
        return cursor_u32(c);
    case 0x09:
        return (uint64_t)cfi_sleb(c);
    case 0x0a:
        return (uint64_t)(int16_t)cursor_u16(c);
    case 0x0b:
        return (uint64_t)(int32_t)cursor_u32(c);
    default:
        cursor_fail(c);
        return 0;
    }
}

/* An address, of which `here` is the one of the cursor. It may wrap as addresses do. */
static inline uint64_t cfi_address(Cursor *c, uint8_t encoding, uint64_t here) {
    uint64_t value = cfi_form(c, encoding);

    switch (encoding & (CFI_ENCODING_RELATIVE | CFI_ENCODING_INDIRECT)) {
    case CFI_ENCODING_ABSOLUTE:
        return value;
    case CFI_ENCODING_PC_RELATIVE:
        return here + value;
    default:
        cursor_fail(c);
        return 0;
    }
}
