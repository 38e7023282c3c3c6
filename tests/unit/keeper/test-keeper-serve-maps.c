/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "make-served.h"

#include <limits.h>
#include <sys/mman.h>

#include "keeper/serve/procmap.h"

/* Compares the maps that a helper of the keeper reads with the kernel's own text. */

enum { PAGE = 4096, MANY = 2000 };

static Served served;

/* The text; free() it. */
static char *read_all(int fd) {
    size_t size = 0, room = 1 << 22;
    char *text = malloc(room);
    ssize_t n;

    while (text && size < room - 1 && (n = read(fd, text + size, room - 1 - size)) > 0)
        size += (size_t)n;
    if (!text || size == room - 1)
        abort();
    text[size] = '\0';
    (void)close(fd);
    return text;
}

static char *maps_of(KeeperMaps what, const void *address) {
    int error, fd = -1,
               r = keeper_read_process(served.keeper, (uint32_t)getpid(), (uint32_t)getpid(), what,
                                       (uintptr_t)address, &error, &fd);

    return r < 0 || error < 0 ? NULL : read_all(fd);
}

static char *own_maps(void) {
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

    return fd < 0 ? NULL : read_all(fd);
}

static bool has_query(void) {
    _cleanup_close_ int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    ProcmapQuery query = {.flags = PROCMAP_COVERING_OR_NEXT};

    return fd >= 0 && procmap_query(fd, &query) == 0;
}

/* A line without the padding before the name, in a static buffer. */
static const char *without_padding(const char *line, size_t n) {
    static char text[2 * PATH_MAX];
    size_t kept = 0;

    for (size_t i = 0; i < n && kept < sizeof(text) - 1; i++)
        if (line[i] != ' ' || kept == 0 || text[kept - 1] != ' ')
            text[kept++] = line[i];
    text[kept] = '\0';
    return text;
}

/* Whether these are the executable lines of the kernel's text. */
static bool is_code_of(const char *code, const char *all) {
    char expected[2 * PATH_MAX];

    for (const char *line = all, *end; (end = strchr(line, '\n')); line = end + 1) {
        const char *space = strchr(line, ' '), *found;

        if (space[3] != 'x' || strstr(line, "[vsyscall]") == line + strlen("ffffffffff600000-"))
            continue;
        strcpy(expected, without_padding(line, (size_t)(end - line)));
        if (strstr(expected, "[vsyscall]"))
            continue;
        found = strchr(code, '\n');
        if (!found || strcmp(expected, without_padding(code, (size_t)(found - code))) != 0) {
            printf("# expected: %s\n", expected);
            return false;
        }
        code = found + 1;
    }
    return *code == '\0' || strstr(code, "[vsyscall]");
}

static void *map_named(const char *name, int protection) {
    _cleanup_close_ int fd = memfd_create(name, MFD_CLOEXEC);
    void *data;

    if (fd < 0 || ftruncate(fd, PAGE) < 0)
        abort();
    data = mmap(NULL, PAGE, protection, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED)
        abort();
    return data;
}

TEST(executable_mappings_are_those_of_the_kernels_text) {
    _cleanup_free_ char *code = NULL, *all = NULL;
    void *named = map_named("two\nlines \\012", PROT_READ | PROT_EXEC);

    CHECK_OK(served_begin(&served));
    code = maps_of(KEEPER_MAPS_CODE, NULL);
    all = own_maps();
    CHECK_EQ(served_end(&served), 0);
    CHECK(code && all);
    CHECK(is_code_of(code, all));
    CHECK(strstr(code, "/memfd:two\\012lines \\012 (deleted)\n") != NULL);
    CHECK(strstr(code, "/test-keeper-serve-maps\n") != NULL);
    (void)munmap(named, PAGE);
}

TEST(all_mappings_are_the_kernels_text) {
    _cleanup_free_ char *told = NULL, *all = NULL;
    void *named = map_named("only data", PROT_READ);

    CHECK_OK(served_begin(&served));
    told = maps_of(KEEPER_MAPS_ALL, NULL);
    all = own_maps();
    CHECK_EQ(served_end(&served), 0);
    CHECK(told && all);
    CHECK(strstr(told, "/memfd:only data (deleted)\n") != NULL);
    CHECK_EQ(strncmp(told, all, strlen("0000-")), 0);
    (void)munmap(named, PAGE);
}

TEST(the_mapping_at_an_address_is_read_alone_where_the_kernel_can_be_asked) {
    _cleanup_free_ char *told = NULL, *none = NULL;
    char *named = map_named("here", PROT_READ);
    char expected[32];

    CHECK_OK(served_begin(&served));
    told = maps_of(KEEPER_MAPS_AT, named + PAGE / 2);
    none = maps_of(KEEPER_MAPS_AT, (void *)PAGE);
    CHECK_EQ(served_end(&served), 0);
    snprintf(expected, sizeof(expected), "%lx-%lx r--p ", (unsigned long)named,
             (unsigned long)named + PAGE);
    CHECK(told && none);
    CHECK(strstr(told, expected) != NULL);
    CHECK(strstr(told, "/memfd:here (deleted)\n") != NULL);
    if (has_query()) {
        CHECK_EQ(strchr(told, '\n')[1], '\0');
        CHECK_STREQ(none, "");
    }
    (void)munmap(named, PAGE);
}

/* More text than any buffer on its way has, and every second mapping is executable, since the
 * kernel merges those that are alike. */
TEST(the_maps_of_a_process_with_thousands_of_mappings_are_read_whole) {
    char *area = mmap(NULL, MANY * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    _cleanup_free_ char *code = NULL, *all = NULL, *told = NULL;
    size_t n = 0;

    CHECK(area != MAP_FAILED);
    for (size_t i = 0; i < MANY; i += 2)
        CHECK_OK(mprotect(area + i * PAGE, PAGE, PROT_READ | PROT_EXEC));
    CHECK_OK(served_begin(&served));
    code = maps_of(KEEPER_MAPS_CODE, NULL);
    told = maps_of(KEEPER_MAPS_ALL, NULL);
    all = own_maps();
    CHECK_EQ(served_end(&served), 0);
    CHECK(code && told && all);
    CHECK(is_code_of(code, all));
    for (const char *line = told; (line = strchr(line, '\n')); line++)
        n++;
    CHECK(n >= MANY);
    (void)munmap(area, MANY * PAGE);
}

TEST(the_stat_file_comes_with_the_maps_or_alone) {
    _cleanup_close_ int with = -1, alone = -1, stat = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    char expected[KEEPER_STAT_BYTES] = "", text[KEEPER_STAT_BYTES], more;
    uint32_t pid = (uint32_t)getpid();
    int error = 1;

    CHECK_OK(served_begin(&served));
    CHECK_OK(keeper_read_process(served.keeper, pid, pid, KEEPER_MAPS_CODE, 0, &error, &with));
    CHECK_EQ(error, 0);
    CHECK_OK(keeper_read_process(served.keeper, pid, pid, KEEPER_MAPS_NONE, 0, &error, &alone));
    CHECK_EQ(served_end(&served), 0);
    CHECK(pread(stat, expected, sizeof(expected), 0) > 0);
    /* "PID (COMM", and then what changes. */
    *strchr(expected, ')') = '\0';
    for (unsigned i = 0; i < 2; i++) {
        CHECK_EQ(pread(with, text, sizeof(text), i * KEEPER_STAT_BYTES), KEEPER_STAT_BYTES);
        CHECK_EQ(strncmp(text, expected, strlen(expected)), 0);
        CHECK_EQ(pread(alone, text, sizeof(text), i * KEEPER_STAT_BYTES), KEEPER_STAT_BYTES);
        CHECK_EQ(strncmp(text, expected, strlen(expected)), 0);
        CHECK_EQ(text[sizeof(text) - 1], '\0');
    }
    CHECK_EQ(read(alone, &more, 1), 0);
}

TEST(a_process_that_is_gone_is_not_read) {
    pid_t pid = fork();
    int error, fd = -1;

    if (pid == 0)
        _exit(0);
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
    CHECK_OK(served_begin(&served));
    CHECK_EQ(keeper_read_process(served.keeper, (uint32_t)pid, (uint32_t)pid, KEEPER_MAPS_CODE, 0,
                                 &error, &fd),
             -ESRCH);
    /* A thread of another process gives no maps. */
    CHECK_OK(keeper_read_process(served.keeper, 1, 2, KEEPER_MAPS_CODE, 0, &error, &fd));
    CHECK_EQ(error, -ENOENT);
    (void)close(fd);
    CHECK_EQ(served_end(&served), 0);
}

TEST_MAIN()
