/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/verify/verify-state.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "client/file/recording.h"
#include "client/frame/command.h"
#include "util/text.h"

/*
 * `profctl verify`: reads each recording once, from the first record to the last, and prints one
 * line for each finding. Errors are contradictions within the file or with the format, and make the
 * exit status 8; warnings and notes are about what the recorder could not see, and do not change
 * it.
 */

typedef struct Verify {
    const char *path;
    PdReader *reader;
    SideBand *side_band;
    RecordChecks records;
    Findings findings;
} Verify;

static void verify_done(Verify *v) {
    findings_done(&v->findings);
    v->side_band = side_band_free(v->side_band);
    v->reader = pd_reader_free(v->reader);
}

static int verify_read_records(Verify *v) {
    PdEvents *events = pd_reader_events(v->reader);
    PdRecord record;
    int r, q;

    r = side_band_new(v->reader, &v->side_band);
    if (r < 0)
        return r;
    while ((r = pd_reader_next(v->reader, &record)) > 0) {
        PdStamp stamp = {};

        q = pd_events_stamp(events, &record, &stamp);
        verify_record(&v->records, v->reader, &record, &stamp, q);
        if (q < 0)
            continue;
        q = side_band_add(v->side_band, &record, &stamp);
        if (q < 0)
            return q;
    }
    return r;
}

static void verify_report_damage(Verify *v, bool truncated) {
    const PdDamage *damage = pd_reader_damage(v->reader);
    Place place = {.known = true};

    if (pd_reader_header(v->reader)->unfinished && !damage)
        findings_add(&v->findings, SEVERITY_ERROR, "unfinished", NULL, 1,
                     "its recorder did not finish it, so it ends early and has no features");
    /* A section that ends after the end of the file is the same flaw. */
    if (!damage || (truncated && damage->cut_off))
        return;
    place.file = damage->file;
    place.offset = damage->offset;
    findings_add(&v->findings, SEVERITY_ERROR, "damage", &place, 1, "%s", damage->text);
}

static int verify(Verify *v) {
    int r = verify_read_records(v);
    bool truncated;

    if (r < 0)
        return r;
    r = verify_sections(v->path, v->reader, &v->findings);
    truncated = r > 0;
    verify_report_damage(v, truncated);
    if (r >= 0)
        r = verify_features(v->reader, &v->findings);
    if (r >= 0)
        r = verify_coverage(v->reader, &v->findings);
    if (r < 0)
        return r;
    verify_events(v->reader, truncated, &v->findings);
    r = verify_records_end(&v->records, v->reader, &v->findings);
    if (r >= 0)
        r = side_band_end(v->side_band, &v->findings);
    return r >= 0 && v->findings.failed ? -ENOMEM : r;
}

static void verify_put_count(Buffer *out, uint64_t n, const char *what) {
    text_printf(out, "%" PRIu64 " %s%s", n, what, n == 1 ? "" : "s");
}

static void verify_print_text(const Context *c, const Verify *v, Buffer *out) {
    const char *name = recording_name(v->path);
    const uint64_t *counts = v->findings.counts;
    static const struct {
        Severity severity;
        const char *name;
    } severities[] = {
        {SEVERITY_ERROR, "error"}, {SEVERITY_WARNING, "warning"}, {SEVERITY_NOTE, "note"}};
    bool found = false;

    findings_print(&v->findings, name, c->quiet ? SEVERITY_ERROR : SEVERITY_NOTE, out);
    if (c->quiet)
        return;
    text_escape(out, (Bytes){.data = (const uint8_t *)name, .size = strlen(name)});
    text_puts(out, ": ");
    verify_put_count(out, v->records.records, "record");
    for (size_t i = 0; i < ARRAY_SIZE(severities); i++) {
        uint64_t n = counts[severities[i].severity];

        found |= n > 0;
        if (n > 0) {
            text_puts(out, ", ");
            verify_put_count(out, n, severities[i].name);
        }
    }
    text_puts(out, found ? "" : ", nothing wrong");
    text_putc(out, '\n');
}

static void verify_print_json(const Verify *v, Fields *f) {
    fields_begin_object(f, NULL);
    fields_str(f, "file", recording_name(v->path));
    fields_u64(f, "n_records", v->records.records);
    fields_u64(f, "n_samples", v->records.samples);
    findings_describe(&v->findings, f);
    fields_end_object(f);
}

static int verify_one(Context *c, const char *path, Fields *f) {
    _cleanup_(verify_done) Verify v = {.path = path};
    int r, status = recording_open(path, &v.reader);

    if (status != STATUS_OK)
        return status;
    r = verify(&v);
    if (r < 0)
        return complain(STATUS_FAILED, "Failed to read '%s': %s.", recording_name(path),
                        strerror(-r));
    if (f)
        verify_print_json(&v, f);
    else
        verify_print_text(c, &v, &c->out.buffer);
    return v.findings.counts[SEVERITY_ERROR] > 0 ? STATUS_PARTIAL : STATUS_OK;
}

/* A file that could not be read outweighs one with findings. */
static int verify_worse(int a, int b) {
    if (a == STATUS_OK || b == STATUS_FAILED)
        return b;
    return a;
}

static int verify_run(Context *c, void *settings, char **arguments) {
    Fields fields = fields_to(&c->out.buffer, context_fields_format(c));
    int status = STATUS_OK;

    if (c->json)
        fields_begin_array(&fields, NULL);
    for (; *arguments; arguments++) {
        status = verify_worse(status, verify_one(c, *arguments, c->json ? &fields : NULL));
        if (output_breathe(&c->out) < 0)
            return status;
    }
    if (c->json) {
        fields_end_array(&fields);
        text_putc(&c->out.buffer, '\n');
    }
    return status;
}

const Command command_verify = {
    .name = "verify",
    .group = COMMAND_RECORDING,
    .arguments = "FILE…",
    .n_min = 1,
    .n_max = UINT32_MAX,
    .summary = "Check that recordings are whole and make sense",
    .notes = "Each FILE is a perf.data file, a folder of perf record --threads, or - for a\n"
             "stream on standard input. Each finding is a line: the place, its severity and "
             "a\nsentence. --quiet prints errors only. The status is 0 when there are no errors\n"
             "(warnings and notes do not count), 8 when there are, 1 when a FILE is no\n"
             "perf.data or cannot be read.",
    .run = verify_run,
};
