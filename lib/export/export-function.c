/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "export/export-function.h"

#include <errno.h>
#include <stdlib.h>

/* One pass over the lines of all frames. Names are added frame by frame, so the lines of the frames
 * of a profile are the first ones; a profile of a stream may have fewer frames than its names. */

void export_functions_done(ExportFunctions *functions) {
    hash_index_done(&functions->index);
    free(functions->items);
    free(functions->of_line);
}

static int export_functions_add(ExportFunctions *functions, const ExportFunction *wanted,
                                uint32_t *ret) {
    uint64_t key = hash_u64((uint64_t)wanted->name << 32 | wanted->file, wanted->mapping);
    size_t probe = 0;
    ExportFunction *function;
    uint32_t number;

    while ((number = hash_index_next(&functions->index, key, &probe)) > 0) {
        function = &functions->items[number - 1];
        if (function->name == wanted->name && function->file == wanted->file &&
            function->mapping == wanted->mapping) {
            *ret = number - 1;
            return 0;
        }
    }
    function = hash_index_append(&functions->index, key, &functions->items);
    if (!function)
        return -ENOMEM;
    *function = *wanted;
    *ret = (uint32_t)functions->n++;
    return 0;
}

static int export_functions_add_frame(ExportFunctions *functions, const ExportInput *input,
                                      uint32_t frame, unsigned apart) {
    const FrameName *name = &input->names->names[frame];
    int r = 0;

    for (uint32_t i = name->first; i - name->first < name->n && r == 0; i++) {
        const FrameLine *line = &input->names->lines[i];
        ExportFunction wanted = {.name = line->function};

        if (apart & EXPORT_APART_BY_FILE)
            wanted.file = line->file;
        if (apart & EXPORT_APART_BY_MAPPING)
            wanted.mapping = frame_table_frame(input->profile->frames, frame)->mapping;
        r = export_functions_add(functions, &wanted, &functions->of_line[i]);
    }
    return r;
}

int export_functions_fill(ExportFunctions *functions, const ExportInput *input, unsigned apart) {
    const FrameNames *names = input->names;
    uint32_t n = frame_table_n_frames(input->profile->frames);
    int r = 0;

    if (names->n_names < n)
        return -EINVAL;
    functions->n_lines = n > 0 ? names->names[n - 1].first + names->names[n - 1].n : 0;
    functions->of_line = calloc((size_t)functions->n_lines + 1, sizeof(*functions->of_line));
    if (!functions->of_line)
        return -ENOMEM;
    for (uint32_t i = 0; i < n && r == 0; i++)
        r = export_functions_add_frame(functions, input, i, apart);
    return r;
}
