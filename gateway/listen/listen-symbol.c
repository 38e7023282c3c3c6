/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "listen/listen-symbol.h"

#include <errno.h>
#include <stdlib.h>

#include "listen/listen-query.h"
#include "util/text.h"

/*
 * The table behind /debug/pprof/symbol: sorted addresses and one text with their names. pprof asks
 * for addresses of the profile that it has just got, so the table is that of the last profile.
 */

void listen_symbols_done(ListenSymbols *symbols) {
    free(symbols->rows);
    buffer_done(&symbols->names);
    *symbols = (ListenSymbols){};
}

static bool listen_symbols_is_kernel(const Profile *profile, const Frame *frame) {
    FrameKind kind = frame_table_mapping(profile->frames, frame->mapping)->kind;

    return kind == FRAME_KERNEL || kind == FRAME_MODULE || kind == FRAME_BPF;
}

static void listen_symbols_add(ListenSymbols *symbols, const FrameNames *names, uint32_t number,
                               const Frame *frame) {
    /* Within the call, as the profile has it. */
    uint64_t address = frame->address - (frame->is_return && frame->address > 0);

    symbols->rows[symbols->n++] =
        (ListenSymbol){.address = address, .name = (uint32_t)symbols->names.size};
    text_escape(&symbols->names, frame_names_function(names, number));
    text_putc(&symbols->names, '\n');
}

static int listen_symbols_compare(const void *a, const void *b) {
    const ListenSymbol *x = a, *y = b;

    return x->address < y->address ? -1 : x->address > y->address;
}

int listen_symbols_make(const Profile *profile, const FrameNames *names, ListenSymbols *ret) {
    _cleanup_(listen_symbols_done) ListenSymbols symbols = {};
    uint32_t n = frame_table_n_frames(profile->frames);

    n = (uint32_t)MIN((size_t)n, names->n_names);
    symbols.rows = calloc(MIN(n, (uint32_t)LISTEN_SYMBOLS_MAX) + 1, sizeof(*symbols.rows));
    if (!symbols.rows)
        return -ENOMEM;
    for (uint32_t i = 0; i < n && symbols.n < LISTEN_SYMBOLS_MAX; i++) {
        const Frame *frame = frame_table_frame(profile->frames, i);

        if (names->names[i].naming == FRAME_NAMED && listen_symbols_is_kernel(profile, frame))
            listen_symbols_add(&symbols, names, i, frame);
    }
    if (buffer_error(&symbols.names))
        return -ENOMEM;
    qsort(symbols.rows, symbols.n, sizeof(*symbols.rows), listen_symbols_compare);
    *ret = symbols;
    symbols = (ListenSymbols){};
    return 0;
}

static void listen_symbols_put(const ListenSymbols *symbols, uint64_t address, Buffer *out) {
    const ListenSymbol key = {.address = address}, *row;
    const char *name;

    if (symbols->n == 0)
        return;
    row = bsearch(&key, symbols->rows, symbols->n, sizeof(key), listen_symbols_compare);
    if (!row)
        return;
    name = (const char *)symbols->names.data + row->name;
    text_hex(out, address);
    text_putc(out, ' ');
    buffer_append(out, name, strcspn(name, "\n") + 1);
}

int listen_symbols_answer(const ListenSymbols *symbols, Bytes addresses, Buffer *out) {
    uint64_t address;
    size_t n = 0;
    int r;

    while ((r = listen_query_take_address(&addresses, &address)) > 0) {
        if (++n > LISTEN_SYMBOLS_ASKED_MAX)
            return -E2BIG;
        listen_symbols_put(symbols, address, out);
    }
    return r < 0 ? r : buffer_error(out);
}
