/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A reader of ELF files with a keeper of the test's own, and programs whose mappings it is asked
 * for. */

#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "keeper-stand-in.h"
#include "scan/elf-reader.h"
#include "test.h"
#include "util/file.h"

#define FIRST  "/bin/sleep"
#define SECOND "/bin/cat"

static char folder[] = "/tmp/test-scan-elf-reader-XXXXXX";
static char program[sizeof(folder) + 16];

static Keeper keeper;
static int proc = -1;
static ProcessReader *processes;
static ElfReader *reader;

static inline void begin(bool has_no_query) {
    strcpy(folder + sizeof(folder) - 7, "XXXXXX");
    if (!mkdtemp(folder))
        abort();
    snprintf(program, sizeof(program), "%s/program", folder);
    memset(&keeper, 0, sizeof(keeper));
    keeper.root = "";
    keeper.has_no_query = has_no_query;
    proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (proc < 0 || process_reader_new(proc, &keeper, &processes) < 0 ||
        elf_reader_new(&keeper, processes, proc, &reader) < 0)
        abort();
}

static inline void end(void) {
    char command[256];

    reader = elf_reader_free(reader);
    processes = process_reader_free(processes);
    closep(&proc);
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    if (system(command) != 0)
        abort();
}

static inline void copy(const char *from, const char *to) {
    char command[512];

    snprintf(command, sizeof(command), "cp %s %s.new && mv %s.new %s", from, to, to, to);
    if (system(command) != 0)
        abort();
}

static inline pid_t run(const char *path) {
    char *args[] = {"sleep", "1000", NULL};
    pid_t pid;

    if (posix_spawn(&pid, path, NULL, NULL, args, NULL) != 0)
        abort();
    return pid;
}

static inline void end_process(pid_t pid) {
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* The first executable mapping of a file; its path without " (deleted)", as it was when mapped. */
static inline bool find_image(pid_t pid, MappedImage *ret) {
    static char name[4096];
    unsigned long start, inode;
    unsigned major, minor;
    char path[64], line[8192], permissions[5];
    bool found = false;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    f = fopen(path, "re");
    while (f && !found && fgets(line, sizeof(line), f))
        found = sscanf(line, "%lx-%*x %4s %*x %x:%x %lu %4095[^\n]", &start, permissions, &major,
                       &minor, &inode, name) == 6 &&
                permissions[2] == 'x' && inode != 0;
    if (f)
        fclose(f);
    if (strstr(name, " (deleted)"))
        *strstr(name, " (deleted)") = '\0';
    *ret = (MappedImage){.pid = (uint32_t)pid,
                         .start = start,
                         .major = major,
                         .minor = minor,
                         .inode = inode,
                         .path = name};
    return found;
}

static inline void generation_of(const char *path, MappedImage *image) {
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    long version = 0;

    if (fd >= 0 && ioctl(fd, FS_IOC_GETVERSION, &version) == 0)
        image->generation = (uint32_t)version;
}

static inline const char *hex(const BuildId *id) {
    static char text[2 * BUILD_ID_SIZE_MAX + 1];

    text[0] = '\0';
    for (size_t i = 0; i < id->size; i++)
        snprintf(text + 2 * i, 3, "%02x", id->bytes[i]);
    return text;
}

/* The build id that readelf prints for a file. */
static inline const char *readelf(const char *path) {
    static char id[64];
    char command[512], line[512];
    FILE *f;

    id[0] = '\0';
    snprintf(command, sizeof(command), "readelf -n %s 2>/dev/null", path);
    f = popen(command, "r");
    while (f && fgets(line, sizeof(line), f))
        (void)sscanf(line, " Build ID: %63s", id);
    if (f)
        pclose(f);
    return id;
}

/* Whether a mapping can be opened, which takes more than the right to trace. */
static inline bool has_map_files(void) {
    return geteuid() == 0;
}

#define NEEDS_TWO_IDS()                                                                            \
    do {                                                                                           \
        char first[64];                                                                            \
        snprintf(first, sizeof(first), "%s", readelf(FIRST));                                      \
        if (first[0] == '\0' || strcmp(first, readelf(SECOND)) == 0)                               \
            TEST_SKIP("no readelf, or programs without build ids");                                \
        if (!has_map_files())                                                                      \
            TEST_SKIP("no root, so mappings cannot be opened");                                    \
    } while (0)

static inline bool wait_for_image(pid_t pid, MappedImage *ret) {
    for (unsigned i = 0; i < 1000; i++) {
        struct stat of_file, of_process;
        char exe[64];

        /* Between fork and exec it is still us. */
        snprintf(exe, sizeof(exe), "/proc/%d/exe", (int)pid);
        if (stat(exe, &of_process) == 0 && stat("/proc/self/exe", &of_file) == 0 &&
            of_process.st_ino != of_file.st_ino && find_image(pid, ret))
            return true;
        usleep(1000);
    }
    return false;
}
