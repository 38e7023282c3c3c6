/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How much of a file is read and made into a table, so that the author of a file cannot make us
 * spend more memory or time than this. */

enum {
    UNWIND_HEADERS_MAX = 4096,     /* program headers, and section headers, that are looked at */
    UNWIND_SECTION_MAX = 64 << 20, /* bytes of .eh_frame, and of .debug_frame */
    UNWIND_CIES_MAX = 1 << 18,     /* of a section */
    UNWIND_FDES_MAX = 1 << 22,     /* of a file */
    UNWIND_ROWS_MAX = 8 << 20,     /* of a file */
    UNWIND_STEPS_MAX = 1 << 28,    /* instructions, of a file */
    UNWIND_REMEMBERED_MAX = 32,    /* states at one time */
    UNWIND_TABLE_RATIO = 3,        /* bytes of table for each byte that it is made of ... */
    UNWIND_TABLE_FREE = 4096,      /* ... beyond these */
};
