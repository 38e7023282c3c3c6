/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/feature/environment-feature.h"

#include <errno.h>
#include <inttypes.h>

#include "perfdata/tracing/btf-name.h"
#include "util/text.h"

/*
 * BPF programs and their types, as the kernel described them when the recording was made: a struct
 * bpf_prog_info whose pointers became offsets into the arrays after it. The bytes are kept; printed
 * values are read out of them.
 */

enum {
    INFO_AT = 16, /* struct perf_bpil of perf: u32 info_len, u32 data_len, u64 arrays */
    INFO_TYPE = 0,
    INFO_ID = 4,
    INFO_JITED_LEN = 16,
    INFO_XLATED_LEN = 20,
    INFO_NAME = 64,
    INFO_KSYM_COUNT = 104,
    INFO_FUNC_LEN_COUNT = 108,
    INFO_KSYMS = 112,
    INFO_FUNC_LENS = 120,
    INFO_BTF_ID = 128,
    INFO_FUNC_INFO_SIZE = 132,
    INFO_FUNC_INFO = 136,
    INFO_TAG_COUNT = 180,
    INFO_PROG_TAGS = 184,
    NAME_BYTES = 16,
    TAG_BYTES = 8,
    LOOKUP_STEPS_MAX =
        1 << 24, /* types and bytes of names in one listing before names are omitted */
};

/* The widths of the numbers of bpf_prog_info in order; 1 is a byte, which needs no swap. */
static const char info_widths[] = "44"
                                  "11111111"
                                  "44"
                                  "888"
                                  "44"
                                  "8"
                                  "1111111111111111"
                                  "44"
                                  "88"
                                  "44"
                                  "88"
                                  "44"
                                  "8"
                                  "44"
                                  "88"
                                  "44"
                                  "44"
                                  "8"
                                  "888"
                                  "4444";

/* A number of the info; 0 if an older kernel wrote a shorter info. */
static uint32_t feature_bpf_info_u32(const PdBpfProg *p, size_t at) {
    return at + 4 <= load_u32(p->raw, p->raw_swapped)
               ? load_u32(p->raw + INFO_AT + at, p->raw_swapped)
               : 0;
}

static void feature_bpf_read_prog(Codec *c, PdBpfProg *p) {
    const uint8_t *head = c->in.at;
    size_t info, data;

    if (cursor_left(&c->in) < INFO_AT) {
        codec_fail(c, -EBADMSG);
        return;
    }
    info = load_u32(head, c->swap);
    data = load_u32(head + 4, c->swap);
    if (info + data > cursor_left(&c->in) - INFO_AT) {
        codec_fail(c, -EBADMSG);
        return;
    }
    p->raw_size = INFO_AT + info + data;
    p->raw_swapped = c->swap;
    codec_bytes(c, &p->raw, &p->raw_size);
    if (c->error)
        return;
    p->type = feature_bpf_info_u32(p, INFO_TYPE);
    p->id = feature_bpf_info_u32(p, INFO_ID);
    p->jited_len = feature_bpf_info_u32(p, INFO_JITED_LEN);
    p->xlated_len = feature_bpf_info_u32(p, INFO_XLATED_LEN);
    if (info >= INFO_NAME + NAME_BYTES)
        memcpy(p->name, p->raw + INFO_AT + INFO_NAME, NAME_BYTES);
}

/* Writes the bytes with the numbers of head and info swapped; the arrays are not changed. */
static void feature_bpf_write_turned(Codec *c, const PdBpfProg *p) {
    size_t info_end = INFO_AT + load_u32(p->raw, p->raw_swapped), at = INFO_AT;

    buffer_u32(c->out, load_u32(p->raw, p->raw_swapped), c->swap);
    buffer_u32(c->out, load_u32(p->raw + 4, p->raw_swapped), c->swap);
    buffer_u64(c->out, load_u64(p->raw + 8, p->raw_swapped), c->swap);
    for (const char *w = info_widths; *w && at + (size_t)(*w - '0') <= info_end; w++) {
        if (*w == '4')
            buffer_u32(c->out, load_u32(p->raw + at, p->raw_swapped), c->swap);
        else if (*w == '8')
            buffer_u64(c->out, load_u64(p->raw + at, p->raw_swapped), c->swap);
        else
            buffer_append(c->out, p->raw + at, 1);
        at += (size_t)(*w - '0');
    }
    buffer_append(c->out, p->raw + at, p->raw_size - at);
}

static void feature_bpf_code_prog(Codec *c, PdBpfProg *p) {
    if (c->mode == CODEC_READ)
        feature_bpf_read_prog(c, p);
    else if (c->mode == CODEC_WRITE && p->raw_swapped != c->swap)
        feature_bpf_write_turned(c, p);
    else
        codec_bytes(c, &p->raw, &p->raw_size);
}

void code_bpf_prog_info(Codec *c, PdEnvironment *env) {
    for (size_t i = codec_list(c, &env->n_bpf_progs, &env->bpf_progs, INFO_AT);
         codec_next(c, i, &env->n_bpf_progs, &env->bpf_progs); i++)
        feature_bpf_code_prog(c, &env->bpf_progs[i]);
}

/* `each` bytes of element i of an array after the info; NULL if the file does not have them. */
static const uint8_t *feature_bpf_element(const PdBpfProg *p, size_t offset_at, uint64_t i,
                                          size_t each) {
    size_t info = load_u32(p->raw, p->raw_swapped), data_at = INFO_AT + info;
    uint64_t at;

    if (offset_at + sizeof(uint64_t) > info)
        return NULL;
    at = load_u64(p->raw + INFO_AT + offset_at, p->raw_swapped);
    if (at > p->raw_size - data_at || (i + 1) * each > p->raw_size - data_at - at)
        return NULL;
    return p->raw + data_at + at + i * each;
}

static const PdBtf *feature_bpf_find_btf(const PdEnvironment *env, uint32_t id, size_t *steps) {
    for (size_t i = 0; id != 0 && i<env->n_btfs && * steps> 0; i++, --*steps)
        if (env->btfs[i].id == id)
            return &env->btfs[i];
    return NULL;
}

/* Prints the function's name after the name that the kernel makes from its tag. */
static void feature_bpf_put_function(const PdEnvironment *env, const PdBpfProg *p, uint32_t i,
                                     uint32_t n, size_t *steps, Buffer *out) {
    const PdBtf *btf = feature_bpf_find_btf(env, feature_bpf_info_u32(p, INFO_BTF_ID), steps);
    size_t record = feature_bpf_info_u32(p, INFO_FUNC_INFO_SIZE);
    const uint8_t *func =
        btf && record >= 8 ? feature_bpf_element(p, INFO_FUNC_INFO, i, record) : NULL;
    Bytes name = {};

    if (func)
        name = btf_type_name((Bytes){.data = btf->data, .size = btf->size}, p->raw_swapped,
                             load_u32(func + 4, p->raw_swapped), steps);
    else if (n == 1)
        name = (Bytes){.data = (const uint8_t *)p->name, .size = strlen(p->name)};
    else
        name = (Bytes){.data = (const uint8_t *)"F", .size = 1};
    if (name.size > 0)
        text_putc(out, '_');
    text_escape(out, name);
}

static void feature_bpf_print_function(const PdEnvironment *env, const PdBpfProg *p, uint32_t i,
                                       uint32_t n, size_t *steps, Buffer *out) {
    const uint8_t *tag = feature_bpf_element(p, INFO_PROG_TAGS, i, TAG_BYTES);
    const uint8_t *address = feature_bpf_element(p, INFO_KSYMS, i, sizeof(uint64_t));
    const uint8_t *length = feature_bpf_element(p, INFO_FUNC_LENS, i, sizeof(uint32_t));

    text_puts(out, "bpf_prog_");
    if (tag)
        text_hex_bytes(out, (Bytes){.data = tag, .size = TAG_BYTES});
    feature_bpf_put_function(env, p, i, n, steps, out);
    text_printf(out, " addr 0x%" PRIx64 " size %u\n",
                address ? load_u64(address, p->raw_swapped) : 0,
                length ? load_u32(length, p->raw_swapped) : 0);
}

static void feature_bpf_print_prog(const PdEnvironment *env, const PdBpfProg *p, size_t *steps,
                                   Buffer *out) {
    uint32_t n = feature_bpf_info_u32(p, INFO_KSYM_COUNT);

    /* perf omits inconsistent programs; print the part that is known. */
    if (n == 0 || n != feature_bpf_info_u32(p, INFO_TAG_COUNT) ||
        n != feature_bpf_info_u32(p, INFO_FUNC_LEN_COUNT) ||
        !feature_bpf_element(p, INFO_KSYMS, n - 1, sizeof(uint64_t))) {
        text_printf(out, "# bpf_prog_info %u: ", p->id);
        text_escape_str(out, p->name);
        text_putc(out, '\n');
        return;
    }
    text_printf(out, "# bpf_prog_info %u:%s", p->id, n == 1 ? " " : "\n");
    for (uint32_t i = 0; i < n; i++) {
        if (n > 1)
            text_printf(out, "# \tsub_prog %u: ", i);
        feature_bpf_print_function(env, p, i, n, steps, out);
    }
}

void print_bpf_prog_info(const PdEnvironment *env, Buffer *out) {
    size_t steps = LOOKUP_STEPS_MAX;

    for (size_t i = 0; i < env->n_bpf_progs; i++)
        feature_bpf_print_prog(env, &env->bpf_progs[i], &steps, out);
}

void describe_bpf_prog_info(const PdEnvironment *env, Fields *fields) {
    for (size_t i = fields_begin_list(fields, "bpf_prog_info");
         fields_next(fields, i, env->n_bpf_progs); i++) {
        const PdBpfProg *p = &env->bpf_progs[i];

        fields_u64(fields, "id", p->id);
        fields_u64(fields, "type", p->type);
        fields_str(fields, "name", p->name);
        fields_u64(fields, "jited_len", p->jited_len);
        fields_u64(fields, "xlated_len", p->xlated_len);
    }
}

void code_bpf_btf(Codec *c, PdEnvironment *env) {
    for (size_t i = codec_list(c, &env->n_btfs, &env->btfs, 2 * sizeof(uint32_t));
         codec_next(c, i, &env->n_btfs, &env->btfs); i++) {
        codec_u32(c, &env->btfs[i].id);
        codec_count_u32(c, &env->btfs[i].size);
        codec_bytes(c, &env->btfs[i].data, &env->btfs[i].size);
    }
}

void print_bpf_btf(const PdEnvironment *env, Buffer *out) {
    for (size_t i = 0; i < env->n_btfs; i++)
        text_printf(out, "# btf info of id %u\n", env->btfs[i].id);
}

void describe_bpf_btf(const PdEnvironment *env, Fields *fields) {
    for (size_t i = fields_begin_list(fields, "bpf_btf"); fields_next(fields, i, env->n_btfs);
         i++) {
        fields_u64(fields, "id", env->btfs[i].id);
        fields_u64(fields, "bytes", env->btfs[i].size);
    }
}
