/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "page/page.h"

#include <stdio.h>

#include "make-host.h"

/*
 * make-page PAGE STACKS [SECONDS [SAMPLES_PER_SECOND]]: writes a page about a host that never was,
 * to look at and to test in a browser. PAGE is flame, address, difference, svg, heat or incident.
 * The same words make the same bytes.
 */

typedef struct Function {
    const char *name, *dso;
    FrameKind kind;
    int calls[6]; /* numbers of functions, ended by 0 */
} Function;

/* clang-format off */
static const Function functions[] = {
    [1]  = {"_start", "shop-api", FRAME_USER, {2}},
    [2]  = {"main", "shop-api", FRAME_USER, {3, 30}},
    [3]  = {"tokio::runtime::scheduler::multi_thread::worker::run", "shop-api", FRAME_USER, {4, 5, 26}},
    [4]  = {"shop::http::Router::dispatch", "shop-api", FRAME_USER, {6, 7, 8, 25}},
    [5]  = {"shop::cache::Refresher::tick", "shop-api", FRAME_USER, {9, 10, 17}},
    [6]  = {"shop::orders::handler::create_order", "shop-api", FRAME_USER, {10, 11, 12, 20}},
    [7]  = {"shop::search::Index::query(shop::search::Terms const&, unsigned long)", "shop-api", FRAME_USER, {13, 14, 11}},
    [8]  = {"serde_json::Serializer<W, F>::serialize_struct", "shop-api", FRAME_USER, {15, 16}},
    [9]  = {"shop::cache::Shard::evict", "shop-api", FRAME_USER, {17, 18}},
    [10] = {"tokio_postgres::Client::query_raw", "shop-api", FRAME_USER, {19, 20, 15}},
    [11] = {"alloc::vec::Vec<T, A>::extend_desugared", "shop-api", FRAME_USER, {16, 17}},
    [12] = {"ring::aead::aes_gcm::seal", "shop-api", FRAME_USER, {21}},
    [13] = {"shop::search::bm25::score", "shop-api", FRAME_USER, {14, 21}},
    [14] = {"hashbrown::raw::RawTable<T, A>::find", "shop-api", FRAME_USER, {}},
    [15] = {"core::fmt::write", "shop-api", FRAME_USER, {16}},
    [16] = {"__memmove_avx_unaligned_erms", "libc.so.6", FRAME_USER, {}},
    [17] = {"malloc", "libc.so.6", FRAME_USER, {18, 22}},
    [18] = {"_int_free", "libc.so.6", FRAME_USER, {22}},
    [19] = {"__libc_recv", "libc.so.6", FRAME_USER, {31}},
    [20] = {"__libc_send", "libc.so.6", FRAME_USER, {31}},
    [21] = {"aesni_ctr32_encrypt_blocks", "libcrypto.so.3", FRAME_USER, {}},
    [22] = {"__brk", "libc.so.6", FRAME_USER, {31}},
    [23] = {"LazyCompile:~render /srv/web/render.js:41", "[JIT] tid 4120", FRAME_JIT, {24, 17}},
    [24] = {"Builtins_ArrayMap", "node", FRAME_USER, {23, 16}},
    [25] = {"node::AsyncWrap::MakeCallback", "node", FRAME_USER, {23}},
    [26] = {"epoll_wait", "libc.so.6", FRAME_USER, {31}},
    [27] = {"", "vendor-agent", FRAME_USER, {28, 31}},
    [28] = {"", "libvendor.so", FRAME_USER, {31}},
    [30] = {"std::thread::Builder::spawn_unchecked_::{{closure}}", "shop-api", FRAME_USER, {3, 27, 25}},
    [31] = {"entry_SYSCALL_64_after_hwframe", "[kernel.kallsyms]", FRAME_KERNEL, {32}},
    [32] = {"do_syscall_64", "[kernel.kallsyms]", FRAME_KERNEL, {33, 34, 35, 36, 37}},
    [33] = {"__x64_sys_sendto", "[kernel.kallsyms]", FRAME_KERNEL, {38}},
    [34] = {"__x64_sys_recvfrom", "[kernel.kallsyms]", FRAME_KERNEL, {39, 40}},
    [35] = {"__x64_sys_epoll_wait", "[kernel.kallsyms]", FRAME_KERNEL, {41}},
    [36] = {"__x64_sys_brk", "[kernel.kallsyms]", FRAME_KERNEL, {42}},
    [37] = {"__x64_sys_futex", "[kernel.kallsyms]", FRAME_KERNEL, {41}},
    [38] = {"tcp_sendmsg", "[kernel.kallsyms]", FRAME_KERNEL, {43, 44}},
    [39] = {"tcp_recvmsg", "[kernel.kallsyms]", FRAME_KERNEL, {40, 41}},
    [40] = {"copy_user_enhanced_fast_string", "[kernel.kallsyms]", FRAME_KERNEL, {}},
    [41] = {"schedule", "[kernel.kallsyms]", FRAME_KERNEL, {45}},
    [42] = {"do_brk_flags", "[kernel.kallsyms]", FRAME_KERNEL, {46}},
    [43] = {"__tcp_transmit_skb", "[kernel.kallsyms]", FRAME_KERNEL, {47, 48}},
    [44] = {"sk_stream_alloc_skb", "[kernel.kallsyms]", FRAME_KERNEL, {46}},
    [45] = {"finish_task_switch.isra.0", "[kernel.kallsyms]", FRAME_KERNEL, {49}},
    [46] = {"clear_page_erms", "[kernel.kallsyms]", FRAME_KERNEL, {}},
    [47] = {"mlx5e_xmit", "[mlx5_core]", FRAME_MODULE, {}},
    [48] = {"nft_do_chain", "[nf_tables]", FRAME_MODULE, {49}},
    [49] = {"bpf_prog_6deef7357e7b4530_sd_fw_egress", "bpf_prog_6deef7357e7b4530", FRAME_BPF, {}},
};

static const struct {
    const char *unit, *command;
    int first;
} processes[] = {
    {"shop-api.service", "shop-api", 1},
    {"shop-api.service", "tokio-worker", 3},
    {"web.service", "node", 25},
    {"vendor-agent.service", "agent", 27},
    {"", "kworker/u16:2", 32},
};
/* clang-format on */

typedef struct Maker {
    MadeProfile made;
    uint64_t random;
    unsigned generated; /* functions besides those above */
} Maker;

static uint64_t maker_random(Maker *m, uint64_t below) {
    m->random ^= m->random << 13;
    m->random ^= m->random >> 7;
    m->random ^= m->random << 17;
    return (m->random >> 11) % below;
}

static uint32_t maker_frame(Maker *m, int function) {
    const Function *f = &functions[function];
    const char *lines[] = {"core::option::Option<T>::map", f->name};
    uint64_t address = 0x1000 + (uint64_t)function * 64 + maker_random(m, 3) * 4;
    bool inlined = function == 11 || function == 13;

    if (!f->name[0])
        return made_frame_lines(&m->made, f->kind, f->dso, address, FRAME_UNNAMED,
                                (const char *[]){"vendor+0x1234"}, 1);
    return made_frame_lines(&m->made, f->kind, f->dso, address, FRAME_NAMED, lines + !inlined,
                            1 + inlined);
}

/* Functions that no host has, to make stacks that differ. */
static uint32_t maker_generated(Maker *m) {
    unsigned number = (unsigned)maker_random(m, m->generated);
    char name[80];

    snprintf(name, sizeof(name), "shop::generated::Module%u::step%u(unsigned int)", number / 40,
             number % 40);
    return made_frame(&m->made, FRAME_USER, number % 3 ? "shop-api" : "libplugin.so",
                      0x100000 + number * 16, name);
}

static uint32_t maker_stack(Maker *m, int function, unsigned spread) {
    uint32_t stack = STACK_ROOT;

    for (unsigned depth = 0; depth < 60; depth++) {
        const Function *f = &functions[function];
        unsigned n = 0;

        stack = made_push(&m->made, stack, maker_frame(m, function));
        while (f->calls[n])
            n++;
        for (unsigned i = 0; spread > 0 && f->kind == FRAME_USER && i < 2; i++)
            if (maker_random(m, 3) == 0)
                stack = made_push(&m->made, stack, maker_generated(m));
        if (n == 0 || (depth > 1 && maker_random(m, 6) == 0))
            break;
        function = f->calls[maker_random(m, maker_random(m, n) + 1)];
    }
    return stack;
}

static int maker_compare(const void *a, const void *b) {
    return memcmp(a, b, sizeof(uint32_t));
}

/* Stacks until `n` are distinct. */
static uint32_t *maker_stacks(Maker *m, size_t n) {
    uint32_t *stacks = calloc(n, sizeof(*stacks));
    uint8_t *seen = calloc(1U << 23, 1);
    size_t found = 0;

    for (size_t tries = 0; found < n && tries < 200 * n + 1000; tries++) {
        size_t process = maker_random(m, maker_random(m, ARRAY_SIZE(processes)) + 1);
        uint32_t stack = maker_stack(m, processes[process].first, n > 2000);

        if (!seen[stack])
            stacks[found++] = stack;
        seen[stack] = 1;
    }
    free(seen);
    if (found < n)
        abort();
    qsort(stacks, n, sizeof(*stacks), maker_compare);
    return stacks;
}

/* Few stacks have most samples. */
static size_t maker_pick(Maker *m, size_t n) {
    uint64_t r = maker_random(m, 1 << 20);
    double share = (double)r / (1 << 20);

    return (size_t)(share * share * share * (double)n);
}

static ProfileLabel maker_label(Maker *m, size_t process) {
    ProfileLabel label = made_no_label();
    TextSet *texts = m->made.profile->texts;

    if (m->made.profile->keys & profile_key_bit(PROFILE_COMM))
        label.values[PROFILE_COMM] = made_string(texts, made_text(processes[process].command));
    if (m->made.profile->keys & profile_key_bit(PROFILE_UNIT))
        label.values[PROFILE_UNIT] = made_string(texts, made_text(processes[process].unit));
    return label;
}

/* Samples of one span of time: quiet, with a burst of memory work every seven seconds, and a stall.
 */
static void maker_span(Maker *m, const uint32_t *stacks, size_t n, uint64_t bucket, unsigned busy) {
    uint64_t second = bucket / 50, offset = bucket % 50, n_samples = maker_random(m, busy + 1);
    bool burst = second % 7 == 3 && offset > 12 && offset < 30;

    if (second % 40 == 25 && offset > 8)
        n_samples = n_samples > 0 && maker_random(m, 8) == 0;
    if (burst || (offset >= 24 && offset <= 25))
        n_samples += busy;
    for (uint64_t i = 0; i < n_samples; i++) {
        size_t pick = burst && maker_random(m, 4) ? n - 1 - maker_pick(m, n) : maker_pick(m, n);
        ProfileLabel label = maker_label(m, burst ? 1 : pick % ARRAY_SIZE(processes));

        label.values[PROFILE_TIME] = (uint32_t)bucket;
        made_samples(&m->made, &label, stacks[pick], 1, 1000000);
    }
}

static void maker_fill(Maker *m, size_t n, uint64_t seconds, unsigned rate, bool after) {
    uint32_t *stacks = maker_stacks(m, n);

    for (size_t i = 0; i < n && seconds == 0; i++) {
        bool grown = after && i % 7 == 3;
        ProfileLabel label = maker_label(m, i % ARRAY_SIZE(processes));

        made_samples(&m->made, &label, stacks[i],
                     1 + maker_random(m, 4) + (maker_random(m, 12) == 0 ? 200 : 0) + grown * 90,
                     1000000);
    }
    m->made.profile->bucket_ns = 20000000;
    for (uint64_t bucket = 0; bucket < seconds * 50; bucket++)
        maker_span(m, stacks, n, bucket, rate / 25);
    m->made.profile->first_ns = 0;
    m->made.profile->last_ns = seconds * 1000000000;
    free(stacks);
}

/* Names that try to be more than text. */
static MadeProfile maker_hostile(void) {
    static const char *const names[] = {
        "</script><script>document.title='broken'</script>",
        "<img src=x onerror=\"document.title='broken'\">",
        "\\u003c \\ \"quotes\" 'and' &amp; {{data}} ]]>",
        "bad \xff utf-8 \xe2\x80\xae reversed",
        "<!--",
    };
    MadeProfile made = make_profile(0);
    ProfileLabel label = made_no_label();
    uint32_t stack = STACK_ROOT;

    made_event(&made, "</script>");
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        stack = made_push(&made, stack, made_frame(&made, FRAME_USER, names[i], i, names[i]));
        made_samples(&made, &label, stack, 10 + i, 1);
    }
    return made;
}

static int maker_sink(const void *data, size_t size, void *arg) {
    return fwrite(data, 1, size, arg) == size ? 0 : -1;
}

static Maker maker_of(size_t n, uint64_t seconds, unsigned rate, unsigned keys, bool after) {
    Maker m = {.made = make_profile(keys), .random = 88172645463325252ULL, .generated = 4000};

    made_event(&m.made, "cycles");
    m.made.profile->real_known = true;
    m.made.profile->real_offset = 1732440000ULL * 1000000000;
    maker_fill(&m, n, seconds, rate, after);
    return m;
}

static int maker_write(const char *page, const PageInput *input, const PageInput *before) {
    static const PageFact facts[] = {
        {"Host", "shop-7.example"},
        {"Kernel", "6.1.0-28-amd64"},
        {"CPUs", "8"},
        {"Window", "12:00:00 to 12:02:00, 2 min"},
        {"Events", "cycles at 99 Hz"},
        {"Completeness", "100%, no sample was lost"},
        {"Load", "6.2 of 8 CPUs, 4.1 before"},
    };
    static const char *const changes[] = {
        "shop-api.service uses 3.4 CPUs, 1.9 before (+79%).",
        "_int_free takes 11% of shop-api.service, 2% before.",
        "vendor-agent.service is new: 0.3 CPUs.",
    };
    PageFlameOptions options = {.before = before, .by_address = strcmp(page, "address") == 0};
    PageIncident incident = {.input = *input,
                             .facts = facts,
                             .n_facts = ARRAY_SIZE(facts),
                             .changes = changes,
                             .n_changes = ARRAY_SIZE(changes)};

    if (strcmp(page, "svg") == 0)
        return page_flame_svg(input, &options, maker_sink, stdout);
    if (strcmp(page, "heat") == 0)
        return page_heat_map(input, maker_sink, stdout);
    if (strcmp(page, "incident") == 0)
        return page_incident(&incident, maker_sink, stdout);
    return page_flame_graph(input, &options, maker_sink, stdout);
}

int main(int argc, char **argv) {
    const char *page = argc > 1 ? argv[1] : "";
    size_t n = argc > 2 ? strtoul(argv[2], NULL, 10) : 1000;
    uint64_t seconds = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;
    unsigned rate = argc > 4 ? (unsigned)strtoul(argv[4], NULL, 10) : 800;
    bool timed = strcmp(page, "heat") == 0 || strcmp(page, "incident") == 0;
    unsigned keys = profile_key_bit(PROFILE_COMM) | profile_key_bit(PROFILE_UNIT) |
                    (timed ? profile_key_bit(PROFILE_TIME) : 0);
    _cleanup_(made_done) MadeProfile after = {}, before = {};
    char subtitle[160];
    PageInput input = {.event = PROFILE_NONE, .title = "shop-7.example"}, old;
    int r;

    if (n == 1)
        keys = timed ? profile_key_bit(PROFILE_TIME) : 0;
    after = strcmp(page, "hostile") == 0
                ? maker_hostile()
                : maker_of(n, seconds, rate, keys, strcmp(page, "difference") == 0).made;
    snprintf(subtitle, sizeof(subtitle), "cycles at 99 Hz, %zu samples of %zu stacks, none lost",
             (size_t)after.profile->samples, n);
    input.profile = after.profile;
    input.names = after.names;
    input.subtitle = subtitle;
    input.zone_min = 330;
    old = input;
    if (strcmp(page, "difference") == 0) {
        before = maker_of(n, seconds, rate, keys, false).made;
        old.profile = before.profile;
        old.names = before.names;
    }
    r = maker_write(page, &input, before.profile ? &old : NULL);
    return r < 0 ? 1 : 0;
}
