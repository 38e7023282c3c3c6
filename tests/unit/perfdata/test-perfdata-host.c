/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/host/host.h"

#include <ftw.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "perfdata/host/host-read.h"
#include "test.h"
#include "util/file.h"

/* A root folder of its own for each test, filled file by file. */

static char root[64];

static void make_root(void) {
    (void)snprintf(root, sizeof(root), "/tmp/test-host-XXXXXX");
    if (!mkdtemp(root))
        abort();
}

static int remove_one(const char *path, _unused_ const struct stat *st, _unused_ int type,
                      _unused_ struct FTW *ftw) {
    return remove(path);
}

static void drop_root(_unused_ int *unused) {
    (void)nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
#define WITH_ROOT                                                                                  \
    __attribute__((cleanup(drop_root))) int in_root = 0;                                           \
    (void)in_root;                                                                                 \
    make_root()

static void put(const char *content, const char *format, ...) _printf_(2, 3);
static void put(const char *content, const char *format, ...) {
    char path[512], folder[512];
    size_t n = strlen(root);
    va_list ap;
    FILE *f;

    (void)snprintf(path, sizeof(path), "%s", root);
    va_start(ap, format);
    (void)vsnprintf(path + n, sizeof(path) - n, format, ap);
    va_end(ap);
    (void)snprintf(folder, sizeof(folder), "%s", path);
    *strrchr(folder, '/') = '\0';
    if (file_make_folders(folder, 0755) < 0)
        abort();
    f = fopen(path, "w");
    if (!f || fputs(content, f) < 0 || fclose(f) != 0)
        abort();
}

#define CPU     "/sys/devices/system/cpu"
#define NODE    "/sys/devices/system/node"
#define DEVICES "/sys/bus/event_source/devices"

static void put_cache(unsigned cpu, unsigned index, unsigned level, const char *type,
                      const char *map) {
    char text[32];

    (void)snprintf(text, sizeof(text), "%u\n", level);
    put(text, CPU "/cpu%u/cache/index%u/level", cpu, index);
    put("64\n", CPU "/cpu%u/cache/index%u/coherency_line_size", cpu, index);
    put("512\n", CPU "/cpu%u/cache/index%u/number_of_sets", cpu, index);
    put("8\n", CPU "/cpu%u/cache/index%u/ways_of_associativity", cpu, index);
    put(type, CPU "/cpu%u/cache/index%u/type", cpu, index);
    put("256K\n", CPU "/cpu%u/cache/index%u/size", cpu, index);
    put(map, CPU "/cpu%u/cache/index%u/shared_cpu_list", cpu, index);
}

static void put_cpu(unsigned cpu, const char *core, const char *threads) {
    put("0-2\n", CPU "/cpu%u/topology/package_cpus_list", cpu);
    put(threads, CPU "/cpu%u/topology/core_cpus_list", cpu);
    put(core, CPU "/cpu%u/topology/core_id", cpu);
    put("-1\n", CPU "/cpu%u/topology/physical_package_id", cpu);
}

/* Three CPUs of four are online; two of them share a core. */
static void put_machine(void) {
    put("0-3\n", CPU "/possible");
    put("0-3\n", CPU "/present");
    put("0-2\n", CPU "/online");
    put_cpu(0, "0\n", "0-1\n");
    put_cpu(1, "0\n", "0-1\n");
    put_cpu(2, "5\n", "2\n");
    put_cache(0, 0, 2, "Unified\n", "0-1\n");
    put_cache(0, 1, 1, "Data\n", "0\n");
    put_cache(1, 0, 2, "Unified\n", "0-1\n");
    put_cache(1, 1, 1, "Data\n", "1\n");
}

static void put_memory(void) {
    put("MemFree: 1 kB\nMemTotal:       16384 kB\n", "/proc/meminfo");
    put("0,2\n", NODE "/online");
    put("\nNode 0 MemTotal:  4000 kB\nNode 0 MemFree:  3000 kB\n", NODE "/node0/meminfo");
    put("0-2\n", NODE "/node0/cpulist");
    put("Node 2 MemTotal:  10 kB\nNode 2 MemFree:  0 kB\n", NODE "/node2/meminfo");
    put("\n", NODE "/node2/cpulist");
    put("8000000\n", "/sys/devices/system/memory/block_size_bytes");
    put("", NODE "/node0/memory0/state");
    put("", NODE "/node0/memory70/state");
    put("", NODE "/node0/memory_failure/total");
}

static void put_pmus(void) {
    put("1\n", DEVICES "/software/type");
    put("4\n", DEVICES "/cpu_core/type");
    put("0-1\n", DEVICES "/cpu_core/cpus");
    put("32 and more\n", DEVICES "/cpu_core/caps/branches");
    put("10\n", DEVICES "/cpu_atom/type");
    put("2\n", DEVICES "/cpu_atom/cpus");
    put("no number\n", DEVICES "/broken/type");
}

static PdEnvironment *collect(char *const *argv) {
    PdEnvironment *env = NULL;

    if (pd_environment_new(&env) < 0 || pd_host_collect(env, root, argv) < 0)
        abort();
    return env;
}

TEST(with_an_empty_root_only_uname_is_collected) {
    WITH_ROOT;
    _cleanup_(pd_environment_freep) PdEnvironment *env = collect(NULL);
    struct utsname names;
    unsigned n = 0;

    CHECK_OK(uname(&names));
    CHECK_STREQ(env->hostname, names.nodename);
    CHECK_STREQ(env->osrelease, names.release);
    CHECK_STREQ(env->arch, names.machine);
    for (unsigned bit = 0; bit < PD_FEATURE_BITS; bit++)
        n += env->has[bit];
    CHECK_EQ(n, 3u);
}

TEST(the_command_line_is_kept_word_by_word) {
    WITH_ROOT;
    char *argv[] = {(char *)"profd", (char *)"", (char *)"-x y", NULL};
    _cleanup_(pd_environment_freep) PdEnvironment *env = collect(argv);

    CHECK_EQ(env->cmdline.n, 3u);
    CHECK_STREQ(env->cmdline.items[1], "");
    CHECK_STREQ(env->cmdline.items[2], "-x y");
}

TEST(cpus_and_their_siblings_are_collected) {
    WITH_ROOT;
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;

    put_machine();
    env = collect(NULL);
    CHECK(env->has[PD_FEATURE_NRCPUS]);
    CHECK_EQ(env->nrcpus_available, 4u);
    CHECK_EQ(env->nrcpus_online, 3u);
    CHECK(env->has[PD_FEATURE_CPU_TOPOLOGY]);
    CHECK_EQ(env->core_siblings.n, 1u);
    CHECK_STREQ(env->core_siblings.items[0], "0-2");
    CHECK_EQ(env->thread_siblings.n, 2u);
    CHECK_STREQ(env->thread_siblings.items[1], "2");
    CHECK(!env->has_dies);
    CHECK_EQ(env->n_cpu_places, 4u);
    CHECK_EQ(env->cpu_places[2].core, 5u);
    CHECK_EQ(env->cpu_places[2].socket, UINT32_MAX);
    CHECK_EQ(env->cpu_places[3].core, UINT32_MAX);
}

TEST(caches_are_collected_once_and_by_level) {
    WITH_ROOT;
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;

    put_machine();
    env = collect(NULL);
    CHECK(env->has[PD_FEATURE_CACHE]);
    CHECK_EQ(env->n_caches, 3u);
    CHECK_EQ(env->caches[0].level, 1u);
    CHECK_STREQ(env->caches[0].map, "0");
    CHECK_STREQ(env->caches[1].map, "1");
    CHECK_EQ(env->caches[2].level, 2u);
    CHECK_STREQ(env->caches[2].type, "Unified");
    CHECK_EQ(env->caches[2].sets, 512u);
}

TEST(memory_and_its_nodes_are_collected) {
    WITH_ROOT;
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;

    put_memory();
    env = collect(NULL);
    CHECK_EQ(env->total_mem_kb, 16384u);
    CHECK_EQ(env->n_numa_nodes, 2u);
    CHECK_EQ(env->numa_nodes[0].mem_total_kb, 4000u);
    CHECK_EQ(env->numa_nodes[0].mem_free_kb, 3000u);
    CHECK_STREQ(env->numa_nodes[0].cpus, "0-2");
    CHECK_EQ(env->numa_nodes[1].node, 2u);
    CHECK_STREQ(env->numa_nodes[1].cpus, "");
    CHECK_EQ(env->mem_block_size, 0x8000000u);
    CHECK_EQ(env->n_mem_nodes, 2u);
    CHECK_EQ(env->mem_nodes[0].n_bits, 71u);
    CHECK_EQ(env->mem_nodes[0].bits[0], 1u);
    CHECK_EQ(env->mem_nodes[0].bits[1], 1u << 6);
    CHECK_EQ(env->mem_nodes[1].n_bits, 1u);
    CHECK_EQ(env->mem_nodes[1].bits[0], 0u);
}

static uint32_t pmu_type(const PdEnvironment *env, const char *name) {
    for (size_t i = 0; i < env->n_pmus; i++)
        if (strcmp(env->pmus[i].name, name) == 0)
            return env->pmus[i].type;
    return UINT32_MAX;
}

TEST(pmus_and_their_capabilities_are_collected) {
    WITH_ROOT;
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;

    put_pmus();
    env = collect(NULL);
    CHECK_EQ(env->n_pmus, 3u);
    CHECK_EQ(pmu_type(env, "software"), 1u);
    CHECK_EQ(pmu_type(env, "cpu_atom"), 10u);
    CHECK_EQ(pmu_type(env, "broken"), UINT32_MAX);
    CHECK(!env->has[PD_FEATURE_CPU_PMU_CAPS]);
    CHECK(env->has[PD_FEATURE_PMU_CAPS]);
    CHECK_EQ(env->n_pmu_caps, 1u);
    CHECK_STREQ(env->pmu_caps[0].pmu, "cpu_core");
    CHECK_STREQ(env->pmu_caps[0].names.items[0], "branches");
    CHECK_STREQ(env->pmu_caps[0].values.items[0], "32");
    CHECK_EQ(env->n_hybrids, 2u);
}

TEST(the_pmu_named_cpu_has_a_feature_of_its_own) {
    WITH_ROOT;
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;

    put("4\n", DEVICES "/cpu/type");
    put("skylake\n", DEVICES "/cpu/caps/pmu_name");
    env = collect(NULL);
    CHECK(env->has[PD_FEATURE_CPU_PMU_CAPS]);
    CHECK_STREQ(env->cpu_pmu_caps.values.items[0], "skylake");
    CHECK_EQ(env->n_pmu_caps, 0u);
    CHECK(!env->has[PD_FEATURE_HYBRID_TOPOLOGY]);
}

/* All that was collected can be written and read again. */
TEST(collected_features_can_be_written_and_read) {
    WITH_ROOT;
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL, *copy = NULL;

    put_machine();
    put_memory();
    put_pmus();
    env = collect(NULL);
    CHECK_OK(pd_environment_new(&copy));
    for (unsigned bit = 1; bit < PD_FEATURE_BITS; bit++) {
        _cleanup_(buffer_done) Buffer body = {}, again = {};

        if (!env->has[bit])
            continue;
        CHECK_OK(pd_environment_write(env, bit, &body, false));
        CHECK_OK(pd_environment_read(copy, bit, buffer_bytes(&body), false));
        CHECK_OK(pd_environment_write(copy, bit, &again, true));
        CHECK_EQ(again.size, body.size);
    }
}

TEST(collecting_again_replaces_what_was_there) {
    WITH_ROOT;
    char *argv[] = {(char *)"profd", NULL};
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;

    put_machine();
    put_pmus();
    env = collect(argv);
    put("0-1\n", CPU "/online");
    put("x\n", CPU "/possible");
    CHECK_OK(pd_host_collect(env, root, argv));
    CHECK_EQ(env->nrcpus_online, 2u);
    CHECK_EQ(env->thread_siblings.n, 1u);
    CHECK_EQ(env->cmdline.n, 1u);
    CHECK_EQ(env->n_pmus, 3u);
    CHECK(!env->has[PD_FEATURE_CACHE]);
    CHECK_EQ(env->n_caches, 0u);
}

TEST(malformed_files_are_skipped) {
    static const char *const contents[] = {
        "",        "\n", "-",    "0-", "1-0", "99999999999999999999",
        "0-99999", "a",  "0-3x", "-1", ",",   "0,,1",
    };

    for (size_t i = 0; i < ARRAY_SIZE(contents); i++) {
        WITH_ROOT;
        _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;

        put_machine();
        put(contents[i], CPU "/present");
        put(contents[i], CPU "/online");
        put(contents[i], CPU "/possible");
        put(contents[i], NODE "/online");
        put(contents[i], "/proc/meminfo");
        put(contents[i], DEVICES "/cpu/type");
        put(contents[i], "/sys/devices/system/memory/block_size_bytes");
        put(contents[i], NODE "/node4294967295/memory1/state");
        env = collect(NULL);
        CHECK(!env->has[PD_FEATURE_NRCPUS]);
        CHECK(!env->has[PD_FEATURE_CPU_TOPOLOGY]);
        CHECK(!env->has[PD_FEATURE_TOTAL_MEM]);
    }
}

TEST(a_memory_block_number_beyond_the_limit_is_refused) {
    WITH_ROOT;
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;

    put_memory();
    put("", NODE "/node0/memory999999999/state");
    env = collect(NULL);
    CHECK(!env->has[PD_FEATURE_MEM_TOPOLOGY]);
    CHECK(env->has[PD_FEATURE_NUMA_TOPOLOGY]);
}

TEST(a_file_longer_than_a_page_is_skipped) {
    WITH_ROOT;
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;
    char text[HOST_TEXT_SIZE + 100];

    put_machine();
    memset(text, '0', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    put(text, CPU "/online");
    env = collect(NULL);
    CHECK(!env->has[PD_FEATURE_NRCPUS]);
    CHECK(env->has[PD_FEATURE_CACHE]);
}

TEST(a_machine_of_three_hundred_cpus_is_collected_completely) {
    WITH_ROOT;
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;

    put("0-299\n", CPU "/possible");
    put("0-299\n", CPU "/present");
    put("0-299\n", CPU "/online");
    for (unsigned cpu = 0; cpu < 300; cpu++) {
        char map[16];

        (void)snprintf(map, sizeof(map), "%u\n", cpu);
        put_cpu(cpu, map, map);
        put_cache(cpu, 0, 1, "Data\n", map);
    }
    env = collect(NULL);
    CHECK_EQ(env->n_cpu_places, 300u);
    CHECK_EQ(env->thread_siblings.n, 300u);
    CHECK_EQ(env->n_caches, 300u);
    CHECK_STREQ(env->caches[299].map, "299");
}

/* clang-format off */
static const struct {
    const char *arch, *path, *content, *desc, *id;
} cpus[] = {
    {"x86_64", "/proc/cpuinfo",
     "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\n"
     "model name\t: Intel(R)  Xeon(R)   CPU\nstepping\t: 7\n",
     "Intel(R) Xeon(R) CPU", "GenuineIntel,6,85,7"},
    {"riscv64", "/proc/cpuinfo",
     "processor\t: 0\nmvendorid\t: 0x489\nmarchid\t\t: 0x8000000000000007\nmimpid\t\t: 0x20181004\n",
     NULL, "0x489-0x8000000000000007-0x20181004"},
    {"ppc64le", "/proc/cpuinfo",
     "processor\t: 0\ncpu\t\t: POWER9 (architected)\nrevision\t: 2.3 (pvr 004e 1203)\n",
     "POWER9 (architected)", "78,4611"},
    {"s390x", "/proc/sysinfo",
     "Manufacturer:         IBM\nType:                 8561\nModel:            701     T01\n",
     NULL, "IBM,8561,701,T01"},
    {"s390x", "/proc/cpuinfo", "vendor_id       : IBM/S390\n", "IBM/S390", NULL},
    {"armv7l", "/proc/cpuinfo", "Processor\t: ARMv7\n", "ARMv7", NULL},
    {"mips", "/proc/cpuinfo", "cpu model\t\t: MIPS 24Kc\n", "MIPS 24Kc", NULL},
    {"x86_64", "/proc/cpuinfo", "vendor_id\t: GenuineIntel\nmodel\t\t: 85\n", NULL, NULL},
    {"m68k", "/proc/cpuinfo", "CPU:\t\t68040\n", NULL, NULL},
};
/* clang-format on */

TEST(processors_are_named_in_the_words_of_their_architecture) {
    for (size_t i = 0; i < ARRAY_SIZE(cpus); i++) {
        WITH_ROOT;
        _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;
        Host host = {.root = root, .arch = cpus[i].arch};

        put(cpus[i].content, "%s", cpus[i].path);
        CHECK_OK(pd_environment_new(&env));
        CHECK_EQ(host_cpudesc(&host, env) == 0, cpus[i].desc != NULL);
        CHECK_EQ(host_cpuid(&host, env) == 0, cpus[i].id != NULL);
        CHECK_STREQ(env->cpudesc ? env->cpudesc : "", cpus[i].desc ? cpus[i].desc : "");
        CHECK_STREQ(env->cpuid ? env->cpuid : "", cpus[i].id ? cpus[i].id : "");
        env->has[PD_FEATURE_CPUDESC] = env->has[PD_FEATURE_CPUID] = true;
    }
}

TEST(an_arm64_processor_is_identified_by_its_midr) {
    WITH_ROOT;
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;
    Host host = {.root = root, .arch = "aarch64"};

    put("1-2\n", CPU "/online");
    put("0x00000000410fd0c0\n", CPU "/cpu2/regs/identification/midr_el1");
    CHECK_OK(pd_environment_new(&env));
    CHECK_OK(host_cpuid(&host, env));
    CHECK_STREQ(env->cpuid, "0x00000000410fd0c0");
}

TEST(s390_includes_its_counter_facility_if_visible) {
    WITH_ROOT;
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;
    Host host = {.root = root, .arch = "s390x"};

    put("Manufacturer: IBM\nType: 3906\nModel: 704 M04\n", "/proc/sysinfo");
    put("VM: none\nCPU-MF: Counter facility: version=3.5 authorization=2f\n",
        "/proc/service_levels");
    CHECK_OK(pd_environment_new(&env));
    CHECK_OK(host_cpuid(&host, env));
    CHECK_STREQ(env->cpuid, "IBM,3906,704,M04,3.5,2f");
}

TEST_MAIN()
