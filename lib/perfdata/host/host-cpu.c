/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/host/host-read.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/buffer.h"
#include "util/text.h"

/*
 * The name and the model of the processor, in perf's words for each architecture, because perf
 * selects its event tables by them.
 */

static int host_cpu_take_string(Buffer *b, char **ret) {
    buffer_zero(b, 1);
    if (buffer_error(b) < 0)
        return buffer_error(b);
    *ret = (char *)TAKE_PTR(b->data);
    *b = (Buffer){};
    return 0;
}

/* The line of /proc/cpuinfo with the name of the processor. */
/* clang-format off */
static const struct {
    const char *arch; /* a prefix of uname's machine; "": any other */
    const char *keys[2];
} names[] = {
    {"ppc",       {"cpu"}},
    {"parisc",    {"cpu"}},
    {"sparc",     {"cpu"}},
    {"s390",      {"vendor_id"}},
    {"sh",        {"cpu type"}},
    {"alpha",     {"cpu model"}},
    {"mips",      {"cpu model"}},
    {"arm",       {"model name", "Processor"}},
    {"arc",       {"Processor"}},
    {"xtensa",    {"core ID"}},
    {"loongarch", {"Model Name"}},
    {"",          {"model name"}},
};
/* clang-format on */

int host_cpudesc(const Host *host, PdEnvironment *env) {
    _cleanup_(buffer_done) Buffer out = {};
    char text[HOST_TEXT_SIZE];
    size_t i = 0;
    int r;

    while (strncmp(host->arch, names[i].arch, strlen(names[i].arch)) != 0)
        i++;
    r = host_field(host, "/proc/cpuinfo", names[i].keys[0], text);
    if (r < 0 && names[i].keys[1])
        r = host_field(host, "/proc/cpuinfo", names[i].keys[1], text);
    if (r < 0)
        return r;
    /* Brand strings are padded with spaces: keep one of each run. */
    for (const char *p = text; *p; p++)
        if (!isspace((unsigned char)p[0]))
            text_putc(&out, *p);
        else if (!isspace((unsigned char)p[1]))
            text_putc(&out, ' ');
    return host_cpu_take_string(&out, &env->cpudesc);
}

static int host_cpu_put_field(const Host *host, const char *path, const char *key, Buffer *out) {
    char text[HOST_TEXT_SIZE];
    const char *p = text;
    int r = host_field(host, path, key, text);

    if (r < 0)
        return r;
    p += strspn(p, " \t");
    buffer_append(out, p, strcspn(p, " \t"));
    return 0;
}

/* The fields one after the other, the first word of each line. */
static int host_cpu_join_fields(const Host *host, const char *const keys[], char between,
                                Buffer *out) {
    for (size_t i = 0; keys[i]; i++) {
        int r;

        if (i > 0)
            text_putc(out, between);
        r = host_cpu_put_field(host, "/proc/cpuinfo", keys[i], out);
        if (r < 0)
            return r;
    }
    return 0;
}

static int host_cpu_cpuid_x86(const Host *host, Buffer *out) {
    static const char *const keys[] = {"vendor_id", "cpu family", "model", "stepping", NULL};

    return host_cpu_join_fields(host, keys, ',', out);
}

static int host_cpu_cpuid_riscv(const Host *host, Buffer *out) {
    static const char *const keys[] = {"mvendorid", "marchid", "mimpid", NULL};

    return host_cpu_join_fields(host, keys, '-', out);
}

/* The MIDR of the first CPU that provides it. */
static int host_cpu_cpuid_arm64(const Host *host, Buffer *out) {
    char text[HOST_TEXT_SIZE];
    HostIds online;
    int r = host_ids(host, &online, "/sys/devices/system/cpu/online");

    for (uint32_t cpu = 0; r == 0 && cpu < online.end; cpu++) {
        if (!host_ids_has(&online, cpu) ||
            host_text(host, text, "/sys/devices/system/cpu/cpu%u/regs/identification/midr_el1",
                      cpu) < 0)
            continue;
        text_puts(out, text);
        return 0;
    }
    return r < 0 ? r : -ENODATA;
}

/* For example "2.3 (pvr 004e 1203)": version and revision. */
static int host_cpu_cpuid_powerpc(const Host *host, Buffer *out) {
    char text[HOST_TEXT_SIZE];
    unsigned version, revision;
    const char *pvr;
    int r = host_field(host, "/proc/cpuinfo", "revision", text);

    if (r < 0)
        return r;
    pvr = strstr(text, "(pvr ");
    if (!pvr || sscanf(pvr, "(pvr %4x %4x)", &version, &revision) != 2)
        return -ENODATA;
    text_printf(out, "%u,%u", version, revision);
    return 0;
}

/* Every word of a field of /proc/sysinfo. */
static int host_cpu_put_words(const Host *host, const char *key, const char *between, Buffer *out) {
    char text[HOST_TEXT_SIZE], *state = NULL;
    const char *word;
    bool first = true;
    int r = host_field(host, "/proc/sysinfo", key, text);

    if (r < 0)
        return r;
    for (word = strtok_r(text, " ", &state); word; word = strtok_r(NULL, " ", &state)) {
        text_puts(out, first ? "" : between);
        text_puts(out, word);
        first = false;
    }
    return first ? -ENODATA : 0;
}

/* Version and authorization of the counter facility, if the hypervisor provides them. */
static void host_cpu_put_counter_facility(const Host *host, Buffer *out) {
    char text[HOST_TEXT_SIZE], *state = NULL;
    const char *version = NULL, *authorization = NULL;

    if (host_field(host, "/proc/service_levels", "CPU-MF", text) < 0)
        return;
    for (char *word = strtok_r(text, " ", &state); word; word = strtok_r(NULL, " ", &state)) {
        if (strncmp(word, "version=", 8) == 0)
            version = word + 8;
        if (strncmp(word, "authorization=", 14) == 0)
            authorization = word + 14;
    }
    if (version && authorization)
        text_printf(out, ",%s,%s", version, authorization);
}

static int host_cpu_cpuid_s390(const Host *host, Buffer *out) {
    int r = host_cpu_put_words(host, "Manufacturer", "", out);

    text_putc(out, ',');
    if (r == 0)
        r = host_cpu_put_words(host, "Type", "", out);
    text_putc(out, ',');
    if (r == 0)
        r = host_cpu_put_words(host, "Model", ",", out);
    if (r == 0)
        host_cpu_put_counter_facility(host, out);
    return r;
}

/* clang-format off */
static const struct {
    const char *arch;
    int (*collect)(const Host *host, Buffer *out);
} cpuids[] = {
    {"x86_64",  host_cpu_cpuid_x86},
    {"i",       host_cpu_cpuid_x86},
    {"aarch64", host_cpu_cpuid_arm64},
    {"ppc",     host_cpu_cpuid_powerpc},
    {"riscv",   host_cpu_cpuid_riscv},
    {"s390",    host_cpu_cpuid_s390},
};
/* clang-format on */

int host_cpuid(const Host *host, PdEnvironment *env) {
    for (size_t i = 0; i < ARRAY_SIZE(cpuids); i++) {
        _cleanup_(buffer_done) Buffer out = {};
        int r;

        if (strncmp(host->arch, cpuids[i].arch, strlen(cpuids[i].arch)) != 0)
            continue;
        r = cpuids[i].collect(host, &out);
        return r < 0 ? r : host_cpu_take_string(&out, &env->cpuid);
    }
    return -EOPNOTSUPP;
}
