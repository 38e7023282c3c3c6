/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Finds out who has mounted an overlay. */

#include <stdbool.h>
#include <stdint.h>

/* Whether the overlay with this file was mounted with rights over our own user namespace, and not
 * by a user in a namespace of his own. The file was found through the process. */
bool overlay_is_of_system(int found, uint32_t pid);
