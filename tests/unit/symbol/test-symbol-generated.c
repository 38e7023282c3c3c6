/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "make-program.h"
#include "test.h"
#include "util/clock.h"

/* Names of generated code: of processes that run, or that left something behind. Profiles begin
 * now and end a while ago or later, as a case needs it. */

enum { CODE = 0x7f0000001000 };

typedef struct Moment {
    int64_t began_s, ended_s; /* from now */
} Moment;

static const char *look_up(uint32_t pid, uint64_t address, Moment when, SymbolOptions options,
                           FrameName *ret) {
    static char text[256];
    _cleanup_(made_profile_done) MadeProfile made = made_profile();
    FrameMapping mapping = {
        .kind = FRAME_JIT, .pid = pid, .path = {.data = (const uint8_t *)"//anon", .size = 6}};
    uint32_t frame = made_frame(&made, &mapping, address, false);
    uint64_t now = clock_ns(CLOCK_REALTIME);

    made.profile.real_known = true;
    made.profile.first_ns = now + (uint64_t)(when.began_s * (int64_t)NS_PER_SECOND);
    made.profile.last_ns = now + (uint64_t)(when.ended_s * (int64_t)NS_PER_SECOND);
    if (made_resolve(&made, &options) < 0)
        abort();
    *ret = made.names->names[frame];
    snprintf(text, sizeof(text), "%s", made_name(&made, frame));
    return text;
}

static const SymbolOptions living = {.local_processes = true};

/* A process that runs a script and then waits. Its output tells when it is ready. */
static pid_t start(const char *script) {
    int pipes[2];
    char byte;
    pid_t pid;

    if (pipe(pipes) < 0)
        abort();
    pid = fork();
    if (pid == 0) {
        (void)dup2(pipes[1], STDOUT_FILENO);
        (void)close(pipes[0]);
        (void)close(pipes[1]);
        execl("/bin/sh", "sh", "-c", script, made_in(), NULL);
        _exit(127);
    }
    (void)close(pipes[1]);
    if (read(pipes[0], &byte, 1) != 1)
        pid = -pid;
    (void)close(pipes[0]);
    return pid;
}

static void stop(pid_t pid) {
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

#define MAP_LINES "7f0000001000 40 first\\n7f0000001040 20 LazyCompile:~spin x.js:1\\n"

TEST(map_of_a_living_process_names_its_code) {
    pid_t pid = start("printf '" MAP_LINES "' >/tmp/perf-$$.map; echo; exec sleep 60");
    char path[64];
    FrameName name;

    snprintf(path, sizeof(path), "/tmp/perf-%d.map", pid);
    CHECK_STREQ(look_up((uint32_t)pid, CODE + 0x41, (Moment){0, 1}, living, &name),
                "LazyCompile:~spin x.js:1");
    CHECK_EQ(name.naming, FRAME_NAMED);
    CHECK_EQ(name.start, CODE + 0x40);
    CHECK_STREQ(look_up((uint32_t)pid, CODE + 0x60, (Moment){0, 1}, living, &name),
                "0x7f0000001060");
    CHECK_EQ(name.naming, FRAME_UNNAMED);
    /* What was sampled before it began was another process of this pid. */
    CHECK_STREQ(look_up((uint32_t)pid, CODE, (Moment){-1000, -900}, living, &name),
                "0x7f0000001000");
    /* A recording of another host has other processes. */
    CHECK_STREQ(look_up((uint32_t)pid, CODE, (Moment){0, 1}, (SymbolOptions){}, &name),
                "0x7f0000001000");
    stop(pid);
    (void)unlink(path);
}

TEST(map_that_an_earlier_process_of_the_pid_left_is_not_read) {
    pid_t pid = start("printf '" MAP_LINES "' >/tmp/perf-$$.map; "
                      "touch -d '1 second ago' /tmp/perf-$$.map; echo; exec sleep 60");
    char path[64];
    FrameName name;

    snprintf(path, sizeof(path), "/tmp/perf-%d.map", pid);
    CHECK_STREQ(look_up((uint32_t)pid, CODE, (Moment){0, 1}, living, &name), "0x7f0000001000");
    /* The process writes it now. */
    CHECK_OK(utimensat(AT_FDCWD, path, NULL, 0));
    CHECK_STREQ(look_up((uint32_t)pid, CODE, (Moment){0, 1}, living, &name), "first");
    stop(pid);
    (void)unlink(path);
}

TEST(map_that_is_a_link_or_of_somebody_else_is_not_read) {
    static const char *const scripts[] = {
        "printf '" MAP_LINES "' >$0/other; ln -sf $0/other /tmp/perf-$$.map; echo; exec sleep 60",
        "printf '" MAP_LINES "' >$0/other; ln -f $0/other /tmp/perf-$$.map; echo; exec sleep 60",
        "mkfifo /tmp/perf-$$.map; echo; exec sleep 60",
        "printf '" MAP_LINES "' >/tmp/perf-$$.map; chown 1 /tmp/perf-$$.map; echo; exec sleep 60"};
    FrameName name;

    if (geteuid() != 0)
        TEST_SKIP("only root can give files away");
    if (!made_run("touch link && ln link link2"))
        TEST_SKIP("there are no hard links here");
    for (size_t i = 0; i < ARRAY_SIZE(scripts); i++) {
        char path[64], script[512];
        pid_t pid;

        /* On a second file system, a link cannot be made. */
        snprintf(script, sizeof(script), "%s", scripts[i]);
        pid = start(script);
        snprintf(path, sizeof(path), "/tmp/perf-%d.map", pid);
        CHECK_STREQ(look_up((uint32_t)pid, CODE, (Moment){0, 1}, living, &name), "0x7f0000001000");
        stop(pid);
        (void)unlink(path);
    }
}

TEST(map_is_looked_for_where_the_process_sees_it) {
    pid_t pid;
    FrameName name;

    if (geteuid() != 0 || !made_has("unshare") || !made_run("unshare -m true"))
        TEST_SKIP("mount namespaces cannot be made here");
    pid = start("exec unshare -m sh -c 'mount -t tmpfs none /tmp && "
                "printf \"" MAP_LINES "\" >/tmp/perf-$$.map; echo; exec sleep 60'");
    CHECK(pid > 0);
    CHECK_STREQ(look_up((uint32_t)pid, CODE + 1, (Moment){0, 1}, living, &name), "first");
    stop(pid);
    CHECK_STREQ(look_up((uint32_t)pid, CODE + 1, (Moment){0, 1}, living, &name), "0x7f0000001001");
}

TEST(map_that_a_process_left_counts_if_it_was_written_while_it_was_sampled) {
    const uint32_t pid = 4194303; /* above the pids that are given out */
    FILE *f = fopen("/tmp/perf-4194303.map", "w");
    FrameName name;

    CHECK(f);
    CHECK(fprintf(f, "7f0000001000 40 first\n") > 0);
    CHECK(fclose(f) == 0);
    CHECK_STREQ(look_up(pid, CODE + 1, (Moment){-5, 5}, living, &name), "first");
    CHECK_STREQ(look_up(pid, CODE + 1, (Moment){-100, -50}, living, &name), "0x7f0000001001");
    CHECK_STREQ(look_up(pid, CODE + 1, (Moment){50, 100}, living, &name), "0x7f0000001001");
    CHECK(unlink("/tmp/perf-4194303.map") == 0);
}

TEST(kept_map_is_that_of_the_process_that_ran_then) {
    const char *folder = made_path("kept");
    SymbolOptions options = {.caches = &folder, .n_caches = 1};
    uint64_t now_us = clock_ns(CLOCK_REALTIME) / NS_PER_US;
    char path[128];
    FrameName name;

    CHECK(made_run("mkdir -p kept/maps"));
    snprintf(path, sizeof(path), "kept/maps/77-%" PRIu64 ".map", now_us - 1000 * US_PER_SECOND);
    made_write(path, "7f0000001000 40 old\n");
    snprintf(path, sizeof(path), "kept/maps/77-%" PRIu64 ".map", now_us - 100 * US_PER_SECOND);
    made_write(path, "7f0000001000 40 new\n");
    CHECK_STREQ(look_up(77, CODE, (Moment){-50, 0}, options, &name), "new");
    CHECK_STREQ(look_up(77, CODE, (Moment){-300, -200}, options, &name), "old");
    CHECK_STREQ(look_up(77, CODE, (Moment){-2000, -1500}, options, &name), "0x7f0000001000");
    CHECK_STREQ(look_up(78, CODE, (Moment){-50, 0}, options, &name), "0x7f0000001000");
    /* Both may have been sampled. */
    CHECK_STREQ(look_up(77, CODE, (Moment){-300, 0}, options, &name), "0x7f0000001000");
}

TEST(kept_map_of_another_process_does_not_name_the_code_of_one_that_lives) {
    const char *folder = made_path("lives");
    SymbolOptions options = {.caches = &folder, .n_caches = 1, .local_processes = true};
    uint64_t now_us = clock_ns(CLOCK_REALTIME) / NS_PER_US;
    pid_t pid = start("echo; exec sleep 60");
    char path[128];
    FrameName name;

    CHECK(made_run("mkdir -p lives/maps"));
    snprintf(path, sizeof(path), "lives/maps/%d-%" PRIu64 ".map", pid,
             now_us - 100 * US_PER_SECOND);
    made_write(path, "7f0000001000 40 earlier\n");
    CHECK_STREQ(look_up((uint32_t)pid, CODE, (Moment){0, 1}, options, &name), "0x7f0000001000");
    snprintf(path, sizeof(path), "lives/maps/%d-%" PRIu64 ".map", pid, now_us);
    made_write(path, "7f0000001000 40 own\n");
    CHECK_STREQ(look_up((uint32_t)pid, CODE, (Moment){0, 1}, options, &name), "own");
    stop(pid);
}

static const char source_dump[] =
    "#include <fcntl.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <string.h>\n"
    "#include <sys/mman.h>\n#include <unistd.h>\n"
    "int main(int argc, char **argv) { char path[256]; uint8_t b[512] = {}; uint32_t v[10] = "
    "{0x4a695444, 1, 40, 62, 0, (uint32_t)getpid()}; struct { uint32_t id, size; uint64_t time; "
    "uint32_t pid, tid; uint64_t vma, addr, code_size, index; char name[8]; uint8_t code[32]; } "
    "__attribute__((packed)) load = {0, sizeof(load), 1, getpid(), getpid(), 0x7f0000001000, "
    "0x7f0000001000, 32, 1, \"dumped\", {}};\n"
    "snprintf(path, sizeof(path), \"%s/jit-%d.dump\", argv[1], getpid());\n"
    "int fd = open(path, O_CREAT | O_RDWR | O_TRUNC, 0600); memcpy(b, v, 40); "
    "if (write(fd, b, 40) != 40 || write(fd, &load, sizeof(load)) != sizeof(load)) return 1;\n"
    "if (mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED) return 2;\n"
    "puts(\"\"); fflush(stdout); sleep(60); return 0; }\n";

TEST(jitdump_that_a_process_has_mapped_names_its_code) {
    char script[256];
    FrameName name;
    pid_t pid;

    made_write("dump.c", source_dump);
    CHECK(made_run("gcc -o dump dump.c"));
    snprintf(script, sizeof(script), "exec %s %s", made_path("dump"), made_in());
    pid = start(script);
    CHECK(pid > 0);
    CHECK_STREQ(look_up((uint32_t)pid, CODE + 31, (Moment){0, 1}, living, &name), "dumped");
    CHECK_STREQ(look_up((uint32_t)pid, CODE + 32, (Moment){0, 1}, living, &name), "0x7f0000001020");
    stop(pid);
}

TEST(code_that_was_generated_later_is_named_later) {
    _cleanup_(symbol_resolver_freep) SymbolResolver *resolver = NULL;
    _cleanup_(made_profile_done) MadeProfile made = made_profile();
    pid_t pid = start("printf '" MAP_LINES "' >/tmp/perf-$$.map; echo; exec sleep 60");
    FrameMapping mapping = {.kind = FRAME_JIT, .pid = (uint32_t)pid};
    char path[64];
    FILE *f;

    snprintf(path, sizeof(path), "/tmp/perf-%d.map", pid);
    made.profile.real_known = true;
    made.profile.first_ns = made.profile.last_ns = clock_ns(CLOCK_REALTIME);
    CHECK_OK(symbol_resolver_new(&living, &resolver));
    (void)made_frame(&made, &mapping, CODE + 0x100, false);
    CHECK_OK(symbol_name_frames(resolver, &made.profile, made.names));
    CHECK_STREQ(made_name(&made, 0), "0x7f0000001100");
    f = fopen(path, "a");
    CHECK(f && fprintf(f, "7f0000001100 40 later\n") > 0 && fclose(f) == 0);
    (void)made_frame(&made, &mapping, CODE + 0x101, false);
    CHECK_OK(symbol_name_frames(resolver, &made.profile, made.names));
    CHECK_STREQ(made_name(&made, 1), "later");
    stop(pid);
    (void)unlink(path);
}

TEST(functions_of_the_vdso_are_named) {
    const Elf64_Ehdr *vdso = (const Elf64_Ehdr *)getauxval(AT_SYSINFO_EHDR);
    FrameMapping mapping = {.kind = FRAME_VDSO,
                            .path = {.data = (const uint8_t *)"[vdso]", .size = 6}};
    SymbolOptions options = {.local_files = true, .local_processes = true};
    uint64_t address = 0;
    FrameName name;

    CHECK(made_run("cp /proc/self/exe shell; :"));
    if (!vdso)
        TEST_SKIP("this kernel has no vdso");
    {
        FILE *f = fopen(made_path("vdso"), "w");
        size_t size = vdso->e_shoff + (size_t)vdso->e_shnum * vdso->e_shentsize;
        char command[512];

        CHECK(f && fwrite(vdso, 1, size, f) == size && fclose(f) == 0);
        snprintf(command, sizeof(command),
                 "nm -D %s | awk '$3 ~ /clock_gettime/ { print $1; exit }'", made_path("vdso"));
        address = made_number(command);
    }
    CHECK(address != UINT64_MAX);
    CHECK(strstr(made_look_up(&mapping, address, &options, &name), "clock_gettime"));
    options.local_processes = false;
    CHECK(strstr(made_look_up(&mapping, address, &options, &name), "[vdso]+0x"));
    made_build_id("vdso", &mapping);
    CHECK(mapping.build_id_size > 0);
    CHECK(strstr(made_look_up(&mapping, address, &options, &name), "clock_gettime"));
    mapping.build_id[0] ^= 1;
    CHECK(strstr(made_look_up(&mapping, address, &options, &name), "[vdso]+0x"));
}

TEST(program_for_the_kernel_is_called_what_its_mapping_is_called) {
    FrameMapping mapping = {
        .kind = FRAME_BPF,
        .path = {.data = (const uint8_t *)"bpf_prog_6deef7357e7b4530_count", .size = 31},
        .start = 0xffffffffc0001000};
    FrameName name;

    CHECK_STREQ(made_look_up(&mapping, 0xffffffffc0001010, &(SymbolOptions){}, &name),
                "bpf_prog_6deef7357e7b4530_count");
    CHECK_EQ(name.start, 0xffffffffc0001000);
}

TEST_MAIN()
