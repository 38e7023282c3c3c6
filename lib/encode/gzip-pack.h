/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Compresses bytes to the gzip format at once. */

#include "util/buffer.h"

/* Appends the whole stream. */
int gzip_pack(Bytes plain, Buffer *out);
