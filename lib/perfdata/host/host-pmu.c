/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/host/host-read.h"

#include <errno.h>
#include <string.h>

#include "util/array.h"

/*
 * The PMUs of this host, from /sys/bus/event_source/devices, in the order of the folder, which perf
 * uses too.
 */

#define DEVICES "/sys/bus/event_source/devices"

static int host_pmu_add(PdEnvironment *env, const char *name, uint32_t type) {
    PdPmu *pmu = array_grow(&env->pmus, &env->n_pmus);

    if (!pmu)
        return -ENOMEM;
    pmu->type = type;
    pmu->name = strdup(name);
    return pmu->name ? 0 : -ENOMEM;
}

int host_pmu_mappings(const Host *host, PdEnvironment *env) {
    _cleanup_closedir_ DIR *dir = host_folder(host, DEVICES);
    size_t left = HOST_NAMES_MAX;
    const char *name;

    if (!dir)
        return -errno;
    while ((name = host_next_name(dir, &left))) {
        uint32_t type;
        int r = host_u32(host, &type, DEVICES "/%s/type", name);

        if (r == 0)
            r = host_pmu_add(env, name, type);
        if (r == -ENOMEM)
            return r;
    }
    return 0;
}

static int host_pmu_add_cap(PdPmuCaps *caps, const char *name, char *text) {
    char **n = array_grow(&caps->names.items, &caps->names.n);
    char **v = n ? array_grow(&caps->values.items, &caps->values.n) : NULL;

    if (!v)
        return -ENOMEM;
    text[strcspn(text, " \t\n")] = '\0';
    *n = strdup(name);
    *v = strdup(text);
    return *n && *v ? 0 : -ENOMEM;
}

/* A PMU without the folder has no capabilities, which is not an error. */
static int host_pmu_read_caps(const Host *host, PdPmuCaps *caps, const char *pmu) {
    _cleanup_closedir_ DIR *dir = host_folder(host, DEVICES "/%s/caps", pmu);
    size_t left = HOST_NAMES_MAX;
    const char *name;

    while (dir && (name = host_next_name(dir, &left))) {
        char text[HOST_TEXT_SIZE];
        int r = host_text(host, text, DEVICES "/%s/caps/%s", pmu, name);

        if (r == 0 && text[0] != '\0')
            r = host_pmu_add_cap(caps, name, text);
        if (r == -ENOMEM)
            return r;
    }
    return 0;
}

int host_cpu_pmu_caps(const Host *host, PdEnvironment *env) {
    uint32_t type;
    int r = host_u32(host, &type, DEVICES "/cpu/type");

    return r < 0 ? r : host_pmu_read_caps(host, &env->cpu_pmu_caps, "cpu");
}

static void host_pmu_drop_caps(PdEnvironment *env) {
    PdPmuCaps *caps = &env->pmu_caps[--env->n_pmu_caps];

    free(caps->names.items);
    free(caps->values.items);
    free(caps->pmu);
}

/* All PMUs except that of CPU_PMU_CAPS; those without capabilities are left out. */
int host_pmu_caps(const Host *host, PdEnvironment *env) {
    for (size_t i = 0; i < env->n_pmus; i++) {
        const char *name = env->pmus[i].name;
        PdPmuCaps *caps;
        int r;

        if (strcmp(name, "cpu") == 0)
            continue;
        caps = array_grow(&env->pmu_caps, &env->n_pmu_caps);
        if (!caps)
            return -ENOMEM;
        caps->pmu = strdup(name);
        r = caps->pmu ? host_pmu_read_caps(host, caps, name) : -ENOMEM;
        if (r < 0)
            return r;
        if (caps->names.n == 0)
            host_pmu_drop_caps(env);
    }
    return env->has[PD_FEATURE_PMU_MAPPINGS] ? 0 : -ENODATA;
}

/* A hybrid machine has a PMU for each kind of core instead of one named "cpu". */
int host_hybrid_topology(const Host *host, PdEnvironment *env) {
    for (size_t i = 0; i < env->n_pmus; i++) {
        const char *name = env->pmus[i].name;
        char text[HOST_TEXT_SIZE];
        PdHybrid *hybrid;

        if (strncmp(name, "cpu_", 4) != 0 || host_text(host, text, DEVICES "/%s/cpus", name) < 0)
            continue;
        hybrid = array_grow(&env->hybrids, &env->n_hybrids);
        if (!hybrid)
            return -ENOMEM;
        hybrid->pmu = strdup(name);
        hybrid->cpus = strdup(text);
        if (!hybrid->pmu || !hybrid->cpus)
            return -ENOMEM;
    }
    return env->n_hybrids > 0 ? 0 : -ENODATA;
}
