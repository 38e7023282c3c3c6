/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "keeper/request/keeper-request.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <time.h>

#include "perfdata/event/format.h"
#include "util/bytes.h"

/*
 * Checks requests of the recorder. The recorder parses hostile data, so it may be compromised:
 * every byte of a message is checked before it is used. A table has the fields of each kind of
 * request; all others must be zero, so that no field can contain data for a later version. Options
 * of an event that no recording needs are refused here, before the kernel sees them with the
 * keeper's rights: flags that harm other users of perf (build_id), that send signals to or kill
 * processes, or that access memory (AUX areas, physical addresses).
 */

typedef enum Field {
    FIELD_FILE = 1 << 0,
    FIELD_PID = 1 << 1,
    FIELD_TID = 1 << 2,
    FIELD_SLOT = 1 << 3,
    FIELD_SENSITIVE = 1 << 4,
    FIELD_RANGE = 1 << 5,
    FIELD_EVENT = 1 << 6,
    FIELD_PATH = 1 << 7,
} Field;

#define ALLOWED_FLAGS                                                                              \
    (PD_ATTR_DISABLED | PD_ATTR_INHERIT | PD_ATTR_PINNED | PD_ATTR_EXCLUSIVE |                     \
     PD_ATTR_EXCLUDE_USER | PD_ATTR_EXCLUDE_KERNEL | PD_ATTR_EXCLUDE_HV | PD_ATTR_EXCLUDE_IDLE |   \
     PD_ATTR_MMAP | PD_ATTR_COMM | PD_ATTR_FREQ | PD_ATTR_INHERIT_STAT | PD_ATTR_TASK |            \
     PD_ATTR_WATERMARK | 3ULL << PD_ATTR_PRECISE_IP_SHIFT | PD_ATTR_MMAP_DATA |                    \
     PD_ATTR_SAMPLE_ID_ALL | PD_ATTR_EXCLUDE_HOST | PD_ATTR_EXCLUDE_GUEST |                        \
     PD_ATTR_EXCLUDE_CALLCHAIN_KERNEL | PD_ATTR_EXCLUDE_CALLCHAIN_USER | PD_ATTR_MMAP2 |           \
     PD_ATTR_COMM_EXEC | PD_ATTR_USE_CLOCKID | PD_ATTR_CONTEXT_SWITCH | PD_ATTR_WRITE_BACKWARD |   \
     PD_ATTR_NAMESPACES | PD_ATTR_KSYMBOL | PD_ATTR_BPF_EVENT | PD_ATTR_CGROUP |                   \
     PD_ATTR_INHERIT_THREAD)

#define ALLOWED_SAMPLE_TYPE                                                                        \
    (PD_SAMPLE_IP | PD_SAMPLE_TID | PD_SAMPLE_TIME | PD_SAMPLE_ADDR | PD_SAMPLE_READ |             \
     PD_SAMPLE_CALLCHAIN | PD_SAMPLE_ID | PD_SAMPLE_CPU | PD_SAMPLE_PERIOD | PD_SAMPLE_STREAM_ID | \
     PD_SAMPLE_RAW | PD_SAMPLE_BRANCH_STACK | PD_SAMPLE_REGS_USER | PD_SAMPLE_STACK_USER |         \
     PD_SAMPLE_WEIGHT | PD_SAMPLE_DATA_SRC | PD_SAMPLE_IDENTIFIER | PD_SAMPLE_TRANSACTION |        \
     PD_SAMPLE_REGS_INTR | PD_SAMPLE_CGROUP | PD_SAMPLE_DATA_PAGE_SIZE |                           \
     PD_SAMPLE_CODE_PAGE_SIZE | PD_SAMPLE_WEIGHT_STRUCT)

#define ALLOWED_READ_FORMAT                                                                        \
    (PD_FORMAT_TOTAL_TIME_ENABLED | PD_FORMAT_TOTAL_TIME_RUNNING | PD_FORMAT_ID |                  \
     PD_FORMAT_GROUP | PD_FORMAT_LOST)

static bool keeper_request_is_zero(const void *bytes, size_t n) {
    const uint8_t *p = bytes;

    for (size_t i = 0; i < n; i++)
        if (p[i] != 0)
            return false;
    return true;
}

static bool keeper_request_is_process(uint32_t pid) {
    return pid > 0 && pid <= INT32_MAX;
}

/* Whether it ends within the field, followed only by zeros. */
static bool keeper_request_is_path(const char *path) {
    size_t n = strnlen(path, KEEPER_PATH_SIZE);

    return n > 0 && n < KEEPER_PATH_SIZE && keeper_request_is_zero(path + n, KEEPER_PATH_SIZE - n);
}

static int keeper_request_check_file(const KeeperRequest *r) {
    return r->file < KEEPER_FILES ? 0 : -EINVAL;
}

/* Only the mapping at an address has one. */
static int keeper_request_check_texts(const KeeperRequest *r) {
    if (r->file >= KEEPER_MAPS_KINDS || !keeper_request_is_process(r->pid) ||
        !keeper_request_is_process(r->tid))
        return -EINVAL;
    return r->end == 0 && (r->start == 0 || r->file == KEEPER_MAPS_AT) ? 0 : -EINVAL;
}

static int keeper_request_check_process(const KeeperRequest *r) {
    return keeper_request_is_process(r->pid) ? 0 : -EINVAL;
}

static int keeper_request_check_mapped(const KeeperRequest *r) {
    return keeper_request_is_process(r->pid) && r->start < r->end ? 0 : -EINVAL;
}

/* A perf map by the pid in its name, or a jitdump by its mapping. */
static int keeper_request_check_code_map(const KeeperRequest *r) {
    bool is_mapped = r->end > 0;

    if (!keeper_request_is_process(r->pid))
        return -EINVAL;
    if (is_mapped)
        return r->tid == 0 && r->start < r->end ? 0 : -EINVAL;
    return r->start == 0 && keeper_request_is_process(r->tid) ? 0 : -EINVAL;
}

static int keeper_request_check_image(const KeeperRequest *r) {
    return keeper_request_is_process(r->pid) && keeper_request_is_path(r->path) ? 0 : -EINVAL;
}

static bool keeper_request_is_tracefs_word(const char *word, size_t n) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "_-.";

    return n > 0 && n < 128 && word[0] != '.' && strspn(word, letters) >= n;
}

/* "SYSTEM/EVENT/id", "SYSTEM/EVENT/format", the folder "SYSTEM/" and the paths of the table. */
static int keeper_request_check_tracefs(const KeeperRequest *r) {
    static const char *const single[] = {"./", "header_page", "header_event", "../printk_formats",
                                         "../saved_cmdlines"};
    const char *event, *leaf;

    if (!keeper_request_is_path(r->path))
        return -EINVAL;
    for (size_t i = 0; i < ARRAY_SIZE(single); i++)
        if (strcmp(r->path, single[i]) == 0)
            return 0;
    event = strchrnul(r->path, '/');
    if (!keeper_request_is_tracefs_word(r->path, (size_t)(event - r->path)))
        return -EINVAL;
    if (*event == '\0')
        return -EINVAL;
    event++;
    if (*event == '\0')
        return 0;
    leaf = strchrnul(event, '/');
    if (!keeper_request_is_tracefs_word(event, (size_t)(leaf - event)))
        return -EINVAL;
    return strcmp(leaf, "/id") == 0 || strcmp(leaf, "/format") == 0 ? 0 : -EINVAL;
}

static int keeper_request_check_boolean(const KeeperRequest *r) {
    return r->sensitive <= 1 ? 0 : -EINVAL;
}

static int keeper_request_check_lane(const KeeperRequest *r) {
    return r->slot < KEEPER_LANES ? 0 : -EINVAL;
}

static int keeper_request_check_slot(const KeeperRequest *r) {
    return r->slot < KEEPER_SLOTS_MAX ? 0 : -EINVAL;
}

static int keeper_request_check_walk(const KeeperRequest *r) {
    return r->slot < KEEPER_SLOTS_MAX || r->slot == KEEPER_NO_SLOT ? 0 : -EINVAL;
}

static int keeper_request_check_nothing(const KeeperRequest *r _unused_) {
    return 0;
}

/* perf_event_open()'s own rules for pid, cpu and cgroup; pid 0 would be the keeper itself. */
static int keeper_request_check_target(const KeeperRequest *r) {
    const KeeperEventData *e = &r->event;

    if (e->pid < -1 || e->pid == 0 || e->cpu < -1 || (e->pid == -1 && e->cpu == -1))
        return -EINVAL;
    if (r->path[0] == '\0')
        return keeper_request_is_zero(r->path, sizeof(r->path)) ? 0 : -EINVAL;
    return keeper_request_is_path(r->path) && r->path[0] != '/' && e->pid == -1 ? 0 : -EINVAL;
}

static bool keeper_request_is_link(uint32_t slot) {
    return slot == KEEPER_NO_SLOT || slot < KEEPER_SLOTS_MAX;
}

static int keeper_request_check_ring(const KeeperEventData *e) {
    if (!keeper_request_is_link(e->leader_slot) || !keeper_request_is_link(e->output_slot))
        return -EINVAL;
    if (e->ring_bytes == 0)
        return 0;
    /* The kernel checks the page size; an event cannot have two rings. */
    return e->output_slot == KEEPER_NO_SLOT && e->ring_bytes <= KEEPER_RING_BYTES_MAX &&
                   e->ring_bytes >= 4096 && (e->ring_bytes & (e->ring_bytes - 1)) == 0
               ? 0
               : -EINVAL;
}

/* The flags are bit fields in the kernel's header, after read_format. */
static uint64_t keeper_request_attr_flags(const uint8_t *attr) {
    return load_u64(attr + offsetof(struct perf_event_attr, read_format) + 8, false);
}

/* The field has no name in older headers. */
static uint32_t keeper_request_aux_action(const uint8_t *attr) {
    return load_u32(attr + offsetof(struct perf_event_attr, aux_sample_size) + 4, false);
}

static int keeper_request_check_attr(const KeeperEventData *e) {
    struct perf_event_attr attr = {};
    uint64_t flags;

    if (e->attr_size < PERF_ATTR_SIZE_VER0 || e->attr_size > KEEPER_ATTR_MAX || e->attr_size % 8)
        return -EINVAL;
    memcpy(&attr, e->attr, MIN(sizeof(attr), (size_t)KEEPER_ATTR_MAX));
    if (attr.size != e->attr_size || e->reserved != 0 ||
        !keeper_request_is_zero(e->attr + e->attr_size, KEEPER_ATTR_MAX - e->attr_size))
        return -EINVAL;
    flags = keeper_request_attr_flags(e->attr);
    if (flags & ~ALLOWED_FLAGS || attr.sample_type & ~ALLOWED_SAMPLE_TYPE ||
        attr.read_format & ~(uint64_t)ALLOWED_READ_FORMAT)
        return -EPERM;
    if (flags & PD_ATTR_USE_CLOCKID && attr.clockid != CLOCK_MONOTONIC &&
        attr.clockid != CLOCK_MONOTONIC_RAW)
        return -EPERM;
    if (attr.aux_watermark != 0 || attr.aux_sample_size != 0 ||
        keeper_request_aux_action(e->attr) != 0 || attr.sig_data != 0)
        return -EPERM;
    return 0;
}

static int keeper_request_check_event(const KeeperRequest *request) {
    int r = keeper_request_check_target(request);

    if (r == 0)
        r = keeper_request_check_ring(&request->event);
    return r == 0 ? keeper_request_check_attr(&request->event) : r;
}

static int keeper_request_check_memory(const KeeperRequest *r) {
    const KeeperEventData *e = &r->event;
    KeeperEventData only = {.ring_bytes = e->ring_bytes};

    memcpy(only.tag, e->tag, sizeof(only.tag));
    return memcmp(&only, e, sizeof(only)) == 0 && e->ring_bytes >= 4096 &&
                   e->ring_bytes <= KEEPER_MEMORY_BYTES_MAX && e->ring_bytes % 4096 == 0
               ? 0
               : -EINVAL;
}

/* clang-format off */
static const struct KindRow {
    const char *name;
    unsigned    fields; /* fields that may be non-zero */
    bool        has_fd;
    int       (*check)(const KeeperRequest *request);
} kinds[] = {
    [KEEPER_OPEN_LANE]       = { "open-lane",       FIELD_SLOT,                         false, keeper_request_check_lane    },
    [KEEPER_END_OF_LANE]     = { "end-of-lane",     FIELD_SLOT,                         false, keeper_request_check_lane    },
    [KEEPER_OPEN_LIFE]       = { "open-life",       0,                                  false, keeper_request_check_nothing },
    [KEEPER_OPEN_EVENT]      = { "open-event",      FIELD_EVENT | FIELD_PATH,           false, keeper_request_check_event   },
    [KEEPER_CLOSE_EVENT]     = { "close-event",     FIELD_SLOT,                         false, keeper_request_check_slot    },
    [KEEPER_NEXT_EVENT]      = { "next-event",      FIELD_SLOT,                         false, keeper_request_check_walk    },
    [KEEPER_OPEN_FILE]       = { "open-file",       FIELD_FILE,                         false, keeper_request_check_file    },
    [KEEPER_OPEN_MAPPED]     = { "open-mapped",     FIELD_PID | FIELD_RANGE,            false, keeper_request_check_mapped  },
    [KEEPER_OPEN_IMAGE]      = { "open-image",      FIELD_PID | FIELD_PATH,             false, keeper_request_check_image   },
    [KEEPER_OPEN_TRACEFS]    = { "open-tracefs",    FIELD_PATH,                         false, keeper_request_check_tracefs },
    [KEEPER_READ_NAMESPACES] = { "read-namespaces", FIELD_PID,                          false, keeper_request_check_process },
    [KEEPER_SEAL]            = { "seal",            FIELD_SENSITIVE,                    true,  keeper_request_check_boolean },
    [KEEPER_TAKE_OVER]       = { "take-over",       0,                                  false, keeper_request_check_nothing },
    [KEEPER_READY]           = { "ready",           0,                                  false, keeper_request_check_nothing },
    [KEEPER_STATUS]          = { "status",          0,                                  false, keeper_request_check_nothing },
    [KEEPER_LISTEN]          = { "listen",          0,                                  false, keeper_request_check_nothing },
    [KEEPER_OPEN_MEMORY]     = { "open-memory",     FIELD_EVENT,                        false, keeper_request_check_memory  },
    [KEEPER_OPEN_CODE_MAP]   = { "open-code-map",   FIELD_PID | FIELD_TID | FIELD_RANGE, false, keeper_request_check_code_map },
    [KEEPER_CLOSE]           = { "close",           0,                                  true,  keeper_request_check_nothing },
    [KEEPER_READ_PROCESS]    = { "read-process",    FIELD_FILE | FIELD_PID | FIELD_TID | FIELD_RANGE, false, keeper_request_check_texts },
};

static const struct {
    unsigned field;
    size_t   offset, size;
} fields[] = {
    { FIELD_FILE,      offsetof(KeeperRequest, file),      sizeof(uint32_t)        },
    { FIELD_PID,       offsetof(KeeperRequest, pid),       sizeof(uint32_t)        },
    { FIELD_TID,       offsetof(KeeperRequest, tid),       sizeof(uint32_t)        },
    { FIELD_SLOT,      offsetof(KeeperRequest, slot),      sizeof(uint32_t)        },
    { FIELD_SENSITIVE, offsetof(KeeperRequest, sensitive), sizeof(uint32_t)        },
    { 0,               offsetof(KeeperRequest, reserved),  sizeof(uint32_t)        },
    { FIELD_RANGE,     offsetof(KeeperRequest, start),     2 * sizeof(uint64_t)    },
    { FIELD_EVENT,     offsetof(KeeperRequest, event),     sizeof(KeeperEventData) },
    { FIELD_PATH,      offsetof(KeeperRequest, path),      KEEPER_PATH_SIZE        },
};
/* clang-format on */

static_assert(ARRAY_SIZE(kinds) == KEEPER_KINDS, "a row for each kind");

int keeper_request_check(const void *bytes, size_t n, KeeperRequest *ret) {
    KeeperRequest request;
    int r;

    if (n < sizeof(request.protocol))
        return -EBADMSG;
    if (load_u32(bytes, false) != KEEPER_PROTOCOL)
        return -EPROTO;
    if (n != sizeof(request))
        return -EBADMSG;
    memcpy(&request, bytes, sizeof(request));
    if (request.kind >= KEEPER_KINDS)
        return -EBADMSG;
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        if (!(kinds[request.kind].fields & fields[i].field) &&
            !keeper_request_is_zero((const uint8_t *)&request + fields[i].offset, fields[i].size))
            return -EBADMSG;
    r = kinds[request.kind].check(&request);
    if (r < 0)
        return r;
    *ret = request;
    return 0;
}

bool keeper_request_has_fd(KeeperKind kind) {
    return kinds[kind].has_fd;
}

const char *keeper_request_name(KeeperKind kind) {
    return kinds[kind].name;
}
