/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/feature/environment-feature.h"

#include "util/text.h"

/*
 * What the processors can count: the kernel's PMUs with their type numbers, their capabilities, and
 * their CPUs on a hybrid machine.
 */

void code_pmu_mappings(Codec *c, PdEnvironment *env) {
    for (size_t i = codec_list(c, &env->n_pmus, &env->pmus, 2 * sizeof(uint32_t));
         codec_next(c, i, &env->n_pmus, &env->pmus); i++) {
        codec_u32(c, &env->pmus[i].type);
        codec_string(c, &env->pmus[i].name);
    }
}

void print_pmu_mappings(const PdEnvironment *env, Buffer *out) {
    text_puts(out, "# pmu mappings: ");
    if (env->n_pmus == 0)
        text_puts(out, "not available");
    for (size_t i = 0; i < env->n_pmus; i++) {
        text_puts(out, i > 0 ? ", " : "");
        text_escape_str(out, env->pmus[i].name);
        text_puts(out, " = ");
        text_u64(out, env->pmus[i].type);
    }
    text_putc(out, '\n');
}

void describe_pmu_mappings(const PdEnvironment *env, Fields *fields) {
    for (size_t i = fields_begin_list(fields, "pmu_mappings"); fields_next(fields, i, env->n_pmus);
         i++) {
        fields_str(fields, "name", env->pmus[i].name);
        fields_u64(fields, "type", env->pmus[i].type);
    }
}

/* Pairs of name and value, counted as one; kept as two lists of the same length. */
static void feature_pmu_code_caps(Codec *c, PdPmuCaps *caps) {
    size_t n = caps->names.n;

    codec_count_u32(c, &n);
    if (c->mode == CODEC_READ)
        caps->names.n = caps->values.n = n;
    codec_begin(c, &caps->names.n, &caps->names.items, 2 * sizeof(uint32_t));
    codec_begin(c, &caps->values.n, &caps->values.items, 2 * sizeof(uint32_t));
    for (size_t i = 0; i < MIN(caps->names.n, caps->values.n); i++) {
        codec_string(c, &caps->names.items[i]);
        codec_string(c, &caps->values.items[i]);
    }
    codec_end(c, &caps->names.n, &caps->names.items);
    codec_end(c, &caps->values.n, &caps->values.items);
}

static void feature_pmu_print_caps(const PdPmuCaps *caps, const char *pmu, Buffer *out) {
    text_puts(out, "# ");
    text_escape_str(out, pmu);
    text_puts(out, " pmu capabilities: ");
    if (caps->names.n == 0)
        text_puts(out, "not available");
    for (size_t i = 0; i < caps->names.n; i++) {
        text_puts(out, i > 0 ? ", " : "");
        text_escape_str(out, caps->names.items[i]);
        text_putc(out, '=');
        text_escape_str(out, caps->values.items[i]);
    }
    text_putc(out, '\n');
}

static void feature_pmu_describe_caps(const PdPmuCaps *caps, const char *name, Fields *fields) {
    for (size_t i = fields_begin_list(fields, name); fields_next(fields, i, caps->names.n); i++) {
        fields_str(fields, "name", caps->names.items[i]);
        fields_str(fields, "value", caps->values.items[i]);
    }
}

void code_cpu_pmu_caps(Codec *c, PdEnvironment *env) {
    feature_pmu_code_caps(c, &env->cpu_pmu_caps);
}

void print_cpu_pmu_caps(const PdEnvironment *env, Buffer *out) {
    feature_pmu_print_caps(&env->cpu_pmu_caps, "cpu", out);
}

void describe_cpu_pmu_caps(const PdEnvironment *env, Fields *fields) {
    feature_pmu_describe_caps(&env->cpu_pmu_caps, "cpu_pmu_caps", fields);
}

void code_pmu_caps(Codec *c, PdEnvironment *env) {
    for (size_t i = codec_list(c, &env->n_pmu_caps, &env->pmu_caps, 2 * sizeof(uint32_t));
         codec_next(c, i, &env->n_pmu_caps, &env->pmu_caps); i++) {
        feature_pmu_code_caps(c, &env->pmu_caps[i]);
        codec_string(c, &env->pmu_caps[i].pmu);
    }
}

void print_pmu_caps(const PdEnvironment *env, Buffer *out) {
    for (size_t i = 0; i < env->n_pmu_caps; i++)
        feature_pmu_print_caps(&env->pmu_caps[i], env->pmu_caps[i].pmu, out);
}

void describe_pmu_caps(const PdEnvironment *env, Fields *fields) {
    for (size_t i = fields_begin_list(fields, "pmu_caps"); fields_next(fields, i, env->n_pmu_caps);
         i++) {
        fields_str(fields, "pmu", env->pmu_caps[i].pmu);
        feature_pmu_describe_caps(&env->pmu_caps[i], "caps", fields);
    }
}

void code_hybrid_topology(Codec *c, PdEnvironment *env) {
    for (size_t i = codec_list(c, &env->n_hybrids, &env->hybrids, 2 * sizeof(uint32_t));
         codec_next(c, i, &env->n_hybrids, &env->hybrids); i++) {
        codec_string(c, &env->hybrids[i].pmu);
        codec_string(c, &env->hybrids[i].cpus);
    }
}

void print_hybrid_topology(const PdEnvironment *env, Buffer *out) {
    text_puts(out, "# hybrid cpu system:\n");
    for (size_t i = 0; i < env->n_hybrids; i++) {
        text_puts(out, "# ");
        text_escape_str(out, env->hybrids[i].pmu);
        text_puts(out, " cpu list : ");
        text_escape_str(out, env->hybrids[i].cpus);
        text_putc(out, '\n');
    }
}

void describe_hybrid_topology(const PdEnvironment *env, Fields *fields) {
    for (size_t i = fields_begin_list(fields, "hybrid_topology");
         fields_next(fields, i, env->n_hybrids); i++) {
        fields_str(fields, "pmu", env->hybrids[i].pmu);
        fields_str(fields, "cpus", env->hybrids[i].cpus);
    }
}
