/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>

#include "encode/protobuf.h"
#include "export/pprof-state.h"
#include "util/text.h"

/*
 * Strings, functions, mappings and locations of a pprof profile. Each is written before the first
 * message that refers to it, so ids count from 1 without a gap and only a table of ids is kept.
 *
 * A frame without a symbol has no line, so that pprof shows its file and may look for symbols
 * itself; the mapping of a user file says at which offset it is. That is not for a file that was
 * replaced since: its frames keep our text, which pprof then takes for a name.
 */

enum {
    PROFILE_MAPPING = 3,
    PROFILE_LOCATION = 4,
    PROFILE_FUNCTION = 5,
    PROFILE_STRING = 6,
    MAPPING_ID = 1,
    MAPPING_START = 2,
    MAPPING_LIMIT = 3,
    MAPPING_OFFSET = 4,
    MAPPING_FILENAME = 5,
    MAPPING_BUILD_ID = 6,
    MAPPING_HAS_FUNCTIONS = 7,
    MAPPING_HAS_FILENAMES = 8,
    MAPPING_HAS_LINES = 9,
    MAPPING_HAS_INLINE = 10,
    LOCATION_ID = 1,
    LOCATION_MAPPING = 2,
    LOCATION_ADDRESS = 3,
    LOCATION_LINE = 4,
    LINE_FUNCTION = 1,
    LINE_LINE = 2,
    FUNCTION_ID = 1,
    FUNCTION_NAME = 2,
    FUNCTION_SYSTEM_NAME = 3,
    FUNCTION_FILE = 4,
};

uint32_t pprof_set_id(Pprof *p, uint32_t *id, uint32_t value) {
    if (*id == 0)
        buffer_append(&p->touched, &id, sizeof(id));
    if (buffer_error(&p->touched))
        p->output.error = -ENOMEM;
    return *id = value;
}

void pprof_reset_ids(Pprof *p) {
    for (size_t i = 0; i < p->touched.size; i += sizeof(uint32_t *)) {
        uint32_t *id;

        memcpy(&id, p->touched.data + i, sizeof(id));
        *id = 0;
    }
    buffer_clear(&p->touched);
}

/* The text of p->text as a string. */
static uint32_t pprof_text_string(Pprof *p) {
    if (buffer_error(&p->text))
        p->output.error = -ENOMEM;
    if (p->n_strings > 0 && p->text.size == 0)
        return 0;
    protobuf_bytes_always(&p->output.buffer, PROFILE_STRING, buffer_bytes(&p->text));
    return p->n_strings++;
}

uint32_t pprof_bytes_string(Pprof *p, Bytes bytes) {
    buffer_clear(&p->text);
    text_escape(&p->text, bytes);
    return pprof_text_string(p);
}

uint32_t pprof_label_string(Pprof *p, const char *text) {
    buffer_clear(&p->text);
    text_escape_again(&p->text, (Bytes){.data = (const uint8_t *)text, .size = strlen(text)});
    return pprof_text_string(p);
}

uint32_t pprof_string(Pprof *p, const char *text) {
    return pprof_bytes_string(p, (Bytes){.data = (const uint8_t *)text, .size = strlen(text)});
}

uint32_t pprof_name_string(Pprof *p, uint32_t text) {
    uint32_t *id = &p->name_strings[text];

    return *id > 0 ? *id
                   : pprof_set_id(p, id,
                                  pprof_bytes_string(p, text_set_get(p->input.names->texts, text)));
}

uint32_t pprof_profile_string(Pprof *p, uint32_t text) {
    uint32_t *id = &p->profile_strings[text];

    return *id > 0 ? *id
                   : pprof_set_id(
                         p, id, pprof_bytes_string(p, text_set_get(p->input.profile->texts, text)));
}

/* Whether pprof gets our text for a frame. */
static bool pprof_has_line(const Pprof *p, FrameNaming naming) {
    return p->input.name_all || naming == FRAME_NAMED || naming == FRAME_REPLACED ||
           naming == FRAME_NOWHERE;
}

static void pprof_survey_frame(Pprof *p, uint32_t number) {
    const Frame *frame = frame_table_frame(p->input.profile->frames, number);
    const FrameName *name = &p->input.names->names[number];
    PprofMapping *mapping = &p->mappings[frame->mapping];

    export_span_add(&mapping->span, export_address(frame));
    mapping->unnamed |= !pprof_has_line(p, name->naming);
    mapping->inlined |= name->n > 1;
    for (uint32_t i = name->first; i - name->first < name->n; i++) {
        mapping->files |= p->input.names->lines[i].file > 0;
        mapping->lines |= p->input.names->lines[i].line > 0;
    }
}

/* Callers of a node that was seen have been seen as well. */
void pprof_survey_frames(Pprof *p, const ExportCell *cells, size_t n) {
    const StackTree *stacks = p->input.profile->stacks;

    memset(p->mappings, 0, frame_table_n_mappings(p->input.profile->frames) * sizeof(*p->mappings));
    p->round++;
    for (size_t i = 0; i < n; i++)
        for (uint32_t at = export_cell(&p->input, &cells[i])->stack;
             at != STACK_ROOT && p->rounds[at] != p->round;
             at = stack_tree_node(stacks, at)->parent) {
            p->rounds[at] = p->round;
            pprof_survey_frame(p, stack_tree_node(stacks, at)->frame);
        }
}

static uint32_t pprof_build_id_string(Pprof *p, const FrameMapping *mapping) {
    _cleanup_(buffer_done) Buffer hex = {};

    text_hex_bytes(&hex, (Bytes){.data = mapping->build_id, .size = mapping->build_id_size});
    if (buffer_error(&hex))
        p->output.error = -ENOMEM;
    return pprof_bytes_string(p, buffer_bytes(&hex));
}

static void pprof_put_mapping_fields(Pprof *p, const FrameMapping *mapping,
                                     const PprofMapping *facts, uint32_t filename,
                                     uint32_t build_id) {
    Buffer *out = &p->output.buffer;

    protobuf_u64(out, MAPPING_ID, facts->id);
    protobuf_u64(out, MAPPING_START, export_span_start(&facts->span));
    protobuf_u64(out, MAPPING_LIMIT, export_span_limit(&facts->span));
    if (export_is_file(mapping))
        protobuf_u64(out, MAPPING_OFFSET, export_span_start(&facts->span));
    protobuf_u64(out, MAPPING_FILENAME, filename);
    protobuf_u64(out, MAPPING_BUILD_ID, build_id);
    protobuf_u64(out, MAPPING_HAS_FUNCTIONS, !facts->unnamed);
    protobuf_u64(out, MAPPING_HAS_FILENAMES, !facts->unnamed && facts->files);
    protobuf_u64(out, MAPPING_HAS_LINES, !facts->unnamed && facts->lines);
    protobuf_u64(out, MAPPING_HAS_INLINE, !facts->unnamed && facts->inlined);
}

static uint32_t pprof_mapping(Pprof *p, uint32_t number) {
    const FrameMapping *mapping = frame_table_mapping(p->input.profile->frames, number);
    PprofMapping *facts = &p->mappings[number];
    uint32_t filename, build_id;
    size_t begun;

    if (facts->id > 0 || mapping->kind == FRAME_UNKNOWN)
        return facts->id;
    filename = pprof_bytes_string(p, export_mapping_name(mapping));
    build_id = mapping->build_id_size > 0 ? pprof_build_id_string(p, mapping) : 0;
    facts->id = ++p->n_mappings;
    begun = protobuf_begin(&p->output.buffer, PROFILE_MAPPING);
    pprof_put_mapping_fields(p, mapping, facts, filename, build_id);
    protobuf_end(&p->output.buffer, begun);
    return facts->id;
}

/* The next one. */
static void pprof_put_function(Pprof *p, uint32_t name, uint32_t file) {
    Buffer *out = &p->output.buffer;
    size_t begun = protobuf_begin(out, PROFILE_FUNCTION);

    protobuf_u64(out, FUNCTION_ID, ++p->n_functions);
    protobuf_u64(out, FUNCTION_NAME, name);
    protobuf_u64(out, FUNCTION_SYSTEM_NAME, name);
    protobuf_u64(out, FUNCTION_FILE, file);
    protobuf_end(out, begun);
}

static uint32_t pprof_function(Pprof *p, uint32_t number) {
    const ExportFunction *function = &p->functions.items[number];
    uint32_t name, file;

    if (p->function_ids[number] > 0)
        return p->function_ids[number];
    name = pprof_name_string(p, function->name);
    file = function->file > 0 ? pprof_name_string(p, function->file) : 0;
    pprof_put_function(p, name, file);
    return pprof_set_id(p, &p->function_ids[number], p->n_functions);
}

static void pprof_put_location(Pprof *p, uint32_t number, uint32_t mapping) {
    const Frame *frame = frame_table_frame(p->input.profile->frames, number);
    const FrameName *name = &p->input.names->names[number];
    Buffer *out = &p->output.buffer;
    size_t begun = protobuf_begin(out, PROFILE_LOCATION), line;

    protobuf_u64(out, LOCATION_ID, p->location_ids[number]);
    protobuf_u64(out, LOCATION_MAPPING, mapping);
    protobuf_u64(out, LOCATION_ADDRESS, export_address(frame));
    for (uint32_t i = name->first; pprof_has_line(p, name->naming) && i - name->first < name->n;
         i++) {
        line = protobuf_begin(out, LOCATION_LINE);
        protobuf_u64(out, LINE_FUNCTION, p->function_ids[p->functions.of_line[i]]);
        protobuf_u64(out, LINE_LINE, p->input.names->lines[i].line);
        protobuf_end(out, line);
    }
    protobuf_end(out, begun);
}

uint32_t pprof_location(Pprof *p, uint32_t frame) {
    const FrameName *name = &p->input.names->names[frame];
    uint32_t mapping;

    if (p->location_ids[frame] > 0)
        return p->location_ids[frame];
    mapping = pprof_mapping(p, frame_table_frame(p->input.profile->frames, frame)->mapping);
    for (uint32_t i = name->first; pprof_has_line(p, name->naming) && i - name->first < name->n;
         i++)
        (void)pprof_function(p, p->functions.of_line[i]);
    (void)pprof_set_id(p, &p->location_ids[frame], ++p->n_locations);
    pprof_put_location(p, frame, mapping);
    return p->location_ids[frame];
}

uint32_t pprof_other_location(Pprof *p) {
    Buffer *out = &p->output.buffer;
    size_t begun, line;
    uint32_t text;

    if (p->other_location > 0)
        return p->other_location;
    text = pprof_string(p, "[other]");
    begun = protobuf_begin(out, PROFILE_MAPPING);
    protobuf_u64(out, MAPPING_ID, ++p->n_mappings);
    protobuf_u64(out, MAPPING_FILENAME, text);
    protobuf_u64(out, MAPPING_HAS_FUNCTIONS, true);
    protobuf_end(out, begun);
    pprof_put_function(p, text, 0);
    begun = protobuf_begin(out, PROFILE_LOCATION);
    protobuf_u64(out, LOCATION_ID, ++p->n_locations);
    protobuf_u64(out, LOCATION_MAPPING, p->n_mappings);
    line = protobuf_begin(out, LOCATION_LINE);
    protobuf_u64(out, LINE_FUNCTION, p->n_functions);
    protobuf_end(out, line);
    protobuf_end(out, begun);
    return p->other_location = p->n_locations;
}
