/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the table of environment.c is made of: for each feature a function that reads, writes and
 * frees it (environment-codec.h), one that prints it as perf does, and one that names its parts.
 * The functions stand in the feature-*.c file of their family.
 */

#include "perfdata/feature/environment-codec.h"
#include "perfdata/feature/environment.h"
#include "util/buffer.h"
#include "util/fields.h"

#define DECLARE_FEATURE(name)                                                                      \
    void code_##name(Codec *c, PdEnvironment *env);                                                \
    void print_##name(const PdEnvironment *env, Buffer *out);                                      \
    void describe_##name(const PdEnvironment *env, Fields *fields)

/* feature-host.c: the machine and the command */
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

/* feature-pmu.c: what the processors can count */
DECLARE_FEATURE(pmu_mappings);
DECLARE_FEATURE(cpu_pmu_caps);
DECLARE_FEATURE(pmu_caps);
DECLARE_FEATURE(hybrid_topology);

/* feature-topology.c: how the machine hangs together */
DECLARE_FEATURE(cpu_topology);
DECLARE_FEATURE(numa_topology);
DECLARE_FEATURE(cache);
DECLARE_FEATURE(mem_topology);
DECLARE_FEATURE(cpu_domain_info);

/* feature-event.c: what was counted, and which images were seen */
DECLARE_FEATURE(tracing_data);
DECLARE_FEATURE(build_id);
DECLARE_FEATURE(event_desc);
DECLARE_FEATURE(group_desc);
DECLARE_FEATURE(auxtrace);

/* feature-stream.c: the recording itself, its clock and its container */
DECLARE_FEATURE(branch_stack);
DECLARE_FEATURE(stat);
DECLARE_FEATURE(sample_time);
DECLARE_FEATURE(clockid);
DECLARE_FEATURE(clock_data);
DECLARE_FEATURE(dir_format);
DECLARE_FEATURE(compressed);

/* feature-coverage.c: what profd notes of its own */
DECLARE_FEATURE(coverage);

/* feature-bpf.c */
DECLARE_FEATURE(bpf_prog_info);
DECLARE_FEATURE(bpf_btf);

/* attr-print.c: ", type = 1, size = 128, …", the fields that are not zero */
void print_attr(const PdAttr *attr, Buffer *out);

/* The label, and what comes from outside escaped behind it. */
void print_line(Buffer *out, const char *label, const char *s);
void describe_strings(Fields *fields, const char *name, const PdStrings *strings);

/* As if the feature had never been there. */
void environment_forget(PdEnvironment *env, unsigned bit);
