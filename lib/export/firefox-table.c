/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>

#include "export/firefox-state.h"
#include "util/text.h"

/*
 * The tables of the Firefox Profiler that all threads share. A table is a set of columns, so each
 * column is a walk over what it is about; nothing of it is held in memory.
 *
 * Rows need no tables of their own to be found: a frame is a line of the names (inlined ones too),
 * a library and its resource are a mapping, and strings are the texts of the names followed by the
 * names of the mappings. Only a node of the stacks may be several rows, one for each line.
 */

enum { FIREFOX_LIBRARY = 1 };

/* Indexes into the categories of firefox_put_categories(). */
static uint32_t firefox_category(FrameKind kind) {
    static const uint32_t categories[FRAME_KINDS] = {
        [FRAME_USER] = 1,  [FRAME_VDSO] = 1,    [FRAME_KERNEL] = 2, [FRAME_MODULE] = 2,
        [FRAME_BPF] = 2,   [FRAME_JIT] = 3,     [FRAME_GUEST] = 4,  [FRAME_HYPERVISOR] = 4,
        [FRAME_OTHER] = 0, [FRAME_UNKNOWN] = 0,
    };

    return kind < FRAME_KINDS ? categories[kind] : 0;
}

static const FrameMapping *firefox_mapping(const Firefox *f, uint32_t frame) {
    const FrameTable *frames = f->input->profile->frames;

    return frame_table_mapping(frames, frame_table_frame(frames, frame)->mapping);
}

static bool firefox_is_library(const FrameMapping *mapping) {
    return mapping->kind != FRAME_UNKNOWN && mapping->kind != FRAME_OTHER;
}

int firefox_number_rows(Firefox *f) {
    const Profile *profile = f->input->profile;
    uint32_t n = stack_tree_n_nodes(profile->stacks), row = 0;

    f->first_rows = calloc((size_t)n + 1, sizeof(*f->first_rows));
    f->source_of = calloc((size_t)text_set_count(f->input->names->texts) + 1, sizeof(uint32_t));
    if (!f->first_rows || !f->source_of)
        return -ENOMEM;
    for (uint32_t i = STACK_ROOT + 1; i < n; i++) {
        uint32_t lines = f->input->names->names[stack_tree_node(profile->stacks, i)->frame].n;

        f->first_rows[i] = row;
        if (lines > UINT32_MAX - row)
            return -EOVERFLOW;
        row += lines;
    }
    f->first_rows[n] = row;
    for (size_t i = 0; i < f->functions.n; i++)
        if (f->functions.items[i].file > 0 && f->source_of[f->functions.items[i].file] == 0)
            f->source_of[f->functions.items[i].file] = ++f->n_sources;
    return 0;
}

/* The symbol servers of Mozilla name a library by the first half of its build id, as a GUID. */
static void firefox_put_breakpad_id(Firefox *f, const FrameMapping *mapping) {
    static const uint8_t order[] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
    char text[2 * sizeof(order) + 2] = "";

    for (size_t i = 0; i < sizeof(order) && mapping->build_id_size > 0; i++) {
        uint8_t byte = order[i] < mapping->build_id_size ? mapping->build_id[order[i]] : 0;

        text[2 * i] = "0123456789ABCDEF"[byte >> 4];
        text[2 * i + 1] = "0123456789ABCDEF"[byte & 15];
    }
    if (mapping->build_id_size > 0)
        text[2 * sizeof(order)] = '0';
    fields_str(&f->fields, "breakpadId", text);
}

void firefox_put_libs(Firefox *f) {
    const FrameTable *frames = f->input->profile->frames;

    fields_begin_array(&f->fields, "libs");
    for (uint32_t i = 0; i < frame_table_n_mappings(frames); i++) {
        const FrameMapping *mapping = frame_table_mapping(frames, i);
        Bytes path = mapping->path.size > 0 ? mapping->path : mapping->dso;

        fields_begin_object(&f->fields, NULL);
        fields_str(&f->fields, "arch", "");
        fields_bytes(&f->fields, "name", mapping->dso);
        fields_bytes(&f->fields, "path", path);
        fields_bytes(&f->fields, "debugName", mapping->dso);
        fields_bytes(&f->fields, "debugPath", path);
        firefox_put_breakpad_id(f, mapping);
        if (mapping->build_id_size > 0)
            fields_hex_bytes(&f->fields, "codeId",
                             (Bytes){.data = mapping->build_id, .size = mapping->build_id_size});
        else
            fields_null(&f->fields, "codeId");
        fields_end_object(&f->fields);
        (void)export_output_breathe(&f->output);
    }
    fields_end_array(&f->fields);
}

/* A column with the same value in each row. */
typedef enum FirefoxSame { FIREFOX_NULL, FIREFOX_FALSE, FIREFOX_ZERO, FIREFOX_NONE } FirefoxSame;

static void firefox_put_same(Firefox *f, const char *name, FirefoxSame value, size_t n) {
    fields_begin_array(&f->fields, name);
    for (size_t i = 0; i < n && f->output.error == 0; i++) {
        if (value == FIREFOX_NULL)
            fields_null(&f->fields, NULL);
        else if (value == FIREFOX_FALSE)
            fields_bool(&f->fields, NULL, false);
        else
            fields_i64(&f->fields, NULL, value == FIREFOX_NONE ? -1 : 0);
        (void)export_output_breathe(&f->output);
    }
    fields_end_array(&f->fields);
}

/* The value of a column for line i, counted from the innermost, of a frame. */
typedef enum FirefoxFrameColumn {
    FIREFOX_FRAME_DEPTH,
    FIREFOX_FRAME_CATEGORY,
    FIREFOX_FRAME_FUNCTION,
    FIREFOX_FRAME_LINE,
} FirefoxFrameColumn;

static void firefox_put_frame_value(Firefox *f, FirefoxFrameColumn column, uint32_t frame,
                                    uint32_t i) {
    const FrameName *name = &f->input->names->names[frame];
    uint32_t line = f->input->names->lines[name->first + i].line;

    switch (column) {
    case FIREFOX_FRAME_DEPTH:
        fields_u64(&f->fields, NULL, name->n - 1 - i);
        break;
    case FIREFOX_FRAME_CATEGORY:
        fields_u64(&f->fields, NULL, firefox_category(firefox_mapping(f, frame)->kind));
        break;
    case FIREFOX_FRAME_FUNCTION:
        fields_u64(&f->fields, NULL, f->functions.of_line[name->first + i]);
        break;
    case FIREFOX_FRAME_LINE:
        if (line > 0)
            fields_u64(&f->fields, NULL, line);
        else
            fields_null(&f->fields, NULL);
    }
}

static void firefox_put_frame_column(Firefox *f, const char *name, FirefoxFrameColumn column) {
    uint32_t n = frame_table_n_frames(f->input->profile->frames);

    fields_begin_array(&f->fields, name);
    for (uint32_t frame = 0; frame < n && f->output.error == 0; frame++)
        for (uint32_t i = 0; i < f->input->names->names[frame].n; i++) {
            firefox_put_frame_value(f, column, frame, i);
            (void)export_output_breathe(&f->output);
        }
    fields_end_array(&f->fields);
}

static void firefox_put_frames(Firefox *f) {
    size_t n = f->functions.n_lines;

    fields_begin_object(&f->fields, "frameTable");
    firefox_put_same(f, "address", FIREFOX_NONE, n);
    firefox_put_frame_column(f, "inlineDepth", FIREFOX_FRAME_DEPTH);
    firefox_put_frame_column(f, "category", FIREFOX_FRAME_CATEGORY);
    firefox_put_same(f, "subcategory", FIREFOX_ZERO, n);
    firefox_put_frame_column(f, "func", FIREFOX_FRAME_FUNCTION);
    firefox_put_same(f, "nativeSymbol", FIREFOX_NULL, n);
    firefox_put_same(f, "innerWindowID", FIREFOX_ZERO, n);
    firefox_put_frame_column(f, "line", FIREFOX_FRAME_LINE);
    firefox_put_same(f, "column", FIREFOX_NULL, n);
    fields_u64(&f->fields, "length", n);
    fields_end_object(&f->fields);
}

/* The outermost line of a frame is the first of its rows. */
static void firefox_put_stack_frames(Firefox *f) {
    const StackTree *stacks = f->input->profile->stacks;

    fields_begin_array(&f->fields, "frame");
    for (uint32_t i = STACK_ROOT + 1; i < stack_tree_n_nodes(stacks); i++) {
        const FrameName *name = &f->input->names->names[stack_tree_node(stacks, i)->frame];

        for (uint32_t k = name->n; k > 0 && f->output.error == 0; k--) {
            fields_u64(&f->fields, NULL, name->first + k - 1);
            (void)export_output_breathe(&f->output);
        }
    }
    fields_end_array(&f->fields);
}

static void firefox_put_stack_prefixes(Firefox *f) {
    const StackTree *stacks = f->input->profile->stacks;

    fields_begin_array(&f->fields, "prefix");
    for (uint32_t i = STACK_ROOT + 1; i < stack_tree_n_nodes(stacks); i++) {
        uint32_t parent = stack_tree_node(stacks, i)->parent, row = f->first_rows[i];

        if (parent == STACK_ROOT)
            fields_null(&f->fields, NULL);
        else
            fields_u64(&f->fields, NULL, f->first_rows[parent + 1] - 1);
        for (row++; row < f->first_rows[i + 1] && f->output.error == 0; row++)
            fields_u64(&f->fields, NULL, row - 1);
        (void)export_output_breathe(&f->output);
    }
    fields_end_array(&f->fields);
}

static void firefox_put_function_column(Firefox *f, const char *name, size_t offset) {
    fields_begin_array(&f->fields, name);
    for (size_t i = 0; i < f->functions.n && f->output.error == 0; i++) {
        const ExportFunction *function = &f->functions.items[i];
        const FrameMapping *mapping =
            frame_table_mapping(f->input->profile->frames, function->mapping);

        if (offset == offsetof(ExportFunction, name))
            fields_u64(&f->fields, NULL, function->name);
        else if (offset == offsetof(ExportFunction, mapping))
            fields_i64(&f->fields, NULL,
                       firefox_is_library(mapping) ? (int64_t)function->mapping : -1);
        else if (function->file > 0)
            fields_u64(&f->fields, NULL, f->source_of[function->file] - 1);
        else
            fields_null(&f->fields, NULL);
        (void)export_output_breathe(&f->output);
    }
    fields_end_array(&f->fields);
}

static void firefox_put_functions(Firefox *f) {
    size_t n = f->functions.n;

    fields_begin_object(&f->fields, "funcTable");
    firefox_put_function_column(f, "name", offsetof(ExportFunction, name));
    firefox_put_same(f, "isJS", FIREFOX_FALSE, n);
    firefox_put_same(f, "relevantForJS", FIREFOX_FALSE, n);
    firefox_put_function_column(f, "resource", offsetof(ExportFunction, mapping));
    firefox_put_function_column(f, "source", offsetof(ExportFunction, file));
    firefox_put_same(f, "lineNumber", FIREFOX_NULL, n);
    firefox_put_same(f, "columnNumber", FIREFOX_NULL, n);
    fields_u64(&f->fields, "length", n);
    fields_end_object(&f->fields);
}

/* Numbers that rise by one. */
static void firefox_put_rising(Firefox *f, const char *name, uint64_t first, size_t n, bool same) {
    fields_begin_array(&f->fields, name);
    for (size_t i = 0; i < n && f->output.error == 0; i++) {
        fields_u64(&f->fields, NULL, same ? first : first + i);
        (void)export_output_breathe(&f->output);
    }
    fields_end_array(&f->fields);
}

static void firefox_put_resources(Firefox *f) {
    uint32_t n = frame_table_n_mappings(f->input->profile->frames);

    fields_begin_object(&f->fields, "resourceTable");
    firefox_put_rising(f, "lib", 0, n, false);
    firefox_put_rising(f, "name", text_set_count(f->input->names->texts), n, false);
    firefox_put_same(f, "host", FIREFOX_NULL, n);
    firefox_put_rising(f, "type", FIREFOX_LIBRARY, n, true);
    fields_u64(&f->fields, "length", n);
    fields_end_object(&f->fields);
}

static void firefox_put_sources(Firefox *f) {
    size_t n = f->n_sources;

    fields_begin_object(&f->fields, "sources");
    firefox_put_same(f, "id", FIREFOX_NULL, n);
    fields_begin_array(&f->fields, "filename");
    for (size_t i = 0, next = 1; i < f->functions.n && next <= n; i++)
        if (f->functions.items[i].file > 0 && f->source_of[f->functions.items[i].file] == next) {
            fields_u64(&f->fields, NULL, f->functions.items[i].file);
            next++;
        }
    fields_end_array(&f->fields);
    firefox_put_rising(f, "startLine", 1, n, true);
    firefox_put_rising(f, "startColumn", 1, n, true);
    firefox_put_same(f, "sourceMapURL", FIREFOX_NULL, n);
    fields_u64(&f->fields, "length", n);
    fields_end_object(&f->fields);
}

static void firefox_put_strings(Firefox *f) {
    const TextSet *texts = f->input->names->texts;
    const FrameTable *frames = f->input->profile->frames;

    fields_begin_array(&f->fields, "stringArray");
    for (uint32_t i = 0; i < text_set_count(texts) && f->output.error == 0; i++) {
        fields_bytes(&f->fields, NULL, text_set_get(texts, i));
        (void)export_output_breathe(&f->output);
    }
    for (uint32_t i = 0; i < frame_table_n_mappings(frames) && f->output.error == 0; i++) {
        fields_bytes(&f->fields, NULL, frame_table_mapping(frames, i)->dso);
        (void)export_output_breathe(&f->output);
    }
    fields_end_array(&f->fields);
}

void firefox_put_shared(Firefox *f) {
    static const char *const no_symbols[] = {"libIndex", "address", "name", "functionSize"};

    fields_begin_object(&f->fields, "shared");
    fields_begin_object(&f->fields, "stackTable");
    firefox_put_stack_frames(f);
    firefox_put_stack_prefixes(f);
    fields_u64(&f->fields, "length", f->first_rows[stack_tree_n_nodes(f->input->profile->stacks)]);
    fields_end_object(&f->fields);
    firefox_put_frames(f);
    firefox_put_functions(f);
    firefox_put_resources(f);
    fields_begin_object(&f->fields, "nativeSymbols");
    for (size_t i = 0; i < sizeof(no_symbols) / sizeof(*no_symbols); i++)
        firefox_put_same(f, no_symbols[i], FIREFOX_NULL, 0);
    fields_u64(&f->fields, "length", 0);
    fields_end_object(&f->fields);
    firefox_put_sources(f);
    firefox_put_strings(f);
    fields_end_object(&f->fields);
}
