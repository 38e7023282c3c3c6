/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "util/bytes.h"

/* The name of type `id` in a BTF blob, borrowed from it and cut to 512 bytes; empty if it has none.
 * Types have no index, so each type that is skipped costs a step, and so does each byte of the
 * name; without steps left the result is empty. */
Bytes btf_type_name(Bytes btf, bool swap, uint32_t id, size_t *steps);
