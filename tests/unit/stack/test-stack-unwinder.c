/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "stack/unwinder.h"

#include <linux/perf_event.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>

#include "history-fixture.h"
#include "make-unwind.h"
#include "perfdata/record/sample.h"

/* Samples of this very process, as the kernel takes them, become samples with call chains. */

enum { RING_BYTES = 4 << 20, DEPTH = 20 };

typedef struct Sampling {
    PdEvents *taken, *stored;
    int fd;
    struct perf_event_mmap_page *ring;
} Sampling;

static void sampling_done(Sampling *s) {
    if (s->ring)
        munmap(s->ring, RING_BYTES + (size_t)getpagesize());
    if (s->fd >= 0)
        close(s->fd);
    pd_events_free(s->taken);
    pd_events_free(s->stored);
}

static PdEvents *events_of(uint64_t sample_type, uint64_t id) {
    PdAttr attr = {.type = PERF_TYPE_SOFTWARE,
                   .config = PERF_COUNT_SW_CPU_CLOCK,
                   .sample_type = sample_type,
                   .sample_regs_user = 0xff0fff,
                   .sample_stack_user = 16 << 10};
    PdEvents *events = NULL;
    PdEvent *event;

    if (pd_events_new(&events) < 0 || pd_events_add(events, &attr, (Bytes){}, &id, 1, &event) < 0)
        abort();
    return events;
}

/* Of user code of this thread; `pointers`: with its chain by frame pointers. */
static Sampling sampling_begin_with(bool pointers) {
    const uint64_t stored = PD_SAMPLE_IDENTIFIER | PD_SAMPLE_IP | PD_SAMPLE_TID | PD_SAMPLE_TIME |
                            PD_SAMPLE_CPU | PD_SAMPLE_CALLCHAIN;
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                   .size = sizeof(attr),
                                   .config = PERF_COUNT_SW_CPU_CLOCK,
                                   .sample_period = 200000,
                                   .sample_type =
                                       stored | PD_SAMPLE_REGS_USER | PD_SAMPLE_STACK_USER,
                                   .sample_regs_user = 0xff0fff,
                                   .sample_stack_user = 16 << 10,
                                   .exclude_kernel = 1,
                                   .exclude_callchain_user = !pointers,
                                   .use_clockid = 1,
                                   .clockid = CLOCK_MONOTONIC};
    Sampling s = {.fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC)};
    uint64_t id = 0;

    if (s.fd < 0 || ioctl(s.fd, PERF_EVENT_IOC_ID, &id) < 0)
        abort();
    s.ring =
        mmap(NULL, RING_BYTES + (size_t)getpagesize(), PROT_READ | PROT_WRITE, MAP_SHARED, s.fd, 0);
    if (s.ring == MAP_FAILED)
        abort();
    s.taken = events_of(attr.sample_type, id);
    s.stored = events_of(stored, id);
    return s;
}

static Sampling sampling_begin(void) {
    return sampling_begin_with(false);
}

static Bytes sampling_end(const Sampling *s) {
    (void)ioctl(s->fd, PERF_EVENT_IOC_DISABLE, 0);
    return (Bytes){.data = (const uint8_t *)s->ring + s->ring->data_offset,
                   .size = (size_t)MIN(s->ring->data_head, (uint64_t)RING_BYTES)};
}

static uint64_t now_ns(void) {
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

/* A chain of DEPTH frames below us, busy for a while. */
__attribute__((noinline)) static unsigned burn(unsigned depth, uint64_t until) {
    volatile unsigned n = 0;

    if (depth > 0) {
        n = burn(depth - 1, until);
        return n + 1;
    }
    while (now_ns() < until)
        for (unsigned i = 0; i < 10000; i++)
            n += i;
    return n;
}

/* All executable mappings of ours into the history, after an exec. */
static void feed_own_maps(Fixture *f) {
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[1024];

    forks(f, 105, (uint32_t)getpid(), (uint32_t)getpid(), 1, 1);
    named(f, 106, (uint32_t)getpid(), (uint32_t)getpid(), "test", true);
    while (maps && fgets(line, sizeof(line), maps)) {
        char name[512] = "", rights[8];
        unsigned long start, end, offset, inode;
        Make m = {};

        line[strcspn(line, "\n")] = '\0';
        if (sscanf(line, "%lx-%lx %7s %lx %*s %lu %511[^\n]", &start, &end, rights, &offset, &inode,
                   name) < 6 ||
            rights[2] != 'x')
            continue;
        u32(&m, (uint32_t)getpid());
        u32(&m, (uint32_t)getpid());
        u64(&m, start);
        u64(&m, end - start);
        u64(&m, offset);
        u32(&m, 8);
        u32(&m, 1);
        u64(&m, inode);
        u64(&m, 5);
        u32(&m, PROT_READ | PROT_EXEC);
        u32(&m, MAP_PRIVATE);
        text(&m, name, (strlen(name) + 8) / 8 * 8);
        (void)feed(f, &m, PD_RECORD_MMAP2, PD_MISC_USER, 110);
    }
    if (maps)
        fclose(maps);
}

/* The files whose tables were asked for, in turn; made when they are wanted. */
typedef struct Asked {
    MappedImage images[64];
    char paths[64][256];
    size_t n;
} Asked;

static int ask(void *userdata, const MappedImage *image) {
    Asked *asked = userdata;

    if (asked->n == ARRAY_SIZE(asked->images))
        return -ENOBUFS;
    (void)snprintf(asked->paths[asked->n], sizeof(asked->paths[0]), "%s", image->path);
    asked->images[asked->n] = *image;
    asked->images[asked->n++].path = NULL;
    return 0;
}

static int table_of(const Scene *scene, const char *path, MappedTable **ret) {
    for (size_t i = 0; i < scene->n_files; i++) {
        const SceneFile *file = &scene->files[i];
        int fd, r;

        if (strcmp(file->path, path) != 0 || file->error < 0)
            continue;
        fd = memfd_create("table", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (write(fd, file->image.data, file->image.size) != (ssize_t)file->image.size ||
            fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
            abort();
        r = mapped_table_new(fd, file->image.size, ret);
        close(fd);
        return r;
    }
    return -ENODATA;
}

static void answer_all(TableCache *cache, const Asked *asked, const Scene *scene) {
    for (size_t i = 0; i < asked->n; i++) {
        TableAnswer answer = {
            .image = asked->images[i], .is_final = true, .id = {.inode = asked->images[i].inode}};

        answer.result = table_of(scene, asked->paths[i], &answer.table);
        table_cache_answer(cache, &answer, now_ns());
    }
}

#if defined(__x86_64__)
/* Code with frame pointers that is busy on another stack, as the runtime of Go is. */
void busy_elsewhere(void *stack_end, uint64_t rounds);
extern const char busy_elsewhere_end[];
__asm__(".text\n"
        ".type busy_elsewhere, @function\n"
        "busy_elsewhere:\n"
        "    push %rbp\n"
        "    mov %rsp, %rbp\n"
        "    mov %rdi, %rsp\n"
        "    call 1f\n"
        "    mov %rbp, %rsp\n"
        "    pop %rbp\n"
        "    ret\n"
        "1:  push %rbp\n"
        "    mov %rsp, %rbp\n"
        "2:  dec %rsi\n"
        "    jnz 2b\n"
        "    pop %rbp\n"
        "    ret\n"
        "busy_elsewhere_end:\n");

static bool is_elsewhere(uint64_t address) {
    return address >= (uint64_t)(uintptr_t)busy_elsewhere &&
           address < (uint64_t)(uintptr_t)busy_elsewhere_end;
}

/* How many samples in busy_elsewhere() there are, and how many of them have its caller. */
static unsigned count_elsewhere(const PdEvents *stored, const Buffer *records,
                                unsigned *ret_with_caller) {
    unsigned n = 0;

    *ret_with_caller = 0;
    for (size_t at = 0; at < records->size;) {
        PdRecord record = pd_record_at(records->data + at, false);
        PdSample s;

        at += record.size;
        if (record.type != PD_RECORD_SAMPLE ||
            pd_sample_parse(&record, pd_events_at(stored, 0), &s) < 0 || s.callchain.n < 3 ||
            !is_elsewhere(pd_u64_at(&s.callchain, 1)) || !is_elsewhere(pd_u64_at(&s.callchain, 2)))
            continue;
        n++;
        *ret_with_caller += s.callchain.n > 3 && !is_elsewhere(pd_u64_at(&s.callchain, 3));
    }
    return n;
}

TEST(frame_pointers_lead_back_from_another_stack) {
    _cleanup_(fixture_done) Fixture f = with_shell();
    _cleanup_(table_cache_freep) TableCache *tables = NULL;
    _cleanup_(unwinder_freep) Unwinder *unwinder = NULL;
    TableCacheOptions options = {.limit_bytes = TABLE_CACHE_MAX_BYTES, .ask = ask};
    static _Alignas(16) uint8_t stack[4096];
    static Asked asked;

    options.userdata = &asked;
    feed_own_maps(&f);
    (void)history_settle(f.history, 300);
    CHECK_OK(table_cache_new(&options, &tables));
    CHECK_OK(unwinder_new(f.history, tables, &unwinder));
    for (unsigned pointers = 0; pointers < 2; pointers++) {
        _cleanup_(sampling_done) Sampling sampling = sampling_begin_with(pointers);
        _cleanup_(buffer_done) Buffer out = {};
        UnwinderCounts counts = {};
        unsigned n, with_caller;
        Bytes records;

        busy_elsewhere(stack + sizeof(stack), 100000000);
        records = sampling_end(&sampling);
        unwinder_take(unwinder, sampling.taken, sampling.stored, records, &out, &counts);
        n = count_elsewhere(sampling.stored, &out, &with_caller);
        CHECK(n >= 10);
        CHECK(pointers ? with_caller >= n * 9 / 10 : with_caller == 0);
    }
}
#endif

/* How many samples have the frames of burn(), or -1: a record makes no sense. */
static int count_deep(const PdEvents *stored, const Buffer *records, int *ret_samples) {
    int deep = 0;

    *ret_samples = 0;
    for (size_t at = 0; at < records->size;) {
        PdRecord record = pd_record_at(records->data + at, false);
        PdSample sample;

        at += record.size;
        if (record.type != PD_RECORD_SAMPLE)
            continue;
        if (pd_sample_parse(&record, pd_events_at(stored, 0), &sample) < 0 ||
            !pd_sample_is_whole(&record, pd_events_at(stored, 0)))
            return -1;
        ++*ret_samples;
        deep += sample.callchain.n > DEPTH;
    }
    return deep;
}

TEST(samples_with_stacks_become_samples_with_whole_call_chains) {
    _cleanup_(fixture_done) Fixture f = with_shell();
    _cleanup_(scene_freep) Scene *scene = scene_new(0);
    _cleanup_(sampling_done) Sampling sampling = sampling_begin();
    _cleanup_(buffer_done) Buffer out = {};
    _cleanup_(table_cache_freep) TableCache *tables = NULL;
    _cleanup_(unwinder_freep) Unwinder *unwinder = NULL;
    static Asked asked; /* not on the stack, which is sampled */
    TableCacheOptions options = {
        .limit_bytes = TABLE_CACHE_MAX_BYTES, .ask = ask, .userdata = &asked};
    UnwinderCounts counts = {};
    Bytes records;
    int n;

    feed_own_maps(&f);
    (void)history_settle(f.history, 300);
    CHECK_OK(table_cache_new(&options, &tables));
    CHECK_OK(unwinder_new(f.history, tables, &unwinder));
    (void)burn(DEPTH, now_ns() + SECOND / 10);
    records = sampling_end(&sampling);

    unwinder_take(unwinder, sampling.taken, sampling.stored, records, &out, &counts);
    CHECK(asked.n > 0);
    CHECK_EQ(counts.samples[UNWIND_WHOLE], 0);
    /* A walk that has no table for its first file does not come to the next one. */
    for (unsigned i = 0; i < 5; i++) {
        answer_all(tables, &asked, scene);
        asked.n = 0;
        buffer_clear(&out);
        counts = (UnwinderCounts){};
        unwinder_take(unwinder, sampling.taken, sampling.stored, records, &out, &counts);
    }
    CHECK_EQ(counts.samples[UNWIND_PENDING], 0);
    CHECK(count_deep(sampling.stored, &out, &n) >= n * 9 / 10);
    CHECK(n >= 20);
    CHECK(counts.samples[UNWIND_WHOLE] >= (uint64_t)n * 9 / 10);
}

TEST(a_truncated_sample_is_dropped_and_counted) {
    _cleanup_(fixture_done) Fixture f = with_shell();
    _cleanup_(sampling_done) Sampling sampling = sampling_begin();
    _cleanup_(table_cache_freep) TableCache *tables = NULL;
    _cleanup_(unwinder_freep) Unwinder *unwinder = NULL;
    _cleanup_(buffer_done) Buffer out = {}, cut = {};
    TableCacheOptions options = {.limit_bytes = TABLE_CACHE_MAX_BYTES, .ask = ask};
    UnwinderCounts counts = {};

    (void)burn(DEPTH, now_ns() + SECOND / 20);
    buffer_append(&cut, sampling_end(&sampling).data, 64);
    store_u16(cut.data + 6, 64, false);
    CHECK_OK(table_cache_new(&options, &tables));
    CHECK_OK(unwinder_new(f.history, tables, &unwinder));
    CHECK_EQ(
        unwinder_take(unwinder, sampling.taken, sampling.stored, buffer_bytes(&cut), &out, &counts),
        1);
    CHECK_EQ(out.size, 0);
}

/* Kernels give it the size of an event of somebody else, and leave in it what the ring held. */
TEST(a_sample_longer_than_its_fields_is_dropped_and_counted) {
    enum { SURPLUS = 168 };
    _cleanup_(fixture_done) Fixture f = with_shell();
    _cleanup_(sampling_done) Sampling sampling = sampling_begin();
    _cleanup_(table_cache_freep) TableCache *tables = NULL;
    _cleanup_(unwinder_freep) Unwinder *unwinder = NULL;
    _cleanup_(buffer_done) Buffer out = {}, longer = {};
    TableCacheOptions options = {.limit_bytes = TABLE_CACHE_MAX_BYTES, .ask = ask};
    const uint8_t surplus[SURPLUS] = {0xee};
    UnwinderCounts counts = {};
    PdRecord record;
    Bytes records;

    (void)burn(DEPTH, now_ns() + SECOND / 20);
    records = sampling_end(&sampling);
    CHECK(pd_records_next(&records, &record));
    CHECK_EQ(record.type, PD_RECORD_SAMPLE);
    CHECK_OK(table_cache_new(&options, &tables));
    CHECK_OK(unwinder_new(f.history, tables, &unwinder));
    buffer_append(&longer, record.data, record.size);
    CHECK_EQ(unwinder_take(unwinder, sampling.taken, sampling.stored, buffer_bytes(&longer), &out,
                           &counts),
             0);
    CHECK(out.size > 0);
    buffer_clear(&out);
    buffer_append(&longer, surplus, SURPLUS);
    store_u16(longer.data + 6, (uint16_t)(record.size + SURPLUS), false);
    CHECK_EQ(unwinder_take(unwinder, sampling.taken, sampling.stored, buffer_bytes(&longer), &out,
                           &counts),
             1);
    CHECK_EQ(out.size, 0);
}

#if defined(__x86_64__)
/* No table is for them, and their mappings need not be known. `pointers`: the kernel has walked. */
TEST(a_sample_of_a_32_bit_program_keeps_the_chain_of_the_kernel) {
    for (unsigned pointers = 0; pointers < 2; pointers++) {
        _cleanup_(fixture_done) Fixture f = with_shell();
        _cleanup_(sampling_done) Sampling sampling = sampling_begin_with(pointers);
        _cleanup_(table_cache_freep) TableCache *tables = NULL;
        _cleanup_(unwinder_freep) Unwinder *unwinder = NULL;
        _cleanup_(buffer_done) Buffer out = {}, narrow = {};
        TableCacheOptions options = {.limit_bytes = TABLE_CACHE_MAX_BYTES, .ask = ask};
        UnwinderCounts counts = {};
        PdSample before, after;
        PdRecord record;
        Bytes records;

        (void)burn(DEPTH, now_ns() + SECOND / 20);
        records = sampling_end(&sampling);
        CHECK(pd_records_next(&records, &record));
        CHECK_EQ(record.type, PD_RECORD_SAMPLE);
        buffer_append(&narrow, record.data, record.size);
        record = pd_record_at(narrow.data, false);
        CHECK_OK(pd_sample_parse(&record, pd_events_at(sampling.taken, 0), &before));
        CHECK_EQ(before.user_regs.abi, PERF_SAMPLE_REGS_ABI_64);
        store_u64(narrow.data + before.user_at, PERF_SAMPLE_REGS_ABI_32, false);
        CHECK_OK(table_cache_new(&options, &tables));
        CHECK_OK(unwinder_new(f.history, tables, &unwinder));
        CHECK_EQ(unwinder_take(unwinder, sampling.taken, sampling.stored, buffer_bytes(&narrow),
                               &out, &counts),
                 0);
        CHECK_EQ(counts.samples[UNWIND_32_BIT], 1);
        record = pd_record_at(out.data, false);
        CHECK_OK(pd_sample_parse(&record, pd_events_at(sampling.stored, 0), &after));
        CHECK_EQ(pd_u64_at(&after.callchain, 0), PD_CONTEXT_USER);
        CHECK_EQ(pd_u64_at(&after.callchain, 1), before.ip);
        CHECK_EQ(after.callchain.n, pointers ? before.callchain.n : 2);
        CHECK(!pointers || after.callchain.n > 2);
    }
}
#endif

/* An event with stacks of its own, beside others that are unwound. */
TEST(a_sample_whose_stack_is_stored_keeps_it) {
    _cleanup_(fixture_done) Fixture f = with_shell();
    _cleanup_(sampling_done) Sampling sampling = sampling_begin();
    _cleanup_(table_cache_freep) TableCache *tables = NULL;
    _cleanup_(unwinder_freep) Unwinder *unwinder = NULL;
    _cleanup_(buffer_done) Buffer out = {};
    TableCacheOptions options = {.limit_bytes = TABLE_CACHE_MAX_BYTES, .ask = ask};
    UnwinderCounts counts = {};
    Bytes records;

    (void)burn(DEPTH, now_ns() + SECOND / 20);
    records = sampling_end(&sampling);
    CHECK_OK(table_cache_new(&options, &tables));
    CHECK_OK(unwinder_new(f.history, tables, &unwinder));
    CHECK_EQ(unwinder_take(unwinder, sampling.taken, sampling.taken, records, &out, &counts), 0);
    CHECK(out.size > 0 && bytes_equal(buffer_bytes(&out), records));
    for (unsigned i = 0; i < UNWIND_VERDICTS; i++)
        CHECK_EQ(counts.samples[i], 0);
}

/* Whose stack would go to the disk. */
TEST(a_sample_of_an_event_that_nobody_knows_is_left_out_and_counted) {
    _cleanup_(fixture_done) Fixture f = with_shell();
    _cleanup_(sampling_done) Sampling sampling = sampling_begin();
    _cleanup_(pd_events_freep) PdEvents *others = NULL;
    _cleanup_(table_cache_freep) TableCache *tables = NULL;
    _cleanup_(unwinder_freep) Unwinder *unwinder = NULL;
    _cleanup_(buffer_done) Buffer out = {};
    TableCacheOptions options = {.limit_bytes = TABLE_CACHE_MAX_BYTES, .ask = ask};
    const PdEvent *event = pd_events_at(sampling.taken, 0);
    uint64_t ids[] = {event->ids[0] + 1, event->ids[0] + 2};
    UnwinderCounts counts = {};
    size_t n_samples = 0;
    PdEvent *added;
    Bytes records;
    PdRecord record;

    (void)burn(DEPTH, now_ns() + SECOND / 20);
    records = sampling_end(&sampling);
    for (Bytes left = records; pd_records_next(&left, &record);)
        n_samples += record.type == PD_RECORD_SAMPLE;
    CHECK_OK(pd_events_new(&others));
    for (unsigned i = 0; i < 2; i++)
        CHECK_OK(pd_events_add(others, &event->attr, (Bytes){}, &ids[i], 1, &added));
    CHECK_OK(table_cache_new(&options, &tables));
    CHECK_OK(unwinder_new(f.history, tables, &unwinder));
    CHECK(n_samples > 0);
    CHECK_EQ(unwinder_take(unwinder, others, others, records, &out, &counts), n_samples);
    for (Bytes left = buffer_bytes(&out); pd_records_next(&left, &record);)
        CHECK(record.type != PD_RECORD_SAMPLE);
}

TEST_MAIN()
