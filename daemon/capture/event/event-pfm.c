/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>

#include "capture/event/event-parse.h"
#include "perfdata/event/format.h"

#ifdef PROFD_HAS_LIBPFM
#include <dlfcn.h>
#include <perfmon/pfmlib_perf_event.h>
#include <pthread.h>
#endif

/*
 * Names from the vendors' manuals (`INST_RETIRED.ANY`, `amd64_fam17h_zen1::RETIRED_UOPS`), which
 * neither kernel nor sysfs know: libpfm4 has them for the CPUs that it supports. It returns type
 * and config; its own modifiers are part of the name.
 *
 * Its tables take a megabyte of memory, and few users need them, so the library is loaded for a
 * name that nothing else knows, and unloaded afterwards. Where it is not installed, it knows no
 * name.
 */

#ifdef PROFD_HAS_LIBPFM

typedef struct Pfm {
    void *library;
    __typeof__(pfm_initialize) *initialize;
    __typeof__(pfm_get_os_event_encoding) *encode;
} Pfm;

static void event_pfm_close(Pfm *pfm) {
    if (pfm->library)
        (void)dlclose(pfm->library);
}

static int event_pfm_open(Pfm *ret) {
    ret->library = dlopen("libpfm.so.4", RTLD_NOW | RTLD_LOCAL);
    if (!ret->library)
        return -ENOENT;
    ret->initialize = (__typeof__(ret->initialize))dlsym(ret->library, "pfm_initialize");
    ret->encode = (__typeof__(ret->encode))dlsym(ret->library, "pfm_get_os_event_encoding");
    return ret->initialize && ret->encode && ret->initialize() == PFM_SUCCESS ? 0 : -ENOENT;
}

static uint64_t event_pfm_flags_of(const struct perf_event_attr *attr) {
    /* clang-format off */
    uint64_t flags = (attr->exclude_user   ? PD_ATTR_EXCLUDE_USER   : 0) |
                     (attr->exclude_kernel ? PD_ATTR_EXCLUDE_KERNEL : 0) |
                     (attr->exclude_hv     ? PD_ATTR_EXCLUDE_HV     : 0) |
                     (attr->exclude_host   ? PD_ATTR_EXCLUDE_HOST   : 0) |
                     (attr->exclude_guest  ? PD_ATTR_EXCLUDE_GUEST  : 0) |
                     (attr->pinned         ? PD_ATTR_PINNED         : 0) |
                     (attr->exclusive      ? PD_ATTR_EXCLUSIVE      : 0);
    /* clang-format on */

    return flags & (PD_ATTR_EXCLUDE_HOST | PD_ATTR_EXCLUDE_GUEST) ? flags
                                                                  : flags | PD_ATTR_EXCLUDE_GUEST;
}

/* The library has global tables and fills them while it works. */
static bool event_pfm_encode(const char *text, pfm_perf_encode_arg_t *argument) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    Pfm pfm = {};
    bool done;

    pthread_mutex_lock(&mutex);
    /* Without a modifier every privilege level counts, as for any other event. */
    done = event_pfm_open(&pfm) == 0 && pfm.encode(text, PFM_PLM0 | PFM_PLM3 | PFM_PLMH,
                                                   PFM_OS_PERF_EVENT_EXT, argument) == PFM_SUCCESS;
    event_pfm_close(&pfm);
    pthread_mutex_unlock(&mutex);
    return done;
}

int event_pfm(const char *text, EventSpec *spec) {
    struct perf_event_attr attr = {.size = sizeof(attr)};
    pfm_perf_encode_arg_t argument = {.size = sizeof(argument), .attr = &attr};

    if (!event_pfm_encode(text, &argument))
        return -ENOENT;
    spec->type = attr.type;
    spec->config = attr.config;
    spec->config1 = attr.config1;
    spec->config2 = attr.config2;
    spec->flags = event_pfm_flags_of(&attr);
    spec->precise = attr.precise_ip;
    spec->period = attr.freq ? 0 : attr.sample_period;
    spec->frequency_hz = attr.freq ? attr.sample_freq : 0;
    return 0;
}

#else

int event_pfm(const char *text _unused_, EventSpec *spec _unused_) {
    return -ENOENT;
}

#endif
