/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "unwind/unwind.h"

#include "test.h"

#if HAVE_LIBDW

#include <elfutils/libdwfl.h>

#include "make-unwind.h"
#include "take-samples.h"

/*
 * The walk beside libdwfl: both get the same registers and stacks of running programs, and must
 * find the same chains, address by address. With a command on the command line, of that command.
 */

enum { DUMP = 32 << 10, SAMPLES_MIN = 100 };

typedef struct Judge {
    Dwfl *dwfl;
    const TakenSample *taken;
    UnwindChain chain;
} Judge;

static pid_t next_thread(Dwfl *dwfl, void *userdata, void **position) {
    const Judge *judge = userdata;

    (void)dwfl;
    if (*position)
        return 0;
    *position = userdata;
    return (pid_t)judge->taken->tid;
}

static uint64_t register_of(const TakenSample *taken, uint8_t reg) {
    uint64_t below = taken->sample.mask & ((1ULL << reg) - 1);

    return load_u64(taken->sample.registers.data + 8 * __builtin_popcountll(below), false);
}

static bool read_stack(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *result, void *userdata) {
    const Judge *judge = userdata;
    const UnwindSample *sample = &judge->taken->sample;
    uint64_t at = address - register_of(judge->taken, unwind_machine(sample->machine)->sp);

    (void)dwfl;
    if (sample->stack.size < 8 || at > sample->stack.size - 8)
        return false;
    *result = load_u64(sample->stack.data + at, false);
    return true;
}

static bool set_registers(Dwfl_Thread *thread, void *userdata) {
    const Judge *judge = userdata;
    const TakenSample *taken = judge->taken;
    Dwarf_Word registers[32];
    unsigned n = taken->sample.machine == EM_X86_64 ? 17 : 32;

    for (unsigned i = 0; i < n; i++)
        registers[i] = register_of(taken, unwind_register_of_dwarf(taken->sample.machine, i));
    if (taken->sample.machine == EM_AARCH64)
        dwfl_thread_state_register_pc(thread, register_of(taken, 32));
    return dwfl_thread_state_registers(thread, 0, n, registers);
}

static int take_frame(Dwfl_Frame *frame, void *userdata) {
    Judge *judge = userdata;
    Dwarf_Addr pc;

    if (!dwfl_frame_pc(frame, &pc, NULL) || judge->chain.n == UNWIND_FRAMES_MAX)
        return DWARF_CB_ABORT;
    judge->chain.addresses[judge->chain.n++] = pc;
    return DWARF_CB_OK;
}

static Dwfl *begin_judge(pid_t pid, Judge *judge) {
    static const Dwfl_Callbacks finders = {.find_elf = dwfl_linux_proc_find_elf,
                                           .find_debuginfo = dwfl_standard_find_debuginfo};
    static const Dwfl_Thread_Callbacks threads = {.next_thread = next_thread,
                                                  .memory_read = read_stack,
                                                  .set_initial_registers = set_registers};
    Dwfl *dwfl = dwfl_begin(&finders);

    if (!dwfl || dwfl_linux_proc_report(dwfl, pid) != 0 || dwfl_report_end(dwfl, NULL, NULL) != 0)
        return NULL;
    judge->dwfl = dwfl;
    return dwfl_attach_state(dwfl, NULL, pid, &threads, judge) ? dwfl : NULL;
}

typedef struct Counts {
    size_t n, equal, longer, shorter, astray;
    size_t verdicts[UNWIND_VERDICTS];
    uint64_t frames, ours_ns, theirs_ns;
} Counts;

/* Where the tables of assembler are wrong libdwfl takes a zero for a return address, and goes on by
 * whatever lies in the frame pointer. */
static bool has_no_address(const UnwindChain *chain) {
    for (unsigned i = 1; i < chain->n; i++)
        if (chain->addresses[i] == UINT64_MAX)
            return true;
    return false;
}

static bool is_start(const UnwindChain *a, const UnwindChain *b) {
    return a->n <= b->n && memcmp(a->addresses, b->addresses, a->n * sizeof(a->addresses[0])) == 0;
}

static void print_pair(const UnwindChain *ours, UnwindVerdict verdict, const UnwindChain *theirs) {
    printf("# %s, %u frames, libdwfl %u:\n", unwind_verdict_name(verdict), ours->n, theirs->n);
    for (unsigned i = 0; i < MAX(ours->n, theirs->n); i++)
        printf("#   %2u %#18" PRIx64 " %#18" PRIx64 "\n", i, i < ours->n ? ours->addresses[i] : 0,
               i < theirs->n ? theirs->addresses[i] : 0);
}

static void compare_sample(Judge *judge, const Scene *scene, UnwindCache *cache, Counts *counts) {
    uint64_t begin = clock_ns(CLOCK_MONOTONIC), middle;
    UnwindVerdict verdict;
    UnwindChain ours;

    verdict = unwind_walk(&judge->taken->sample, &scene->space, cache, &ours);
    middle = clock_ns(CLOCK_MONOTONIC);
    judge->chain.n = 0;
    (void)dwfl_getthread_frames(judge->dwfl, (pid_t)judge->taken->tid, take_frame, judge);
    counts->ours_ns += middle - begin;
    counts->theirs_ns += clock_ns(CLOCK_MONOTONIC) - middle;
    counts->n++;
    counts->frames += ours.n;
    counts->verdicts[verdict]++;
    /* Where libdwfl finds no caller it goes on with zeros. */
    while (judge->chain.n > 1 && judge->chain.addresses[judge->chain.n - 1] == 0)
        judge->chain.n--;
    if (is_start(&judge->chain, &ours) && is_start(&ours, &judge->chain)) {
        counts->equal++;
        return;
    }
    counts->astray += has_no_address(&judge->chain) && verdict == UNWIND_NO_CODE;
    counts->longer += is_start(&judge->chain, &ours);
    counts->shorter += is_start(&ours, &judge->chain);
    if (counts->n - counts->equal <= 5)
        print_pair(&ours, verdict, &judge->chain);
}

static void print_counts(const char *name, const Counts *counts) {
    double n = counts->n ? (double)counts->n : 1;

    printf("# %s: %zu samples, %.1f frames each, %zu equal, ours longer %zu, shorter %zu,"
           " libdwfl astray %zu; ours %.2f us, libdwfl %.2f us a sample\n# verdicts:",
           name, counts->n, (double)counts->frames / n, counts->equal, counts->longer,
           counts->shorter, counts->astray, (double)counts->ours_ns / n / 1000,
           (double)counts->theirs_ns / n / 1000);
    for (unsigned i = 0; i < UNWIND_VERDICTS; i++)
        if (counts->verdicts[i] > 0)
            printf(" %s %zu", unwind_verdict_name(i), counts->verdicts[i]);
    printf("\n");
}

static int compare(char *const argv[], unsigned ms, Counts *counts) {
    static UnwindCache cache;
    _cleanup_(samples_done) Samples samples = {};
    _cleanup_(scene_freep) Scene *scene = NULL;
    Judge judge = {};
    Dwfl *dwfl;
    int r = samples_take(argv, ms, DUMP, &samples);

    *counts = (Counts){};
    if (r < 0)
        return r;
    memset(&cache, 0, sizeof(cache));
    scene = scene_new(samples.pid);
    dwfl = begin_judge(samples.pid, &judge);
    for (size_t i = 0; dwfl && i < samples.n; i++) {
        judge.taken = &samples.all[i];
        if (judge.taken->pid == (uint32_t)samples.pid)
            compare_sample(&judge, scene, &cache, counts);
    }
    if (judge.dwfl)
        dwfl_end(judge.dwfl);
    print_counts(argv[0], counts);
    return dwfl ? 0 : -EIO;
}

#define CHAINS_ARE_EQUAL(...)                                                                      \
    do {                                                                                           \
        char *const argv[] = {__VA_ARGS__, NULL};                                                  \
        Counts counts;                                                                             \
                                                                                                   \
        CHECK_OK(compare(argv, 2000, &counts));                                                    \
        CHECK(counts.n >= SAMPLES_MIN);                                                            \
        /* Longer: libdwfl knows no caller of a system call that ends a signal. */                 \
        CHECK((counts.equal + counts.longer + counts.astray) * 1000 >= counts.n * 999);            \
        CHECK(counts.equal * 100 >= counts.n * 99);                                                \
        CHECK(counts.verdicts[UNWIND_WHOLE] * 100 >= counts.n * 98);                               \
    } while (0)

static char frames_path[4096];

TEST(chains_of_a_program_without_frame_pointers_are_those_of_libdwfl) {
    const char *build = getenv("PROFD_BUILD");

    (void)snprintf(frames_path, sizeof(frames_path), "%s/tests/integration/load/frames",
                   build ? build : ".");
    CHAINS_ARE_EQUAL(frames_path);
}

TEST(chains_of_openssl_are_those_of_libdwfl) {
    CHAINS_ARE_EQUAL("openssl", "speed", "-seconds", "10", "rsa2048");
}

TEST(chains_of_python_are_those_of_libdwfl) {
    CHAINS_ARE_EQUAL("/usr/bin/python3", "-c",
                     "import json\nwhile True: json.loads(json.dumps(list(range(200)), indent=1))");
}

int main(int argc, char **argv) {
    Counts counts;

    if (argc > 1 && strchr(argv[1], '/'))
        return compare(argv + 1, 4000, &counts) < 0;
    return test_main(argc, argv);
}

#else

TEST(chains_are_those_of_libdwfl) {
    TEST_SKIP("libdw was not there when this build folder was made");
}

TEST_MAIN()

#endif
