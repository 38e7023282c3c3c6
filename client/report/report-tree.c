/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "client/frame/figure.h"
#include "client/frame/width.h"
#include "client/report/report.h"
#include "util/text.h"

/*
 * A report with the callers or callees of each row, as a tree. An only caller stands right below,
 * without figures if they are the same, so that deep stacks stay narrow.
 */

enum { COUNT_WIDTH = 9, FIGURES_WIDTH = 19, INDENT = 2 };

static void report_tree_put_spaces(Buffer *out, size_t n) {
    while (n-- > 0)
        text_putc(out, ' ');
}

/* Ends a line that begins at `start`, cut to the width of the terminal. */
static void report_tree_end_line(const Report *report, Buffer *out, size_t start) {
    size_t width = context_width(report->context);

    if (buffer_error(out))
        return;
    if (width > 0)
        out->size = start + width_fit((const char *)out->data + start, out->size - start, width);
    text_putc(out, '\n');
}

static void report_tree_put_count(Buffer *out, uint64_t n) {
    _cleanup_(buffer_done) Buffer count = {};

    figure_count(&count, n);
    report_tree_put_spaces(out, COUNT_WIDTH - MIN(count.size, (size_t)COUNT_WIDTH));
    buffer_append(out, count.data, count.size);
}

static void report_tree_put_name(const Report *report, const TreeNode *node, Buffer *out) {
    text_escape(out, text_set_get(report->view->names->texts, node->function));
}

static uint64_t report_node_weight(const Report *report, const TreeNode *node) {
    return report_weight(report, node->samples, node->period);
}

/* The number of children that are shown, and the first of them. */
static size_t report_tree_children(const Report *report, const RowTable *rows,
                                   const ProfileTree *tree, uint32_t node, uint32_t *ret_first) {
    size_t n = 0;

    *ret_first = tree->nodes[node].child;
    for (uint32_t i = *ret_first; i != UINT32_MAX; i = tree->nodes[i].next, n++)
        if (!report_is_shown(report, rows, report_node_weight(report, &tree->nodes[i])))
            break;
    return n;
}

/* Follows single children that have all of the weight; returns the last one. */
static uint32_t report_tree_put_chain(const Report *report, const ProfileTree *tree, uint32_t node,
                                      const Buffer *prefix) {
    Buffer *out = &report->context->out.buffer;

    for (;;) {
        uint32_t child = tree->nodes[node].child;
        size_t start;

        if (child == UINT32_MAX || tree->nodes[child].samples < tree->nodes[node].samples)
            return node;
        node = child;
        start = out->size;
        buffer_append(out, prefix->data, prefix->size);
        report_tree_put_spaces(out, FIGURES_WIDTH);
        report_tree_put_name(report, &tree->nodes[node], out);
        report_tree_end_line(report, out, start);
    }
}

static void report_tree_put_node(const Report *report, const RowTable *rows, const TreeNode *node,
                                 const Buffer *prefix, const char *branch) {
    Buffer *out = &report->context->out.buffer;
    size_t start = out->size;

    buffer_append(out, prefix->data, prefix->size);
    text_puts(out, branch);
    text_printf(out, "%5.2f%%", report_share(report, rows, report_node_weight(report, node)));
    report_tree_put_count(out, node->samples);
    report_tree_put_spaces(out, 1);
    report_tree_put_name(report, node, out);
    report_tree_end_line(report, out, start);
}

/* The prefix ends where the figures of the parent begin; an only child stands below these. */
static void report_tree_put_children(const Report *report, const RowTable *rows,
                                     const ProfileTree *tree, uint32_t node, Buffer *prefix) {
    size_t old = prefix->size, n;
    bool is_root = tree->nodes[node].parent == UINT32_MAX;
    uint32_t child;

    n = report_tree_children(report, rows, tree, node, &child);
    for (size_t i = 0; i < n && output_breathe(&report->context->out) == 0;
         i++, child = tree->nodes[child].next) {
        bool is_last = i + 1 == n, is_only = n == 1 && !is_root;
        uint32_t end;

        report_tree_put_node(report, rows, &tree->nodes[child], prefix,
                             is_only   ? ""
                             : is_last ? "└─ "
                                       : "├─ ");
        text_puts(prefix, is_only ? "" : is_last ? "   " : "│  ");
        end = report_tree_put_chain(report, tree, child, prefix);
        report_tree_put_children(report, rows, tree, end, prefix);
        prefix->size = old;
    }
}

static void report_tree_put_row(const Report *report, const RowTable *rows, const ProfileRow *row) {
    Buffer *out = &report->context->out.buffer;
    size_t start = out->size;

    text_printf(
        out, "%6.2f%% %6.2f%%",
        report_share(report, rows, report_weight(report, row->samples, row->period)),
        report_share(report, rows, report_weight(report, row->total_samples, row->total_period)));
    report_tree_put_count(out, report->sort == ROW_BY_TOTAL ? row->total_samples : row->samples);
    for (size_t k = 0; k < rows->keys.n; k++) {
        size_t size;

        report_tree_put_spaces(out, INDENT);
        size = out->size;
        report_put_value(rows, row, rows->keys.items[k], out);
        text_puts(out, out->size == size ? "-" : "");
    }
    report_tree_end_line(report, out, start);
}

int report_print_trees(const Report *report, uint32_t event) {
    _cleanup_(row_table_freep) RowTable *rows = NULL;
    _cleanup_(profile_tree_freep) ProfileTree *tree = NULL;
    _cleanup_(buffer_done) Buffer prefix = {};
    Buffer *out = &report->context->out.buffer;
    int status = report_rows(report, event, &rows);

    if (status == STATUS_OK)
        status = report_trees(report, rows, &tree);
    if (status != STATUS_OK)
        return status;
    if (!report->context->no_legend)
        text_puts(out, "   SELF   TOTAL  SAMPLES\n");
    for (size_t i = 0; i < rows->n; i++) {
        const ProfileRow *row = &rows->rows[rows->order[i]];
        uint32_t root = tree->roots[rows->order[i]];

        if (!report_is_shown(report, rows, report_row_weight(report, row)))
            continue;
        report_tree_put_row(report, rows, row);
        buffer_clear(&prefix);
        report_tree_put_spaces(&prefix, 8);
        if (root != UINT32_MAX)
            report_tree_put_children(report, rows, tree,
                                     report_tree_put_chain(report, tree, root, &prefix), &prefix);
        text_putc(out, '\n');
    }
    return STATUS_OK;
}
