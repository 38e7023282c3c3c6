/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "engine/otlp-dictionary.h"

#include <errno.h>
#include <stdlib.h>

#include "encode/protobuf.h"
#include "util/text.h"

/*
 * Entries of all tables but that of strings go to one buffer as they come, since fields of a
 * message may be mixed; each is written before the first entry that refers to it. Strings come from
 * the profile, from the names of frames and from us, so that a set of them finds equal ones.
 */

enum {
    DICTIONARY_MAPPING = 1,
    DICTIONARY_LOCATION = 2,
    DICTIONARY_FUNCTION = 3,
    DICTIONARY_LINK = 4,
    DICTIONARY_STRING = 5,
    DICTIONARY_ATTRIBUTE = 6,
    DICTIONARY_STACK = 7,
    MAPPING_START = 1,
    MAPPING_LIMIT = 2,
    MAPPING_OFFSET = 3,
    MAPPING_FILENAME = 4,
    MAPPING_ATTRIBUTES = 5,
    LOCATION_MAPPING = 1,
    LOCATION_ADDRESS = 2,
    LOCATION_LINE = 3,
    LOCATION_ATTRIBUTES = 4,
    LINE_FUNCTION = 1,
    LINE_LINE = 2,
    FUNCTION_NAME = 1,
    FUNCTION_SYSTEM_NAME = 2,
    FUNCTION_FILE = 3,
    LINK_TRACE = 1,
    LINK_SPAN = 2,
    ATTRIBUTE_KEY = 1,
    ATTRIBUTE_VALUE = 2,
    VALUE_TEXT = 1,
    VALUE_NUMBER = 3,
    STACK_LOCATIONS = 1,
    STRING_EXTRA = 3, /* bytes of its key and size, at most, beside the one of its NUL */
};

static void otlp_put_zero_values(OtlpDictionary *d) {
    static const uint8_t zeros[16];
    static const uint32_t empty[] = {DICTIONARY_MAPPING, DICTIONARY_LOCATION, DICTIONARY_FUNCTION,
                                     DICTIONARY_ATTRIBUTE, DICTIONARY_STACK};
    size_t begun;

    for (size_t i = 0; i < ARRAY_SIZE(empty); i++)
        protobuf_bytes_always(&d->tables, empty[i], (Bytes){});
    begun = protobuf_begin(&d->tables, DICTIONARY_LINK);
    protobuf_bytes(&d->tables, LINK_TRACE, (Bytes){.data = zeros, .size = 16});
    protobuf_bytes(&d->tables, LINK_SPAN, (Bytes){.data = zeros, .size = 8});
    protobuf_end(&d->tables, begun);
}

static int otlp_allocate(OtlpDictionary *d) {
    const Profile *profile = d->input->profile;
    uint32_t n_mappings = frame_table_n_mappings(profile->frames);
    uint32_t n_frames = frame_table_n_frames(profile->frames);

    d->spans = calloc((size_t)n_mappings + 1, sizeof(*d->spans));
    d->mapping_ids = calloc((size_t)n_mappings + 1, sizeof(uint32_t));
    d->location_ids = calloc((size_t)n_frames + 1, sizeof(uint32_t));
    d->function_ids = calloc(d->functions.n + 1, sizeof(uint32_t));
    d->stack_ids = calloc(stack_tree_n_nodes(profile->stacks), sizeof(uint32_t));
    d->name_strings = calloc((size_t)text_set_count(d->input->names->texts) + 1, sizeof(uint32_t));
    if (!d->spans || !d->mapping_ids || !d->location_ids || !d->function_ids || !d->stack_ids ||
        !d->name_strings)
        return -ENOMEM;
    for (uint32_t i = 0; i < n_frames; i++) {
        const Frame *frame = frame_table_frame(profile->frames, i);

        export_span_add(&d->spans[frame->mapping], export_address(frame));
    }
    return 0;
}

int otlp_dictionary_init(OtlpDictionary *d, const ExportInput *input) {
    int r;

    *d = (OtlpDictionary){.input = input};
    r = text_set_new(&d->strings);
    if (r == 0)
        r = export_functions_fill(&d->functions, input, EXPORT_APART_BY_FILE);
    if (r == 0)
        r = otlp_allocate(d);
    otlp_put_zero_values(d);
    return r;
}

void otlp_dictionary_done(OtlpDictionary *d) {
    buffer_done(&d->tables);
    text_set_free(d->strings);
    export_functions_done(&d->functions);
    free(d->spans);
    free(d->mapping_ids);
    free(d->location_ids);
    free(d->function_ids);
    free(d->stack_ids);
    free(d->name_strings);
    free(d->attributes);
    hash_index_done(&d->attribute_index);
    buffer_done(&d->text);
}

uint32_t otlp_plain_string(OtlpDictionary *d, Bytes text) {
    uint32_t number = 0;
    int r = text_set_add(d->strings, text, &number);

    if (r < 0 && d->error == 0)
        d->error = r;
    return number;
}

/* The text of d->text as a string. */
static uint32_t otlp_text_string(OtlpDictionary *d) {
    if (buffer_error(&d->text))
        d->error = -ENOMEM;
    return otlp_plain_string(d, buffer_bytes(&d->text));
}

uint32_t otlp_string(OtlpDictionary *d, Bytes text) {
    buffer_clear(&d->text);
    text_escape(&d->text, text);
    return otlp_text_string(d);
}

static uint32_t otlp_own_string(OtlpDictionary *d, const char *text) {
    return otlp_string(d, (Bytes){.data = (const uint8_t *)text, .size = strlen(text)});
}

static uint32_t otlp_name_string(OtlpDictionary *d, uint32_t text) {
    if (d->name_strings[text] == 0)
        d->name_strings[text] = otlp_string(d, text_set_get(d->input->names->texts, text));
    return d->name_strings[text];
}

static void otlp_put_attribute(OtlpDictionary *d, const OtlpAttribute *attribute) {
    size_t begun = protobuf_begin(&d->tables, DICTIONARY_ATTRIBUTE), value;

    protobuf_u64(&d->tables, ATTRIBUTE_KEY, attribute->key);
    value = protobuf_begin(&d->tables, ATTRIBUTE_VALUE);
    if (attribute->is_text) {
        Bytes text = text_set_get(d->strings, (uint32_t)attribute->value);

        protobuf_bytes_always(&d->tables, VALUE_TEXT, text);
    } else {
        /* It is one of several fields, so that a 0 has to be there. */
        protobuf_varint(&d->tables, VALUE_NUMBER << 3);
        protobuf_varint(&d->tables, attribute->value);
    }
    protobuf_end(&d->tables, value);
    protobuf_end(&d->tables, begun);
}

static uint32_t otlp_attribute(OtlpDictionary *d, const OtlpAttribute *wanted) {
    uint64_t key = hash_u64((uint64_t)wanted->key << 1 | wanted->is_text, wanted->value);
    size_t probe = 0;
    OtlpAttribute *attribute;
    uint32_t number;

    while ((number = hash_index_next(&d->attribute_index, key, &probe)) > 0) {
        attribute = &d->attributes[number - 1];
        if (attribute->key == wanted->key && attribute->is_text == wanted->is_text &&
            attribute->value == wanted->value)
            return number;
    }
    attribute = hash_index_append(&d->attribute_index, key, &d->attributes);
    if (!attribute) {
        d->error = -ENOMEM;
        return 0;
    }
    *attribute = *wanted;
    otlp_put_attribute(d, wanted);
    return (uint32_t)++d->n_attributes;
}

uint32_t otlp_text_attribute(OtlpDictionary *d, const char *key, uint32_t string) {
    return otlp_attribute(
        d, &(OtlpAttribute){.key = otlp_own_string(d, key), .is_text = true, .value = string});
}

uint32_t otlp_number_attribute(OtlpDictionary *d, const char *key, uint64_t value) {
    return otlp_attribute(d, &(OtlpAttribute){.key = otlp_own_string(d, key), .value = value});
}

static uint32_t otlp_build_id(OtlpDictionary *d, const FrameMapping *mapping) {
    if (mapping->build_id_size == 0)
        return 0;
    buffer_clear(&d->text);
    text_hex_bytes(&d->text, (Bytes){.data = mapping->build_id, .size = mapping->build_id_size});
    return otlp_text_attribute(d, "process.executable.build_id.gnu", otlp_text_string(d));
}

static void otlp_put_packed(Buffer *out, uint32_t field, uint32_t value) {
    size_t begun;

    if (value == 0)
        return;
    begun = protobuf_begin(out, field);
    protobuf_varint(out, value);
    protobuf_end(out, begun);
}

static uint32_t otlp_mapping(OtlpDictionary *d, uint32_t number) {
    const FrameMapping *mapping = frame_table_mapping(d->input->profile->frames, number);
    const ExportSpan *span = &d->spans[number];
    uint32_t filename, build_id;
    size_t begun;

    if (d->mapping_ids[number] > 0 || mapping->kind == FRAME_UNKNOWN)
        return d->mapping_ids[number];
    filename = otlp_string(d, export_mapping_name(mapping));
    build_id = otlp_build_id(d, mapping);
    begun = protobuf_begin(&d->tables, DICTIONARY_MAPPING);
    protobuf_u64(&d->tables, MAPPING_START, export_span_start(span));
    protobuf_u64(&d->tables, MAPPING_LIMIT, export_span_limit(span));
    if (export_is_file(mapping))
        protobuf_u64(&d->tables, MAPPING_OFFSET, export_span_start(span));
    protobuf_u64(&d->tables, MAPPING_FILENAME, filename);
    otlp_put_packed(&d->tables, MAPPING_ATTRIBUTES, build_id);
    protobuf_end(&d->tables, begun);
    return d->mapping_ids[number] = ++d->n_mappings;
}

static uint32_t otlp_put_function(OtlpDictionary *d, uint32_t name, uint32_t file) {
    size_t begun = protobuf_begin(&d->tables, DICTIONARY_FUNCTION);

    protobuf_u64(&d->tables, FUNCTION_NAME, name);
    protobuf_u64(&d->tables, FUNCTION_SYSTEM_NAME, name);
    protobuf_u64(&d->tables, FUNCTION_FILE, file);
    protobuf_end(&d->tables, begun);
    return ++d->n_functions;
}

static void otlp_function(OtlpDictionary *d, uint32_t number) {
    const ExportFunction *function = &d->functions.items[number];
    uint32_t name, file;

    if (d->function_ids[number] > 0)
        return;
    name = otlp_name_string(d, function->name);
    file = function->file > 0 ? otlp_name_string(d, function->file) : 0;
    d->function_ids[number] = otlp_put_function(d, name, file);
}

/* The kind of a frame in OpenTelemetry's words; 0: it has none for it. */
static uint32_t otlp_frame_type(OtlpDictionary *d, FrameKind kind) {
    static const char *const types[FRAME_KINDS] = {
        [FRAME_USER] = "native",
        [FRAME_VDSO] = "native",
        [FRAME_KERNEL] = "kernel",
        [FRAME_MODULE] = "kernel",
    };

    return types[kind]
               ? otlp_text_attribute(d, "profile.frame.type", otlp_own_string(d, types[kind]))
               : 0;
}

static void otlp_put_location(OtlpDictionary *d, uint32_t number, uint32_t mapping, uint32_t type) {
    const Frame *frame = frame_table_frame(d->input->profile->frames, number);
    const FrameName *name = &d->input->names->names[number];
    size_t begun = protobuf_begin(&d->tables, DICTIONARY_LOCATION), line;

    protobuf_u64(&d->tables, LOCATION_MAPPING, mapping);
    protobuf_u64(&d->tables, LOCATION_ADDRESS, export_address(frame));
    for (uint32_t i = name->first; i - name->first < name->n; i++) {
        line = protobuf_begin(&d->tables, LOCATION_LINE);
        protobuf_u64(&d->tables, LINE_FUNCTION, d->function_ids[d->functions.of_line[i]]);
        protobuf_u64(&d->tables, LINE_LINE, d->input->names->lines[i].line);
        protobuf_end(&d->tables, line);
    }
    otlp_put_packed(&d->tables, LOCATION_ATTRIBUTES, type);
    protobuf_end(&d->tables, begun);
}

static void otlp_location(OtlpDictionary *d, uint32_t frame) {
    const FrameName *name = &d->input->names->names[frame];
    uint32_t number = frame_table_frame(d->input->profile->frames, frame)->mapping;
    uint32_t mapping, type;

    if (d->location_ids[frame] > 0)
        return;
    mapping = otlp_mapping(d, number);
    type = otlp_frame_type(d, frame_table_mapping(d->input->profile->frames, number)->kind);
    for (uint32_t i = name->first; i - name->first < name->n; i++)
        otlp_function(d, d->functions.of_line[i]);
    otlp_put_location(d, frame, mapping, type);
    d->location_ids[frame] = ++d->n_locations;
}

uint32_t otlp_stack(OtlpDictionary *d, uint32_t node) {
    const StackTree *stacks = d->input->profile->stacks;
    size_t begun, packed;

    if (node == STACK_ROOT || d->stack_ids[node] > 0)
        return d->stack_ids[node];
    for (uint32_t at = node; at != STACK_ROOT; at = stack_tree_node(stacks, at)->parent)
        otlp_location(d, stack_tree_node(stacks, at)->frame);
    begun = protobuf_begin(&d->tables, DICTIONARY_STACK);
    packed = protobuf_begin(&d->tables, STACK_LOCATIONS);
    for (uint32_t at = node; at != STACK_ROOT; at = stack_tree_node(stacks, at)->parent)
        protobuf_varint(&d->tables, d->location_ids[stack_tree_node(stacks, at)->frame]);
    protobuf_end(&d->tables, packed);
    protobuf_end(&d->tables, begun);
    return d->stack_ids[node] = ++d->n_stacks;
}

uint32_t otlp_other_stack(OtlpDictionary *d) {
    uint32_t function;
    size_t begun, line;

    if (d->other_stack > 0)
        return d->other_stack;
    function = otlp_put_function(d, otlp_own_string(d, "[other]"), 0);
    begun = protobuf_begin(&d->tables, DICTIONARY_LOCATION);
    line = protobuf_begin(&d->tables, LOCATION_LINE);
    protobuf_u64(&d->tables, LINE_FUNCTION, function);
    protobuf_end(&d->tables, line);
    protobuf_end(&d->tables, begun);
    begun = protobuf_begin(&d->tables, DICTIONARY_STACK);
    otlp_put_packed(&d->tables, STACK_LOCATIONS, ++d->n_locations);
    protobuf_end(&d->tables, begun);
    return d->other_stack = ++d->n_stacks;
}

size_t otlp_dictionary_size(const OtlpDictionary *d) {
    return d->tables.size + text_set_bytes(d->strings) +
           (size_t)text_set_count(d->strings) * STRING_EXTRA;
}

void otlp_dictionary_write(const OtlpDictionary *d, Buffer *out) {
    buffer_append(out, d->tables.data, d->tables.size);
    for (uint32_t i = 0; i < text_set_count(d->strings); i++)
        protobuf_bytes_always(out, DICTIONARY_STRING, text_set_get(d->strings, i));
}
