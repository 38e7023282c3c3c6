/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A symbol while a table is made. */

#include <stdint.h>

typedef enum NameBinding { NAME_LOCAL, NAME_GLOBAL, NAME_WEAK } NameBinding;

typedef struct NameEntry {
    uint64_t start, end;
    uint32_t name, name_size;
    uint32_t number; /* in the order of name_build_add() */
    uint8_t binding;
} NameEntry;
