/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/feature/environment-feature.h"

#include <errno.h>
#include <inttypes.h>

#include "util/text.h"

/*
 * The events and the images. Attrs keep their bytes, so that newer events survive a copy in the
 * same byte order; build ids keep the form of their records.
 */

enum {
    EVENTS_MAX = 65536,      /* the maximum of PdEvents */
    BUILD_ID_FIXED = 36,     /* struct perf_record_header_build_id of perf */
    BUILD_ID_FIXED_OLD = 32, /* the same without its pid */
    BUILD_ID_BYTES = 20,     /* BUILD_ID_SIZE of perf; the size and three zeros follow */
    BUILD_ID_PADDED = 24,
};

void code_tracing_data(Codec *c, PdEnvironment *env) {
    if (c->mode == CODEC_READ)
        env->tracing_data_size = cursor_left(&c->in);
    codec_bytes(c, &env->tracing_data, &env->tracing_data_size);
}

void describe_tracing_data(const PdEnvironment *env, Fields *fields) {
    fields_u64(fields, "tracing_data_bytes", env->tracing_data_size);
}

static uint16_t feature_event_filename_room(const PdBuildIdEntry *e) {
    size_t n = strlen(e->filename) + 1;
    size_t padded = (n + CODEC_STRING_ALIGN - 1) / CODEC_STRING_ALIGN * CODEC_STRING_ALIGN;

    if (e->room >= n)
        return e->room;
    return padded > UINT16_MAX - BUILD_ID_FIXED ? 0 : (uint16_t)padded;
}

static void feature_event_write_build_id(Codec *c, const PdBuildIdEntry *e) {
    uint16_t room = feature_event_filename_room(e);
    size_t n = strlen(e->filename);

    if (room == 0) {
        c->out->error = -EOVERFLOW;
        return;
    }
    buffer_u32(c->out, e->type, c->swap);
    buffer_u16(c->out, e->misc, c->swap);
    buffer_u16(c->out, (uint16_t)(BUILD_ID_FIXED + room), c->swap);
    buffer_u32(c->out, e->pid, c->swap);
    buffer_append(c->out, e->build_id, BUILD_ID_BYTES);
    buffer_append(c->out, e->misc & PD_MISC_BUILD_ID_SIZE ? &e->size : &(uint8_t){0}, 1);
    buffer_zero(c->out, BUILD_ID_PADDED - BUILD_ID_BYTES - 1);
    buffer_append(c->out, e->filename, n);
    buffer_zero(c->out, room - n);
}

/* The pid that perf assumes for an entry of the old form: the host's kernel or a guest's. */
static uint32_t feature_event_pid_by_misc(uint16_t misc) {
    return misc == PD_MISC_GUEST_KERNEL || misc == PD_MISC_GUEST_USER ? 0 : UINT32_MAX;
}

static void feature_event_read_build_id(Codec *c, PdBuildIdEntry *e, bool old) {
    uint32_t type = cursor_u32(&c->in);
    uint16_t misc = cursor_u16(&c->in), size = cursor_u16(&c->in);
    size_t fixed = old ? BUILD_ID_FIXED_OLD : BUILD_ID_FIXED;
    Bytes body =
        cursor_bytes(&c->in, size >= fixed ? (uint64_t)(size - PD_RECORD_HEADER_SIZE) : UINT64_MAX);
    const uint8_t *id;
    Cursor in;
    Bytes name;

    if (c->in.failed) {
        codec_fail(c, -EBADMSG);
        return;
    }
    in = cursor_of(body.data, body.size, c->swap);
    e->type = type;
    e->misc = misc;
    e->pid = old ? feature_event_pid_by_misc(misc) : cursor_u32(&in);
    id = cursor_take(&in, BUILD_ID_PADDED);
    memcpy(e->build_id, id, BUILD_ID_BYTES);
    e->size = misc & PD_MISC_BUILD_ID_SIZE ? MIN(id[BUILD_ID_BYTES], (uint8_t)BUILD_ID_BYTES)
                                           : BUILD_ID_BYTES;
    e->room = (uint16_t)cursor_left(&in);
    name = cursor_string(&in);
    e->filename = strndup((const char *)name.data, name.size);
    if (!e->filename)
        codec_fail(c, -ENOMEM);
}

static void feature_event_clear_build_ids(PdEnvironment *env) {
    for (size_t i = 0; i < env->n_build_ids; i++)
        free(env->build_ids[i].filename);
    freep(&env->build_ids);
    env->n_build_ids = 0;
}

/*
 * Reads entries up to the end. perf of 2010 wrote no pid; read as the new form, its kernel's name
 * then lacks four bytes.
 */
static void feature_event_read_build_ids(Codec *c, PdEnvironment *env, bool old) {
    Cursor start = c->in;

    while (cursor_left(&c->in) > 0 && !c->error) {
        PdBuildIdEntry *e = codec_grow(c, &env->n_build_ids, &env->build_ids);

        if (!e)
            return;
        feature_event_read_build_id(c, e, old);
        if (!old && e->filename && strncmp(e->filename, "nel.kallsyms]", 13) == 0) {
            feature_event_clear_build_ids(env);
            c->in = start;
            feature_event_read_build_ids(c, env, true);
            return;
        }
    }
}

void code_build_id(Codec *c, PdEnvironment *env) {
    if (c->mode == CODEC_READ)
        feature_event_read_build_ids(c, env, false);
    else if (c->mode == CODEC_CLEAR)
        feature_event_clear_build_ids(env);
    else
        for (size_t i = 0; i < env->n_build_ids; i++)
            feature_event_write_build_id(c, &env->build_ids[i]);
}

void describe_build_id(const PdEnvironment *env, Fields *fields) {
    for (size_t i = fields_begin_list(fields, "build_ids");
         fields_next(fields, i, env->n_build_ids); i++) {
        const PdBuildIdEntry *e = &env->build_ids[i];

        fields_i64(fields, "pid", (int32_t)e->pid);
        fields_hex_bytes(fields, "build_id", (Bytes){.data = e->build_id, .size = e->size});
        fields_str(fields, "filename", e->filename);
    }
}

/* All attrs of a body have the size of the largest one. */
static uint32_t feature_event_attr_size_of(const PdEnvironment *env, bool swap) {
    size_t size = 0;
    bool encode = env->n_event_descs == 0;

    for (size_t i = 0; i < env->n_event_descs; i++) {
        const PdEventDesc *e = &env->event_descs[i];

        size = MAX(size, e->raw ? e->raw_size : pd_attr_size_needed(&e->attr));
        encode |= !e->raw || e->raw_swapped != swap;
    }
    size = MAX(size, (size_t)PD_ATTR_SIZE_MIN);
    return (uint32_t)(encode ? ALIGN8(size) : size);
}

static void feature_event_code_attr(Codec *c, PdEventDesc *e, uint32_t size) {
    if (c->mode == CODEC_READ) {
        Bytes bytes = {.data = c->in.at, .size = size};

        e->raw_size = size;
        e->raw_swapped = c->swap;
        codec_bytes(c, &e->raw, &e->raw_size);
        if (!c->error && pd_attr_parse(&e->attr, bytes, c->swap) < 0)
            codec_fail(c, -EBADMSG);
    } else if (c->mode == CODEC_CLEAR)
        codec_bytes(c, &e->raw, &e->raw_size);
    else if (e->raw && e->raw_swapped == c->swap) {
        buffer_append(c->out, e->raw, e->raw_size);
        buffer_zero(c->out, size - e->raw_size);
    } else
        pd_attr_encode(&e->attr, size, c->out, c->swap);
}

void code_event_desc(Codec *c, PdEnvironment *env) {
    uint32_t size = c->mode == CODEC_WRITE ? feature_event_attr_size_of(env, c->swap) : 0;

    codec_count_u32(c, &env->n_event_descs);
    codec_u32(c, &size);
    if (c->mode == CODEC_READ && (size < PD_ATTR_SIZE_MIN || env->n_event_descs > EVENTS_MAX))
        codec_fail(c, -EBADMSG);
    for (size_t i = codec_begin(c, &env->n_event_descs, &env->event_descs,
                                (size_t)size + 2 * sizeof(uint32_t));
         codec_next(c, i, &env->n_event_descs, &env->event_descs); i++) {
        PdEventDesc *e = &env->event_descs[i];

        feature_event_code_attr(c, e, size);
        codec_count_u32(c, &e->n_ids);
        codec_string(c, &e->name);
        codec_u64s(c, &e->ids, &e->n_ids);
    }
}

void print_event_desc(const PdEnvironment *env, Buffer *out) {
    for (size_t i = 0; i < env->n_event_descs; i++) {
        const PdEventDesc *e = &env->event_descs[i];

        text_puts(out, "# event : name = ");
        text_escape_str(out, e->name);
        text_puts(out, ", ");
        for (size_t k = 0; k < e->n_ids; k++)
            text_printf(out, "%s %" PRIu64, k == 0 ? ", id = {" : ",", e->ids[k]);
        if (e->n_ids > 0)
            text_puts(out, " }");
        print_attr(&e->attr, out);
        text_putc(out, '\n');
    }
}

void code_group_desc(Codec *c, PdEnvironment *env) {
    for (size_t i = codec_list(c, &env->n_groups, &env->groups, 3 * sizeof(uint32_t));
         codec_next(c, i, &env->n_groups, &env->groups); i++) {
        codec_string(c, &env->groups[i].name);
        codec_u32(c, &env->groups[i].leader);
        codec_u32(c, &env->groups[i].n_members);
    }
}

/* perf's placeholder for a group without a name. */
static const char *feature_event_group_name(const PdGroup *g) {
    return strcmp(g->name, "{anon_group}") == 0 ? "" : g->name;
}

/* Groups follow each other. One that overlaps an earlier one is printed without members, otherwise
 * a few bytes could print every event a million times. */
void print_group_desc(const PdEnvironment *env, Buffer *out) {
    uint64_t next = 0;

    for (size_t i = 0; i < env->n_groups; i++) {
        const PdGroup *g = &env->groups[i];
        uint64_t end = MIN((uint64_t)g->leader + g->n_members, (uint64_t)env->n_event_descs);

        text_puts(out, "# group: ");
        text_escape_str(out, feature_event_group_name(g));
        text_putc(out, '{');
        for (uint64_t k = g->leader; k >= next && k < end; k++) {
            text_puts(out, k > g->leader ? "," : "");
            text_escape_str(out, env->event_descs[k].name);
        }
        next = MAX(next, end);
        text_puts(out, "}\n");
    }
}

void describe_group_desc(const PdEnvironment *env, Fields *fields) {
    for (size_t i = fields_begin_list(fields, "groups"); fields_next(fields, i, env->n_groups);
         i++) {
        fields_str(fields, "name", feature_event_group_name(&env->groups[i]));
        fields_u64(fields, "leader", env->groups[i].leader);
        fields_u64(fields, "members", env->groups[i].n_members);
    }
}

/* perf writes a leading count of entries, simpleperf does not; the size shows which one it is. */
void code_auxtrace(Codec *c, PdEnvironment *env) {
    size_t n = env->n_auxtrace / 2;

    if (c->mode == CODEC_READ) {
        env->auxtrace_bare = cursor_left(&c->in) % 16 == 0;
        n = cursor_left(&c->in) / 16;
    }
    if (!env->auxtrace_bare)
        codec_count_u64(c, &n);
    if (c->mode == CODEC_READ)
        env->n_auxtrace = 2 * n;
    codec_u64s(c, &env->auxtrace, &env->n_auxtrace);
    if (c->mode == CODEC_CLEAR)
        env->auxtrace_bare = false;
}

void print_auxtrace(_unused_ const PdEnvironment *env, Buffer *out) {
    text_puts(out, "# contains AUX area data (e.g. instruction trace)\n");
}

void describe_auxtrace(const PdEnvironment *env, Fields *fields) {
    for (size_t i = fields_begin_list(fields, "auxtrace");
         fields_next(fields, i, env->n_auxtrace / 2); i++) {
        fields_u64(fields, "offset", env->auxtrace[2 * i]);
        fields_u64(fields, "size", env->auxtrace[2 * i + 1]);
    }
}
