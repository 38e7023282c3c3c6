/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <string.h>

#include "config/config.h"
#include "test.h"

/* The changes that a reload has to make, found by comparing two configurations. */

static const char *const fates[] = {[CONFIG_KEPT] = "kept",
                                    [CONFIG_LIMITED] = "limited",
                                    [CONFIG_REOPENED] = "reopened",
                                    [CONFIG_ADDED] = "added",
                                    [CONFIG_REMOVED] = "removed"};

static int note(void *userdata, ConfigFate fate, const SessionConfig *old,
                const SessionConfig *new) {
    char *told = userdata, one[128];

    snprintf(one, sizeof(one), "%s%s %s", *told ? ", " : "", (new ? new : old)->name, fates[fate]);
    strcat(told, one);
    return strcmp((new ? new : old)->name, "poison") == 0 ? -1 : 0;
}

static Config *with(const char *const (*settings)[3], size_t n) {
    Config *config = NULL;
    int r = config_new(&config);

    for (size_t i = 0; r == 0 && i < n; i++) {
        const char *expected = NULL;

        r = config_set(config, settings[i][0], settings[i][1], settings[i][2], &expected);
    }
    assert(r == 0);
    return config;
}

#define WITH(...)                                                                                  \
    with((const char *const[][3]){__VA_ARGS__}, ARRAY_SIZE(((const char *const[][3]){__VA_ARGS__})))

TEST(added_removed_and_changed_sessions_are_found) {
    _cleanup_(config_freep) Config *old =
        WITH({"Session a", "Frequency", "1"}, {"Session b", "Frequency", "1"},
             {"Session c", "Frequency", "1"}, {"Session d", "Frequency", "1"});
    _cleanup_(config_freep) Config *new =
        WITH({"Session e", "Frequency", "1"}, {"Session d", "Enabled", "no"},
             {"Session c", "Frequency", "1"}, {"Session c", "MaxSegments", "3"},
             {"Session b", "Frequency", "2"});
    char told[512] = "";

    CHECK_OK(config_diff(old, new, note, told));
    CHECK_STREQ(told, "a removed, d removed, e added, c limited, b reopened");
}

TEST(the_same_configuration_changes_nothing) {
    _cleanup_(config_freep) Config *old = WITH({"Session a", "Event", "cpu-clock"});
    _cleanup_(config_freep) Config *new =
        WITH({"Session a", "Event", "sched:sched_switch,r12"}, {"Session a", "Event", "cpu-clock"});
    char told[512] = "";

    CHECK_OK(config_diff(old, new, note, told));
    CHECK_STREQ(told, "");
    CHECK_EQ(config_touches(old, new), 0U);
}

TEST(a_disabled_session_counts_as_missing) {
    _cleanup_(config_freep) Config *old = WITH({"Session a", "Enabled", "no"});
    _cleanup_(config_freep) Config *new =
        WITH({"Session a", "Enabled", "yes"}, {"Session b", "Enabled", "no"});
    char told[512] = "";

    CHECK_OK(config_diff(old, new, note, told));
    CHECK_STREQ(told, "a added");
    told[0] = '\0';
    CHECK_OK(config_diff(new, old, note, told));
    CHECK_STREQ(told, "a removed");
}

TEST(a_change_of_each_session_key_is_found) {
    static const char *const changed[][3] = {
        {"CallGraph", "dwarf:4096", "reopened"},
        {"Event", "faults", "reopened"},
        {"Period", "5", "reopened"},
        {"ExcludeIdle", "no", "reopened"},
        {"UserSamples", "no", "reopened"},
        {"KernelSamples", "no", "reopened"},
        {"Namespaces", "yes", "reopened"},
        {"CPUs", "0", "reopened"},
        {"Cgroup", "a", "reopened"},
        {"Pid", "1", "reopened"},
        {"Tid", "1", "reopened"},
        {"BufferSize", "8K", "reopened"},
        {"Frequency", "7", "reopened"},
        {"RotateIntervalSec", "7s", "limited"},
        {"MaxSegmentSize", "1M", "limited"},
        {"MaxSegmentRaw", "1M", "limited"},
        {"Compress", "none", "limited"},
        {"Layout", "directory", "limited"},
        {"MaxUse", "1G", "limited"},
        {"MaxRetentionSec", "1h", "limited"},
        {"MaxSegments", "5", "limited"},
        {"Enabled", "no", "removed"},
    };
    ConfigTable table = config_table();
    size_t n_session = 0;
    SessionConfig old, new;

    config_session_defaults(&old, "s");
    for (size_t i = 0; i < ARRAY_SIZE(changed); i++) {
        const ConfigKey *key = config_key("Session", changed[i][0]);

        config_session_defaults(&new, "s");
        CHECK_OK(key->parse(key, changed[i][1], &new));
        CHECK_STREQ(fates[config_session_fate(&old, &new)], changed[i][2]);
    }
    for (size_t i = 0; i < table.n; i++)
        n_session += strcmp(table.keys[i].section, "Session") == 0;
    CHECK_EQ(n_session, ARRAY_SIZE(changed));
}

TEST(a_larger_copy_of_stacks_is_a_change) {
    const ConfigKey *key = config_key("Session", "CallGraph");
    SessionConfig old, new;

    config_session_defaults(&old, "s");
    config_session_defaults(&new, "s");
    CHECK_OK(key->parse(key, "dwarf:4096", &old));
    CHECK_OK(key->parse(key, "dwarf:8192", &new));
    CHECK_EQ(config_session_fate(&old, &new), CONFIG_REOPENED);
}

TEST(a_change_of_each_daemon_key_has_its_effect) {
    _cleanup_(config_freep) Config *old = WITH({"Profd", "MaxUse", "1G"});
    _cleanup_(config_freep) Config *new = WITH({"Profd", "MaxUse", "10%"});

    CHECK_EQ(config_touches(old, new), (unsigned)CONFIG_TOUCHES_STORE);
    new->flush_interval_ns = 1;
    new->storage = STORAGE_VOLATILE;
    CHECK_EQ(config_touches(old, new),
             (unsigned)(CONFIG_TOUCHES_STORE | CONFIG_TOUCHES_DAEMON | CONFIG_TOUCHES_RESTART));
}

TEST(keys_that_need_a_restart_keep_their_old_value) {
    _cleanup_(config_freep) Config *old = WITH({"Profd", "MaxUse", "1G"});
    _cleanup_(config_freep) Config *new =
        WITH({"Profd", "MaxUse", "2G"}, {"Profd", "Storage", "volatile"});

    config_keep_until_restart(old, new);
    CHECK_EQ(new->storage, STORAGE_PERSISTENT);
    CHECK_EQ(new->max_use_bytes, (uint64_t)2 << 30);
    CHECK_EQ(config_touches(old, new), (unsigned)CONFIG_TOUCHES_STORE);
}

TEST(the_walk_stops_when_the_callback_fails) {
    _cleanup_(config_freep) Config *old = WITH({"Profd", "MaxUse", "1G"});
    _cleanup_(config_freep) Config *new =
        WITH({"Session poison", "Frequency", "1"}, {"Session z", "Frequency", "1"});
    char told[512] = "";

    CHECK_EQ(config_diff(old, new, note, told), -1);
    CHECK_STREQ(told, "poison added");
}

TEST_MAIN()
