/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "binary/binary-watch.h"

#include "history-fixture.h"
#include "perfdata/record/sample-place.h"
#include "test.h"

/* Which files and processes are asked for, as one line of text. */

static char asked[512];

static void on_file(void *userdata, const MappedImage *image) {
    size_t n = strlen(asked);

    snprintf(asked + n, sizeof(asked) - n, "%" PRIu32 ":%s;", image->pid, image->path);
}

static void on_code(void *userdata, const MappedImage *dump) {
    size_t n = strlen(asked);

    snprintf(asked + n, sizeof(asked) - n, "%" PRIu32 " code%s%s;", dump->pid,
             dump->end > 0 ? " " : "", dump->path);
}

static const PdAttr sampled = {.sample_type = PD_SAMPLE_IDENTIFIER | PD_SAMPLE_IP | PD_SAMPLE_TID |
                                              PD_SAMPLE_TIME | PD_SAMPLE_CALLCHAIN};
static const PdEvent event = {.attr = {.sample_type = PD_SAMPLE_IDENTIFIER | PD_SAMPLE_IP |
                                                      PD_SAMPLE_TID | PD_SAMPLE_TIME |
                                                      PD_SAMPLE_CALLCHAIN}};

/* A sample with a chain of up to two callers. */
static void see(BinaryWatch *watch, uint32_t pid, uint64_t time, uint64_t ip, uint64_t caller) {
    Make m = {};
    PdStamp stamp = {.event = &event, .pid = pid, .tid = pid, .time = time};
    PdRecord record;

    u64(&m, 1);
    u64(&m, ip);
    u32(&m, pid);
    u32(&m, pid);
    u64(&m, time);
    u64(&m, caller ? 3 : 2);
    u64(&m, PD_CONTEXT_USER);
    u64(&m, ip);
    if (caller)
        u64(&m, caller);
    record = make_record(&m, PD_RECORD_SAMPLE, PD_MISC_USER);
    binary_watch_see(watch, &record, &stamp);
    make_done(&m);
}

static BinaryWatch *watch_of(Fixture *f) {
    static const BinaryWatchSink sink = {.on_file = on_file, .on_code = on_code};
    BinaryWatch *watch;

    asked[0] = '\0';
    forks(f, 1 * SECOND, 7, 7, 1, 1);
    named(f, 1 * SECOND, 7, 7, "a", true);
    maps(f, 1 * SECOND, 7, 0x400000, "/bin/a");
    maps(f, 1 * SECOND, 7, 0x500000, "/lib/b.so");
    maps(f, 1 * SECOND, 7, 0x600000, "//anon");
    maps(f, 1 * SECOND, 7, 0x700000, "/memfd:code (deleted)");
    maps(f, 1 * SECOND, 7, 0x800000, "/tmp/jit-7.dump");
    sweep(f, 2 * SECOND);
    if (binary_watch_new(f->history, &sink, &watch) < 0)
        abort();
    binary_watch_set(watch, true);
    return watch;
}

TEST(a_file_is_asked_for_once_at_its_first_sample) {
    Fixture f = fixture();
    BinaryWatch *watch = watch_of(&f);

    see(watch, 7, 3 * SECOND, 0x400010, 0);
    CHECK_STREQ(asked, "7:/bin/a;");
    for (unsigned i = 0; i < 20; i++)
        see(watch, 7, 3 * SECOND + i, 0x400010 + 4096 * i % 0x1000, 0);
    CHECK_STREQ(asked, "7:/bin/a;");
    see(watch, 8, 3 * SECOND, 0x400010, 0);
    see(watch, 7, 3 * SECOND, 0x900000, 0);
    see(watch, 0, 3 * SECOND, 0x400010, 0);
    CHECK_STREQ(asked, "7:/bin/a;");
    binary_watch_free(watch);
    fixture_done(&f);
}

TEST(a_file_of_callers_is_asked_for_soon) {
    Fixture f = fixture();
    BinaryWatch *watch = watch_of(&f);

    for (unsigned i = 0; i < 4; i++)
        see(watch, 7, 3 * SECOND + i, 0x400010, 0x500010);
    CHECK_STREQ(asked, "7:/bin/a;7:/lib/b.so;");
    binary_watch_free(watch);
    fixture_done(&f);
}

TEST(code_of_no_file_asks_for_the_map_and_the_jitdump_of_its_process) {
    Fixture f = fixture();
    BinaryWatch *watch = watch_of(&f);

    see(watch, 7, 3 * SECOND, 0x600010, 0);
    see(watch, 7, 3 * SECOND, 0x700010, 0);
    CHECK_STREQ(asked, "7 code /tmp/jit-7.dump;7 code /tmp/jit-7.dump;");
    binary_watch_free(watch);
    fixture_done(&f);
}

TEST(a_watch_that_is_off_asks_for_nothing) {
    Fixture f = fixture();
    BinaryWatch *watch = watch_of(&f);

    binary_watch_set(watch, false);
    see(watch, 7, 3 * SECOND, 0x400010, 0);
    CHECK_STREQ(asked, "");
    binary_watch_free(watch);
    fixture_done(&f);
}

TEST(fields_are_found_where_the_event_has_them) {
    static const PdEvent without = {.attr = {.sample_type = PD_SAMPLE_TID}},
                         grouped = {.attr = {.sample_type = PD_SAMPLE_READ | PD_SAMPLE_CALLCHAIN}};
    Make m = {};
    PdRecord record;
    uint64_t ip;
    PdU64s chain;

    for (uint64_t i = 1; i <= 4; i++)
        u64(&m, i);
    u64(&m, 2);
    u64(&m, 70);
    u64(&m, 80);
    record = make_record(&m, PD_RECORD_SAMPLE, 0);
    CHECK_EQ(sampled.sample_type, event.attr.sample_type);
    CHECK(pd_sample_ip(&record, &event, &ip));
    CHECK_EQ(ip, 2);
    CHECK(pd_sample_chain(&record, &event, &chain));
    CHECK_EQ(chain.n, 2);
    CHECK_EQ(pd_u64_at(&chain, 1), 80);
    CHECK(!pd_sample_ip(&record, &without, &ip));
    CHECK(!pd_sample_chain(&record, &without, &chain));
    CHECK(!pd_sample_chain(&record, &grouped, &chain));
    record.size -= 8;
    CHECK(!pd_sample_chain(&record, &event, &chain));
    record.size = 16;
    CHECK(!pd_sample_ip(&record, &event, &ip));
    make_done(&m);
}

TEST_MAIN()
