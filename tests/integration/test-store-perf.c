/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <sys/wait.h>

#include "unit/make-store.h"

/* The real perf reads every segment that the store leaves, finished or recovered, in each layout
 * and with and without compression, and has nothing to complain of. */

enum { SEGMENTS = 3, SWEEPS = 4, CPUS = 3, SAMPLES = 400 };

static bool has_perf(void) {
    return shell("perf --version >/dev/null 2>&1") == 0;
}

static int record(Place *place, Way way, StoreSession **ret) {
    SessionConfig config = store_session("default", way.layout, way.level);
    /* Later than the start of any segment. */
    uint64_t sweep = 0, now = clock_anchor_now().monotonic_ns + 60000000000;
    int r = store_session_new(place->store, &config, false, ret);

    for (unsigned i = 0; r == 0 && i < SEGMENTS; i++) {
        r = begin_segment(place, *ret);
        for (unsigned k = 0; r == 0 && k < SWEEPS; k++) {
            /* After everything in the previous sweep. */
            now += SAMPLES * 2000;
            r = write_side_band(*ret, now);
            for (unsigned cpu = 0; r == 0 && cpu < CPUS; cpu++)
                r = write_samples(*ret, cpu, now, SAMPLES);
            if (r == 0)
                r = end_sweep(*ret, ++sweep);
        }
    }
    return r == 0 && !wait_written(*ret, sweep) ? -ETIMEDOUT : r;
}

/* perf script must name all samples, and perf report must print no warning. */
static int judge(void *userdata, const char *path) {
    const char *home = userdata;
    int r = shell("export HOME=%s; cd %s && perf script -F comm,tid,cpu,time,ip,dso,event -i %s "
                  "> script 2> words && [ $(wc -l < script) = %d ] && [ ! -s words ] && "
                  "[ $(grep -c 'worker.*cpu-clock.*(/usr/bin/worker)' script) = %d ] && "
                  "perf report --stdio -i %s > report 2> words && [ ! -s words ] && "
                  "grep -q worker report && "
                  "perf report --header-only -I -i %s 2>&1 | grep -q '# hostname : testhost'",
                  home, home, path, SWEEPS * CPUS * SAMPLES, SWEEPS * CPUS * SAMPLES, path, path);

    if (r != 0) {
        printf("# perf and '%s':\n", path);
        fflush(stdout);
        (void)shell("cd %s; head -3 script words | sed 's/^/# /'; wc -l script | sed 's/^/# /'",
                    home);
    }
    return r == 0 ? 0 : -EBADMSG;
}

TEST(perf_reads_every_finished_segment) {
    if (!has_perf())
        TEST_SKIP("perf is needed");
    for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
        _cleanup_(place_done) Place place;
        StoreSession *session = NULL;

        CHECK_OK(place_init(&place));
        CHECK_OK(place_open(&place));
        CHECK_OK(record(&place, ways[i], &session));
        store_session_close(session);
        CHECK_EQ(count_names(&place, "default", ".perf.data", NULL), SEGMENTS);
        CHECK_OK(each_segment(&place, "default", judge, place.folder));
    }
}

TEST(perf_reads_every_recovered_segment) {
    if (!has_perf())
        TEST_SKIP("perf is needed");
    for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
        _cleanup_(place_done) Place place;
        StoreSession *session = NULL;
        pid_t pid;

        CHECK_OK(place_init(&place));
        fflush(NULL);
        pid = fork();
        if (pid == 0) {
            if (place_open(&place) == 0 && record(&place, ways[i], &session) == 0)
                kill(getpid(), SIGKILL);
            _exit(1);
        }
        CHECK_EQ(waitpid(pid, NULL, 0), pid);
        CHECK_EQ(count_names(&place, "default", ".open", NULL), 1);
        CHECK_OK(place_open(&place));
        CHECK_OK(recover_all(&place, "default"));
        CHECK_EQ(count_names(&place, "default", "~.perf.data", NULL), 1);
        CHECK_OK(each_segment(&place, "default", judge, place.folder));
    }
}

TEST_MAIN()
