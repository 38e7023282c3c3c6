/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/plan/check.h"

#include "make-root.h"
#include "make-sampler.h"
#include "util/log.h"

/* Configurations on hosts that are made up: what the keeper refuses there. */

typedef struct Report {
    unsigned n[3];
    char key[32], sentence[1536]; /* of the last one */
} Report;

static void hear(void *userdata, CheckResult result, const char *key, const char *sentence) {
    Report *report = userdata;

    report->n[result]++;
    snprintf(report->key, sizeof(report->key), "%s", key);
    snprintf(report->sentence, sizeof(report->sentence), "%s", sentence);
}

static int refuse_hardware(const KeeperEvent *event) {
    return load_u32(event->attr, false) == PD_TYPE_HARDWARE ? -ENOENT : 0;
}

static int refuse_all(const KeeperEvent *event _unused_) {
    return -EACCES;
}

static int refuse_busy(const KeeperEvent *event _unused_) {
    return -EBUSY;
}

static int refuse_descriptors(const KeeperEvent *event _unused_) {
    return -EMFILE;
}

static int check_with(CheckOptions options, Keeper *keeper, const SessionConfig *config,
                      Report *ret) {
    unsigned cpus[] = {0};
    CpuList online = {.cpus = cpus, .n = 1};

    options.keeper = keeper;
    options.online = &online;
    options.max_hz = 1000;
    options.buffer_total_bytes = 64 << 20;
    options.report = hear;
    options.userdata = ret;
    *ret = (Report){};
    return check_session(&options, config);
}

static int check(Keeper *keeper, const SessionConfig *config, bool is_elsewhere, Report *ret) {
    return check_with((CheckOptions){.is_elsewhere = is_elsewhere}, keeper, config, ret);
}

TEST(events_that_the_host_cannot_record_are_refused) {
    /* clang-format off */
    static const struct {
        int (*refuse)(const KeeperEvent *event);
        const char *events;
        unsigned wrong, unknown, remarks;
        bool is_elsewhere;
    } rows[] = {
        { NULL,               "cpu-clock",              0, 0, 0, false },
        { NULL,               "cpu-clock,cs:u",         0, 0, 0, true  },
        { refuse_hardware,    "auto",                   0, 0, 0, false },
        { refuse_hardware,    "cycles",                 0, 0, 1, false },
        { refuse_hardware,    "instructions",           1, 0, 0, false },
        { refuse_hardware,    "instructions",           1, 0, 0, true  },
        { refuse_hardware,    "cs,instructions,cycels", 2, 0, 0, false },
        { refuse_hardware,    "{cs,instructions}",      1, 0, 0, false },
        { refuse_hardware,    "cs:q,cycles",            1, 0, 1, false },
        { refuse_all,         "cs,cpu-clock",           2, 0, 0, false },
        { refuse_all,         "cs,cpu-clock",           0, 2, 0, true  },
        { refuse_all,         "cs,cpu-clok",            1, 1, 0, true  },
        { refuse_busy,        "cpu-clock:u",            0, 1, 0, false },
        { refuse_descriptors, "cpu-clock",              1, 0, 0, false },
        { refuse_descriptors, "cpu-clock",              0, 1, 0, true  },
    };
    /* clang-format on */
    _cleanup_free_ Keeper *keeper = calloc(1, sizeof(Keeper));

    CHECK(keeper);
    NEED_EVENTS(keeper);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        SessionConfig config = clock_config("one", 99);
        Report report;

        keeper->refuse = rows[i].refuse;
        snprintf(config.events, sizeof(config.events), "%s", rows[i].events);
        CHECK_OK(check(keeper, &config, rows[i].is_elsewhere, &report));
        if (report.n[CHECK_WRONG] != rows[i].wrong)
            printf("# row %zu: %s\n", i, report.sentence);
        CHECK_EQ(report.n[CHECK_WRONG], rows[i].wrong);
        CHECK_EQ(report.n[CHECK_UNKNOWN], rows[i].unknown);
        CHECK_EQ(report.n[CHECK_REMARK], rows[i].remarks);
        CHECK(report.n[0] + report.n[1] + report.n[2] == 0 || strcmp(report.key, "Event") == 0);
    }
    CHECK_EQ(made_count(keeper), 0U);
}

TEST(a_key_wrong_on_any_host_is_reported_and_a_missing_target_is_not) {
    _cleanup_free_ Keeper *keeper = calloc(1, sizeof(Keeper));
    SessionConfig config = clock_config("one", 99);
    Report report;

    CHECK(keeper);
    NEED_EVENTS(keeper);
    snprintf(config.cpus, sizeof(config.cpus), "8000-8001");
    CHECK_OK(check(keeper, &config, false, &report));
    CHECK(report.n[CHECK_WRONG] == 1 && strcmp(report.key, "CPUs") == 0);
    snprintf(config.cpus, sizeof(config.cpus), "0,8000");
    CHECK_OK(check(keeper, &config, false, &report));
    CHECK(report.n[CHECK_WRONG] == 0 && report.n[CHECK_REMARK] == 1);
    config.cpus[0] = '\0';
    snprintf(config.cgroup, sizeof(config.cgroup), "profd-no/such.slice");
    CHECK_OK(check(keeper, &config, false, &report));
    CHECK(report.n[CHECK_WRONG] == 0 && report.n[CHECK_UNKNOWN] == 1);
    config.cgroup[0] = '\0';
    config.n_pids = 1;
    config.pids[0] = INT32_MAX;
    CHECK_OK(check(keeper, &config, false, &report));
    CHECK(report.n[CHECK_WRONG] == 0 && report.n[CHECK_UNKNOWN] == 1);
    CHECK_STREQ(report.key, "Pid");
    config.n_pids = 0;
    config.frequency_hz = 5000;
    CHECK_OK(check(keeper, &config, false, &report));
    CHECK(report.n[CHECK_REMARK] == 1 && strcmp(report.key, "Frequency") == 0);
    config.frequency_hz = CONFIG_FREQUENCY_MAX;
    CHECK_OK(check(keeper, &config, false, &report));
    CHECK_EQ(report.n[CHECK_REMARK], 0U);
    CHECK_EQ(made_count(keeper), 0U);
}

TEST(a_check_that_times_out_counts_as_not_checked) {
    _cleanup_free_ Keeper *keeper = calloc(1, sizeof(Keeper));
    SessionConfig config = clock_config("one", 99);
    Report report;

    CHECK(keeper);
    NEED_EVENTS(keeper);
    keeper->refuse = refuse_all;
    CHECK_OK(check_with((CheckOptions){.until_ns = 1}, keeper, &config, &report));
    CHECK_EQ(report.n[CHECK_WRONG], 0U);
    CHECK_EQ(report.n[CHECK_UNKNOWN], 1U);
    CHECK_STREQ(report.key, "Event");
    CHECK(strstr(report.sentence, "too long"));
    /* What can be known without an event is checked all the same. */
    snprintf(config.cpus, sizeof(config.cpus), "8000");
    CHECK_OK(check_with((CheckOptions){.until_ns = 1}, keeper, &config, &report));
    CHECK_EQ(report.n[CHECK_WRONG], 1U);
    config.cpus[0] = '\0';
    CHECK_OK(check_with((CheckOptions){.until_ns = UINT64_MAX}, keeper, &config, &report));
    CHECK_EQ(report.n[CHECK_WRONG], 1U);
}

static char tried_group[64];

static int note_group(const KeeperEvent *event) {
    snprintf(tried_group, sizeof(tried_group), "%s", event->cgroup ?: "none");
    return -EBUSY;
}

/* A container that has a part of the tree at its mount, where samples have whole paths. */
TEST(a_control_group_is_found_by_its_whole_path_and_by_its_path_below_the_mount) {
    static const struct {
        const char *cgroup, *tried;
    } rows[] = {{"payload/system.slice/shop.service", "system.slice/shop.service"},
                {"system.slice/shop.service", "system.slice/shop.service"},
                {"payload/system.slice/other.service", NULL},
                {"other/system.slice/shop.service", NULL}};
    _cleanup_free_ Keeper *keeper = calloc(1, sizeof(Keeper));
    char line[256];
    Report report;

    CHECK(keeper);
    NEED_EVENTS(keeper);
    keeper->refuse = note_group;
    begin_root();
    snprintf(line, sizeof(line), "30 1 0:28 /payload %s/cg rw - cgroup2 cgroup2 rw\n", root);
    put("/proc/self/mountinfo", line);
    put_folder("/cg/system.slice/shop.service");
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        SessionConfig config = clock_config("one", 99);

        snprintf(config.cgroup, sizeof(config.cgroup), "%s", rows[i].cgroup);
        snprintf(tried_group, sizeof(tried_group), "nothing");
        CHECK_OK(check_with((CheckOptions){.root = root}, keeper, &config, &report));
        CHECK_EQ(report.n[CHECK_WRONG], 0U);
        CHECK_STREQ(tried_group, rows[i].tried ?: "none");
        CHECK_STREQ(report.key, "Event");
        CHECK_EQ(report.n[CHECK_UNKNOWN], rows[i].tried ? 1U : 2U);
    }
    end_root();
}

TEST_MAIN()
