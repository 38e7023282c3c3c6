/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/environment-feature.h"

#include <errno.h>
#include <inttypes.h>

#include "util/text.h"

/*
 * BPF programs and their types, as the kernel described them when the recording was made: a struct
 * bpf_prog_info whose pointers became offsets into the arrays behind it. The bytes are kept; what
 * people look at is read out of them.
 */

enum {
    INFO_AT = 16, /* struct perf_bpil of perf: u32 info_len, u32 data_len, u64 arrays */
    INFO_TYPE = 0,
    INFO_ID = 4,
    INFO_JITED_LEN = 16,
    INFO_XLATED_LEN = 20,
    INFO_NAME = 64,
    NAME_BYTES = 16,
};

/* The widths of bpf_prog_info's numbers in order; 1 stands for a byte that has no order. */
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

static uint32_t info_u32(const PdBpfProg *p, size_t at) {
    return INFO_AT + at + 4 <= p->raw_size ? load_u32(p->raw + INFO_AT + at, p->raw_swapped) : 0;
}

/* A body is never shorter than its head; the info may be, when the kernel was old. */
static void read_prog(Codec *c, PdBpfProg *p) {
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
    p->type = info >= INFO_TYPE + 4 ? info_u32(p, INFO_TYPE) : 0;
    p->id = info >= INFO_ID + 4 ? info_u32(p, INFO_ID) : 0;
    p->jited_len = info >= INFO_JITED_LEN + 4 ? info_u32(p, INFO_JITED_LEN) : 0;
    p->xlated_len = info >= INFO_XLATED_LEN + 4 ? info_u32(p, INFO_XLATED_LEN) : 0;
    if (info >= INFO_NAME + NAME_BYTES)
        memcpy(p->name, p->raw + INFO_AT + INFO_NAME, NAME_BYTES);
}

/* The same bytes with the numbers of head and info turned around; the arrays stay as they are. */
static void write_turned(Codec *c, const PdBpfProg *p) {
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

static void code_prog(Codec *c, PdBpfProg *p) {
    if (c->mode == CODEC_READ)
        read_prog(c, p);
    else if (c->mode == CODEC_WRITE && p->raw_swapped != c->swap)
        write_turned(c, p);
    else
        codec_bytes(c, &p->raw, &p->raw_size);
}

void code_bpf_prog_info(Codec *c, PdEnvironment *env) {
    codec_count_u32(c, &env->n_bpf_progs);
    codec_begin(c, &env->n_bpf_progs, &env->bpf_progs, INFO_AT);
    for (size_t i = 0; i < env->n_bpf_progs; i++)
        code_prog(c, &env->bpf_progs[i]);
    codec_end(c, &env->n_bpf_progs, &env->bpf_progs);
}

void print_bpf_prog_info(const PdEnvironment *env, Buffer *out) {
    for (size_t i = 0; i < env->n_bpf_progs; i++) {
        text_printf(out, "# bpf_prog_info %u: ", env->bpf_progs[i].id);
        text_escape_str(out, env->bpf_progs[i].name);
        text_putc(out, '\n');
    }
}

void describe_bpf_prog_info(const PdEnvironment *env, Fields *fields) {
    fields_begin_array(fields, "bpf_prog_info");
    for (size_t i = 0; i < env->n_bpf_progs; i++) {
        const PdBpfProg *p = &env->bpf_progs[i];

        fields_begin_object(fields, NULL);
        fields_u64(fields, "id", p->id);
        fields_u64(fields, "type", p->type);
        fields_str(fields, "name", p->name);
        fields_u64(fields, "jited_len", p->jited_len);
        fields_u64(fields, "xlated_len", p->xlated_len);
        fields_end_object(fields);
    }
    fields_end_array(fields);
}

void code_bpf_btf(Codec *c, PdEnvironment *env) {
    codec_count_u32(c, &env->n_btfs);
    codec_begin(c, &env->n_btfs, &env->btfs, 2 * sizeof(uint32_t));
    for (size_t i = 0; i < env->n_btfs; i++) {
        codec_u32(c, &env->btfs[i].id);
        codec_count_u32(c, &env->btfs[i].size);
        codec_bytes(c, &env->btfs[i].data, &env->btfs[i].size);
    }
    codec_end(c, &env->n_btfs, &env->btfs);
}

void print_bpf_btf(const PdEnvironment *env, Buffer *out) {
    for (size_t i = 0; i < env->n_btfs; i++)
        text_printf(out, "# btf info of id %u\n", env->btfs[i].id);
}

void describe_bpf_btf(const PdEnvironment *env, Fields *fields) {
    fields_begin_array(fields, "bpf_btf");
    for (size_t i = 0; i < env->n_btfs; i++) {
        fields_begin_object(fields, NULL);
        fields_u64(fields, "id", env->btfs[i].id);
        fields_u64(fields, "bytes", env->btfs[i].size);
        fields_end_object(fields);
    }
    fields_end_array(fields);
}
