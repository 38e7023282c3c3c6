/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "call/errand.h"
#include "method/method-private.h"
#include "protocol/value.h"
#include "store/window/listing.h"

/*
 * Segments: listing, reading and deleting. What somebody reads is leased until his connection ends,
 * so that retention does not count on room that it has not got yet. Snapshots that are read count
 * for whose they are as long: he does not get room by removing them while they are still there.
 */

enum { FILE_NAME_MAX = 16 };

static const char *completeness_name(Completeness completeness) {
    static const char *const names[] = {[SEGMENT_IS_OPEN] = "open",
                                        [COMPLETE] = "complete",
                                        [RECOVERED] = "recovered",
                                        [DAMAGED] = "damaged"};

    return names[completeness];
}

static json_t *gap_json(const PdGap *gap) {
    return json_pack("{s:o, s:o, s:s, s:o}", "sinceUsec", answer_count(gap->from_ns / 1000),
                     "untilUsec", answer_count(gap->to_ns / 1000), "reason",
                     pd_gap_reason_name(gap->reason), "cpu",
                     gap->cpu == PD_ALL_CPUS ? json_null() : answer_count(gap->cpu));
}

json_t *coverage_json(const StoreCoverage *coverage) {
    json_t *list;
    bool complete = true;

    if (!coverage->is_known)
        return json_null();
    list = json_array();
    for (size_t i = 0; i < coverage->n_gaps; i++) {
        complete &= !pd_gap_counts(&coverage->gaps[i]);
        value_append(&list, gap_json(&coverage->gaps[i]));
    }
    return json_pack(
        "{s:o, s:o, s:o, s:b, s:o}", "sinceUsec", answer_count(coverage->since_ns / 1000),
        "untilUsec", answer_count(coverage->until_ns / 1000), "recordedUsec",
        answer_count(coverage->recorded_ns / 1000), "complete", complete, "gaps", list);
}

static json_t *files_json(const StoreSegmentInfo *info) {
    json_t *list = json_array();

    for (size_t i = 0; i < info->n_files; i++) {
        char name[16];

        store_segment_file_name(info, i, name);
        value_append(&list, json_string(name));
    }
    return list;
}

/* A ListSegments() that waits for manifests to be read. */
typedef struct Listing {
    Daemon *daemon;
    Store *store;
    const char *store_path;
    char session[CONFIG_NAME_MAX]; /* "": all */
    uint64_t since_ns, until_ns;
    json_t *list;
    int error;
} Listing;

static int add_segment(void *userdata, const StoreSegmentInfo *info) {
    const Listing *listing = userdata;
    char path[CONFIG_PATH_MAX + CONFIG_NAME_MAX + SEGMENT_NAME_MAX + 16];

    snprintf(path, sizeof(path), "%s/sessions/%s/%s", listing->store_path, info->session,
             info->name);
    return json_array_append_new(
        listing->list,
        json_pack("{s:{s:o, s:o, s:o, s:o, s:s, s:b, s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:o}}",
                  "segment", "session", answer_text(info->session), "name", answer_text(info->name),
                  "path", answer_text(path), "bootId", answer_text(info->boot), "layout",
                  info->layout == LAYOUT_DIRECTORY ? "directory" : "file", "sensitive",
                  info->sensitive, "sinceUsec", answer_time(info->since_ns), "untilUsec",
                  answer_time(info->until_ns), "samples", answer_count(info->samples), "lost",
                  answer_count(info->lost), "bytes", answer_count(info->bytes), "completeness",
                  completeness_name(info->completeness), "coverage", coverage_json(&info->coverage),
                  "files", files_json(info)));
}

static void list_segments(void *userdata) {
    Listing *listing = userdata;

    listing->error =
        store_each_segment(listing->store, listing->session[0] ? listing->session : NULL,
                           listing->since_ns, listing->until_ns, add_segment, listing);
}

static void answer_listing(void *userdata, Call *call) {
    Listing *listing = userdata;

    if (listing->error == -ENOENT)
        (void)method_fail_no_session(listing->daemon, call, "NoSuchSession", listing->session);
    else if (listing->error < 0)
        (void)call_fail_reason(call, listing->error, NULL);
    else if (call_stream_array(call, TAKE_PTR(listing->list)) < 0)
        (void)call_fail_reason(call, -ENOMEM, NULL);
}

static void listing_free(void *userdata) {
    Listing *listing = userdata;

    json_decref(listing->list);
    free(listing);
}

int method_list_segments(void *userdata, Call *call) {
    Daemon *daemon = userdata;
    uint64_t since_ns = 0, until_ns = 0;
    const char *name = "";
    Listing *listing;

    if (ask_span(call, "sinceUsec", &since_ns) < 0)
        return call_fail_parameter(call, "sinceUsec", ASK_TIME);
    if (ask_span(call, "untilUsec", &until_ns) < 0)
        return call_fail_parameter(call, "untilUsec", ASK_TIME);
    if (ask_text(call, "session", &name) && !config_name_is_valid(name))
        return method_fail_no_session(daemon, call, "NoSuchSession", name);
    listing = calloc(1, sizeof(*listing));
    if (!listing)
        return -ENOMEM;
    *listing = (Listing){.daemon = daemon,
                         .store = daemon->store,
                         .store_path = daemon->store_path,
                         .since_ns = since_ns,
                         .until_ns = until_ns,
                         .list = json_array()};
    snprintf(listing->session, sizeof(listing->session), "%s", name);
    return errand_run(daemon, call,
                      &(ErrandOptions){.work = list_segments,
                                       .answer = answer_listing,
                                       .release = listing_free,
                                       .userdata = listing});
}

/* A Vacuum() that waits: for its turn, then for its end. */
typedef struct Vacuuming {
    Daemon *daemon;
    StoreLimits limits;
    uint64_t number; /* 0: it has not begun */
} Vacuuming;

void method_vacuum_ended(void *userdata, const VacuumResult *result) {
    Daemon *daemon = userdata;

    if (result->removed > 0)
        monitor_publish(daemon->monitor, &(MonitorEvent){.event = "removed",
                                                         .text = "old segments were deleted",
                                                         .count = result->removed,
                                                         .has_count = true});
    waits_look(daemon->waits);
}

static bool look_vacuumed(void *userdata, Call *call) {
    Vacuuming *vacuuming = userdata;
    Vacuum *vacuum = vacuuming->daemon->vacuum;
    VacuumResult result;
    int r = 0;

    if (vacuuming->number == 0)
        r = vacuum_begin(vacuum, &vacuuming->limits, &vacuuming->number);
    if (r < 0 && r != -EBUSY) {
        (void)call_fail_reason(call, r, NULL);
        return true;
    }
    if (r < 0 || !vacuum_result(vacuum, vacuuming->number, &result))
        return false;
    if (result.error < 0 && result.removed == 0)
        (void)call_fail_reason(call, result.error, NULL);
    else
        (void)call_reply(call, json_pack("{s:o, s:o}", "removed", answer_count(result.removed),
                                         "bytes", answer_count(result.bytes)));
    return true;
}

int method_vacuum(void *userdata, Call *call) {
    Daemon *daemon = userdata;
    StoreLimits limits = {.max_bytes = UINT64_MAX};
    Vacuuming *vacuuming;

    if (ask_count(call, "maxBytes", &limits.max_bytes) < 0)
        return call_fail_parameter(call, "maxBytes", ASK_COUNT);
    if (ask_span(call, "maxAgeUsec", &limits.max_age_ns) < 0)
        return call_fail_parameter(call, "maxAgeUsec", ASK_TIME);
    if (ask_count(call, "maxSegments", &limits.max_segments) < 0)
        return call_fail_parameter(call, "maxSegments", ASK_COUNT);
    vacuuming = calloc(1, sizeof(*vacuuming));
    if (!vacuuming)
        return -ENOMEM;
    *vacuuming = (Vacuuming){.daemon = daemon, .limits = limits};
    return waits_add(daemon->waits, call,
                     &(WaitOptions){.look = look_vacuumed, .release = free, .userdata = vacuuming});
}

/* What a connection reads, or a transient snapshot that is kept for it. */
struct Reading {
    Reading *next;
    uint64_t connection;
    StoreLease *lease; /* of a segment */
    char snapshot[SNAPSHOT_NAME_MAX];
    bool reads, keeps; /* the snapshot; one that is kept goes with the connection */
};

static Reading *reader_of(Daemon *daemon, const char *snapshot) {
    Reading *reading = daemon->readings;

    while (reading && !(reading->reads && strcmp(reading->snapshot, snapshot) == 0))
        reading = reading->next;
    return reading;
}

bool method_is_read(Daemon *daemon, const char *snapshot) {
    return reader_of(daemon, snapshot) != NULL;
}

/* Who still reads it keeps it from then on. */
static void let_go(Daemon *daemon, const char *snapshot) {
    Reading *heir = reader_of(daemon, snapshot);
    SnapshotInfo info;

    if (heir)
        heir->keeps = true;
    /* It may have been removed, and its name be another one's. */
    else if (snapshot_find(daemon->snapshots, snapshot, &info) == 0 && info.transient)
        snapshot_doom(daemon->snapshots, snapshot);
}

/* One that is in no list. */
static void reading_free(Daemon *daemon, Reading *reading) {
    store_lease_free(reading->lease);
    if (reading->keeps)
        let_go(daemon, reading->snapshot);
    free(reading);
}

void method_forget_connection(Daemon *daemon, uint64_t connection) {
    for (Reading **at = &daemon->readings; *at;) {
        Reading *reading = *at;

        if (reading->connection != connection) {
            at = &reading->next;
            continue;
        }
        *at = reading->next;
        reading_free(daemon, reading);
    }
}

void method_forget_connections(Daemon *daemon) {
    while (daemon->readings) {
        Reading *reading = daemon->readings;

        daemon->readings = reading->next;
        reading_free(daemon, reading);
    }
}

static void add_reading(Daemon *daemon, Reading *reading) {
    reading->next = daemon->readings;
    daemon->readings = reading;
}

int method_hold_snapshot(Daemon *daemon, const Call *call, const char *name) {
    Reading *reading = calloc(1, sizeof(*reading));

    if (!reading)
        return -ENOMEM;
    *reading = (Reading){.connection = call_connection(call), .keeps = true};
    snprintf(reading->snapshot, sizeof(reading->snapshot), "%s", name);
    add_reading(daemon, reading);
    return 0;
}

/* A Read() that waits for its file to be opened. */
typedef struct Opening {
    Daemon *daemon;
    bool of_snapshot;
    SnapshotInfo info;
    char session[CONFIG_NAME_MAX], segment[SEGMENT_NAME_MAX], file[FILE_NAME_MAX];
    StoreLease *lease;
    bool sensitive;
    int fd, error;
    uint64_t bytes;
} Opening;

static void open_file(void *userdata) {
    Opening *o = userdata;

    if (o->of_snapshot)
        o->error = snapshot_open_file(o->daemon->snapshots, &o->info, o->file, &o->fd, &o->bytes);
    else
        o->error = store_open_segment(o->daemon->store, o->session, o->segment, o->file, &o->fd,
                                      &o->bytes, &o->sensitive, &o->lease);
}

static void opening_free(void *userdata) {
    Opening *o = userdata;

    store_lease_free(o->lease);
    closep(&o->fd);
    free(o);
}

static int fail_opening(Call *call, const Opening *o) {
    if (o->error != -ENOENT)
        return call_fail_reason(call, o->error, NULL);
    if (o->of_snapshot)
        return call_fail(call, "NoSuchSnapshot",
                         json_pack("{s:o}", "name", answer_echo(o->info.name)));
    return call_fail(call, "NoSuchSegment",
                     json_pack("{s:o, s:o}", "session", answer_echo(o->session), "segment",
                               answer_echo(o->segment)));
}

/* What is read is kept only while the file is under way: who is refused may ask again, as often as
 * he likes. */
static void answer_opening(void *userdata, Call *call) {
    Opening *o = userdata;
    Daemon *daemon = o->daemon;
    Reading *reading;

    if (o->error < 0) {
        (void)fail_opening(call, o);
        return;
    }
    if (o->sensitive && call_peer(call)->right < RIGHT_ADMIN) {
        (void)call_fail_permission(call);
        return;
    }
    reading = calloc(1, sizeof(*reading));
    if (!reading) {
        (void)call_fail_reason(call, -ENOMEM, NULL);
        return;
    }
    *reading = (Reading){
        .connection = call_connection(call), .lease = TAKE_PTR(o->lease), .reads = o->of_snapshot};
    if (o->of_snapshot)
        memcpy(reading->snapshot, o->info.name, sizeof(reading->snapshot));
    if (call_reply_file(call, json_pack("{s:o}", "bytes", answer_count(o->bytes)), TAKE_FD(o->fd),
                        o->bytes) > 0)
        add_reading(daemon, reading);
    else
        reading_free(daemon, reading);
}

/* Takes `o`. */
static int open_later(Daemon *daemon, Call *call, Opening *o) {
    o->daemon = daemon;
    o->fd = -1;
    return errand_run(
        daemon, call,
        &(ErrandOptions){
            .work = open_file, .answer = answer_opening, .release = opening_free, .userdata = o});
}

static bool fits(const char *text, char *ret, size_t size) {
    return (size_t)snprintf(ret, size, "%s", text) < size;
}

static int read_segment(Daemon *daemon, Call *call, const char *session, const char *segment,
                        const char *file) {
    Opening *o = calloc(1, sizeof(*o));

    if (!o)
        return -ENOMEM;
    if (fits(session, o->session, sizeof(o->session)) &&
        fits(segment, o->segment, sizeof(o->segment)) && fits(file, o->file, sizeof(o->file)))
        return open_later(daemon, call, o);
    free(o);
    return call_fail(
        call, "NoSuchSegment",
        json_pack("{s:o, s:o}", "session", answer_echo(session), "segment", answer_echo(segment)));
}

static int read_snapshot(Daemon *daemon, Call *call, const char *name, const char *file) {
    Opening *o = calloc(1, sizeof(*o));
    int r = o ? method_find_snapshot(daemon, call, name, &o->info) : -ENOMEM;

    if (r == 0 && !fits(file, o->file, sizeof(o->file)))
        r = -ENOENT;
    if (r == 0 && !(o->info.sensitive && call_peer(call)->right < RIGHT_ADMIN)) {
        o->of_snapshot = true;
        return open_later(daemon, call, o);
    }
    free(o);
    if (r == 0)
        return call_fail_permission(call);
    return r == -ENOENT
               ? call_fail(call, "NoSuchSnapshot", json_pack("{s:o}", "name", answer_echo(name)))
               : r;
}

int method_read(void *userdata, Call *call) {
    const char *snapshot = NULL, *session = NULL, *segment = NULL, *file = "";

    (void)ask_text(call, "snapshot", &snapshot);
    (void)ask_text(call, "session", &session);
    (void)ask_text(call, "segment", &segment);
    (void)ask_text(call, "file", &file);
    if (snapshot)
        return session || segment ? call_fail_parameter(call, session ? "session" : "segment",
                                                        "it excludes 'snapshot'")
                                  : read_snapshot(userdata, call, snapshot, file);
    if (!session || !segment)
        return call_fail_parameter(call, session ? "segment" : "snapshot", "it is missing");
    return read_segment(userdata, call, session, segment, file);
}
