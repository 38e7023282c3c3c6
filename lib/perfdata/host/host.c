/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/host/host.h"

#include <errno.h>
#include <string.h>
#include <sys/utsname.h>

#include "perfdata/feature/environment-feature.h"
#include "perfdata/host/host-read.h"
#include "util/array.h"

/*
 * Collects a description of this host. Each part is an independent row of a table: if a kernel, a
 * container or an architecture does not provide a part, only that part is left out.
 */

static int host_copy_string(char **ret, const char *s) {
    *ret = strdup(s);
    return *ret ? 0 : -ENOMEM;
}

static int host_total_mem(const Host *host, PdEnvironment *env) {
    char text[HOST_TEXT_SIZE];
    int r = host_field(host, "/proc/meminfo", "MemTotal", text);

    if (r < 0)
        return r;
    env->total_mem_kb = strtoull(text, NULL, 10);
    return env->total_mem_kb > 0 ? 0 : -ENODATA;
}

/* The order matters: CPU_TOPOLOGY needs NRCPUS, and the other PMU features need PMU_MAPPINGS. */
/* clang-format off */
static const struct {
    unsigned bit;
    int (*collect)(const Host *host, PdEnvironment *env);
} parts[] = {
    {PD_FEATURE_NRCPUS,          host_nrcpus},
    {PD_FEATURE_CPUDESC,         host_cpudesc},
    {PD_FEATURE_CPUID,           host_cpuid},
    {PD_FEATURE_TOTAL_MEM,       host_total_mem},
    {PD_FEATURE_CPU_TOPOLOGY,    host_cpu_topology},
    {PD_FEATURE_NUMA_TOPOLOGY,   host_numa_topology},
    {PD_FEATURE_PMU_MAPPINGS,    host_pmu_mappings},
    {PD_FEATURE_CACHE,           host_cache},
    {PD_FEATURE_MEM_TOPOLOGY,    host_mem_topology},
    {PD_FEATURE_CPU_PMU_CAPS,    host_cpu_pmu_caps},
    {PD_FEATURE_HYBRID_TOPOLOGY, host_hybrid_topology},
    {PD_FEATURE_PMU_CAPS,        host_pmu_caps},
};
/* clang-format on */

static int host_collect_names(PdEnvironment *env, const struct utsname *names) {
    const struct {
        unsigned bit;
        char **member;
        const char *value;
    } strings[] = {
        {PD_FEATURE_HOSTNAME, &env->hostname, names->nodename},
        {PD_FEATURE_OSRELEASE, &env->osrelease, names->release},
        {PD_FEATURE_ARCH, &env->arch, names->machine},
    };

    for (size_t i = 0; i < ARRAY_SIZE(strings); i++) {
        int r;

        environment_forget(env, strings[i].bit);
        r = host_copy_string(strings[i].member, strings[i].value);
        if (r < 0)
            return r;
        env->has[strings[i].bit] = true;
    }
    return 0;
}

static int host_collect_cmdline(PdEnvironment *env, char *const *argv) {
    environment_forget(env, PD_FEATURE_CMDLINE);
    for (; *argv; argv++) {
        char **word = array_grow(&env->cmdline.items, &env->cmdline.n);
        int r = word ? host_copy_string(word, *argv) : -ENOMEM;

        if (r < 0)
            return r;
    }
    env->has[PD_FEATURE_CMDLINE] = true;
    return 0;
}

int pd_host_collect(PdEnvironment *env, const char *root, char *const *argv) {
    struct utsname names;
    Host host = {.root = root, .arch = names.machine};
    int r;

    if (uname(&names) < 0)
        return -errno;
    r = host_collect_names(env, &names);
    if (r == 0 && argv)
        r = host_collect_cmdline(env, argv);
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(parts); i++) {
        int k;

        environment_forget(env, parts[i].bit);
        k = parts[i].collect(&host, env);
        env->has[parts[i].bit] = k == 0;
        if (k < 0)
            environment_forget(env, parts[i].bit);
        r = k == -ENOMEM ? k : 0;
    }
    return r;
}
