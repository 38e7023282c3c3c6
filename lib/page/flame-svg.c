/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "page/page.h"

#include <errno.h>
#include <math.h>

#include "page/page-tree.h"
#include "page/page-writer.h"
#include "util/array.h"
#include "util/text.h"

/*
 * A flame graph as a picture without a script, for where pictures are shown and pages are not. Each
 * box is a nested svg element, which clips its text, and has a title, which viewers show as a
 * tooltip. Boxes that would be narrower than a fifth of a unit are left out, so that the size of
 * the file is bounded by what can be seen. Children are in the order of their weight, as in the
 * page.
 */

enum { SVG_WIDTH = 1200, SVG_ROW = 18, SVG_MARGIN = 10, SVG_HEAD = 46, SVG_LETTER = 7 };

static const double flame_svg_least = 0.2;

typedef struct SvgBox {
    uint32_t node, depth;
    double x; /* in weights */
} SvgBox;

typedef struct Svg {
    PageWriter *w;
    const PageInput *input;
    const PageFlameOptions *options;
    const PageTree *tree;
    uint64_t *totals, *earlier; /* by place in preorder */
    uint32_t *ends;             /* the place behind a subtree */
    SvgBox *boxes;
    size_t n_boxes;
    uint32_t depth_max;
} Svg;

static void flame_svg_done(Svg *svg) {
    free(svg->totals);
    free(svg->earlier);
    free(svg->ends);
    free(svg->boxes);
}

static const StackNode *flame_svg_node(const Svg *svg, uint32_t place) {
    return stack_tree_node(svg->tree->stacks, svg->tree->order[place]);
}

/* Weights of subtrees; a child's place is behind its parent's. */
static int flame_svg_add_up(Svg *svg) {
    uint32_t n = stack_tree_n_nodes(svg->tree->stacks);

    svg->totals = calloc(n, sizeof(*svg->totals));
    svg->earlier = calloc(n, sizeof(*svg->earlier));
    svg->ends = calloc(n, sizeof(*svg->ends));
    if (!svg->totals || !svg->earlier || !svg->ends)
        return -ENOMEM;
    for (uint32_t i = n; i-- > 0;) {
        const PageWeight *weight = &svg->tree->weights[svg->tree->order[i]];
        uint32_t parent = i > 0 ? svg->tree->rank[flame_svg_node(svg, i)->parent] : 0;

        svg->totals[i] += weight->self;
        svg->earlier[i] += weight->before;
        svg->ends[i] = MAX(svg->ends[i], i + 1);
        if (i > 0) {
            svg->totals[parent] += svg->totals[i];
            svg->earlier[parent] += svg->earlier[i];
            svg->ends[parent] = MAX(svg->ends[parent], svg->ends[i]);
        }
    }
    return 0;
}

static int flame_svg_order(const void *a, const void *b, void *arg) {
    const SvgBox *x = a, *y = b;
    const Svg *svg = arg;
    uint64_t p = svg->totals[x->node], q = svg->totals[y->node];

    return p != q ? (p < q) - (p > q) : (x->node > y->node) - (x->node < y->node);
}

/* Appends the children of a box that can be seen, from left to right. */
static int flame_svg_children(Svg *svg, size_t parent) {
    uint32_t node = svg->boxes[parent].node, depth = svg->boxes[parent].depth + 1;
    double x = svg->boxes[parent].x, least = flame_svg_least * (double)svg->totals[0] / SVG_WIDTH;
    size_t first = svg->n_boxes, kept;

    for (uint32_t c = node + 1; c < svg->ends[node]; c = svg->ends[c]) {
        SvgBox *box = svg->totals[c] > 0 && (double)svg->totals[c] >= least
                          ? array_grow(&svg->boxes, &svg->n_boxes)
                          : NULL;

        if (box)
            *box = (SvgBox){.node = c, .depth = depth};
        else if (svg->totals[c] > 0 && (double)svg->totals[c] >= least)
            return -ENOMEM;
    }
    kept = svg->n_boxes - first;
    if (kept > 1)
        qsort_r(svg->boxes + first, kept, sizeof(*svg->boxes), flame_svg_order, svg);
    for (size_t i = first; i < svg->n_boxes; i++) {
        svg->boxes[i].x = x;
        x += (double)svg->totals[svg->boxes[i].node];
        svg->depth_max = MAX(svg->depth_max, depth);
    }
    return 0;
}

static int flame_svg_lay_out(Svg *svg) {
    int r = flame_svg_add_up(svg);

    if (r < 0)
        return r;
    if (!array_grow(&svg->boxes, &svg->n_boxes))
        return -ENOMEM;
    for (size_t i = 0; i < svg->n_boxes && r >= 0; i++)
        r = flame_svg_children(svg, i);
    return r;
}

/* Hue, saturation and lightness of kinds; labels are grey. */
/* clang-format off */
static const struct {
    uint16_t hue, saturation, lightness;
} flame_svg_colors[PAGE_KINDS] = {
    [FRAME_UNKNOWN]    = {40, 6, 78},   [FRAME_USER]   = {28, 88, 72},  [FRAME_KERNEL] = {213, 82, 78},
    [FRAME_MODULE]     = {197, 70, 74}, [FRAME_BPF]    = {275, 60, 82}, [FRAME_VDSO]   = {175, 50, 72},
    [FRAME_JIT]        = {145, 52, 70}, [FRAME_GUEST]  = {320, 60, 82}, [FRAME_HYPERVISOR] = {335, 60, 78},
    [FRAME_OTHER]      = {40, 10, 70},  [PAGE_INLINED] = {50, 62, 66},
};
/* clang-format on */

static void flame_svg_color(const Svg *svg, uint32_t place, const PageFrame *frame) {
    unsigned kind = frame ? frame->kind : FRAME_UNKNOWN, turn = frame ? frame->name * 37 % 13 : 0;
    double a, b, change;

    if (!svg->options || !svg->options->before) {
        if (flame_svg_colors[kind].lightness == 0)
            text_printf(&svg->w->buffer, "hsl(218,12%%,85%%)");
        else
            text_printf(&svg->w->buffer, "hsl(%u,%u%%,%u%%)", flame_svg_colors[kind].hue + turn / 2,
                        flame_svg_colors[kind].saturation,
                        flame_svg_colors[kind].lightness - 3 + turn / 2);
        return;
    }
    a = (double)svg->totals[place] / (double)MAX(svg->totals[0], UINT64_C(1));
    b = (double)svg->earlier[place] / (double)MAX(svg->earlier[0], UINT64_C(1));
    change = a + b > 0 ? (a - b) / (a + b) : 0;
    text_printf(&svg->w->buffer, "hsl(%u,%u%%,%u%%)", change > 0 ? 5 : 212,
                (unsigned)(80 * fabs(change)) + 5, 92 - (unsigned)(28 * fabs(change)));
}

static void flame_svg_weight(const Svg *svg, uint64_t weight, uint64_t all) {
    page_u64(svg->w, weight);
    text_printf(&svg->w->buffer, " %s, %.2f%%", svg->input->by_period ? "by period" : "samples",
                all > 0 ? 100 * (double)weight / (double)all : 0.0);
}

static void flame_svg_box(const Svg *svg, const SvgBox *box) {
    PageWriter *w = svg->w;
    const StackNode *node = flame_svg_node(svg, box->node);
    const PageFrame *frame = box->node > 0 ? page_frames_get(svg->tree->frames, node->frame) : NULL;
    const TextSet *texts = page_frames_texts(svg->tree->frames);
    Bytes name = frame ? text_set_get(texts, frame->name)
                       : (Bytes){.data = (const uint8_t *)"all", .size = 3};
    double scale = SVG_WIDTH / (double)MAX(svg->totals[0], UINT64_C(1));
    double width = (double)svg->totals[box->node] * scale;
    uint32_t row = svg->options && svg->options->icicle ? box->depth : svg->depth_max - box->depth;

    text_printf(&w->buffer, "<svg x=\"%.2f\" y=\"%u\" width=\"%.2f\" height=\"%u\"><title>",
                SVG_MARGIN + box->x * scale, SVG_HEAD + row * SVG_ROW, width, SVG_ROW - 1);
    page_html(w, name);
    if (frame && frame->dso > 0) {
        page_puts(w, " (");
        page_html(w, text_set_get(texts, frame->dso));
        page_puts(w, ")");
    }
    page_puts(w, ": ");
    flame_svg_weight(svg, svg->totals[box->node], svg->totals[0]);
    if (svg->options && svg->options->before) {
        page_puts(w, "; before: ");
        flame_svg_weight(svg, svg->earlier[box->node], svg->earlier[0]);
    }
    page_puts(w, "</title><rect width=\"100%\" height=\"100%\" rx=\"2\" fill=\"");
    flame_svg_color(svg, box->node, frame);
    page_puts(w, "\"/>");
    if (width > 3 * SVG_LETTER) {
        page_puts(w, "<text x=\"4\" y=\"12.5\">");
        page_html(w, name);
        page_puts(w, "</text>");
    }
    page_puts(w, "</svg>\n");
}

static void flame_svg_write(const Svg *svg) {
    PageWriter *w = svg->w;
    unsigned width = SVG_WIDTH + 2 * SVG_MARGIN;
    unsigned height = SVG_HEAD + (svg->depth_max + 1) * SVG_ROW + SVG_MARGIN;

    text_printf(&w->buffer,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
                "viewBox=\"0 0 %u %u\" font-family=\"system-ui, sans-serif\" font-size=\"11\" "
                "fill=\"#201c17\">\n<title>",
                width, height, width, height);
    page_html_str(w, svg->input->title);
    page_puts(w, "</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
                 "<text x=\"10\" y=\"20\" font-size=\"15\" font-weight=\"600\">");
    page_html_str(w, svg->input->title);
    page_puts(w, "</text>\n<text x=\"10\" y=\"36\" fill=\"#6a6259\">");
    page_html_str(w, svg->input->subtitle ? svg->input->subtitle : "");
    page_puts(w, "</text>\n");
    for (size_t i = 0; i < svg->n_boxes; i++)
        flame_svg_box(svg, &svg->boxes[i]);
    page_puts(w, "</svg>\n");
}

int page_flame_svg(const PageInput *input, const PageFlameOptions *options, PageSink sink,
                   void *arg) {
    _cleanup_(page_writer_done) PageWriter w = {.sink = sink, .arg = arg};
    _cleanup_(page_tree_freep) PageTree *tree = NULL;
    _cleanup_(flame_svg_done) Svg svg = {.w = &w, .input = input, .options = options};
    int r;

    r = page_tree_of(input, options, &tree);
    svg.tree = tree;
    if (r >= 0)
        r = flame_svg_lay_out(&svg);
    if (r < 0)
        return r;
    flame_svg_write(&svg);
    return page_writer_finish(&w);
}
