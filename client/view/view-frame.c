/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/view/view-work.h"
#include "util/near.h"
#include "util/text.h"

/*
 * --dso, --symbol and --srcline: filters by the innermost frame, which need names. Where they leave
 * no sample, similar names of the profile are offered.
 */

enum {
    SHOWN_MAX = 4,
    NEAR_PART = 8 /* as far as this many typos: the word is a part of the name */
};

typedef struct FrameWords {
    const char *kind;
    const OptionWords *words;
    const char *const **to;
    size_t *to_n;
} FrameWords;

/* A name may be literal or escaped as we print it. Both forms match. */
static int view_frame_take(const FrameWords *words) {
    const char **items = calloc(2 * words->words->n + 1, sizeof(*items));

    if (!items)
        return -ENOMEM;
    *words->to = items;
    for (size_t i = 0; i < words->words->n; i++) {
        char *plain = strdup(words->words->items[i]), *other = strdup(words->words->items[i]);

        if (plain)
            items[(*words->to_n)++] = plain;
        if (other) {
            text_unescape(other, other);
            items[(*words->to_n)++] = other;
        }
        if (!plain || !other)
            return -ENOMEM;
    }
    return 0;
}

int view_frame_begin(ViewWork *work) {
    const ViewSettings *s = work->settings;
    FrameFilter *f = &work->frames;
    const FrameWords all[] = {{"dso", &s->dsos, &f->dsos, &f->n_dsos},
                              {"symbol", &s->symbols, &f->symbols, &f->n_symbols},
                              {"srcline", &s->srclines, &f->srclines, &f->n_srclines}};
    int r = 0;

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(all); i++)
        r = view_frame_take(&all[i]);
    return r;
}

static void view_frame_free(const char *const *words, size_t n) {
    for (size_t i = 0; i < n; i++)
        free((void *)words[i]);
    free((void *)words);
}

void view_frame_done(FrameFilter *frames) {
    view_frame_free(frames->dsos, frames->n_dsos);
    view_frame_free(frames->symbols, frames->n_symbols);
    view_frame_free(frames->srclines, frames->n_srclines);
    *frames = (FrameFilter){};
}

static void view_frame_put_words(Buffer *out, const char *kind, const OptionWords *words,
                                 bool *first) {
    if (words->n == 0)
        return;
    text_puts(out, *first ? "" : " and ");
    *first = false;
    for (size_t i = 0; i < MIN(words->n, (size_t)SHOWN_MAX); i++) {
        text_printf(out, "%s%s '", i > 0 ? " or " : "", kind);
        text_escape_again(out, (Bytes){.data = (const uint8_t *)words->items[i],
                                       .size = strlen(words->items[i])});
        text_putc(out, '\'');
    }
    if (words->n > SHOWN_MAX)
        text_printf(out, " or %zu more", words->n - SHOWN_MAX);
}

static void view_frame_offer(NearNames *near, const OptionWords *words, Bytes name) {
    char text[NEAR_NAME_MAX];

    if (name.size == 0 || name.size >= sizeof(text))
        return;
    memcpy(text, name.data, name.size);
    text[name.size] = '\0';
    for (size_t i = 0; i < words->n; i++) {
        unsigned distance = near_distance(text, words->items[i]);

        if (distance == NEAR_FAR && strstr(text, words->items[i]))
            distance = NEAR_PART;
        near_offer(near, text, distance);
    }
}

static void view_frame_find_near(const ViewWork *work, NearNames *near) {
    const FrameTable *frames = work->view->profile->frames;
    const FrameNames *names = work->view->names;

    for (uint32_t i = 0; i < frame_table_n_mappings(frames); i++)
        view_frame_offer(near, &work->settings->dsos, frame_table_mapping(frames, i)->dso);
    for (size_t i = 0; i < names->n_lines; i++)
        view_frame_offer(near, &work->settings->symbols,
                         text_set_get(names->texts, names->lines[i].function));
}

static void view_frame_put_near(Buffer *out, const NearNames *near) {
    if (near->n > 0 && near->names[0].distance == 0) {
        text_puts(out, "; '");
        text_escape_str(out, near->names[0].name);
        text_puts(out, "' is there as a caller, or together with none of the others.");
        return;
    }
    near_put_question(near, out);
}

int view_frame_complain(ViewWork *work, char **files) {
    const ViewSettings *s = work->settings;
    _cleanup_(buffer_done) Buffer text = {};
    NearNames near = {};
    bool first = true;

    view_frame_find_near(work, &near);
    text_puts(&text, "There are no samples");
    view_mismatch_put_place(&text, work, files);
    text_puts(&text, " that were taken in ");
    view_frame_put_words(&text, "dso", &s->dsos, &first);
    view_frame_put_words(&text, "symbol", &s->symbols, &first);
    view_frame_put_words(&text, "srcline", &s->srclines, &first);
    view_frame_put_near(&text, &near);
    text_putc(&text, '\0');
    if (buffer_error(&text))
        return complain(STATUS_NOT_FOUND, "There are no such samples.");
    return complain_shown(STATUS_NOT_FOUND, (const char *)text.data);
}
