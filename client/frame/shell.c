/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/frame/shell.h"

#include <ctype.h>

#include "util/text.h"

/* Single quotes mean the same in every shell; only the quote itself needs special care. */

void shell_put_word(Buffer *out, const char *word, size_t n) {
    bool plain = n > 0;

    for (size_t i = 0; i < n; i++)
        plain &= isalnum((unsigned char)word[i]) || memchr("._-@:%/+,=", word[i], 10) != NULL;
    if (plain) {
        buffer_append(out, word, n);
        return;
    }
    text_putc(out, '\'');
    for (size_t i = 0; i < n; i++)
        if (word[i] == '\'')
            text_puts(out, "'\\''");
        else
            text_putc(out, word[i]);
    text_putc(out, '\'');
}
