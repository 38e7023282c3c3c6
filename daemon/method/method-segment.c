/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "call/errand.h"
#include "method/method-private.h"
#include "protocol/value.h"
#include "store/window/listing.h"

/* Lists segments and deletes old ones. Both need the disk, so helper threads do the work. */

static const char *method_segment_completeness_name(Completeness completeness) {
    static const char *const names[] = {[SEGMENT_IS_OPEN] = "open",
                                        [COMPLETE] = "complete",
                                        [RECOVERED] = "recovered",
                                        [DAMAGED] = "damaged"};

    return names[completeness];
}

/* A ListSegments() call that waits until manifests are read. */
typedef struct Listing {
    Daemon *daemon;
    Store *store;
    const char *store_path;
    char session[CONFIG_NAME_MAX]; /* "": all sessions */
    uint64_t since_ns, until_ns;
    json_t *list;
    int error;
} Listing;

/* NULL where no stacks were unwound, or it is not known. */
static json_t *method_segment_stacks_json(const StoreStacks *s) {
    if (s->whole + s->truncated + s->pending + s->refused + s->no_rule + s->anonymous + s->no_code +
            s->stuck + s->bits32 + s->no_user ==
        0)
        return json_null();
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "whole",
                     answer_count(s->whole), "truncated", answer_count(s->truncated), "pending",
                     answer_count(s->pending), "refused", answer_count(s->refused), "noRule",
                     answer_count(s->no_rule), "anonymous", answer_count(s->anonymous), "noCode",
                     answer_count(s->no_code), "stuck", answer_count(s->stuck), "bits32",
                     answer_count(s->bits32), "noUser", answer_count(s->no_user), "stackBytes",
                     answer_count(s->bytes));
}

static int method_segment_add(void *userdata, const StoreSegmentInfo *info) {
    const Listing *listing = userdata;
    char path[CONFIG_PATH_MAX + CONFIG_NAME_MAX + SEGMENT_NAME_MAX + 16];

    snprintf(path, sizeof(path), "%s/sessions/%s/%s", listing->store_path, info->session,
             info->name);
    return json_array_append_new(
        listing->list,
        json_pack("{s:{s:o, s:o, s:o, s:o, s:s, s:b, s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:o, "
                  "s:o}}",
                  "segment", "session", answer_text(info->session), "name", answer_text(info->name),
                  "path", answer_text(path), "bootId", answer_text(info->boot), "layout",
                  info->layout == LAYOUT_DIRECTORY ? "directory" : "file", "sensitive",
                  info->sensitive, "sinceUsec", answer_time(info->since_ns), "untilUsec",
                  answer_time(info->until_ns), "samples", answer_count(info->samples), "lost",
                  answer_count(info->lost), "bytes", answer_count(info->bytes), "completeness",
                  method_segment_completeness_name(info->completeness), "coverage",
                  coverage_json(&info->coverage), "files",
                  method_files_json(info->layout, info->n_files), "stacks",
                  method_segment_stacks_json(&info->stacks), "gapBefore",
                  gap_json(&info->gap_before)));
}

static void method_segment_list_segments(void *userdata) {
    Listing *listing = userdata;

    listing->error =
        store_each_segment(listing->store, listing->session[0] ? listing->session : NULL,
                           listing->since_ns, listing->until_ns, method_segment_add, listing);
}

static void method_segment_answer_listing(void *userdata, Call *call) {
    Listing *listing = userdata;

    if (listing->error == -ENOENT)
        (void)method_fail_no_session(listing->daemon, call, "NoSuchSession", listing->session);
    else if (listing->error < 0)
        (void)call_fail_reason(call, listing->error, NULL);
    else if (call_stream_array(call, TAKE_PTR(listing->list)) < 0)
        (void)call_fail_reason(call, -ENOMEM, NULL);
}

static void method_segment_listing_free(void *userdata) {
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
    return errand_run(daemon->waits, daemon->housekeeper, call,
                      &(ErrandOptions){.work = method_segment_list_segments,
                                       .answer = method_segment_answer_listing,
                                       .release = method_segment_listing_free,
                                       .userdata = listing});
}

/* A Vacuum() call that waits for its turn and then for its end. */
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
    binaries_tend(daemon->binaries);
    waits_check(daemon->waits);
}

static bool method_segment_check_vacuumed(void *userdata, Call *call) {
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
                     &(WaitOptions){.check = method_segment_check_vacuumed,
                                    .release = free,
                                    .userdata = vacuuming});
}
