/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/frame/context.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "client/frame/option.h"
#include "util/text.h"

/*
 * What every command shares: messages on stderr, the pager, and the abilities of the terminal.
 */

enum { WIDTH_MAX = 10000 };

_printf_(1, 0) static void say(const char *format, va_list ap) {
    Buffer text = {};
    char *sentence = NULL;
    int n = vasprintf(&sentence, format, ap);

    if (n >= 0) {
        text_puts(&text, "profctl: ");
        text_escape(&text, (Bytes){.data = (const uint8_t *)sentence, .size = (size_t)n});
        text_putc(&text, '\n');
        (void)!write(STDERR_FILENO, text.data, text.size);
        free(sentence);
    }
    buffer_done(&text);
}

int complain_shown(int status, const char *sentence) {
    Buffer text = {};

    text_printf(&text, "profctl: %s\n", sentence);
    (void)!write(STDERR_FILENO, text.data, text.size);
    buffer_done(&text);
    return status;
}

int complain(int status, const char *format, ...) {
    va_list ap;

    va_start(ap, format);
    say(format, ap);
    va_end(ap);
    return status;
}

void remark_buffer(Buffer *sentence) {
    text_putc(sentence, '\0');
    if (!buffer_error(sentence))
        (void)complain_shown(STATUS_OK, (const char *)sentence->data);
}

void remark(const Context *c, const char *format, ...) {
    va_list ap;

    if (c->quiet)
        return;
    va_start(ap, format);
    say(format, ap);
    va_end(ap);
}

void context_page(Context *c) {
    if (!c->no_pager)
        output_page(&c->out);
}

/* A user who exports COLUMNS wants that width, for a pipe as well. */
static bool context_width_of_environment(unsigned *ret) {
    const char *text = getenv("COLUMNS");
    uint64_t width;

    if (!text || option_u64(NULL, text, &width) < 0 || width > WIDTH_MAX)
        return false;
    *ret = (unsigned)width;
    return true;
}

unsigned context_width(const Context *c) {
    struct winsize size;
    unsigned width;

    if (context_width_of_environment(&width))
        return width;
    if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0)
        return 0;
    return size.ws_col;
}

bool context_colors(const Context *c) {
    const char *no = getenv("NO_COLOR"), *terminal = getenv("TERM");

    return !(no && *no) && terminal && strcmp(terminal, "dumb") != 0 && isatty(STDOUT_FILENO);
}
