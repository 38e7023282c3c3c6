/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "profile/frame-names.h"

#include <assert.h>
#include <errno.h>

#include "util/array.h"

/* Three arrays that refer to each other by number: names to lines, and lines to texts. */

int frame_names_new(FrameNames **ret) {
    _cleanup_(frame_names_freep) FrameNames *names = calloc(1, sizeof(*names));
    int r;

    if (!names)
        return -ENOMEM;
    r = text_set_new(&names->texts);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(names);
    return 0;
}

FrameNames *frame_names_free(FrameNames *names) {
    if (!names)
        return NULL;
    text_set_free(names->texts);
    free(names->names);
    free(names->lines);
    free(names);
    return NULL;
}

int frame_names_add(FrameNames *names, FrameNaming naming, uint64_t start, const FrameLine *lines,
                    uint32_t n) {
    size_t first = names->n_lines;
    FrameName *name;

    assert(n > 0);
    if (n > UINT32_MAX - first)
        return -ENOSPC;
    for (uint32_t i = 0; i < n; i++) {
        FrameLine *line = array_grow(&names->lines, &names->n_lines);

        if (!line)
            return -ENOMEM;
        *line = lines[i];
    }
    name = array_grow(&names->names, &names->n_names);
    if (!name)
        return -ENOMEM;
    *name = (FrameName){.first = (uint32_t)first, .n = n, .naming = naming, .start = start};
    return 0;
}

Bytes frame_names_function(const FrameNames *names, uint32_t frame) {
    const FrameName *name = &names->names[frame];

    return text_set_get(names->texts, names->lines[name->first + name->n - 1].function);
}
