/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "page/page-data.h"

#include "page/page-heat.h"

/*
 * One object. Texts are strings; everything that is long is a string of numbers (page_digits()):
 * frames and nodes in columns one after the other. A node is how many levels it is above the one
 * before it, its frame, and its weights; nodes are in preorder, and the first one is the root.
 */

static void page_data_texts(PageWriter *w, const PageFrames *frames) {
    const TextSet *texts = page_frames_texts(frames);
    uint32_t n = text_set_count(texts);

    page_puts(w, "\"texts\":[");
    for (uint32_t i = 0; i < n; i++) {
        page_puts(w, i > 0 ? ",\n" : "");
        page_json(w, text_set_get(texts, i));
    }
    page_puts(w, "],\n\"kinds\":[");
    for (uint32_t i = 0; i < PAGE_KINDS; i++) {
        page_puts(w, i > 0 ? "," : "");
        page_json_str(w, page_kind_names[i]);
    }
    page_puts(w, "],\n");
}

static void page_data_frames(PageWriter *w, const PageFrames *frames, bool by_address) {
    uint32_t n = page_frames_count(frames);

    page_json_u64(w, "n_frames", n);
    page_puts(w, "\"frames\":\"");
    for (uint32_t i = 0; i < n; i++) {
        const PageFrame *frame = page_frames_get(frames, i);

        page_digits(w, frame->name);
        page_digits(w, frame->dso);
        page_digits(w, frame->kind);
        if (!by_address)
            continue;
        page_digits(w, frame->address >> 32);
        page_digits(w, (uint32_t)frame->address);
        page_digits(w, frame->file);
        page_digits(w, frame->line);
    }
    page_puts(w, "\",\n");
}

static void page_data_nodes(PageWriter *w, const PageData *data, bool compared) {
    const PageTree *tree = data->tree;
    uint32_t n = stack_tree_n_nodes(tree->stacks), depth = 0;

    page_json_u64(w, "n_nodes", n);
    page_puts(w, "\"nodes\":\"");
    for (uint32_t i = 0; i < n; i++) {
        const StackNode *node = stack_tree_node(tree->stacks, tree->order[i]);
        const PageWeight *weight = &tree->weights[tree->order[i]];

        if (i > 0) {
            page_digits(w, depth + 1 - node->depth);
            page_digits(w, node->frame);
        }
        depth = node->depth;
        page_digits(w, weight->self);
        if (data->input->by_period)
            page_digits(w, weight->samples);
        if (compared)
            page_digits(w, weight->before);
        if (compared && data->input->by_period)
            page_digits(w, weight->samples_before);
    }
    page_puts(w, "\",\n");
}

/* NULL: the page is of several. */
static const ProfileEvent *page_data_event_of(const PageInput *input) {
    const Profile *profile = input->profile;

    if (input->event < profile->n_events)
        return &profile->events[input->event];
    return profile->n_events == 1 ? &profile->events[0] : NULL;
}

static void page_data_event(PageWriter *w, const PageInput *input) {
    const Profile *profile = input->profile;
    const ProfileEvent *event = page_data_event_of(input);

    if (event) {
        page_puts(w, "\"event\":");
        page_json(w, text_set_get(profile->texts, event->name));
        page_puts(w, ",");
    }
    page_puts(w, "\"unit\":");
    page_json_str(w, !input->by_period ? "samples" : event && event->is_time ? "ns" : "events");
    page_puts(w, ",\n");
}

static void page_data_facts(PageWriter *w, const PageInput *input, uint64_t folded) {
    const Profile *profile = input->profile;
    const ProfileEvent *event = page_data_event_of(input);

    page_json_u64(w, "lost", event ? event->lost : profile->lost);
    page_json_u64(w, "folded", profile->folded + folded);
    page_json_u64(w, "folded_labels", profile->folded_labels);
    page_json_u64(w, "broken", profile->broken);
    page_json_u64(w, "left_out", profile->left_out);
    if (profile->first_ns <= profile->last_ns)
        page_json_u64(w, "span_ms", (profile->last_ns - profile->first_ns) / 1000000);
}

int page_data_write(PageWriter *w, const PageData *data) {
    const PageFlameOptions *options = data->options;
    bool by_address = options && options->by_address, compared = options && options->before;
    int r = 0;

    page_puts(w, "{\"page\":");
    page_json_str(w, data->page);
    page_puts(w, ",\"title\":");
    page_json_str(w, data->input->title);
    page_puts(w, ",\"subtitle\":");
    page_json_str(w, data->input->subtitle ? data->input->subtitle : "");
    page_puts(w, ",\n");
    page_data_event(w, data->input);
    page_data_facts(w, data->input, data->tree->folded);
    page_json_u64(w, "icicle", options && options->icicle);
    page_json_u64(w, "by_address", by_address);
    page_json_u64(w, "by_period", data->input->by_period);
    page_json_u64(w, "compared", compared);
    page_puts(w, "\n");
    page_data_texts(w, data->tree->frames);
    page_data_frames(w, data->tree->frames, by_address);
    page_data_nodes(w, data, compared);
    if (data->heat)
        r = page_heat_write(w, data->input, data->tree);
    page_puts(w, "\"end\":0}");
    return r;
}
