/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/baseline.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>

#include "util/file.h"

/*
 * One pass over /proc. Side-band is already running when it starts, so whatever changes while we
 * read is told by the kernel, later and with a later time. A process's records make one Batch. The
 * files are written by the kernel but name things that users choose, so every line is bounded.
 */

enum { LINE_MAX_BYTES = PATH_MAX + 256, NAME_MAX_BYTES = 512 };

static Bytes bytes_of(const char *s) {
    return (Bytes){.data = (const uint8_t *)s, .size = strlen(s)};
}

static int flush(Buffer *records, CaptureSink sink, void *userdata) {
    Batch batch = {.records = buffer_bytes(records), .side_band = true};
    int r = buffer_error(records);

    if (r == 0 && records->size > 0)
        r = sink(userdata, &batch);
    buffer_clear(records);
    return r;
}

static FILE *open_text(const char *root, const char *path) {
    char full[PATH_MAX];
    int n = snprintf(full, sizeof(full), "%s%s", root, path);

    return n < (int)sizeof(full) ? fopen(full, "re") : NULL;
}

static void fclosep(FILE **f) {
    if (*f)
        (void)fclose(*f);
}

static void emit_kernel_map(Buffer *out, const PdTrailer *trailer, uint64_t start, uint64_t length,
                            uint64_t pgoff, const char *name) {
    PdMmap mmap = {.pid = UINT32_MAX,
                   .start = start,
                   .length = length,
                   .pgoff = pgoff,
                   .filename = bytes_of(name)};

    pd_emit_mmap(out, trailer, PD_MISC_KERNEL, &mmap);
}

/* The kernel's own text runs from _text to _etext; addresses are zero without CAP_SYSLOG. */
static void add_kernel_text(const char *root, const PdTrailer *trailer, Buffer *out) {
    _cleanup_(fclosep) FILE *f = open_text(root, "/proc/kallsyms");
    uint64_t text = 0, end = 0;
    char line[NAME_MAX_BYTES];

    while (f && (!text || !end) && fgets(line, sizeof(line), f)) {
        char name[NAME_MAX_BYTES] = "", type;
        uint64_t addr;

        if (sscanf(line, "%" SCNx64 " %c %511s", &addr, &type, name) != 3)
            continue;
        if (strcmp(name, "_text") == 0)
            text = addr;
        else if (strcmp(name, "_etext") == 0)
            end = addr;
    }
    if (text && end > text)
        emit_kernel_map(out, trailer, text, end - text, text, "[kernel.kallsyms]_text");
}

static void add_modules(const char *root, const PdTrailer *trailer, Buffer *out) {
    _cleanup_(fclosep) FILE *f = open_text(root, "/proc/modules");
    char line[LINE_MAX_BYTES];

    while (f && fgets(line, sizeof(line), f)) {
        char name[64], bracketed[sizeof(name) + 2];
        uint64_t size, addr;
        const char *hex = strstr(line, " 0x");

        if (!hex || sscanf(line, "%63s %" SCNu64, name, &size) != 2 ||
            sscanf(hex, " %" SCNx64, &addr) != 1 || addr == 0)
            continue;
        snprintf(bracketed, sizeof(bracketed), "[%s]", name);
        emit_kernel_map(out, trailer, addr, size, 0, bracketed);
    }
}

int baseline_kernel(const char *root, const PdTrailer *trailer, CaptureSink sink, void *userdata) {
    _cleanup_(buffer_done) Buffer records = {};

    add_kernel_text(root, trailer, &records);
    add_modules(root, trailer, &records);
    return flush(&records, sink, userdata);
}

/* The kernel writes a newline in a path as \012. */
static void unescape_newlines(char *path) {
    char *to = path;

    for (const char *from = path; *from;) {
        if (strncmp(from, "\\012", 4) == 0) {
            *to++ = '\n';
            from += 4;
        } else
            *to++ = *from++;
    }
    *to = '\0';
}

/* A line of maps; false when it is no executable mapping. */
static bool parse_mapping(char *line, PdMmap *ret) {
    uint64_t start, end, pgoff, inode;
    uint32_t major, minor;
    char perms[5];
    int name_at = 0;

    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &start, &end,
               perms, &pgoff, &major, &minor, &inode, &name_at) != 7 ||
        end <= start || perms[2] != 'x')
        return false;
    line[strcspn(line, "\n")] = '\0';
    unescape_newlines(line + name_at);
    *ret = (PdMmap){
        .start = start,
        .length = end - start,
        .pgoff = pgoff,
        .major = major,
        .minor = minor,
        .inode = inode,
        .prot =
            (perms[0] == 'r' ? PROT_READ : 0U) | (perms[1] == 'w' ? PROT_WRITE : 0U) | PROT_EXEC,
        .flags = perms[3] == 's' ? MAP_SHARED : MAP_PRIVATE,
        .filename = bytes_of(line[name_at] ? line + name_at : "//anon"),
    };
    return true;
}

static void add_mappings(FILE *f, const PdTrailer *trailer, Buffer *out) {
    char line[LINE_MAX_BYTES];
    PdMmap mmap;

    while (fgets(line, sizeof(line), f)) {
        if (!parse_mapping(line, &mmap))
            continue;
        mmap.pid = trailer->pid;
        mmap.tid = trailer->pid;
        pd_emit_mmap2(out, trailer, PD_MISC_USER, &mmap);
    }
}

static bool parse_id(const char *name, uint32_t *ret) {
    char *end;
    unsigned long v = strtoul(name, &end, 10);

    if (!isdigit((unsigned char)*name) || *end || v == 0 || v > INT_MAX)
        return false;
    *ret = (uint32_t)v;
    return true;
}

/* FORK for a thread, then its comm: threads share the maps of their leader. */
static void add_thread(const char *root, PdTrailer trailer, Buffer *out) {
    PdTask fork = {.pid = trailer.pid,
                   .ppid = trailer.pid,
                   .tid = trailer.tid,
                   .ptid = trailer.pid,
                   .time = trailer.time};
    PdComm comm = {.pid = trailer.pid, .tid = trailer.tid};
    char path[PATH_MAX], name[64];

    snprintf(path, sizeof(path), "%s/proc/%u/task/%u/comm", root, trailer.pid, trailer.tid);
    if (file_read_text(path, name, sizeof(name)) < 0)
        return;
    if (trailer.tid != trailer.pid)
        pd_emit_task(out, &trailer, PD_RECORD_FORK, 0, &fork);
    comm.comm = bytes_of(name);
    pd_emit_comm(out, &trailer, &comm);
}

static void closedirp(DIR **d) {
    if (*d)
        (void)closedir(*d);
}

static void add_process(const char *root, PdTrailer trailer, uint32_t pid, Buffer *out) {
    _cleanup_(closedirp) DIR *tasks = NULL;
    _cleanup_(fclosep) FILE *maps = NULL;
    char path[PATH_MAX];

    trailer.pid = trailer.tid = pid;
    add_thread(root, trailer, out);
    snprintf(path, sizeof(path), "/proc/%u/maps", pid);
    maps = open_text(root, path);
    if (maps)
        add_mappings(maps, &trailer, out);
    snprintf(path, sizeof(path), "%s/proc/%u/task", root, pid);
    tasks = opendir(path);
    for (struct dirent *e; tasks && (e = readdir(tasks));)
        if (parse_id(e->d_name, &trailer.tid) && trailer.tid != pid)
            add_thread(root, trailer, out);
}

int baseline_processes(const char *root, const PdTrailer *trailer, CaptureSink sink,
                       void *userdata) {
    _cleanup_(buffer_done) Buffer records = {};
    _cleanup_(closedirp) DIR *proc = NULL;
    char path[PATH_MAX];
    uint32_t pid;
    int r = 0;

    snprintf(path, sizeof(path), "%s/proc", root);
    proc = opendir(path);
    if (!proc)
        return -errno;
    for (struct dirent *e; r == 0 && (e = readdir(proc));) {
        if (!parse_id(e->d_name, &pid))
            continue;
        add_process(root, *trailer, pid, &records);
        r = flush(&records, sink, userdata);
    }
    return r;
}
