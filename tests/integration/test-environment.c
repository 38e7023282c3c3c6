/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <ftw.h>
#include <unistd.h>

#include "perfdata/host/host.h"
#include "perfdata/reader/reader.h"
#include "test.h"

/* The environment as the real perf writes it and shows it. */

enum { ATTEMPTS = 6 };

static char folder[64];

static int remove_one(const char *path, _unused_ const struct stat *st, _unused_ int type,
                      _unused_ struct FTW *ftw) {
    return remove(path);
}

static void drop_folder(void) {
    (void)nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static bool have_perf(void) {
    return geteuid() == 0 && system("perf --version >/dev/null 2>&1") == 0;
}

/* Makes the recording again and opens it, read to its end. */
static PdReader *record(const char *arguments) {
    char command[512], path[128];
    PdReader *reader = NULL;
    PdRecord record;
    int r = -1;

    if (folder[0] == '\0') {
        (void)snprintf(folder, sizeof(folder), "/tmp/test-environment-XXXXXX");
        if (!mkdtemp(folder))
            abort();
        (void)atexit(drop_folder);
    }
    (void)snprintf(path, sizeof(path), "%s/perf.data", folder);
    (void)snprintf(command, sizeof(command),
                   "cd %s && rm -rf perf.data && (perf %s) >/dev/null 2>&1 </dev/null", folder,
                   arguments);
    /* perf 6.1 sometimes crashes while it reads build ids at the end. */
    for (unsigned i = 0; r != 0 && i < ATTEMPTS; i++)
        r = system(command);
    if (r != 0 || pd_reader_open(path, NULL, &reader, NULL) < 0)
        return NULL;
    while (pd_reader_next(reader, &record) > 0)
        ;
    return reader;
}

static PdEnvironment *environment_of(PdReader *reader) {
    PdEnvironment *env = NULL;
    PdDamage why;
    unsigned damaged = 0;

    if (pd_environment_new(&env) < 0)
        return NULL;
    if (pd_environment_from_reader(env, reader, &damaged, &why) < 0 || damaged > 0)
        return pd_environment_free(env);
    return env;
}

/* Compares facts that do not change between two reads; the order of PMUs is that of a folder. */
TEST(the_features_of_a_host_equal_those_of_perf_byte_for_byte) {
    static const unsigned bits[] = {
        PD_FEATURE_HOSTNAME,     PD_FEATURE_OSRELEASE,    PD_FEATURE_ARCH,      PD_FEATURE_NRCPUS,
        PD_FEATURE_CPUDESC,      PD_FEATURE_CPUID,        PD_FEATURE_TOTAL_MEM, PD_FEATURE_CACHE,
        PD_FEATURE_CPU_TOPOLOGY, PD_FEATURE_MEM_TOPOLOGY, PD_FEATURE_PMU_CAPS,
    };
    _cleanup_(pd_reader_freep) PdReader *reader = NULL;
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;

    if (!have_perf())
        TEST_SKIP("needs root and perf");
    reader = record("record -q -a -e cpu-clock -- sleep 0.05");
    CHECK(reader);
    CHECK_OK(pd_environment_new(&env));
    CHECK_OK(pd_host_collect(env, "", NULL));
    for (size_t i = 0; i < ARRAY_SIZE(bits); i++) {
        _cleanup_(buffer_done) Buffer ours = {};
        Bytes theirs = {};

        if (!pd_reader_has_feature(reader, bits[i]))
            continue;
        CHECK_OK(pd_reader_feature(reader, bits[i], &theirs));
        CHECK_OK(pd_environment_write(env, bits[i], &ours, false));
        if (!bytes_equal(buffer_bytes(&ours), theirs))
            printf("# %s differs\n", pd_feature_name(bits[i]));
        CHECK(bytes_equal(buffer_bytes(&ours), theirs));
    }
}

static bool has_pmu(const PdEnvironment *env, const PdPmu *pmu) {
    for (size_t i = 0; i < env->n_pmus; i++)
        if (env->pmus[i].type == pmu->type && strcmp(env->pmus[i].name, pmu->name) == 0)
            return true;
    return false;
}

TEST(pmus_and_memory_nodes_are_those_that_perf_sees) {
    _cleanup_(pd_reader_freep) PdReader *reader = NULL;
    _cleanup_(pd_environment_freep) PdEnvironment *ours = NULL, *theirs = NULL;

    if (!have_perf())
        TEST_SKIP("needs root and perf");
    reader = record("record -q -a -e cpu-clock -- sleep 0.05");
    CHECK(reader);
    theirs = environment_of(reader);
    CHECK(theirs);
    CHECK_OK(pd_environment_new(&ours));
    CHECK_OK(pd_host_collect(ours, "", NULL));
    CHECK_EQ(ours->n_pmus, theirs->n_pmus);
    for (size_t i = 0; i < theirs->n_pmus; i++)
        CHECK(has_pmu(ours, &theirs->pmus[i]));
    CHECK_EQ(ours->n_numa_nodes, theirs->n_numa_nodes);
    for (size_t i = 0; i < theirs->n_numa_nodes; i++) {
        CHECK_EQ(ours->numa_nodes[i].node, theirs->numa_nodes[i].node);
        CHECK_STREQ(ours->numa_nodes[i].cpus, theirs->numa_nodes[i].cpus);
    }
}

/* clang-format off */
static const char *const shapes[] = {
    "record -q -a -g -e cpu-clock -- sleep 0.05",
    "record -q -a -z -e cpu-clock -k CLOCK_MONOTONIC -- sleep 0.05",
    "record -q -a -e '{cpu-clock,page-faults}:S' -k CLOCK_BOOTTIME -- sleep 0.05",
    "record -q -B --call-graph dwarf -e cpu-clock -k raw -- sleep 0.05",
    "record -q -a -e cpu-clock,dummy,page-faults:u -c 10000 -k realtime -- sleep 0.05",
    "record -q -a -e context-switches --all-cgroups --namespaces -d -W -- sleep 0.05",
    "record -q -a --threads -e cpu-clock -- sleep 0.05",
    "record -q -a -e sched:sched_switch -- sleep 0.05",
    "record -q -o - -a -e cpu-clock -- sleep 0.05 | cat > perf.data",
    "stat record -e cpu-clock,page-faults -- sleep 0.05",
};
/* clang-format on */

static void check_turned(PdReader *reader, PdEnvironment *env) {
    _cleanup_(pd_environment_freep) PdEnvironment *other = NULL;

    CHECK_OK(pd_environment_new(&other));
    for (unsigned bit = 1; bit < PD_FEATURE_BITS; bit++) {
        _cleanup_(buffer_done) Buffer written = {}, turned = {}, back = {};
        Bytes body = {};

        if (!pd_reader_has_feature(reader, bit))
            continue;
        CHECK_OK(pd_reader_feature(reader, bit, &body));
        CHECK_OK(pd_environment_write(env, bit, &written, false));
        CHECK(bytes_equal(buffer_bytes(&written), body));
        CHECK_OK(pd_environment_write(env, bit, &turned, true));
        CHECK_OK(pd_environment_read(other, bit, buffer_bytes(&turned), true));
        CHECK_OK(pd_environment_write(other, bit, &back, false));
        CHECK(bytes_equal(buffer_bytes(&back), body));
    }
}

/* Lines about the file, not about the environment. */
static bool about_file(const char *line) {
    static const char *const starts[] = {
        "# ====",      "# captured on", "# header version",   "# data offset",
        "# data size", "# feat offset", "# missing features",
    };

    for (size_t i = 0; i < ARRAY_SIZE(starts); i++)
        if (strncmp(line, starts[i], strlen(starts[i])) == 0)
            return true;
    return strncmp(line, "# ", 2) != 0;
}

static void append_listing(Buffer *out) {
    char command[256];
    char *line = NULL;
    size_t size = 0;
    FILE *f;

    (void)snprintf(command, sizeof(command),
                   "perf report --header-only -I -i %s/perf.data 2>/dev/null", folder);
    f = popen(command, "re");
    while (f && getline(&line, &size, f) > 0)
        if (!about_file(line))
            buffer_append(out, line, strlen(line));
    free(line);
    if (f)
        (void)pclose(f);
}

static void check_listing(const PdEnvironment *env) {
    _cleanup_(buffer_done) Buffer ours = {}, theirs = {};
    bool same;

    pd_environment_print(env, &ours);
    append_listing(&theirs);
    CHECK(ours.size > 0);
    same = bytes_equal(buffer_bytes(&ours), buffer_bytes(&theirs));
    if (!same)
        printf("# ours\n%.*s# theirs\n%.*s", (int)ours.size, (char *)ours.data, (int)theirs.size,
               (char *)theirs.data);
    CHECK(same);
}

/* The words are those of the perf of Linux 6.1; later ones say some things differently. */
TEST(recordings_of_perf_are_rewritten_in_both_byte_orders_and_printed_as_by_perf) {
    bool same_words = system("perf --version 2>/dev/null | grep -q ' 6\\.1\\.'") == 0;

    if (!have_perf())
        TEST_SKIP("needs root and perf");
    for (size_t i = 0; i < ARRAY_SIZE(shapes) && !test_failed; i++) {
        _cleanup_(pd_reader_freep) PdReader *reader = record(shapes[i]);
        _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;

        if (!reader)
            printf("# perf %s failed\n", shapes[i]);
        CHECK(reader);
        env = environment_of(reader);
        CHECK(env);
        check_turned(reader, env);
        if (same_words && !test_failed)
            check_listing(env);
        if (test_failed)
            printf("# after perf %s\n", shapes[i]);
    }
}

TEST_MAIN()
