/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How much of debug information is looked at, and how long. */

enum {
    LINES_MAX = 256,       /* of one address */
    LINE_TEXT_MAX = 16384, /* bytes of a name */
    LINE_REPLY_MAX = 256 << 20,
    LINE_SECONDS_MAX = 60, /* for one file */
};
