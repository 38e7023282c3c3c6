/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "symbol/line/line-find.h"

#include "symbol/child/child-ask.h"
#include "symbol/line/line-limit.h"
#include "symbol/line/line-look.h"

/*
 * A reply is, for each address, the number of lines, and for each of them the sizes of its two
 * texts, the line, and the texts. The child knows the addresses since it is a copy of us.
 */

typedef struct LineQuestion {
    const uint64_t *addresses;
    size_t n;
} LineQuestion;

static void line_find_look(const int fds[2], int to, const void *arg) {
    const LineQuestion *question = arg;

    line_look(fds[0], fds[1], to, question->addresses, question->n);
}

int line_find(int fd, int alternate, const uint64_t *addresses, size_t n, Buffer *ret) {
    const LineQuestion question = {addresses, n};

    return child_ask(&(ChildWork){.fds = {fd, alternate},
                                  .run = line_find_look,
                                  .arg = &question,
                                  .seconds_max = LINE_SECONDS_MAX,
                                  .reply_max = LINE_REPLY_MAX},
                     ret);
}

size_t line_next(Cursor *reply, SourceLine ret[LINES_MAX]) {
    uint32_t n = cursor_u32(reply);

    if (reply->failed || n > LINES_MAX)
        return 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t function = cursor_u32(reply), file = cursor_u32(reply), line = cursor_u32(reply);

        if (function > LINE_TEXT_MAX || file > LINE_TEXT_MAX)
            cursor_fail(reply);
        ret[i] = (SourceLine){.line = line, .function = cursor_bytes(reply, function)};
        (void)cursor_take(reply, 1);
        ret[i].file = cursor_bytes(reply, file);
        if (reply->failed)
            return 0;
    }
    return n;
}
