/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Bytes as text for JSON and HTTP headers: base64 of RFC 4648, with padding. */

#include "util/buffer.h"

void base64_encode(Buffer *b, Bytes bytes);
