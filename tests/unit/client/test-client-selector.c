/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/file/selector.h"

#include "make-record.h"
#include "test.h"

/* Which samples of a small recording made by hand each option chooses. */

enum { SHOP = 100, CRON = 200, SHOP_GROUP = 7, CRON_GROUP = 8 };

typedef struct Scene {
    PdEvents *events;
    SelectorOptions options;
    Selector selector;
    unsigned wanted; /* a bit for each sample */
} Scene;

static void scene_done(Scene *s) {
    selector_done(&s->selector);
    selector_options_done(&s->options);
    s->events = pd_events_free(s->events);
}

static void scene_init(Scene *s) {
    const PdAttr attr = {.size = 128,
                         .sample_type =
                             PD_SAMPLE_TID | PD_SAMPLE_TIME | PD_SAMPLE_CPU | PD_SAMPLE_CGROUP,
                         .flags = PD_ATTR_SAMPLE_ID_ALL};
    PdEvent *event;

    *s = (Scene){};
    assert(pd_events_new(&s->events) == 0);
    assert(pd_events_add(s->events, &attr, (Bytes){}, NULL, 0, &event) == 0);
}

static bool take(Scene *s, Make *m, uint32_t type) {
    PdRecord record = make_record(m, type, 0);
    PdStamp stamp;
    bool wanted;

    assert(pd_events_stamp(s->events, &record, &stamp) == 0);
    assert(selector_feed(&s->selector, &record, &stamp) == 0);
    wanted = selector_wants(&s->selector, &record, &stamp);
    make_done(m);
    return wanted;
}

static void trailer(Make *m) {
    u64(m, 0); /* pid and tid */
    u64(m, 1); /* time */
    u64(m, 0); /* cpu */
}

static void name_thread(Scene *s, uint32_t pid, uint32_t tid, const char *name) {
    Make m = {};

    u32(&m, pid);
    u32(&m, tid);
    text(&m, name, 16);
    trailer(&m);
    (void)take(s, &m, PD_RECORD_COMM);
}

static void name_group(Scene *s, uint64_t id, const char *path) {
    Make m = {};

    u64(&m, id);
    text(&m, path, 40);
    trailer(&m);
    (void)take(s, &m, PD_RECORD_CGROUP);
}

static bool sample(Scene *s, uint32_t pid, uint32_t tid, uint32_t cpu, uint64_t group) {
    Make m = {};

    u32(&m, pid);
    u32(&m, tid);
    u64(&m, 1);
    u32(&m, cpu);
    u32(&m, 0);
    u64(&m, group);
    return take(s, &m, PD_RECORD_SAMPLE);
}

/* Samples 0 to 3: shop, a thread of it that has another name, cron, the idle task. */
static void play(Scene *s) {
    assert(selector_init(&s->selector, &s->options) == 0);
    name_group(s, SHOP_GROUP, "/system.slice/shop.service");
    name_group(s, CRON_GROUP, "/system.slice/cron.service");
    name_thread(s, SHOP, SHOP, "shop");
    name_thread(s, SHOP, SHOP + 1, "w\xff");
    name_thread(s, CRON, CRON, "cron");
    s->wanted = (unsigned)sample(s, SHOP, SHOP, 0, SHOP_GROUP) << 0 |
                (unsigned)sample(s, SHOP, SHOP + 1, 1, SHOP_GROUP) << 1 |
                (unsigned)sample(s, CRON, CRON, 0, CRON_GROUP) << 2 |
                (unsigned)sample(s, 0, 0, 1, 0) << 3;
}

/* Several options part their words by a space: "pid=100 cpu=0". */
static void give(Scene *s, const char *words) {
    char text[128], *rest = text;

    snprintf(text, sizeof(text), "%s", words);
    for (char *word; (word = strsep(&rest, " ")) && *word;) {
        char *value = strchr(word, '=');
        const Option none = {};

        *value++ = '\0';
        if (strcmp(word, "pid") == 0)
            CHECK_OK(option_numbers(&none, value, &s->options.pids));
        else if (strcmp(word, "tid") == 0)
            CHECK_OK(option_numbers(&none, value, &s->options.tids));
        else if (strcmp(word, "cpu") == 0)
            CHECK_OK(option_numbers(&none, value, &s->options.cpus));
        else if (strcmp(word, "comm") == 0)
            CHECK_OK(option_words(&none, value, &s->options.comms));
        else if (strcmp(word, "cgroup") == 0)
            CHECK_OK(option_words(&none, value, &s->options.cgroups));
        else
            CHECK_OK(option_words(&none, value, &s->options.units));
    }
}

TEST(each_option_selects_the_samples_that_a_snapshot_would) {
    static const struct {
        const char *words;
        unsigned wanted;
    } rows[] = {
        {"", 0xf},
        {"pid=100", 0x3},
        {"pid=100-199,200", 0x7},
        {"tid=101", 0x2},
        {"cpu=0", 0x5},
        {"cpu=0-1", 0xf},
        {"comm=shop", 0x1},
        {"comm=w\xff", 0x2},
        {"comm=w\\xff", 0x2}, /* as we print it */
        {"comm=swapper,cron", 0xc},
        {"cgroup=/system.slice/shop.service", 0x3},
        {"cgroup=system.slice", 0x7},
        {"unit=shop", 0x3},
        {"unit=*.service", 0x7},
        {"unit=shop cgroup=/system.slice/cron.service", 0x7},
        {"pid=100 cpu=0", 0x1},
        {"comm=cron unit=shop", 0},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_(scene_done) Scene s;

        scene_init(&s);
        give(&s, rows[i].words);
        play(&s);
        CHECK_EQ(s.wanted, rows[i].wanted);
    }
}

TEST(options_that_match_nothing_are_named_with_similar_names) {
    static const struct {
        const char *words, *text, *near;
    } rows[] = {
        {"comm=shpo", "comm 'shpo'", "shop"},
        {"comm=qqqqqq", "comm 'qqqqqq'", ""},
        {"unit=crno", "unit 'crno.service'", "cron.service"},
        {"cgroup=shop.service", "cgroup 'shop.service'", "/system.slice/shop.service"},
        {"pid=5,6", "process 5 or process 6", ""},
        {"pid=100 tid=200", "process 100 and thread 200", ""},
        {"comm=shop cpu=5", "CPU 5", ""},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_(buffer_done) Buffer text = {};
        _cleanup_(scene_done) Scene s;
        const NearNames *near;

        scene_init(&s);
        give(&s, rows[i].words);
        play(&s);
        CHECK_EQ(s.wanted, 0);
        near = mismatch_describe(&s.selector.mismatch, &s.selector.selection, &text);
        buffer_append(&text, "", 1);
        CHECK_STREQ((const char *)text.data, rows[i].text);
        CHECK_STREQ(near->n > 0 ? near->names[0].name : "", rows[i].near);
    }
}

TEST(records_about_a_selected_process_are_kept_too) {
    _cleanup_(scene_done) Scene s;
    Make m = {};

    scene_init(&s);
    give(&s, "pid=100 comm=shop");
    play(&s);
    u32(&m, SHOP);
    u32(&m, SHOP);
    text(&m, "shop", 16);
    trailer(&m);
    CHECK(take(&s, &m, PD_RECORD_COMM));
    u32(&m, CRON);
    u32(&m, CRON);
    text(&m, "cron", 16);
    trailer(&m);
    CHECK(!take(&s, &m, PD_RECORD_COMM));
}

TEST_MAIN()
