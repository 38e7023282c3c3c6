/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tracker/tracker.h"

#include <errno.h>

#include "keeper-stand-in.h"
#include "make-root.h"
#include "test.h"

/* Where the kernel's code is, as it is told to a recording: at its start, and when modules come. */

enum { CHECK_NS = 5000000, LOOKS_MAX = 4000 };

static const char one_module[] = "first 4096 0 - Live 0xffffffffc0a00000\n";
static const char two_modules[] = "first 4096 0 - Live 0xffffffffc0a00000\n"
                                  "second 8192 0 - Live 0xffffffffc0b00000\n";

typedef struct World {
    Keeper keeper;
    Loop *loop;
    Tracker *tracker;
    Emission *emission;
    Buffer head;         /* of the recording */
    const char *awaited; /* in what the recording is told; NULL: that the kernel is known */
    unsigned looks;
} World;

static bool holds(const Buffer *records, const char *text) {
    return records->size > 0 && memmem(records->data, records->size, text, strlen(text));
}

static bool is_told(const World *w, const char *text) {
    return holds(&w->head, text) || holds(emission_pending(w->emission), text);
}

static int look(void *userdata) {
    World *w = userdata;

    if (w->awaited ? is_told(w, w->awaited) : tracker_knows_kernel(w->tracker))
        loop_stop(w->loop);
    return ++w->looks < LOOKS_MAX ? 0 : -ETIMEDOUT;
}

static int ignore(void *userdata _unused_) {
    return 0;
}

static int begin(World *w) {
    const PdTrailer trailer = {.sample_type = PD_SAMPLE_IDENTIFIER | PD_SAMPLE_TIME, .id = 1};
    int r;

    begin_root();
    put("/proc/kallsyms", "ffffffff81000000 T _text\nffffffff82000000 T _etext\n");
    put("/proc/modules", one_module);
    *w = (World){.keeper.root = root};
    r = loop_new(&w->loop);
    if (r == 0)
        r = loop_add_timer(w->loop, CHECK_NS, look, w, NULL);
    if (r == 0)
        r = tracker_new(&(TrackerOptions){.keeper = &w->keeper,
                                          .loop = w->loop,
                                          .on_ready = ignore,
                                          .on_due = ignore,
                                          .userdata = w},
                        &w->tracker);
    if (r == 0)
        r = loop_run(w->loop);
    if (r == 0)
        r = tracker_begin(w->tracker, 100);
    if (r == 0)
        r = emission_new(tracker_history(w->tracker), &trailer, &w->emission);
    return r == 0 ? emission_preamble(w->emission, &w->head) : r;
}

static void end(World *w) {
    buffer_done(&w->head);
    emission_free(w->emission);
    tracker_free(w->tracker);
    loop_free(w->loop);
    end_root();
}

TEST(a_new_module_is_written_when_its_code_is_sampled) {
    _cleanup_(end) World w;

    CHECK_OK(begin(&w));
    CHECK(is_told(&w, "[first]") && !is_told(&w, "[second]"));
    put("/proc/modules", two_modules);
    w.awaited = "[second]";
    tracker_see_kernel(w.tracker, 0xffffffffc0b00123, 200);
    CHECK_OK(loop_run(w.loop));
}

TEST(known_kernel_code_is_not_read_again_and_unknown_code_only_now_and_then) {
    _cleanup_(end) World w;

    CHECK_OK(begin(&w));
    tracker_see_kernel(w.tracker, 0xffffffff81000040, 200);
    tracker_see_kernel(w.tracker, 0xffffffffc0a00fff, 201);
    put("/proc/modules", two_modules);
    w.awaited = "[second]";
    tracker_see_kernel(w.tracker, 0xffffffffd0000000, 202);
    CHECK_OK(loop_run(w.loop));
    put("/proc/modules", "third 8192 0 - Live 0xffffffffc0c00000\n");
    w.awaited = "[third]";
    w.looks = LOOKS_MAX - 40;
    tracker_see_kernel(w.tracker, 0xffffffffd0000000, 203);
    CHECK_EQ(loop_run(w.loop), -ETIMEDOUT);
}

TEST(losses_without_end_make_proc_be_read_again_only_now_and_then) {
    _cleanup_(end) World w;

    CHECK_OK(begin(&w));
    for (unsigned i = 0; i < 100; i++)
        CHECK_OK(tracker_resync_after_loss(w.tracker));
    CHECK_EQ(tracker_resyncs(w.tracker), 1);
    /* The last loss is followed by one. */
    usleep(1100 * 1000);
    CHECK_OK(tracker_complete(w.tracker, 300));
    CHECK_OK(tracker_complete(w.tracker, 301));
    CHECK_EQ(tracker_resyncs(w.tracker), 2);
}

TEST_MAIN()
