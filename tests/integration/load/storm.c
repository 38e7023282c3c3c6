/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "storm.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "load.h"

/*
 * A storm of everything that makes it hard to say whose a sample is. Some lanes, each a process
 * that plays the scenes in turn until the time is over.
 *
 * Usage: storm FOLDER SECONDS [SCENE…]
 *        storm --rate FORKS-A-SECOND SECONDS
 */

typedef struct Scene {
    const char *name;
    void (*play)(const Stage *stage);
} Scene;

/* clang-format off */
static const Scene scenes[] = {
    {"inherit",  scene_inherit},
    {"fork",     scene_fork},
    {"name",     scene_name},
    {"thread",   scene_thread},
    {"code",     scene_code},
    {"plugin",   scene_plugin},
    {"reuse",    scene_reuse},
    {"space",    scene_space},
    {"exec",     scene_exec},
    {"chain",    scene_chain},
    {"vfork",    scene_vfork},
    {"memfd",    scene_memfd},
    {"deleted",  scene_deleted},
    {"replaced", scene_replaced},
};
/* clang-format on */

enum { N_SCENES = sizeof(scenes) / sizeof(scenes[0]) };

LOAD_DEFINE_WORK(storm_short)

static int usage(void) {
    fprintf(stderr,
            "Usage: storm FOLDER SECONDS [SCENE…] | --rate FORKS-A-SECOND SECONDS\nScenes:");
    for (unsigned i = 0; i < N_SCENES; i++)
        fprintf(stderr, " %s", scenes[i].name);
    fprintf(stderr, "\n");
    return 2;
}

static int is_named(const char *name, int argc, char **argv) {
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return 1;
    return argc == 0;
}

static void play(const Stage *stage, uint64_t end_ns, int argc, char **argv) {
    for (;;)
        for (unsigned i = 0; i < N_SCENES; i++) {
            if (load_now_ns() >= end_ns)
                _exit(EXIT_SUCCESS);
            if (is_named(scenes[i].name, argc, argv))
                scenes[i].play(stage);
        }
}

static void start_lane(const Stage *stage, unsigned lane, uint64_t end_ns, int argc, char **argv) {
    char folder[PATH_BYTES];

    if (load_fork() != 0)
        return;
    (void)snprintf(folder, sizeof(folder), "%s/lane-%u", stage->folder, lane);
    if (mkdir(folder, 0700) < 0 && errno != EEXIST)
        load_die(folder);
    play(&(Stage){.folder = folder, .self = stage->self, .plugin = stage->plugin}, end_ns, argc,
         argv);
}

/* As many forks as the time that has gone by asks for; prints how many there were. */
static int rain(uint64_t rate, uint64_t seconds) {
    uint64_t begin_ns = load_now_ns(), end_ns = begin_ns + seconds * LOAD_NS_PER_S, n = 0;

    for (uint64_t now = begin_ns; now < end_ns; now = load_now_ns()) {
        for (; n < (now - begin_ns) / 1000 * rate / 1000000; n++)
            if (load_fork() == 0) {
                (void)prctl(PR_SET_NAME, "storm-short");
                (void)storm_short_work(LOAD_NS_PER_MS / 5);
                _exit(EXIT_SUCCESS);
            }
        while (waitpid(-1, NULL, WNOHANG) > 0)
            continue;
        load_sleep_ns(LOAD_NS_PER_MS);
    }
    while (wait(NULL) > 0)
        continue;
    printf("%llu\n", (unsigned long long)n);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv) {
    char self[PATH_BYTES], beside[PATH_BYTES], plugin[PATH_BYTES + 32];
    ssize_t n;
    uint64_t end_ns;

    if (argc > 2 && strcmp(argv[1], STORM_PART) == 0)
        return storm_part(argc - 2, argv + 2);
    if (argc == 4 && strcmp(argv[1], "--rate") == 0)
        return rain(load_number(argv[2]), load_number(argv[3]));
    if (argc < 3 || argv[1][0] == '-')
        return usage();
    n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n < 0)
        load_die("/proc/self/exe");
    self[n] = '\0';
    memcpy(beside, self, (size_t)n + 1);
    (void)snprintf(plugin, sizeof(plugin), "%s/storm-plugin.so", dirname(beside));
    end_ns = load_now_ns() + load_number(argv[2]) * LOAD_NS_PER_S;
    for (long lane = 0; lane < 2 * sysconf(_SC_NPROCESSORS_ONLN); lane++)
        start_lane(&(Stage){.folder = argv[1], .self = self, .plugin = plugin}, (unsigned)lane,
                   end_ns, argc - 3, argv + 3);
    while (wait(NULL) > 0)
        continue;
    return EXIT_SUCCESS;
}
