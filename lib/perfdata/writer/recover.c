/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "perfdata/writer/encode.h"
#include "perfdata/writer/scan.h"
#include "perfdata/writer/writer-internal.h"
#include "util/macro.h"

/*
 * Recovers an unfinished file. First everything is only read: the front of the file for its events,
 * then each file up to its last whole record. Only if that succeeds anything is changed: the files
 * are cut, and a writer in the state of the old one finishes as usual, header last, so that an
 * interrupted recovery can itself be recovered.
 */

enum { FILES_MAX = 64, SOFTWARE_DUMMY = 9 /* PERF_COUNT_SW_DUMMY */ };

typedef struct Recovery {
    int fds[1 + FILES_MAX]; /* the file or `data`, then data.N */
    bool owned;
    unsigned n;
    PdScan scans[1 + FILES_MAX];
    uint64_t sizes[1 + FILES_MAX];
    PdReader *reader; /* only for the front */
    PdTally *tally;
    uint64_t attrs_offset, attrs_size;
} Recovery;

static void recover_recovery_done(Recovery *rc) {
    for (unsigned i = 0; rc->owned && i < rc->n; i++)
        (void)close(rc->fds[i]);
    pd_reader_free(rc->reader);
    pd_tally_free(rc->tally);
}

static int recover_open_files(Recovery *rc, int fd, PdLayout layout) {
    rc->owned = layout == PD_LAYOUT_DIRECTORY;
    if (layout == PD_LAYOUT_FILE) {
        rc->fds[rc->n++] = fd;
        return 0;
    }
    while (rc->n < ARRAY_SIZE(rc->fds)) {
        char name[32] = "data";
        int file;

        if (rc->n > 0)
            snprintf(name, sizeof(name), "data.%u", rc->n - 1);
        file = openat(fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
        if (file < 0 && errno == ENOENT && rc->n > 0)
            break;
        if (file < 0)
            return errno == ENOENT ? -EBADMSG : -errno;
        rc->fds[rc->n++] = file;
    }
    return 0;
}

static int recover_measure(Recovery *rc) {
    for (unsigned i = 0; i < rc->n; i++) {
        struct stat st;

        if (fstat(rc->fds[i], &st) < 0)
            return -errno;
        if (!S_ISREG(st.st_mode))
            return -EBADMSG;
        rc->sizes[i] = (uint64_t)st.st_size;
    }
    return 0;
}

static bool recover_fits(uint64_t offset, uint64_t size, uint64_t limit) {
    return offset <= limit && size <= limit - offset;
}

/* Reads the sections of the header that the reader does not expose. */
static int recover_read_front(Recovery *rc, const PdHeader *header) {
    uint8_t p[PD_HEADER_SIZE];
    ssize_t n = pread(rc->fds[0], p, sizeof(p), 0);

    if (n < 0)
        return -errno;
    if (n != sizeof(p))
        return -EBADMSG;
    rc->attrs_offset = load_u64(p + 24, header->swap);
    rc->attrs_size = load_u64(p + 32, header->swap);
    return recover_fits(rc->attrs_offset, rc->attrs_size, rc->sizes[0]) &&
                   header->data_offset <= rc->sizes[0] &&
                   header->data_offset >= rc->attrs_offset + rc->attrs_size
               ? 0
               : -EBADMSG;
}

/* The ids of each event must be before the data too, because what follows it may be cut off. */
static int recover_check_ids(const Recovery *rc, const PdHeader *header, size_t n_events) {
    for (size_t i = 0; i < n_events; i++) {
        uint8_t p[2 * sizeof(uint64_t)];
        uint64_t end = rc->attrs_offset + (i + 1) * header->attr_size;
        ssize_t n = pread(rc->fds[0], p, sizeof(p), (off_t)(end - sizeof(p)));

        if (n < 0)
            return -errno;
        if (n != sizeof(p) || !recover_fits(load_u64(p, header->swap),
                                            load_u64(p + 8, header->swap), header->data_offset))
            return -EBADMSG;
    }
    return 0;
}

static int recover_open_reader(Recovery *rc) {
    int fd = fcntl(rc->fds[0], F_DUPFD_CLOEXEC, 0), r;

    if (fd < 0)
        return -errno;
    r = pd_reader_open_fd(fd, NULL, &rc->reader, NULL);
    if (r < 0)
        (void)close(fd);
    return r;
}

/* Reads everything, changes nothing. */
static int recover_scan(Recovery *rc) {
    const PdHeader *header;
    PdEvents *events;
    uint64_t each;
    int r = recover_open_reader(rc);

    if (r < 0)
        return r;
    header = pd_reader_header(rc->reader);
    events = pd_reader_events(rc->reader);
    if (header->mode != PD_MODE_FILE || header->magic_version != 2)
        return -EBADMSG;
    if (!header->unfinished)
        return -EALREADY;
    r = recover_read_front(rc, header);
    if (r < 0)
        return r;
    each = header->attr_size;
    if (pd_events_count(events) == 0 || each == 0 ||
        rc->attrs_size / each < pd_events_count(events))
        return -EBADMSG;
    r = recover_check_ids(rc, header, pd_events_count(events));
    if (r < 0)
        return r;
    r = pd_tally_new(&rc->tally);
    for (unsigned i = 0; r >= 0 && i < rc->n; i++)
        r = pd_scan_file(rc->fds[i], i == 0 ? header->data_offset : 0, rc->sizes[i], events,
                         header->swap, rc->tally, &rc->scans[i]);
    return r;
}

/* Ignores the damage that the file is not finished, which is why it is recovered. */
static const PdDamage *recover_front_damage(const PdReader *reader) {
    const PdDamage *damage = pd_reader_damage(reader);

    return damage && damage->offset != pd_reader_header(reader)->data_offset ? damage : NULL;
}

static int recover_add_events(PdWriter *w, const PdEvents *events) {
    for (size_t i = 0; i < pd_events_count(events); i++) {
        int r = pd_writer_add_event(w, pd_events_at(events, i));

        if (r < 0)
            return r;
    }
    return 0;
}

/* Creates a writer in the state of the old one at its last whole record. */
static int recover_resume(Recovery *rc, PdLayout layout, PdWriter **ret) {
    const PdHeader *header = pd_reader_header(rc->reader);
    PdWriterOptions options = {.layout = layout, .swap = header->swap};
    _cleanup_(pd_writer_freep) PdWriter *w = NULL;
    int r = pd_writer_alloc(&options, rc->n, &w);

    if (r < 0)
        return r;
    r = recover_add_events(w, pd_reader_events(rc->reader));
    if (r < 0)
        return r;
    w->begun = true;
    w->attr_size = (uint32_t)header->attr_size - 2 * sizeof(uint64_t);
    /* Attrs of which the reader understood only a part are written again. */
    w->n_attrs_written = recover_front_damage(rc->reader) ? 0 : pd_events_count(w->events);
    w->attrs_offset = rc->attrs_offset;
    w->data_offset = header->data_offset;
    for (unsigned i = 0; i < rc->n; i++) {
        w->streams[i].fd = rc->fds[i];
        w->streams[i].position = rc->scans[i].end;
        w->streams[i].raw_bytes = rc->scans[i].raw_bytes;
        w->compressed |= rc->scans[i].frame_raw > 0;
    }
    w->tally = TAKE_PTR(rc->tally);
    *ret = TAKE_PTR(w);
    return 0;
}

/* The kernel starts and stops a group with its leader, so recorders leave only leaders disabled;
 * the side-band event, which is enabled from the start, is in no group. */
static void recover_find_groups(PdEvents *events) {
    const PdEvent *leader = NULL;

    for (size_t i = 0; i < pd_events_count(events); i++) {
        PdEvent *event = pd_events_at(events, i);
        bool is_side_band =
            event->attr.type == PD_TYPE_SOFTWARE && event->attr.config == SOFTWARE_DUMMY;

        if (event->attr.flags & PD_ATTR_DISABLED || is_side_band)
            leader = is_side_band ? NULL : event;
        else if (leader)
            event->leader = leader->index;
    }
}

static int recover_set_groups(PdWriter *w) {
    _cleanup_(buffer_done) Buffer groups = {};

    recover_find_groups(w->events);
    pd_encode_group_desc(&groups, w->events, w->options.swap);
    if (groups.size == 0)
        return buffer_error(&groups);
    return buffer_error(&groups)
               ?: pd_writer_set_feature(w, PD_FEATURE_GROUP_DESC, buffer_bytes(&groups));
}

/* Features from the data override those of the environment, which may be from another time. */
static int recover_set_features(PdWriter *w, const PdRecoverOptions *options) {
    _cleanup_(buffer_done) Buffer desc = {};
    PdTallyTotals totals = pd_tally_totals(w->tally);
    const PdEnvironment *environment = options->environment;
    int r = environment ? pd_writer_set_environment(w, environment) : 0;

    if (r < 0)
        return r;
    if (environment && environment->has[PD_FEATURE_COMPRESSED])
        w->options.zstd_level = (int)environment->compressed_level;
    w->features[PD_FEATURE_SAMPLE_TIME].set &= !totals.has_times;
    w->features[PD_FEATURE_BUILD_ID].set &= totals.n_build_ids == 0;
    if (!w->features[PD_FEATURE_GROUP_DESC].set)
        r = recover_set_groups(w);
    if (r < 0 || w->features[PD_FEATURE_EVENT_DESC].set)
        return r;
    r = options->on_events ? options->on_events(options->userdata, w->events) : 0;
    if (r < 0)
        return r;
    pd_encode_event_desc(&desc, w->events, w->options.swap);
    return buffer_error(&desc)
               ?: pd_writer_set_feature(w, PD_FEATURE_EVENT_DESC, buffer_bytes(&desc));
}

static PdRecovery recover_summary(const Recovery *rc, PdTallyTotals totals) {
    PdRecovery did = {.records = totals.records,
                      .samples = totals.samples,
                      .unidentified = totals.n_unidentified};

    for (unsigned i = 0; i < rc->n; i++) {
        uint64_t start = i == 0 ? pd_reader_header(rc->reader)->data_offset : 0;
        char name[32] = "data";

        did.kept_bytes += rc->scans[i].end - start;
        did.cut_bytes += rc->sizes[i] - rc->scans[i].end;
        if (did.damage[0] != '\0' || rc->scans[i].damage[0] == '\0')
            continue;
        if (i > 0)
            snprintf(name, sizeof(name), "data.%u", i - 1);
        snprintf(did.damage, sizeof(did.damage), "%s%s%s", rc->owned ? name : "",
                 rc->owned ? ": " : "", rc->scans[i].damage);
    }
    if (did.damage[0] == '\0' && recover_front_damage(rc->reader))
        snprintf(did.damage, sizeof(did.damage), "%s", recover_front_damage(rc->reader)->text);
    return did;
}

static int recover_on_read(const PdRecoverOptions *options, PdTallyTotals totals) {
    const PdRecoveredTimes times = {.last_ns = totals.has_times ? totals.last_sample_time : 0,
                                    .round_ns = totals.round_time};

    return options->on_read ? options->on_read(options->userdata, &times) : 0;
}

int pd_segment_recover(int fd, PdLayout layout, const PdEnvironment *environment, PdRecovery *ret) {
    return pd_segment_recover_with(
        fd, &(PdRecoverOptions){.layout = layout, .environment = environment}, ret);
}

int pd_segment_recover_with(int fd, const PdRecoverOptions *options, PdRecovery *ret) {
    PdLayout layout = options->layout;
    _cleanup_(recover_recovery_done) Recovery rc = {};
    _cleanup_(pd_writer_freep) PdWriter *w = NULL;
    PdRecovery did;
    int r;

    if (layout != PD_LAYOUT_FILE && layout != PD_LAYOUT_DIRECTORY)
        return -EINVAL;
    r = recover_open_files(&rc, fd, layout);
    if (r >= 0)
        r = recover_measure(&rc);
    if (r >= 0)
        r = recover_scan(&rc);
    if (r < 0)
        return r;
    did = recover_summary(&rc, pd_tally_totals(rc.tally));
    r = recover_on_read(options, pd_tally_totals(rc.tally));
    if (r >= 0)
        r = recover_resume(&rc, layout, &w);
    if (r >= 0)
        r = recover_set_features(w, options);
    if (r < 0)
        return r;
    for (unsigned i = 0; i < rc.n; i++)
        if (ftruncate(rc.fds[i], (off_t)rc.scans[i].end) < 0)
            return -errno;
    r = pd_writer_finish(w);
    if (r < 0)
        return r;
    *ret = did;
    return 0;
}
