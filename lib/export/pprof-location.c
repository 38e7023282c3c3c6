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

enum { PPROF_PAGE = 4096 };

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

uint32_t pprof_bytes_string(Pprof *p, Bytes bytes) {
    buffer_clear(&p->text);
    text_escape(&p->text, bytes);
    if (buffer_error(&p->text))
        p->output.error = -ENOMEM;
    if (p->n_strings > 0 && p->text.size == 0)
        return 0;
    protobuf_bytes_always(&p->output.buffer, PROFILE_STRING, buffer_bytes(&p->text));
    return p->n_strings++;
}

uint32_t pprof_string(Pprof *p, const char *text) {
    return pprof_bytes_string(p, (Bytes){.data = (const uint8_t *)text, .size = strlen(text)});
}

uint32_t pprof_name_string(Pprof *p, uint32_t text) {
    if (p->name_strings[text] == 0)
        p->name_strings[text] = pprof_bytes_string(p, text_set_get(p->input->names->texts, text));
    return p->name_strings[text];
}

uint32_t pprof_profile_string(Pprof *p, uint32_t text) {
    if (p->profile_strings[text] == 0)
        p->profile_strings[text] =
            pprof_bytes_string(p, text_set_get(p->input->profile->texts, text));
    return p->profile_strings[text];
}

/* Whether pprof gets our text for a frame. */
static bool pprof_has_line(FrameNaming naming) {
    return naming == FRAME_NAMED || naming == FRAME_REPLACED || naming == FRAME_NOWHERE;
}

/* Within the call, not behind it. */
static uint64_t pprof_address(const Frame *frame) {
    return frame->address - (frame->is_return && frame->address > 0);
}

static void pprof_survey_frame(Pprof *p, uint32_t number) {
    const Frame *frame = frame_table_frame(p->input->profile->frames, number);
    const FrameName *name = &p->input->names->names[number];
    PprofMapping *mapping = &p->mappings[frame->mapping];
    uint64_t address = pprof_address(frame);

    mapping->lowest = mapping->used ? MIN(mapping->lowest, address) : address;
    mapping->highest = mapping->used ? MAX(mapping->highest, address) : address;
    mapping->used = true;
    mapping->unnamed |= !pprof_has_line(name->naming);
    mapping->inlined |= name->n > 1;
    for (uint32_t i = name->first; i - name->first < name->n; i++) {
        mapping->files |= p->input->names->lines[i].file > 0;
        mapping->lines |= p->input->names->lines[i].line > 0;
    }
}

int pprof_survey_frames(Pprof *p) {
    const Profile *profile = p->input->profile;
    _cleanup_free_ bool *seen = calloc((size_t)frame_table_n_frames(profile->frames) + 1, 1);

    p->mappings = calloc((size_t)frame_table_n_mappings(profile->frames) + 1, sizeof(*p->mappings));
    if (!seen || !p->mappings)
        return -ENOMEM;
    for (uint32_t i = STACK_ROOT + 1; i < stack_tree_n_nodes(profile->stacks); i++) {
        uint32_t frame = stack_tree_node(profile->stacks, i)->frame;

        if (!seen[frame])
            pprof_survey_frame(p, frame);
        seen[frame] = true;
    }
    return 0;
}

static uint32_t pprof_build_id_string(Pprof *p, const FrameMapping *mapping) {
    _cleanup_(buffer_done) Buffer hex = {};

    text_hex_bytes(&hex, (Bytes){.data = mapping->build_id, .size = mapping->build_id_size});
    if (buffer_error(&hex))
        p->output.error = -ENOMEM;
    return pprof_bytes_string(p, buffer_bytes(&hex));
}

/* Addresses of user files are offsets, so the file seems to be mapped at its offsets. */
static void pprof_put_mapping_fields(Pprof *p, const FrameMapping *mapping,
                                     const PprofMapping *facts, uint32_t filename,
                                     uint32_t build_id) {
    Buffer *out = &p->output.buffer;
    uint64_t start = facts->lowest / PPROF_PAGE * PPROF_PAGE;
    uint64_t limit = facts->highest / PPROF_PAGE * PPROF_PAGE;

    limit = limit > UINT64_MAX - PPROF_PAGE ? UINT64_MAX : limit + PPROF_PAGE;
    protobuf_u64(out, MAPPING_ID, facts->id);
    protobuf_u64(out, MAPPING_START, start);
    protobuf_u64(out, MAPPING_LIMIT, limit);
    if (mapping->kind == FRAME_USER || mapping->kind == FRAME_VDSO)
        protobuf_u64(out, MAPPING_OFFSET, start);
    protobuf_u64(out, MAPPING_FILENAME, filename);
    protobuf_u64(out, MAPPING_BUILD_ID, build_id);
    protobuf_u64(out, MAPPING_HAS_FUNCTIONS, !facts->unnamed);
    protobuf_u64(out, MAPPING_HAS_FILENAMES, !facts->unnamed && facts->files);
    protobuf_u64(out, MAPPING_HAS_LINES, !facts->unnamed && facts->lines);
    protobuf_u64(out, MAPPING_HAS_INLINE, !facts->unnamed && facts->inlined);
}

static uint32_t pprof_mapping(Pprof *p, uint32_t number) {
    const FrameMapping *mapping = frame_table_mapping(p->input->profile->frames, number);
    PprofMapping *facts = &p->mappings[number];
    uint32_t filename, build_id;
    size_t begun;

    if (facts->id > 0 || mapping->kind == FRAME_UNKNOWN)
        return facts->id;
    filename = mapping->kind == FRAME_LOST    ? pprof_string(p, "[lost]")
               : mapping->kind == FRAME_OTHER ? pprof_string(p, "[other]")
               : mapping->path.size > 0       ? pprof_bytes_string(p, mapping->path)
                                              : pprof_bytes_string(p, mapping->dso);
    build_id = mapping->build_id_size > 0 ? pprof_build_id_string(p, mapping) : 0;
    facts->id = ++p->n_mappings;
    begun = protobuf_begin(&p->output.buffer, PROFILE_MAPPING);
    pprof_put_mapping_fields(p, mapping, facts, filename, build_id);
    protobuf_end(&p->output.buffer, begun);
    return facts->id;
}

static uint32_t pprof_function(Pprof *p, uint32_t number) {
    const ExportFunction *function = &p->functions.items[number];
    Buffer *out = &p->output.buffer;
    uint32_t name, file;
    size_t begun;

    if (p->function_ids[number] > 0)
        return p->function_ids[number];
    name = pprof_name_string(p, function->name);
    file = function->file > 0 ? pprof_name_string(p, function->file) : 0;
    p->function_ids[number] = ++p->n_functions;
    begun = protobuf_begin(out, PROFILE_FUNCTION);
    protobuf_u64(out, FUNCTION_ID, p->function_ids[number]);
    protobuf_u64(out, FUNCTION_NAME, name);
    protobuf_u64(out, FUNCTION_SYSTEM_NAME, name);
    protobuf_u64(out, FUNCTION_FILE, file);
    protobuf_end(out, begun);
    return p->function_ids[number];
}

static void pprof_put_location(Pprof *p, uint32_t number, uint32_t mapping) {
    const Frame *frame = frame_table_frame(p->input->profile->frames, number);
    const FrameName *name = &p->input->names->names[number];
    Buffer *out = &p->output.buffer;
    size_t begun = protobuf_begin(out, PROFILE_LOCATION), line;

    protobuf_u64(out, LOCATION_ID, p->location_ids[number]);
    protobuf_u64(out, LOCATION_MAPPING, mapping);
    protobuf_u64(out, LOCATION_ADDRESS, pprof_address(frame));
    for (uint32_t i = name->first; pprof_has_line(name->naming) && i - name->first < name->n; i++) {
        line = protobuf_begin(out, LOCATION_LINE);
        protobuf_u64(out, LINE_FUNCTION, p->function_ids[p->functions.of_line[i]]);
        protobuf_u64(out, LINE_LINE, p->input->names->lines[i].line);
        protobuf_end(out, line);
    }
    protobuf_end(out, begun);
}

uint32_t pprof_location(Pprof *p, uint32_t frame) {
    const FrameName *name = &p->input->names->names[frame];
    uint32_t mapping;

    if (p->location_ids[frame] > 0)
        return p->location_ids[frame];
    mapping = pprof_mapping(p, frame_table_frame(p->input->profile->frames, frame)->mapping);
    for (uint32_t i = name->first; pprof_has_line(name->naming) && i - name->first < name->n; i++)
        (void)pprof_function(p, p->functions.of_line[i]);
    p->location_ids[frame] = ++p->n_locations;
    pprof_put_location(p, frame, mapping);
    return p->location_ids[frame];
}
