/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store/segment/manifest-rebuild.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "perfdata/reader/reader.h"
#include "store/segment/segment.h"

/*
 * Makes a manifest from the data alone, in one pass over all records. Each frame becomes one index
 * entry; without compression, neighbouring records of a kind share entries of up to a frame's size.
 */

enum { FILES = 65 };

typedef struct Walk {
    PdReader *reader;
    Manifest *manifest;
    struct {
        ManifestFrame frame; /* .raw is 0: no entry is open */
        bool compressed;
    } open[FILES];
} Walk;

static int manifest_rebuild_open_reader(int folder, const SegmentName *name, PdReader **ret,
                                        bool *ret_directory) {
    char text[SEGMENT_NAME_MAX], path[64 + SEGMENT_NAME_MAX];
    _cleanup_close_ int fd = -1;
    struct stat st;
    int r;

    segment_name_print(name, text);
    fd = openat(folder, text, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) < 0)
        return -errno;
    *ret_directory = S_ISDIR(st.st_mode);
    if (*ret_directory) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", folder, text);
        return pd_reader_open(path, NULL, ret, NULL);
    }
    if (!S_ISREG(st.st_mode))
        return -EBADMSG;
    r = pd_reader_open_fd(fd, NULL, ret, NULL);
    if (r == 0)
        (void)TAKE_FD(fd);
    return r;
}

static int manifest_rebuild_end_frame(Walk *w, uint32_t file) {
    ManifestFrame *frame = &w->open[file].frame;
    int r = frame->raw > 0 ? manifest_add_frame(w->manifest, frame) : 0;

    frame->raw = 0;
    return r;
}

static bool manifest_rebuild_goes_on(const Walk *w, const PdRecord *record, StoreKind kind) {
    const ManifestFrame *frame = &w->open[record->file].frame;

    if (frame->raw == 0 || record->decompressed != w->open[record->file].compressed)
        return false;
    if (record->decompressed)
        return frame->offset == record->offset;
    return frame->kind == kind && frame->raw + record->size <= SEGMENT_FRAME_RAW_MAX;
}

static int manifest_rebuild_index_record(Walk *w, const PdRecord *record, const PdStamp *stamp) {
    StoreKind kind = record->type == PD_RECORD_SAMPLE ? STORE_SAMPLES : STORE_SIDE_BAND;
    ManifestFrame *frame;
    int r;

    if (record->type == PD_RECORD_FINISHED_ROUND)
        w->manifest->round_ns = w->manifest->last_ns;
    /* Round marks belong to no frame. */
    if (record->file >= FILES || record->type == PD_RECORD_FINISHED_ROUND)
        return 0;
    frame = &w->open[record->file].frame;
    if (!manifest_rebuild_goes_on(w, record, kind)) {
        r = manifest_rebuild_end_frame(w, record->file);
        if (r < 0)
            return r;
        *frame = (ManifestFrame){.offset = record->offset, .file = record->file, .kind = kind};
        w->open[record->file].compressed = record->decompressed;
    }
    if (kind == STORE_SAMPLES)
        frame->kind = kind;
    frame->raw += record->size;
    if (stamp->has_time) {
        frame->first_ns = frame->last_ns ? MIN(frame->first_ns, stamp->time) : stamp->time;
        frame->last_ns = MAX(frame->last_ns, stamp->time);
    }
    return 0;
}

/* LOST_SAMPLES count what LOST records say, too. */
static void manifest_rebuild_count_lost(Manifest *manifest, const PdRecord *record,
                                        const PdEvent *event) {
    PdBody body;

    if (record->type == PD_RECORD_LOST_SAMPLES && pd_record_parse(record, event, &body) == 0)
        manifest->lost += body.lost.lost;
}

static int manifest_rebuild_take_record(Walk *w, const PdRecord *record) {
    Manifest *m = w->manifest;
    PdStamp stamp = {};

    if (pd_events_stamp(pd_reader_events(w->reader), record, &stamp) < 0)
        stamp = (PdStamp){};
    m->raw_bytes += record->size + record->payload;
    if (record->type == PD_RECORD_SAMPLE) {
        manifest_add_samples(m, 1, stamp.time, stamp.time);
        if (stamp.has_cpu)
            manifest_add_cpu(m, stamp.cpu);
    }
    manifest_rebuild_count_lost(m, record, stamp.event);
    return manifest_rebuild_index_record(w, record, &stamp);
}

static int manifest_rebuild_walk(Walk *w) {
    PdRecord record;
    int r;

    while ((r = pd_reader_next(w->reader, &record)) > 0) {
        r = manifest_rebuild_take_record(w, &record);
        if (r < 0)
            return r;
    }
    for (uint32_t file = 0; r == 0 && file < FILES; file++)
        r = manifest_rebuild_end_frame(w, file);
    return r;
}

/* Whether samples contain other users' memory. */
static bool manifest_rebuild_is_sensitive(const PdAttr *attr) {
    return attr->sample_type &
           (PD_SAMPLE_STACK_USER | PD_SAMPLE_REGS_USER | PD_SAMPLE_REGS_INTR | PD_SAMPLE_RAW);
}

static int manifest_rebuild_describe_events(Walk *w) {
    const PdEvents *events = pd_reader_events(w->reader);
    int r = 0;

    for (size_t i = 0; r == 0 && i < pd_events_count(events); i++) {
        const PdEvent *event = pd_events_at(events, i);

        w->manifest->sensitive |= manifest_rebuild_is_sensitive(&event->attr);
        r = manifest_add_event(w->manifest, event->name);
    }
    w->manifest->weight = w->manifest->samples * segment_sample_weight(events);
    return r;
}

static int manifest_rebuild_describe_header(Walk *w) {
    _cleanup_(pd_environment_freep) PdEnvironment *environment = NULL;
    const PdHeader *header = pd_reader_header(w->reader);
    const PdDamage *damage = pd_reader_damage(w->reader);
    Manifest *m = w->manifest;
    unsigned damaged;
    PdDamage why;
    int r = pd_environment_new(&environment);

    if (r == 0)
        r = pd_environment_from_reader(environment, w->reader, &damaged, &why);
    if (r < 0)
        return r;
    snprintf(m->host, sizeof(m->host), "%s", environment->hostname ? environment->hostname : "");
    snprintf(m->recorder, sizeof(m->recorder), "%s",
             environment->version ? environment->version : "");
    if (environment->has[PD_FEATURE_CLOCK_DATA])
        r = manifest_add_anchor(m,
                                &(ClockAnchor){.monotonic_ns = environment->clock_data_clockid_ns,
                                               .real_ns = environment->clock_data_wall_ns});
    m->completeness = header->unfinished || damage ? DAMAGED : COMPLETE;
    if (damage)
        snprintf(m->damage, sizeof(m->damage), "%s", damage->text);
    return r;
}

/* Adds up the data sections of all files. */
static int manifest_rebuild_measure(Walk *w, int folder, const SegmentName *name) {
    const PdHeader *header = pd_reader_header(w->reader);
    char text[SEGMENT_NAME_MAX], path[SEGMENT_NAME_MAX + 32];

    segment_name_print(name, text);
    w->manifest->stored_bytes = header->data_size;
    for (unsigned i = 0; w->manifest->directory && i + 1 < header->n_files; i++) {
        struct stat st;

        snprintf(path, sizeof(path), "%s/data.%u", text, i);
        if (fstatat(folder, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
            return -errno;
        w->manifest->stored_bytes += (uint64_t)st.st_size;
    }
    return 0;
}

int manifest_rebuild(int folder, const SegmentName *name, const char *session, Manifest **ret) {
    _cleanup_(pd_reader_freep) PdReader *reader = NULL;
    _cleanup_(manifest_freep) Manifest *manifest = NULL;
    _cleanup_free_ Walk *w = calloc(1, sizeof(*w));
    int r = w ? manifest_new(&manifest) : -ENOMEM;

    if (r == 0)
        r = manifest_rebuild_open_reader(folder, name, &reader, &manifest->directory);
    if (r < 0)
        return r;
    w->reader = reader;
    w->manifest = manifest;
    snprintf(manifest->session, sizeof(manifest->session), "%s", session);
    manifest->sequence = name->number;
    r = manifest_rebuild_walk(w);
    if (r == 0)
        r = manifest_rebuild_describe_events(w);
    if (r == 0)
        r = manifest_rebuild_describe_header(w);
    if (r == 0)
        r = manifest_rebuild_measure(w, folder, name);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(manifest);
    return 0;
}
