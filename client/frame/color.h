/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The colours by their meaning; context_colors() says whether to use them. */

typedef enum Color {
    COLOR_NONE,
    COLOR_GOOD,
    COLOR_WARNING,
    COLOR_BAD,
    COLOR_STRONG,
    COLOR_FAINT,
} Color;

static inline const char *color_sequence(Color color) {
    /* clang-format off */
    static const char *const sequences[] = {
        [COLOR_NONE]    = "\x1b[0m",
        [COLOR_GOOD]    = "\x1b[1;32m",
        [COLOR_WARNING] = "\x1b[1;33m",
        [COLOR_BAD]     = "\x1b[1;31m",
        [COLOR_STRONG]  = "\x1b[1m",
        [COLOR_FAINT]   = "\x1b[2m",
    };
    /* clang-format on */

    return sequences[color];
}
