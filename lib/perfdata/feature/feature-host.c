/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/feature/environment-feature.h"

#include <errno.h>
#include <inttypes.h>

#include "util/text.h"

/*
 * The machine and the command: names, numbers of CPUs, memory, the command line.
 */

void print_line(Buffer *out, const char *label, const char *s) {
    text_puts(out, label);
    text_escape_str(out, s);
    text_putc(out, '\n');
}

STRING_FEATURE(hostname, "hostname");
STRING_FEATURE(osrelease, "os release");
STRING_FEATURE(version, "perf version");
STRING_FEATURE(arch, "arch");
STRING_FEATURE(cpudesc, "cpudesc");
STRING_FEATURE(cpuid, "cpuid");
NUMBER_FEATURE(total_mem, u64, total_mem_kb, "total memory : %" PRIu64 " kB", 1);
NUMBER_FEATURE(cln_size, u32, cln_size, "cacheline size : %u", 1);

void describe_strings(Fields *fields, const char *name, const PdStrings *strings) {
    fields_begin_array(fields, name);
    for (size_t i = 0; i < strings->n; i++)
        fields_str(fields, NULL, strings->items[i]);
    fields_end_array(fields);
}

void code_nrcpus(Codec *c, PdEnvironment *env) {
    codec_u32(c, &env->nrcpus_available);
    codec_u32(c, &env->nrcpus_online);
}

void print_nrcpus(const PdEnvironment *env, Buffer *out) {
    text_printf(out, "# nrcpus online : %u\n# nrcpus avail : %u\n", env->nrcpus_online,
                env->nrcpus_available);
}

void describe_nrcpus(const PdEnvironment *env, Fields *fields) {
    fields_u64(fields, "nrcpus_online", env->nrcpus_online);
    fields_u64(fields, "nrcpus_avail", env->nrcpus_available);
}

void code_cmdline(Codec *c, PdEnvironment *env) {
    codec_strings(c, &env->cmdline);
}

/* A space follows each word, also the last one; quotes are escaped, but none are added. */
void print_cmdline(const PdEnvironment *env, Buffer *out) {
    text_puts(out, "# cmdline : ");
    for (size_t i = 0; i < env->cmdline.n; i++) {
        const char *s = env->cmdline.items[i];

        for (const char *quote; (quote = strchr(s, '\'')); s = quote + 1) {
            text_escape(out, (Bytes){.data = (const uint8_t *)s, .size = (size_t)(quote - s)});
            text_puts(out, "\\'");
        }
        text_escape_str(out, s);
        text_putc(out, ' ');
    }
    text_putc(out, '\n');
}

void describe_cmdline(const PdEnvironment *env, Fields *fields) {
    describe_strings(fields, "cmdline", &env->cmdline);
}

void code_e_machine(Codec *c, PdEnvironment *env) {
    codec_u32(c, &env->e_machine);
    codec_u32(c, &env->e_flags);
}

void print_e_machine(const PdEnvironment *env, Buffer *out) {
    text_printf(out, "# e_machine : %u\n#   e_flags : %u\n", env->e_machine, env->e_flags);
}

void describe_e_machine(const PdEnvironment *env, Fields *fields) {
    fields_u64(fields, "e_machine", env->e_machine);
    fields_hex(fields, "e_flags", env->e_flags);
}

/* NUL-terminated strings up to the end of the body, without count or padding. */
static void feature_host_read_meta_info(Codec *c, PdStrings *info) {
    while (cursor_left(&c->in) > 0) {
        Bytes s = cursor_string(&c->in);
        char **item = codec_grow(c, &info->n, &info->items);

        if (!item)
            return;
        *item = strndup((const char *)s.data, s.size);
        if (!*item)
            codec_fail(c, -ENOMEM);
    }
}

void code_meta_info(Codec *c, PdEnvironment *env) {
    PdStrings *info = &env->meta_info;

    if (c->mode == CODEC_READ)
        feature_host_read_meta_info(c, info);
    for (size_t i = 0; c->mode == CODEC_WRITE && i < info->n; i++)
        buffer_append(c->out, info->items[i], strlen(info->items[i]) + 1);
    for (size_t i = 0; c->mode == CODEC_CLEAR && i < info->n; i++)
        freep(&info->items[i]);
    codec_end(c, &info->n, &info->items);
}

void print_meta_info(const PdEnvironment *env, Buffer *out) {
    text_puts(out, "# meta info:\n");
    for (size_t i = 0; i + 1 < env->meta_info.n; i += 2) {
        text_puts(out, "#  ");
        text_escape_str(out, env->meta_info.items[i]);
        text_puts(out, " : ");
        text_escape_str(out, env->meta_info.items[i + 1]);
        text_putc(out, '\n');
    }
}

/* The keys come from the file, so they cannot be used as member names. */
void describe_meta_info(const PdEnvironment *env, Fields *fields) {
    char **items = env->meta_info.items;

    for (size_t i = fields_begin_list(fields, "meta_info");
         fields_next(fields, i, env->meta_info.n / 2); i++) {
        fields_str(fields, "key", items[2 * i]);
        fields_str(fields, "value", items[2 * i + 1]);
    }
}
