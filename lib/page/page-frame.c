/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "page/page-frame.h"

#include <errno.h>

#include "util/buffer.h"
#include "util/hash-index.h"

/*
 * Interns boxes by all that can be seen of them. Code without a symbol has a name of its own for
 * each address, so that by name it counts as "[file]": a thousand boxes of one sample each say
 * nothing. Texts are copied, since the profiles of a difference have texts of their own.
 */

struct PageFrames {
    uint64_t seed; /* of hashes */
    TextSet *texts;
    PageFrame *frames;
    HashIndex by_content; /* its rows are the frames */
    Buffer scratch;
    bool by_address;
};

int page_frames_new(bool by_address, PageFrames **ret) {
    _cleanup_(page_frames_freep) PageFrames *frames = calloc(1, sizeof(*frames));
    int r;

    if (!frames)
        return -ENOMEM;
    frames->by_address = by_address;
    frames->seed = hash_seed();
    r = text_set_new(&frames->texts);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(frames);
    return 0;
}

PageFrames *page_frames_free(PageFrames *frames) {
    if (!frames)
        return NULL;
    text_set_free(frames->texts);
    free(frames->frames);
    hash_index_done(&frames->by_content);
    buffer_done(&frames->scratch);
    free(frames);
    return NULL;
}

uint32_t page_frames_count(const PageFrames *frames) {
    return (uint32_t)frames->by_content.n;
}

const PageFrame *page_frames_get(const PageFrames *frames, uint32_t number) {
    return &frames->frames[number];
}

const TextSet *page_frames_texts(const PageFrames *frames) {
    return frames->texts;
}

static bool page_frame_equal(const PageFrame *a, const PageFrame *b) {
    return a->name == b->name && a->dso == b->dso && a->kind == b->kind && a->file == b->file &&
           a->line == b->line && a->address == b->address;
}

static int page_frames_intern(PageFrames *frames, const PageFrame *frame, uint32_t *ret) {
    uint64_t seed = frames->seed, key = hash_u64(seed, (uint64_t)frame->name << 32 | frame->dso);
    PageFrame *row;
    uint32_t number;

    key = hash_u64(seed, key ^ frame->address);
    key = hash_u64(seed,
                   key ^ ((uint64_t)frame->kind << 56 | (uint64_t)frame->file << 28) ^ frame->line);
    for (size_t probe = 0; (number = hash_index_next(&frames->by_content, key, &probe)) > 0;)
        if (page_frame_equal(&frames->frames[number - 1], frame)) {
            *ret = number - 1;
            return 0;
        }
    if (frames->by_content.n >= FRAMES_MAX)
        return -ENOSPC;
    row = hash_index_append(&frames->by_content, key, &frames->frames);
    if (!row)
        return -ENOMEM;
    *row = *frame;
    *ret = (uint32_t)frames->by_content.n - 1;
    return 0;
}

int page_frames_add_label(PageFrames *frames, PageKind kind, Bytes name, uint32_t *ret) {
    PageFrame frame = {.kind = kind};
    int r;

    r = text_set_add(frames->texts, name, &frame.name);
    return r < 0 ? r : page_frames_intern(frames, &frame, ret);
}

/* "[libz.so.1]" stands for all code of a file that no symbol names. */
static int page_frames_unnamed(PageFrames *frames, Bytes dso, bool replaced, uint32_t *ret) {
    Buffer *b = &frames->scratch;
    bool in_brackets = dso.size > 0 && dso.data[0] == '[';

    buffer_clear(b);
    if (dso.size == 0)
        buffer_append(b, "[unknown]", strlen("[unknown]"));
    else {
        buffer_append(b, "[", in_brackets ? 0 : 1);
        buffer_append(b, dso.data, dso.size);
        buffer_append(b, "]", in_brackets ? 0 : 1);
    }
    if (replaced)
        buffer_append(b, " [replaced]", strlen(" [replaced]"));
    return buffer_error(b) < 0 ? -ENOMEM : text_set_add(frames->texts, buffer_bytes(b), ret);
}

/* The name of a file as people know it: perf.data has a mark behind it where there is no build id.
 */
static Bytes page_frames_dso(Bytes dso) {
    static const char mark[] = "[no-build-id]";
    size_t n = strlen(mark);

    if (dso.size > n && memcmp(dso.data + dso.size - n, mark, n) == 0)
        dso.size -= n;
    return dso;
}

uint32_t page_frames_lines(const PageInput *input, uint32_t frame) {
    return frame < input->names->n_names ? input->names->names[frame].n : 1;
}

int page_frames_add(PageFrames *frames, const PageInput *input, uint32_t frame, uint32_t i,
                    uint32_t *ret) {
    const FrameNames *names = input->names;
    const Frame *f = frame_table_frame(input->profile->frames, frame);
    const FrameMapping *mapping = frame_table_mapping(input->profile->frames, f->mapping);
    const FrameName *name = frame < names->n_names ? &names->names[frame] : NULL;
    const FrameLine *line = name ? &names->lines[name->first + i] : NULL;
    bool inlined = name && i + 1 < name->n, named = name && name->naming == FRAME_NAMED;
    Bytes dso = page_frames_dso(mapping->dso);
    PageFrame row = {.kind = inlined ? (uint32_t)PAGE_INLINED : (uint32_t)mapping->kind};
    int r;

    r = text_set_add(frames->texts, dso, &row.dso);
    if (r >= 0 && name && (named || frames->by_address || dso.size == 0))
        r = text_set_add(frames->texts, text_set_get(names->texts, line->function), &row.name);
    else if (r >= 0)
        r = page_frames_unnamed(frames, dso, name && name->naming == FRAME_REPLACED, &row.name);
    if (r >= 0 && frames->by_address && line) {
        row.address = f->address;
        row.line = line->line;
        r = text_set_add(frames->texts, text_set_get(names->texts, line->file), &row.file);
    }
    if (!named && row.kind == FRAME_USER)
        row.kind = FRAME_UNKNOWN;
    return r < 0 ? r : page_frames_intern(frames, &row, ret);
}
