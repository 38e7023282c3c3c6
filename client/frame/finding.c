/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/frame/finding.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/text.h"

/* A bounded list. A file may be wrong in a million places, but nobody reads a million lines. */

static const char *const names[N_SEVERITIES] = {
    [SEVERITY_NOTE] = "note",
    [SEVERITY_WARNING] = "warning",
    [SEVERITY_ERROR] = "error",
};

void findings_done(Findings *findings) {
    free(findings->items);
    *findings = (Findings){};
}

static Finding *finding_next_item(Findings *findings) {
    if (findings->n == findings->allocated) {
        size_t n = findings->allocated ? findings->allocated * 2 : 16;
        Finding *p = reallocarray(findings->items, n, sizeof(*p));

        if (!p) {
            findings->failed = true;
            return NULL;
        }
        findings->items = p;
        findings->allocated = n;
    }
    return &findings->items[findings->n++];
}

void findings_add(Findings *findings, Severity severity, const char *check, const Place *place,
                  uint64_t n, const char *format, ...) {
    Finding *finding;
    va_list ap;

    findings->counts[severity]++;
    if (findings->n >= FINDINGS_MAX)
        return;
    finding = finding_next_item(findings);
    if (!finding)
        return;
    *finding = (Finding){.severity = severity, .check = check, .n = n};
    if (place)
        finding->place = *place;
    va_start(ap, format);
    vsnprintf(finding->text, sizeof(finding->text), format, ap);
    va_end(ap);
}

static void finding_escape(Buffer *out, const char *text) {
    text_escape(out, (Bytes){.data = (const uint8_t *)text, .size = strlen(text)});
}

static void finding_print_one(const Finding *finding, const char *name, Buffer *out) {
    finding_escape(out, name);
    if (finding->place.known && finding->place.file > 0)
        text_printf(out, "/data.%" PRIu32, finding->place.file - 1);
    text_puts(out, ": ");
    if (finding->place.known)
        text_printf(out, "offset %" PRIu64 ": ", finding->place.offset);
    text_printf(out, "%s: ", names[finding->severity]);
    finding_escape(out, finding->text);
    text_putc(out, '\n');
}

void findings_print(const Findings *findings, const char *name, Severity least, Buffer *out) {
    uint64_t all = 0;

    for (size_t i = 0; i < findings->n; i++)
        if (findings->items[i].severity >= least)
            finding_print_one(&findings->items[i], name, out);
    for (size_t i = 0; i < N_SEVERITIES; i++)
        all += findings->counts[i];
    if (all > findings->n) {
        finding_escape(out, name);
        text_printf(out, ": note: %" PRIu64 " further findings are not shown\n", all - findings->n);
    }
}

static void finding_describe_one(const Finding *finding, Fields *f) {
    fields_str(f, "severity", names[finding->severity]);
    fields_str(f, "check", finding->check);
    fields_str(f, "text", finding->text);
    fields_u64(f, "count", finding->n);
    if (finding->place.known) {
        fields_u64(f, "offset", finding->place.offset);
        fields_u64(f, "file", finding->place.file);
    }
}

void findings_describe(const Findings *findings, Fields *f) {
    fields_u64(f, "errors", findings->counts[SEVERITY_ERROR]);
    fields_u64(f, "warnings", findings->counts[SEVERITY_WARNING]);
    fields_u64(f, "notes", findings->counts[SEVERITY_NOTE]);
    for (size_t i = fields_begin_list(f, "findings"); fields_next(f, i, findings->n); i++)
        finding_describe_one(&findings->items[i], f);
}
