/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/remote/session-text.h"

#include <inttypes.h>
#include <string.h>

#include "client/frame/figure.h"
#include "client/frame/stack-text.h"
#include "client/remote/coverage-text.h"
#include "client/remote/reply.h"
#include "util/text.h"

/*
 * What an engineer asks about a session, in the usual order: does it record, what, how much is
 * lost, how far back does it reach, what is wrong and what helps.
 */

enum { GAPS_SHOWN = 3 };

Color session_color(const json_t *session) {
    const char *state = reply_string(session, "state");

    if (strcmp(state, "failed") == 0)
        return COLOR_BAD;
    if (json_array_size(reply_member(session, "degraded")) > 0)
        return COLOR_WARNING;
    return strcmp(state, "active") == 0 ? COLOR_GOOD : COLOR_NONE;
}

/* The reasons of sessions that record nothing. */
static const char *const idle_reasons[] = {"stopped",   "paused", "failed",
                                           "lateStart", "noCpus", "absentGroup"};

static bool session_text_is_idle_reason(const char *name) {
    for (size_t i = 0; i < ARRAY_SIZE(idle_reasons); i++)
        if (strcmp(name, idle_reasons[i]) == 0)
            return true;
    return false;
}

bool session_records_nothing(const json_t *session) {
    const json_t *degraded = reply_member(session, "degraded");
    bool is_idle = strcmp(reply_string(session, "state"), "failed") == 0;

    for (size_t i = 0; !is_idle && i < json_array_size(degraded); i++)
        is_idle = session_text_is_idle_reason(reply_string(json_array_get(degraded, i), "reason"));
    return is_idle;
}

/* While another session records: what is idle must not pass for recorded. */
static void session_text_count_idle(Buffer *out, const json_t *status) {
    const json_t *session;
    uint64_t n = 0;
    size_t i;

    json_array_foreach(reply_member(status, "sessions"), i, session) n +=
        session_records_nothing(session);
    if (n > 0)
        text_printf(out, "; %" PRIu64 " %s nothing", n,
                    n == 1 ? "session records" : "sessions record");
}

/* Since when some session has been recording without a break; 0: it is not known. */
static uint64_t session_text_recording_since(const json_t *status) {
    uint64_t began = reply_count(status, "sinceUsec"), first = 0;
    const json_t *session;
    size_t i;

    json_array_foreach(reply_member(status, "sessions"), i, session) {
        /* Without a time of its own it is in its state since profd began. */
        uint64_t since =
            reply_has(session, "sinceUsec") ? reply_count(session, "sinceUsec") : began;

        if (strcmp(reply_string(session, "state"), "active") == 0 &&
            !session_records_nothing(session) && (first == 0 || since < first))
            first = since;
    }
    return first;
}

void session_put_title(Buffer *out, const json_t *status, uint64_t now_us) {
    const char *state = reply_string(status, "state");
    bool records = strcmp(state, "recording") == 0, is_idle = strcmp(state, "idle") == 0;
    uint64_t since = records ? session_text_recording_since(status) : 0;

    text_printf(out, "%s on %s: %s", reply_string(status, "version"),
                reply_string(status, "hostname"), is_idle ? "records nothing" : state);
    if (since == 0 && reply_has(status, "sinceUsec")) {
        text_puts(out, is_idle || records ? ", runs" : "");
        since = reply_count(status, "sinceUsec");
    }
    if (since > 0) {
        text_puts(out, " since ");
        figure_since(out, since, now_us);
    }
    if (!is_idle)
        session_text_count_idle(out, status);
}

/* Makes a sentence out of a clause. */
static void session_text_put_sentence(Buffer *out, const char *text) {
    size_t at = out->size;

    text_printf(out, "%s. ", text);
    if (buffer_error(out) == 0 && out->data[at] >= 'a' && out->data[at] <= 'z')
        out->data[at] = (uint8_t)(out->data[at] - 'a' + 'A');
}

void session_put_reason(Buffer *out, const json_t *reason) {
    session_text_put_sentence(out, reply_string(reason, "meaning"));
    if (*reply_string(reason, "remedy"))
        session_text_put_sentence(out, reply_string(reason, "remedy"));
    text_printf(out, "(%s)", reply_string(reason, "reason"));
}

static void session_text_show_reason(const Screen *s, const json_t *reason) {
    _cleanup_(buffer_done) Buffer text = {};

    session_put_reason(&text, reason);
    text_putc(&text, '\0');
    if (!buffer_error(&text))
        screen_line(s, "Degraded", COLOR_WARNING, (const char *)text.data);
}

static bool session_text_has_reason(const json_t *session, const char *name) {
    const json_t *reason;
    size_t i;

    json_array_foreach(reply_member(session, "degraded"), i,
                       reason) if (strcmp(reply_string(reason, "reason"), name) == 0) return true;
    return false;
}

void session_show_degraded(const Screen *s, const json_t *object) {
    const json_t *sessions = reply_member(object, "sessions"), *reason, *session;
    size_t i, k;

    json_array_foreach(reply_member(object, "degraded"), i, reason) {
        bool told = false;

        json_array_foreach(sessions, k, session) told |=
            session_text_has_reason(session, reply_string(reason, "reason"));
        if (!told)
            session_text_show_reason(s, reason);
    }
}

static void session_text_show_title(const Screen *s, const json_t *session, uint64_t now_us) {
    _cleanup_(buffer_done) Buffer text = {};

    text_puts(&text, reply_string(session, "state"));
    if (reply_has(session, "sinceUsec")) {
        text_puts(&text, " since ");
        figure_since(&text, reply_count(session, "sinceUsec"), now_us);
    }
    text_putc(&text, '\0');
    if (!buffer_error(&text))
        screen_title(s, session_color(session), reply_string(session, "name"),
                     (const char *)text.data);
}

static void session_text_show_what(const Screen *s, const json_t *session, Buffer *text) {
    uint64_t cpus = reply_count(session, "cpus");
    const char *target = reply_string(session, "target");

    text_puts(text, reply_string(session, "describe"));
    if (cpus > 0)
        text_printf(text, ", on %" PRIu64 " CPU%s", cpus, cpus == 1 ? "" : "s");
    if (*target && strcmp(target, "all") != 0)
        text_printf(text, ", of %s", target);
    screen_buffer(s, "Records", text);
}

/* Which call graphs are taken, and why. */
static void session_text_show_call_graph(const Screen *s, const json_t *session) {
    const char *reason = reply_string(session, "callGraphReason");

    if (reply_has(session, "callGraphUsed"))
        screen_printf(s, "Call graph", "%s%s%s.", reply_string(session, "callGraphUsed"),
                      *reason ? ": " : "", reason);
}

/* Shows how much memory and disk the session uses. */
static void session_text_show_cost(const Screen *s, const json_t *session, Buffer *text) {
    uint64_t bytes = reply_count(session, "ringBytes");

    if (bytes == 0)
        return;
    figure_size(text, bytes);
    text_printf(text, " of ring buffers, which hold %.1f s of samples; ",
                (double)reply_count(session, "ringMsec") / 1000);
    figure_size(text, (uint64_t)reply_number(session, "bytesPerSecond"));
    text_puts(text, " written a second");
    screen_buffer(s, "Cost", text);
}

static bool session_text_stores_stacks(const json_t *session) {
    return strncmp(reply_string(session, "callGraphUsed"), "dwarf:", strlen("dwarf:")) == 0;
}

static void session_text_show_samples(const Screen *s, const json_t *session, Buffer *text) {
    uint64_t lost = reply_count(session, "lost"), throttled = reply_count(session, "throttled");
    double rate = reply_number(session, "samplesPerSecond");

    figure_count(text, reply_count(session, "samples"));
    if (strcmp(reply_string(session, "state"), "active") == 0)
        text_printf(text, ", %.*f a second", rate < 10 ? 1 : 0, rate);
    text_puts(text, "; ");
    if (lost > 0)
        figure_count(text, lost);
    text_puts(text, lost > 0 ? " lost" : "none lost");
    if (throttled > 0) {
        text_puts(text, ", throttled ");
        figure_count(text, throttled);
        text_puts(text, throttled == 1 ? " time" : " times");
    }
    screen_buffer(s, "Samples", text);
}

static void session_text_show_stacks(const Screen *s, const json_t *session, Buffer *text) {
    const json_t *stacks = reply_member(session, "stacks");
    StackCounts counts;

    for (size_t i = 0; i < STACK_ROWS; i++)
        counts.samples[i] = reply_count(stacks, stack_rows[i].name);
    stack_text_put(text, &counts);
    if (text->size > 0)
        screen_buffer(s, "Stacks", text);
}

static void session_text_show_stored(const Screen *s, const json_t *session, Buffer *text) {
    uint64_t segments = reply_count(session, "segments");

    figure_size(text, reply_count(session, "storedBytes"));
    text_printf(text, " in %" PRIu64 " segment%s", segments, segments == 1 ? "" : "s");
    if (reply_count(session, "queueBytes") > 0) {
        text_puts(text, ", ");
        figure_size(text, reply_count(session, "queueBytes"));
        text_puts(text, " wait to be written");
    }
    screen_buffer(s, "Stored", text);
}

/* Prints the window that a snapshot can have. */
static void session_text_show_window(const Screen *s, const json_t *session, Buffer *text,
                                     uint64_t now_us) {
    if (!reply_has(session, "oldestUsec"))
        return;
    text_puts(text, "back to ");
    figure_since(text, reply_count(session, "oldestUsec"), now_us);
    if (reply_has(session, "newestUsec") && strcmp(reply_string(session, "state"), "active") != 0) {
        text_puts(text, ", up to ");
        figure_moment(text, reply_count(session, "newestUsec"));
    }
    screen_buffer(s, "Window", text);
}

/* Prints the times that no snapshot can have. */
static void session_text_show_gaps(const Screen *s, const json_t *session, Buffer *text) {
    PdCoverage coverage;

    if (coverage_of_reply(session, &coverage) && coverage_put_gaps(text, &coverage, GAPS_SHOWN))
        screen_buffer(s, "Not recorded", text);
    pd_coverage_done(&coverage);
}

/* Prints the details for a user who asked for this session. */
static void session_text_show_details(const Screen *s, const json_t *session, Buffer *text,
                                      uint64_t now_us) {
    if (reply_has(session, "reachUsec")) {
        figure_span(text, reply_count(session, "reachUsec"));
        text_puts(text, " when the store is full, at the present rates");
        screen_buffer(s, "Reach", text);
    }
    screen_printf(s, "Kind", "%s%s",
                  reply_bool(session, "runtime") ? "started by 'profctl start'" : "configured",
                  reply_bool(session, "sensitive")
                      ? ", holds memory of programs: for root and profd-admin only"
                      : "");
    figure_size(text, reply_count(session, "rawBytes"));
    text_printf(text, " before compression, layout %s", reply_string(session, "layout"));
    screen_buffer(s, "Raw", text);
    if (!reply_has(session, "segment"))
        return;
    text_puts(text, reply_string(session, "segment"));
    if (reply_has(session, "segmentSinceUsec")) {
        text_puts(text, " since ");
        figure_since(text, reply_count(session, "segmentSinceUsec"), now_us);
    }
    screen_buffer(s, "Segment", text);
}

static void session_text_show_missing(const Screen *s, const json_t *session) {
    const json_t *sentence;
    size_t i;

    json_array_foreach(reply_member(session, "missingEvents"), i, sentence)
        screen_printf(s, i == 0 ? "Missing" : NULL, "%s.", json_string_value(sentence));
}

void session_show(const Screen *s, const json_t *session, bool whole, uint64_t now_us) {
    _cleanup_(buffer_done) Buffer text = {};

    session_text_show_title(s, session, now_us);
    if (reply_has(session, "error"))
        screen_line(s, "Error", COLOR_BAD, reply_string(session, "error"));
    if (reply_has(session, "stopReason"))
        screen_line(s, "Stopped", COLOR_NONE, reply_string(session, "stopReason"));
    session_text_show_what(s, session, &text);
    session_text_show_missing(s, session);
    session_text_show_call_graph(s, session);
    if (reply_has(session, "stopsUsec")) {
        figure_since(&text, reply_count(session, "stopsUsec"), now_us);
        screen_buffer(s, "Stops", &text);
    }
    session_text_show_samples(s, session, &text);
    session_text_show_stacks(s, session, &text);
    session_text_show_stored(s, session, &text);
    if (whole || session_text_stores_stacks(session))
        session_text_show_cost(s, session, &text);
    session_text_show_window(s, session, &text, now_us);
    session_text_show_gaps(s, session, &text);
    if (whole)
        session_text_show_details(s, session, &text, now_us);
    session_show_degraded(s, session);
}
