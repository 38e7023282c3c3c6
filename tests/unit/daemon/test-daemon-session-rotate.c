/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "session/session-private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "capture/ring/broken-sample.h"
#include "test.h"
#include "util/log.h"

/* When the log says that a segment is finished. What a session works with is the test's own. */

static int begin_result; /* of the store, when the next segment is to begin */
static int emission_result;
static unsigned n_begun, n_finished_logged;
static char logged_segment[64];
static int emission;
static PdEvent side_band = {.ids = (uint64_t[]){1}};

static StoreStacks noted; /* of the open segment */

Account account_between(const Account *from, const Account *to) {
    Account account = {.samples = to->samples - from->samples};

    for (size_t i = 0; i < UNWIND_VERDICTS; i++)
        account.stacks.samples[i] = to->stacks.samples[i] - from->stacks.samples[i];
    return account;
}

void account_take(Account *account, const SamplerSession *sampler, const Tracker *tracker) {
}

bool clock_anchor_moved(const ClockAnchor *from, const ClockAnchor *to, uint64_t ns) {
    return false;
}

bool broken_samples_are_possible(const PdEvents *events) {
    return false;
}

static Emission *the_emission(void) {
    return (Emission *)(void *)&emission;
}

int emission_new(History *history, const PdTrailer *trailer, Emission **ret) {
    if (emission_result == 0)
        *ret = the_emission();
    return emission_result;
}

Emission *emission_free(Emission *e) {
    return NULL;
}

int emission_preamble(Emission *e, Buffer *out) {
    buffer_u64(out, 0, false);
    return 0;
}

void emission_set_data(Emission *e) {
}

bool sampler_is_unwound(const SamplerSession *session) {
    return true;
}

uint32_t sampler_stack_bytes(const SamplerSession *session) {
    return 8192;
}

bool sampler_takes_stacks(const SamplerSession *session) {
    return false;
}

void pd_emit_mark(Buffer *out, uint32_t type) {
}

const PdEvents *sampler_events(const SamplerSession *session) {
    return NULL;
}

unsigned sampler_generation(const SamplerSession *session) {
    return 0;
}

bool sampler_is_waiting(const SamplerSession *session) {
    return false;
}

const PdEvent *sampler_side_band_event(const Sampler *sampler) {
    return &side_band;
}

Bytes sampler_tracing(const SamplerSession *session) {
    return (Bytes){};
}

bool sampler_was_taken_over(const SamplerSession *session) {
    return false;
}

History *tracker_history(Tracker *tracker) {
    return NULL;
}

void pd_coverage_done(PdCoverage *coverage) {
}

int session_coverage(Session *session, PdCoverage *ret) {
    *ret = (PdCoverage){};
    return 0;
}

int session_log_failure(const Session *session, int error, const char *what) {
    return error;
}

int session_note(void *userdata, const SegmentFacts *facts) {
    store_stacks_add(&noted, &facts->stacks);
    return 0;
}

int session_queue_side_band(Session *session) {
    return 0;
}

bool session_waits(const Session *session) {
    return false;
}

StoreSessionCounts store_session_counts(StoreSession *session) {
    return (StoreSessionCounts){};
}

const char *store_session_path(const StoreSession *session) {
    static char path[32];

    snprintf(path, sizeof(path), "segment-%u", n_begun);
    return path;
}

int store_session_begin(StoreSession *session, SegmentHead *head) {
    if (begin_result == 0)
        n_begun++;
    return begin_result;
}

static int on_log(LogLevel level, int error, const char *message, const LogField *fields,
                  size_t n) {
    bool is_finished = false;

    for (size_t i = 0; i < n; i++)
        is_finished |= strcmp(fields[i].name, "PROFD_EVENT") == 0 &&
                       strcmp(fields[i].value, "segment-finished") == 0;
    for (size_t i = 0; is_finished && i < n; i++)
        if (strcmp(fields[i].name, "PROFD_SEGMENT") == 0)
            snprintf(logged_segment, sizeof(logged_segment), "%s", fields[i].value);
    n_finished_logged += is_finished;
    return 0;
}

TEST(a_segment_is_logged_as_finished_when_the_next_one_has_begun) {
    static Session session = {.is_open = true};
    const ClockAnchor clock = {.monotonic_ns = 1};

    log_set_backend(on_log);
    /* The first segment has none before it. */
    CHECK_OK(session_rotate(&session, ROTATE_ASKED, &clock));
    CHECK(session.emission && n_begun == 1);
    CHECK_EQ(n_finished_logged, 0);
    /* Too many sessions rotate at once: the segment goes on. */
    emission_result = -E2BIG;
    CHECK_OK(session_rotate(&session, ROTATE_TIME, &clock));
    CHECK_EQ(session.n_begun, 1);
    emission_result = 0;
    /* The queue is full, or memory ran out: the segment goes on. */
    begin_result = -ENOBUFS;
    for (unsigned i = 0; i < 3; i++)
        CHECK_OK(session_rotate(&session, ROTATE_TIME, &clock));
    CHECK_EQ(n_finished_logged, 0);
    begin_result = -ENOMEM;
    CHECK_EQ(session_rotate(&session, ROTATE_TIME, &clock), -ENOMEM);
    CHECK_EQ(n_finished_logged, 0);
    CHECK_EQ(session.n_begun, 1);
    begin_result = 0;
    CHECK_OK(session_rotate(&session, ROTATE_TIME, &clock));
    CHECK_EQ(n_finished_logged, 1);
    CHECK_STREQ(logged_segment, "segment-1");
    CHECK_EQ(session.n_begun, 2);
    log_set_backend(NULL);
}

TEST(a_segment_has_the_counts_of_its_own_stacks) {
    static Session session = {.is_open = true};
    const ClockAnchor clock = {.monotonic_ns = 1};

    log_set_backend(on_log);
    CHECK_OK(session_rotate(&session, ROTATE_ASKED, &clock));
    for (uint64_t i = 1; i <= 2; i++) {
        noted = (StoreStacks){};
        for (size_t v = 0; v < UNWIND_VERDICTS; v++)
            session.stacks.samples[v] += i * (v + 1);
        CHECK_OK(session_rotate(&session, ROTATE_TIME, &clock));
        CHECK_EQ(noted.whole, i * (UNWIND_WHOLE + 1));
        CHECK_EQ(noted.truncated, i * (UNWIND_TRUNCATED + 1));
        CHECK_EQ(noted.pending, i * (UNWIND_PENDING + 1));
        CHECK_EQ(noted.refused, i * (UNWIND_REFUSED + 1));
        CHECK_EQ(noted.no_rule, i * (UNWIND_NO_RULE + 1));
        CHECK_EQ(noted.anonymous, i * (UNWIND_ANONYMOUS + 1));
        CHECK_EQ(noted.no_code, i * (UNWIND_NO_CODE + 1));
        CHECK_EQ(noted.stuck, i * (UNWIND_STUCK + 1));
        CHECK_EQ(noted.bits32, i * (UNWIND_32_BIT + 1));
        CHECK_EQ(noted.no_user, i * (UNWIND_NO_USER + 1));
        CHECK_EQ(noted.bytes, 8192);
    }
    log_set_backend(NULL);
}

TEST_MAIN()
