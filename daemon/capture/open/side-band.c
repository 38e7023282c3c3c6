/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/open/side-band.h"

#include <errno.h>
#include <time.h>

#include "capture/plan/limit.h"
#include "util/log.h"

/*
 * The attrs that all sessions share: the side-band event, as far as this kernel supports it, one
 * for namespaces, for which few sessions ask, and one for data mappings.
 */

enum { COUNT_SW_DUMMY = 9 };

/* What the side-band event records. */
#define SIDE_BAND_TELLS                                                                            \
    ((uint64_t)(PD_ATTR_MMAP | PD_ATTR_MMAP2 | PD_ATTR_COMM | PD_ATTR_COMM_EXEC | PD_ATTR_TASK |   \
                PD_ATTR_KSYMBOL | PD_ATTR_BPF_EVENT | PD_ATTR_CGROUP))

/* With namespaces alone the kernel does not treat the event as side-band; COMM_EXEC needs COMM. */
PdAttr side_band_namespaces_attr(const Sampler *sampler) {
    PdAttr attr = sampler->side_band_attr;

    attr.flags = (attr.flags & ~SIDE_BAND_TELLS) | PD_ATTR_COMM_EXEC | PD_ATTR_NAMESPACES;
    return attr;
}

PdAttr side_band_data_attr(const Sampler *sampler) {
    PdAttr attr = sampler->side_band_attr;

    attr.flags = (attr.flags & ~SIDE_BAND_TELLS) | PD_ATTR_MMAP2 | PD_ATTR_MMAP_DATA;
    return attr;
}

static PdAttr side_band_attr(void) {
    return (PdAttr){
        .type = PD_TYPE_SOFTWARE,
        .config = COUNT_SW_DUMMY,
        .sample_period = 1,
        .sample_type = PD_SAMPLE_IDENTIFIER | PD_SAMPLE_TID | PD_SAMPLE_TIME | PD_SAMPLE_CPU,
        .read_format = PD_FORMAT_ID | PD_FORMAT_LOST | PD_FORMAT_TOTAL_TIME_ENABLED,
        .flags = PD_ATTR_WATERMARK | PD_ATTR_SAMPLE_ID_ALL | PD_ATTR_USE_CLOCKID | SIDE_BAND_TELLS,
        .wakeup_events = watermark(SIDE_BAND_RING_BYTES, SIDE_BAND_EIGHTHS),
        .clockid = CLOCK_MONOTONIC,
    };
}

static int side_band_settle_for(Sampler *sampler, PlanTarget target, unsigned cpu, PdAttr attr) {
    /* The newest feature of the kernel is dropped first. */
    /* clang-format off */
    static const struct { uint64_t flags, read_format; const char *since; } steps[] = {
        { 0,                                    0,              ""    },
        { 0,                                    PD_FORMAT_LOST, "6.0" },
        { PD_ATTR_CGROUP,                       0,              "5.7" },
        { PD_ATTR_KSYMBOL | PD_ATTR_BPF_EVENT,  0,              "5.1" },
    };
    /* clang-format on */
    int r = -EINVAL;

    sampler->side_band_attr = attr;
    for (size_t i = 0; r == -EINVAL && i < ARRAY_SIZE(steps); i++) {
        sampler->side_band_attr.flags &= ~steps[i].flags;
        sampler->side_band_attr.read_format &= ~steps[i].read_format;
        r = plan_try(sampler->options.keeper, &sampler->side_band_attr, target, cpu);
        if (r == 0 && i > 0)
            log_notice("This kernel is older than %s, using the records of processes that it has",
                       steps[i].since);
    }
    return r;
}

static bool side_band_is_refusal(int error) {
    return error == -EACCES || error == -EPERM;
}

static int side_band_settle_processes(Sampler *sampler, unsigned cpu) {
    const uint64_t without_kernel = PD_ATTR_EXCLUDE_KERNEL | PD_ATTR_EXCLUDE_HV;
    PdAttr attr = side_band_attr();
    PlanTarget target = {.pid = (int32_t)sampler->options.keeper_pid};
    int r;

    attr.flags |= PD_ATTR_INHERIT;
    r = side_band_settle_for(sampler, target, cpu, attr);
    if (!side_band_is_refusal(r))
        return r;
    attr.flags |= without_kernel;
    return side_band_settle_for(sampler, target, cpu, attr);
}

int side_band_settle(Sampler *sampler, unsigned cpu) {
    int r = side_band_settle_for(sampler, plan_any, cpu, side_band_attr()), refused = r;

    if (!side_band_is_refusal(r) || sampler->options.keeper_pid == 0)
        return r < 0 ? limit_log_open_failure(r, NULL, "dummy", cpu) : 0;
    r = side_band_settle_processes(sampler, cpu);
    if (r < 0)
        return limit_log_open_failure(side_band_is_refusal(r) ? refused : r, NULL, "dummy", cpu);
    limit_log_followed(!(sampler->side_band_attr.flags & PD_ATTR_EXCLUDE_KERNEL));
    return 1;
}
