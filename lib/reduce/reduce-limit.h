/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How much of a file is read, so that its author cannot make us spend more memory or time. */

enum {
    REDUCE_SEGMENTS_MAX = 1024,
    REDUCE_SECTIONS_MAX = 1 << 14,
    REDUCE_SECTION_NAME_MAX = 128,      /* bytes of a section's name that are kept */
    REDUCE_SECTION_NAMES_MAX = 1 << 20, /* bytes of all of them */
    REDUCE_SYMBOLS_MAX = 8 << 20,       /* that are looked at */
    REDUCE_STRINGS_MAX = 96 << 20,      /* bytes of a string table, or of a .gopclntab */
    REDUCE_SYMBOL_NAME_MAX = 16 << 10,  /* a symbol with a longer name is left out */
    REDUCE_DEBUGDATA_MAX = 8 << 20,     /* a larger one is left out */
    REDUCE_DEBUGLINK_MAX = 4096,        /* the same */
    REDUCE_MAP_BYTES_MAX = 64 << 20,    /* of a map */
    REDUCE_LINE_MAX = 4096,             /* bytes of a line of a map */
    REDUCE_LINES_MAX = 1 << 20,         /* lines of a map, records of a jitdump */
};
