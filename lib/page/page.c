/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "page/page.h"

#include <errno.h>
#include <inttypes.h>

#include "page/page-fold.h"
#include "page/page-shell.h"
#include "util/text.h"

/*
 * The pages: each makes the tree of what it shows and writes it into the template. Which parts of
 * the template are seen follows from the name of the page.
 */

/* Where there are many cells, rare stacks are folded: an hour of eight busy CPUs stays below 10 MB.
 */
enum { PAGE_HEAT_CELLS = 1 << 19, PAGE_HEAT_NODES = 80000 };

static int page_write_tree(const PageData *data, const PageIncident *incident, PageSink sink,
                           void *arg) {
    _cleanup_(page_writer_done) PageWriter w = {.sink = sink, .arg = arg};
    int r;

    r = page_shell_write(&w, data, incident);
    return r < 0 ? r : page_writer_finish(&w);
}

int page_flame_graph(const PageInput *input, const PageFlameOptions *options, PageSink sink,
                     void *arg) {
    _cleanup_(page_tree_freep) PageTree *tree = NULL;
    PageData data = {.page = "flame", .input = input, .options = options};
    int r;

    r = page_tree_of(input, options, &tree);
    data.tree = tree;
    return r < 0 ? r : page_write_tree(&data, NULL, sink, arg);
}

/* The subtitle also says what this page alone has folded. */
static int page_add_folded(const PageTree *tree, PageInput *input, Buffer *subtitle) {
    if (tree->folded == 0)
        return 0;
    text_puts(subtitle, input->subtitle ? input->subtitle : "");
    text_printf(subtitle,
                "%son this page the rare stacks of %" PRIu64 " samples are folded into [other]",
                subtitle->size > 0 ? "; " : "", tree->folded);
    text_putc(subtitle, '\0');
    input->subtitle = (const char *)subtitle->data;
    return buffer_error(subtitle);
}

static int page_with_heat(const char *page, const PageInput *input, const PageIncident *incident,
                          PageSink sink, void *arg) {
    _cleanup_(page_tree_freep) PageTree *tree = NULL;
    _cleanup_(buffer_done) Buffer subtitle = {};
    PageInput counts = *input;
    PageData data = {.page = page, .input = &counts, .heat = true};
    int r;

    if (!(input->profile->keys & profile_key_bit(PROFILE_TIME)) || input->profile->bucket_ns == 0)
        return -EINVAL;
    counts.by_period = false;
    r = page_tree_new(false, &tree);
    if (r >= 0)
        r = page_tree_add(tree, &counts, false);
    if (r >= 0 && input->profile->n_cells > PAGE_HEAT_CELLS)
        r = page_tree_fold(tree, PAGE_HEAT_NODES);
    if (r >= 0)
        r = page_add_folded(tree, &counts, &subtitle);
    if (r >= 0)
        r = page_tree_sort(tree);
    data.tree = tree;
    return r < 0 ? r : page_write_tree(&data, incident, sink, arg);
}

int page_heat_map(const PageInput *input, PageSink sink, void *arg) {
    return page_with_heat("heat", input, NULL, sink, arg);
}

int page_incident(const PageIncident *incident, PageSink sink, void *arg) {
    return page_with_heat("incident", &incident->input, incident, sink, arg);
}
