/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "util/bytes.h"

/* The name of type `id` in a BTF blob, borrowed from it; empty if it has none. Types have no index,
 * so each type that is skipped costs a step; without steps left the result is empty. */
Bytes btf_type_name(Bytes btf, bool swap, uint32_t id, size_t *steps);
