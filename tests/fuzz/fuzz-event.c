/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/event/event-attr.h"
#include "capture/event/event-tracing.h"
#include "fuzz.h"
#include "unit/make-event-host.h"

/*
 * A text of Event= of any bytes, looked up on a machine of our own; what it comes to is settled,
 * refused for each reason until nothing is left to give up, and its tracing data is built. Input: a
 * byte for the policy, the text, and after a NUL each: an event and a format of the PMU `cpu`,
 * both named `fuzzed`.
 */

enum { PARTS = 3 };

static MadeHost made;

static void drop_host(void) {
    made_host_done(&made);
}

static void make_host(void) {
    if (made.root[0])
        return;
    if (made_host_init(&made) < 0)
        abort();
    made.host.no_vendor_names = true;
    (void)atexit(drop_host);
}

static void settle(const EventList *list, uint8_t kind) {
    static const int errors[] = {-EINVAL, -EOPNOTSUPP, -ENOENT, -EPERM, -EACCES};
    EventPolicy policy = {.frequency_hz = 99,
                          .max_frequency_hz = kind & 1 ? 50 : 0,
                          .period = kind & 2 ? 1000 : 0,
                          .call_graph = (EventCallGraph)(kind >> 2 & 3) + 1,
                          .exclude_idle = kind & 16,
                          .exclude_user = kind & 32,
                          .exclude_kernel = kind & 64,
                          .inherit = kind & 128};
    _cleanup_free_ PdAttr *attrs = calloc(list->n, sizeof(*attrs));
    char error[512];
    size_t bad;

    if (!attrs || event_attrs_settle(list, &policy, attrs, &bad, error, sizeof(error)) < 0)
        return;
    for (size_t i = 0; i < list->n * ARRAY_SIZE(errors); i++) {
        const char *given_up;

        for (unsigned n = 0;
             event_attr_fallback(&attrs[i % list->n], &policy, errors[i / list->n], &given_up) > 0;
             n++)
            if (n > 32)
                abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    _cleanup_(event_list_freep) EventList *list = NULL;
    _cleanup_(buffer_done) Buffer tracing = {};
    char parts[PARTS][EVENT_TEXT_MAX + 16] = {}, error[512] = "";

    if (size < 1)
        return 0;
    make_host();
    for (size_t part = 0, at = 1; part < PARTS && at <= size; part++) {
        size_t n = strnlen((const char *)data + at, size - at);

        memcpy(parts[part], data + at, MIN(n, sizeof(parts[0]) - 1));
        at += n + 1;
    }
    if (made_pmu(&made, "cpu/events/fuzzed", parts[1]) < 0 ||
        made_pmu(&made, "cpu/format/fuzzed", parts[2]) < 0)
        return 0;
    if (event_list_parse(parts[0], &made.host, &list, error, sizeof(error)) < 0) {
        /* Each problem is reported in printable letters. */
        if (error[0] == '\0')
            abort();
        for (const char *c = error; *c; c++)
            if ((uint8_t)*c < 0x20 || *c == 0x7f)
                abort();
        return 0;
    }
    settle(list, data[0]);
    (void)event_tracing(list, &made.host, &tracing);
    return 0;
}
