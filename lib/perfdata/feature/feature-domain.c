/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/feature/environment-feature.h"

#include "util/text.h"

/*
 * The scheduling domains of each CPU, as in /proc/schedstat. The body has no count of CPUs: it ends
 * after the last one.
 */

enum {
    SCHEDSTAT_NAMES_DOMAINS = 17, /* from this version on */
    CPU_FIXED = 2 * sizeof(uint32_t),
};

static void feature_domain_code(Codec *c, PdEnvironment *env, PdCpuDomain *d) {
    codec_u32(c, &d->level);
    if (env->schedstat_version >= SCHEDSTAT_NAMES_DOMAINS || c->mode == CODEC_CLEAR)
        codec_string(c, &d->name);
    codec_string(c, &d->cpumask);
    codec_string(c, &d->cpulist);
}

static void feature_domain_code_cpu(Codec *c, PdEnvironment *env, PdCpuDomains *cpu) {
    codec_u32(c, &cpu->cpu);
    for (size_t i = codec_list(c, &cpu->n, &cpu->domains, 3 * sizeof(uint32_t));
         codec_next(c, i, &cpu->n, &cpu->domains); i++)
        feature_domain_code(c, env, &cpu->domains[i]);
}

void code_cpu_domain_info(Codec *c, PdEnvironment *env) {
    codec_u32(c, &env->schedstat_version);
    codec_u32(c, &env->max_sched_domains);
    /* A rest that is shorter than a CPU is the padding of a pipe. */
    while (c->mode == CODEC_READ && cursor_left(&c->in) >= CPU_FIXED) {
        PdCpuDomains *cpu = codec_grow(c, &env->n_cpu_domains, &env->cpu_domains);

        if (!cpu)
            return;
        feature_domain_code_cpu(c, env, cpu);
    }
    for (size_t i = 0; c->mode != CODEC_READ && i < env->n_cpu_domains; i++)
        feature_domain_code_cpu(c, env, &env->cpu_domains[i]);
    codec_end(c, &env->n_cpu_domains, &env->cpu_domains);
}

void print_cpu_domain_info(const PdEnvironment *env, Buffer *out) {
    text_printf(out, "# schedstat version\t: %u\n# Maximum sched domains\t: %u\n",
                env->schedstat_version, env->max_sched_domains);
    for (size_t i = 0; i < env->n_cpu_domains; i++) {
        const PdCpuDomains *cpu = &env->cpu_domains[i];

        text_printf(out, "# cpu\t\t: %u\n# nr_domains\t: %zu\n", cpu->cpu, cpu->n);
        for (size_t k = 0; k < cpu->n; k++) {
            text_printf(out, "# Domain\t\t: %u\n", cpu->domains[k].level);
            if (cpu->domains[k].name)
                print_line(out, "# Domain name      : ", cpu->domains[k].name);
            print_line(out, "# Domain cpu map   : ", cpu->domains[k].cpumask);
            print_line(out, "# Domain cpu list  : ", cpu->domains[k].cpulist);
        }
    }
}

static void feature_domain_describe(const PdCpuDomain *d, Fields *fields) {
    fields_u64(fields, "level", d->level);
    if (d->name)
        fields_str(fields, "name", d->name);
    fields_str(fields, "cpumask", d->cpumask);
    fields_str(fields, "cpus", d->cpulist);
}

void describe_cpu_domain_info(const PdEnvironment *env, Fields *fields) {
    fields_begin_object(fields, "cpu_domain_info");
    fields_u64(fields, "schedstat_version", env->schedstat_version);
    fields_u64(fields, "max_sched_domains", env->max_sched_domains);
    for (size_t i = fields_begin_list(fields, "cpus"); fields_next(fields, i, env->n_cpu_domains);
         i++) {
        const PdCpuDomains *cpu = &env->cpu_domains[i];

        fields_u64(fields, "cpu", cpu->cpu);
        for (size_t k = fields_begin_list(fields, "domains"); fields_next(fields, k, cpu->n); k++)
            feature_domain_describe(&cpu->domains[k], fields);
    }
    fields_end_object(fields);
}
