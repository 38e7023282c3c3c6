/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The functions in the table of environment-table.c: for each feature one that reads, writes and
 * frees it (environment-codec.h), one that prints it as perf does, and one that describes it. They
 * are in the feature-*.c file of their family.
 */

#include "perfdata/feature/environment-codec.h"
#include "perfdata/feature/environment.h"
#include "util/buffer.h"
#include "util/fields.h"

#define DECLARE_FEATURE(name)                                                                      \
    void code_##name(Codec *c, PdEnvironment *env);                                                \
    void print_##name(const PdEnvironment *env, Buffer *out);                                      \
    void describe_##name(const PdEnvironment *env, Fields *fields)

/* Most features are a single string or number, or only a bit: these define their functions. */
#define STRING_FEATURE(member, label)                                                              \
    void code_##member(Codec *c, PdEnvironment *env) {                                             \
        codec_string(c, &env->member);                                                             \
    }                                                                                              \
    void print_##member(const PdEnvironment *env, Buffer *out) {                                   \
        print_line(out, "# " label " : ", env->member);                                            \
    }                                                                                              \
    void describe_##member(const PdEnvironment *env, Fields *fields) {                             \
        fields_str(fields, #member, env->member);                                                  \
    }                                                                                              \
    struct swallow_the_semicolon_##member
/* type: u32 or u64; the factor and the format are of the text. */
#define NUMBER_FEATURE(name, type, member, format, factor)                                         \
    void code_##name(Codec *c, PdEnvironment *env) {                                               \
        codec_##type(c, &env->member);                                                             \
    }                                                                                              \
    void print_##name(const PdEnvironment *env, Buffer *out) {                                     \
        text_printf(out, "# " format "\n", env->member *(factor));                                 \
    }                                                                                              \
    void describe_##name(const PdEnvironment *env, Fields *fields) {                               \
        fields_u64(fields, #member, env->member);                                                  \
    }                                                                                              \
    struct swallow_the_semicolon_##name
#define BIT_FEATURE(name, text)                                                                    \
    void code_##name(Codec *c, PdEnvironment *env) {                                               \
    }                                                                                              \
    void print_##name(const PdEnvironment *env, Buffer *out) {                                     \
        text_puts(out, "# " text "\n");                                                            \
    }                                                                                              \
    void describe_##name(const PdEnvironment *env, Fields *fields) {                               \
        fields_bool(fields, #name, true);                                                          \
    }                                                                                              \
    struct swallow_the_semicolon_##name

/* In feature-host.c: the machine and the command. */
DECLARE_FEATURE(hostname);
DECLARE_FEATURE(osrelease);
DECLARE_FEATURE(version);
DECLARE_FEATURE(arch);
DECLARE_FEATURE(nrcpus);
DECLARE_FEATURE(cpudesc);
DECLARE_FEATURE(cpuid);
DECLARE_FEATURE(total_mem);
DECLARE_FEATURE(cmdline);
DECLARE_FEATURE(e_machine);
DECLARE_FEATURE(cln_size);
DECLARE_FEATURE(meta_info);

/* In feature-pmu.c: what the processors can count. */
DECLARE_FEATURE(pmu_mappings);
DECLARE_FEATURE(cpu_pmu_caps);
DECLARE_FEATURE(pmu_caps);
DECLARE_FEATURE(hybrid_topology);

/* In feature-topology.c: the structure of the machine. */
DECLARE_FEATURE(cpu_topology);
DECLARE_FEATURE(numa_topology);
DECLARE_FEATURE(cache);
DECLARE_FEATURE(mem_topology);
DECLARE_FEATURE(cpu_domain_info);

/* In feature-event.c: the events and the images. */
DECLARE_FEATURE(tracing_data);
DECLARE_FEATURE(build_id);
DECLARE_FEATURE(event_desc);
DECLARE_FEATURE(group_desc);
DECLARE_FEATURE(auxtrace);

/* In feature-stream.c: the recording itself, its clock and its container. */
DECLARE_FEATURE(branch_stack);
DECLARE_FEATURE(stat);
DECLARE_FEATURE(sample_time);
DECLARE_FEATURE(clockid);
DECLARE_FEATURE(clock_data);
DECLARE_FEATURE(dir_format);
DECLARE_FEATURE(compressed);

/* In feature-coverage.c: profd's own feature. */
DECLARE_FEATURE(coverage);

/* In feature-bpf.c: */
DECLARE_FEATURE(bpf_prog_info);
DECLARE_FEATURE(bpf_btf);

/* In attr-print.c: prints ", type = 1, size = 128, …", all fields that are not zero. */
void print_attr(const PdAttr *attr, Buffer *out);

/* Prints the label, then the escaped string. */
void print_line(Buffer *out, const char *label, const char *s);
void describe_strings(Fields *fields, const char *name, const PdStrings *strings);

/* Frees a feature as if it had never been there. */
void environment_forget(PdEnvironment *env, unsigned bit);
