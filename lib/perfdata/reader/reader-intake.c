/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/reader/reader-private.h"

#include <errno.h>

#include "perfdata/feature/environment.h"
#include "perfdata/record/stream-mark.h"
#include "perfdata/tracing/tracing.h"
#include "util/macro.h"

/*
 * Processes records that describe the recording. In a pipe these contain everything: attrs,
 * features, formats of tracepoints, build ids; in a file units and names of events. Each is
 * processed once, however often the recording is read, and is returned as well.
 */

enum { BUILD_ID_RECORD_MIN = 36 };

static_assert(sizeof(((PdReader *)NULL)->small) >= 16, "a TRACING_DATA record is 12 or 16 bytes");

/* The event of a record made by a tool: by id, or the only event, or the first event for id 0. */
static PdEvent *reader_intake_event_meant(const PdReader *r, uint64_t id) {
    PdEvent *event = pd_events_by_id(r->events, id);
    size_t n = pd_events_count(r->events);

    if (event || n == 0 || (n > 1 && id != 0))
        return event;
    return pd_events_at(r->events, 0);
}

static int reader_intake_take_event_update(PdReader *r, const PdEventUpdate *u) {
    PdEvent *event = reader_intake_event_meant(r, u->id);

    if (!event)
        return 0;
    if (u->update_type == PD_EVENT_UPDATE_NAME)
        return pd_events_set_name(r->events, event, u->text);
    if (u->update_type == PD_EVENT_UPDATE_UNIT)
        return pd_events_set_unit(r->events, event, u->text);
    if (u->update_type == PD_EVENT_UPDATE_SCALE)
        event->scale = u->scale;
    return 0;
}

static int reader_intake_take_header_attr(PdReader *r, const PdRecord *record,
                                          const PdHeaderAttr *h) {
    _cleanup_free_ uint64_t *ids = NULL;
    PdAttr attr;
    int rc;

    rc = pd_attr_parse(&attr, h->attr, record->swap);
    if (rc < 0)
        return rc;
    if (h->n_ids > 0) {
        ids = reallocarray(NULL, h->n_ids, sizeof(*ids));
        if (!ids)
            return -ENOMEM;
        for (uint64_t i = 0; i < h->n_ids; i++)
            ids[i] = load_u64(h->ids.data + i * 8, record->swap);
    }
    rc = pd_events_add(r->events, &attr, h->attr, ids, h->n_ids, NULL);
    if (rc == -E2BIG) {
        reader_damage(r, false, record->offset, "there are more events or ids than any pipe has");
        return 0;
    }
    return rc;
}

static int reader_intake_take_header_feature(PdReader *r, const PdRecord *record,
                                             const PdHeaderFeature *h) {
    int rc;

    /* An empty body is not a feature but marks their end, whatever its number. */
    if (h->feature >= PD_FEATURE_BITS || h->body.size == 0)
        return 0;
    rc = feature_keep(r, (unsigned)h->feature, h->body, false);
    if (rc == -EFBIG) {
        reader_damage(r, false, record->offset, "the features are larger than any pipe has them");
        return 0;
    }
    if (rc < 0)
        return rc;
    r->features[h->feature].present = true;
    return h->feature == PD_FEATURE_EVENT_DESC ? intake_names(r) : 0;
}

static int reader_intake_take_build_id(PdReader *r, const PdRecord *record) {
    int rc;

    if (record->size < BUILD_ID_RECORD_MIN)
        return -EBADMSG;
    rc = feature_keep(r, PD_FEATURE_BUILD_ID, (Bytes){.data = record->data, .size = record->size},
                      true);
    return rc == -EFBIG ? 0 : rc;
}

/* The payload is read here and also returned to the caller from memory. */
static int reader_intake_take_tracing_data(PdReader *r, PdRecord *record, uint64_t size) {
    _cleanup_(buffer_done) Buffer blob = {};
    uint64_t left = MIN(record->payload, size);
    int rc;

    if (left > r->limits.feature_bytes - r->feature_bytes || record->size > sizeof(r->small))
        return 0;
    /* Reading moves the window, so copy the record out of it. */
    memcpy(r->small, record->data, record->size);
    record->data = r->small;
    while (left > 0) {
        uint8_t chunk[4096];
        ssize_t n = pd_reader_payload(r, chunk, (size_t)MIN(left, (uint64_t)sizeof(chunk)));

        if (n < 0)
            return (int)n;
        if (n == 0)
            break;
        buffer_append(&blob, chunk, (size_t)n);
        left -= (uint64_t)n;
    }
    if (buffer_error(&blob) < 0)
        return buffer_error(&blob);
    rc = feature_keep(r, PD_FEATURE_TRACING_DATA, buffer_bytes(&blob), false);
    if (rc < 0)
        return rc;
    r->payload_kept = buffer_bytes(&r->features[PD_FEATURE_TRACING_DATA].body);
    return intake_names(r);
}

/* Types that have a meaning only in a pipe; in a file they are ignored. */
static bool reader_intake_is_pipes_own(uint32_t type) {
    return type == PD_RECORD_HEADER_ATTR || type == PD_RECORD_HEADER_FEATURE ||
           type == PD_RECORD_BUILD_ID || type == PD_RECORD_TRACING_DATA;
}

int intake_record(PdReader *r, PdRecord *record) {
    PdStreamMark mark;
    PdBody body;
    int rc;

    if (pd_stream_mark_read(record, &mark))
        return 0;
    if (reader_intake_is_pipes_own(record->type) && r->header.mode != PD_MODE_PIPE)
        return 0;
    rc = pd_record_parse(record, NULL, &body);
    if (rc == 0)
        switch (record->type) {
        case PD_RECORD_HEADER_ATTR:
            rc = reader_intake_take_header_attr(r, record, &body.header_attr);
            break;
        case PD_RECORD_HEADER_FEATURE:
            rc = reader_intake_take_header_feature(r, record, &body.header_feature);
            break;
        case PD_RECORD_EVENT_TYPE:
            rc = intake_event_type(r, body.event_type.id, body.event_type.name);
            break;
        case PD_RECORD_EVENT_UPDATE:
            rc = reader_intake_take_event_update(r, &body.event_update);
            break;
        case PD_RECORD_BUILD_ID:
            rc = reader_intake_take_build_id(r, record);
            break;
        case PD_RECORD_TRACING_DATA:
            rc = reader_intake_take_tracing_data(r, record, body.tracing_data_size);
            break;
        }
    if (rc != -EBADMSG)
        return rc == -EOPNOTSUPP ? 0 : rc;
    reader_damage(r, false, record->offset, "the %s record does not hold what it announces",
                  pd_record_type_name(record->type));
    return 0;
}

/* Such an event is named by its attr, and perf shows no other name. */
static bool reader_intake_is_named_by_attr(const PdEvent *event) {
    return event->attr.type == PD_TYPE_HARDWARE || event->attr.type == PD_TYPE_SOFTWARE ||
           event->attr.type == PD_TYPE_HW_CACHE;
}

/* The table has only the config. For a tracepoint the config is unique; for other types the name is
 * used only if no second event has this config. */
int intake_event_type(PdReader *r, uint64_t config, Bytes name) {
    PdEvent *found = NULL;
    size_t n = pd_events_count(r->events);

    if (r->n_event_types++ >= EVENT_TYPES_MAX)
        return 0;
    for (size_t i = 0; i < n; i++) {
        PdEvent *event = pd_events_at(r->events, i);

        if (event->attr.config != config || reader_intake_is_named_by_attr(event))
            continue;
        if (found && found->attr.type != event->attr.type) {
            bool tracepoint = event->attr.type == PD_TYPE_TRACEPOINT;

            if (!tracepoint && found->attr.type != PD_TYPE_TRACEPOINT)
                return 0;
            found = tracepoint ? event : found;
        } else
            found = found ?: event;
    }
    return found ? pd_events_set_name(r->events, found, name) : 0;
}

static int reader_intake_name_by_description(PdReader *r) {
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;
    Bytes body;
    int rc;

    rc = pd_reader_feature(r, PD_FEATURE_EVENT_DESC, &body);
    if (rc < 0)
        return rc;
    rc = pd_environment_new(&env);
    if (rc < 0)
        return rc;
    rc = pd_environment_read(env, PD_FEATURE_EVENT_DESC, body, r->header.swap);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < env->n_event_descs; i++) {
        const PdEventDesc *d = &env->event_descs[i];
        PdEvent *event = d->n_ids > 0 ? pd_events_by_id(r->events, d->ids[0]) : NULL;

        if (!event && i < pd_events_count(r->events))
            event = pd_events_at(r->events, i);
        if (!event || !d->name)
            continue;
        rc = pd_events_set_name(r->events, event,
                                (Bytes){.data = (uint8_t *)d->name, .size = strlen(d->name)});
        if (rc < 0)
            return rc;
    }
    return 0;
}

static bool reader_intake_is_nameless_tracepoint(const PdEvent *event) {
    return event->attr.type == PD_TYPE_TRACEPOINT && !event->name_given;
}

static int reader_intake_name_by_tracing(PdReader *r) {
    _cleanup_(pd_tracing_freep) PdTracing *tracing = NULL;
    size_t n = pd_events_count(r->events), first = 0;
    Bytes blob;
    int rc;

    while (first < n && !reader_intake_is_nameless_tracepoint(pd_events_at(r->events, first)))
        first++;
    if (first == n)
        return 0;
    rc = pd_reader_feature(r, PD_FEATURE_TRACING_DATA, &blob);
    if (rc == 0)
        rc = pd_tracing_new(blob, &tracing);
    for (size_t i = first; rc == 0 && i < n; i++) {
        PdEvent *event = pd_events_at(r->events, i);
        const char *name = reader_intake_is_nameless_tracepoint(event)
                               ? pd_tracing_name(tracing, event->attr.config)
                               : NULL;

        if (name)
            rc = pd_events_set_name(r->events, event,
                                    (Bytes){.data = (const uint8_t *)name, .size = strlen(name)});
    }
    return rc;
}

/* An invalid description leaves the names unchanged; the environment reports it. */
int intake_names(PdReader *r) {
    int rc;

    if (r->n_namings++ >= NAMINGS_MAX)
        return 0;
    rc = reader_intake_name_by_description(r);
    if (rc == 0 || rc == -ENOENT || rc == -EBADMSG || rc == -EFBIG)
        rc = reader_intake_name_by_tracing(r);
    return rc == -ENOENT || rc == -EBADMSG || rc == -EFBIG ? 0 : rc;
}
