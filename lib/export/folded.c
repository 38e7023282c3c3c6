/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>

#include "export/export-cell.h"
#include "export/export-format.h"
#include "export/export-function.h"
#include "export/export-group.h"
#include "export/export-output.h"
#include "util/text.h"

/*
 * Folded stacks: a line for each stack by names, "outermost;…;innermost weight". Stacks that differ
 * only in addresses are one line, so the tree of stacks is first made anew by names; weights are
 * then summed by group of labels and name. Labels are the outermost frames. A ; within a name would
 * cut it in two: it becomes a colon, as stackcollapse-perf.pl does.
 */

typedef struct FoldedNode {
    uint32_t parent, function;
} FoldedNode;

typedef struct FoldedRow {
    uint32_t group, node;
    uint64_t weight;
} FoldedRow;

typedef struct Folded {
    const ExportInput *input;
    ExportOutput output;
    ExportFunctions functions;
    ExportGroups groups;
    ExportCells cells;
    uint32_t *of_node; /* the node by names of each node of the stacks */
    FoldedNode *nodes; /* 0 is the root */
    HashIndex node_index;
    size_t n_nodes;
    FoldedRow *rows;
    HashIndex row_index;
    size_t n_rows;
    Buffer text, path;
} Folded;

static void folded_done(Folded *f) {
    export_output_done(&f->output);
    export_functions_done(&f->functions);
    export_groups_done(&f->groups);
    export_cells_done(&f->cells);
    free(f->of_node);
    free(f->nodes);
    hash_index_done(&f->node_index);
    free(f->rows);
    hash_index_done(&f->row_index);
    buffer_done(&f->text);
    buffer_done(&f->path);
}

static int folded_add_node(Folded *f, uint32_t parent, uint32_t function, uint32_t *ret) {
    uint64_t key = (uint64_t)parent << 32 | function;
    size_t probe = 0;
    FoldedNode *node;
    uint32_t number;

    while ((number = hash_index_next(&f->node_index, key, &probe)) > 0) {
        node = &f->nodes[number - 1];
        if (number > 1 && node->parent == parent && node->function == function) {
            *ret = number - 1;
            return 0;
        }
    }
    if (f->n_nodes >= UINT32_MAX)
        return -ENOSPC;
    node = hash_index_append(&f->node_index, key, &f->nodes);
    if (!node)
        return -ENOMEM;
    *node = (FoldedNode){.parent = parent, .function = function};
    *ret = (uint32_t)f->n_nodes++;
    return 0;
}

static int folded_name_nodes(Folded *f) {
    const StackTree *stacks = f->input->profile->stacks;
    uint32_t n = stack_tree_n_nodes(stacks), root;
    int r;

    f->of_node = calloc((size_t)n + 1, sizeof(*f->of_node));
    if (!f->of_node)
        return -ENOMEM;
    r = folded_add_node(f, 0, UINT32_MAX, &root);
    for (uint32_t i = STACK_ROOT + 1; i < n && r == 0; i++) {
        const StackNode *node = stack_tree_node(stacks, i);
        const FrameName *name = &f->input->names->names[node->frame];
        uint32_t at = f->of_node[node->parent];

        for (uint32_t k = name->n; k > 0 && r == 0; k--)
            r = folded_add_node(f, at, f->functions.of_line[name->first + k - 1], &at);
        f->of_node[i] = at;
    }
    return r;
}

static int folded_add_weight(Folded *f, uint32_t group, uint32_t node, uint64_t weight) {
    uint64_t key = (uint64_t)group << 32 | node;
    size_t probe = 0;
    FoldedRow *row;
    uint32_t number;

    while ((number = hash_index_next(&f->row_index, key, &probe)) > 0) {
        row = &f->rows[number - 1];
        if (row->group == group && row->node == node) {
            row->weight += weight;
            return 0;
        }
    }
    row = hash_index_append(&f->row_index, key, &f->rows);
    if (!row)
        return -ENOMEM;
    *row = (FoldedRow){.group = group, .node = node, .weight = weight};
    f->n_rows++;
    return 0;
}

static int folded_add_weights(Folded *f) {
    int r = 0;

    for (size_t i = 0; i < f->cells.n && r == 0; i++) {
        const ProfileCell *cell = export_cell(f->input, &f->cells.items[i]);

        r = folded_add_weight(f, f->groups.of_label[cell->label], f->of_node[cell->stack],
                              export_cell_weight(f->input, &f->cells.items[i]));
    }
    return r;
}

/* A frame of a line. */
static void folded_put(Folded *f, Bytes text, bool *first) {
    Buffer *out = &f->output.buffer;
    size_t begin;

    if (!*first)
        text_putc(out, ';');
    *first = false;
    begin = out->size;
    text_escape(out, text);
    for (size_t i = begin; i < out->size; i++)
        if (out->data[i] == ';')
            out->data[i] = ':';
}

static void folded_put_labels(Folded *f, const ProfileLabel *label, bool *first) {
    const Profile *profile = f->input->profile;

    for (size_t i = 0; i < EXPORT_OUTER_KEYS; i++) {
        ProfileKey key = export_outer_keys[i];

        /* The event is no news where there is one. */
        if (key == PROFILE_EVENT && export_event(f->input, PROFILE_NONE))
            continue;
        buffer_clear(&f->text);
        if (export_label_text(profile, label, key, &f->text))
            folded_put(f, buffer_bytes(&f->text), first);
    }
}

static int folded_put_row(Folded *f, const FoldedRow *row) {
    static const char nothing[] = "[no stack]";
    bool first = true;

    if (row->weight == 0)
        return 0;
    folded_put_labels(f, &f->groups.items[row->group], &first);
    buffer_clear(&f->path);
    for (uint32_t at = row->node; at > 0; at = f->nodes[at].parent)
        buffer_u32(&f->path, f->nodes[at].function, false);
    for (size_t i = f->path.size; i > 0; i -= sizeof(uint32_t)) {
        uint32_t function = load_u32(f->path.data + i - sizeof(uint32_t), false);

        folded_put(f, text_set_get(f->input->names->texts, f->functions.items[function].name),
                   &first);
    }
    if (first)
        folded_put(f, (Bytes){.data = (const uint8_t *)nothing, .size = sizeof(nothing) - 1},
                   &first);
    text_putc(&f->output.buffer, ' ');
    text_u64(&f->output.buffer, row->weight);
    text_putc(&f->output.buffer, '\n');
    return f->path.error ? f->path.error : export_output_breathe(&f->output);
}

int export_folded(const ExportInput *input, ExportSink sink, void *arg) {
    _cleanup_(folded_done) Folded f = {.input = input, .output = {.sink = sink, .arg = arg}};
    int r = export_functions_fill(&f.functions, input, 0);

    if (r == 0)
        r = export_groups_fill(&f.groups, input->profile, EXPORT_ALL);
    if (r == 0)
        r = export_cells_fill(&f.cells, input, NULL);
    if (r == 0)
        r = folded_name_nodes(&f);
    if (r == 0)
        r = folded_add_weights(&f);
    for (size_t i = 0; i < f.n_rows && r == 0; i++)
        r = folded_put_row(&f, &f.rows[i]);
    return r < 0 ? r : export_output_flush(&f.output);
}
