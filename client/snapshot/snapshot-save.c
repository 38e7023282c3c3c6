/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/snapshot/snapshot-save.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "client/file/convert.h"
#include "client/file/target.h"
#include "client/frame/figure.h"
#include "client/frame/shell.h"
#include "client/remote/coverage-text.h"
#include "client/remote/remote.h"
#include "client/remote/reply.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/text.h"

/*
 * Fetches a snapshot: one call for each file, answered with the announced number of bytes. The
 * content is not parsed, only counted; file names are checked, since they become paths. For a pipe
 * the snapshot is converted to a stream, which needs a seekable input, so it is first saved to an
 * unlinked file.
 */

enum { CHUNK = 256 * 1024, FILES_MAX = 64 };

/* "data" or "data.N": the names in a recording folder. */
static bool snapshot_save_is_file_name(const char *name) {
    size_t n = strlen(name);

    if (strcmp(name, "data") == 0)
        return true;
    return n > 5 && n <= 7 && strncmp(name, "data.", 5) == 0 &&
           strspn(name + 5, "0123456789") == n - 5;
}

static int snapshot_save_write_complain(const char *path, int r) {
    return complain(STATUS_FAILED, "Failed to write '%s': %s.", path, strerror(-r));
}

/* Fetches one file into a descriptor; `path` is for messages. */
static int snapshot_save_fetch(const Context *c, const json_t *snapshot, const char *file, int to,
                               const char *path) {
    _cleanup_(remote_freep) Remote *remote = NULL;
    _cleanup_free_ uint8_t *chunk = malloc(CHUNK);
    json_t *parameters, *reply = NULL;
    uint64_t left;
    int status = chunk ? remote_open(c, &remote) : snapshot_save_write_complain(path, -ENOMEM);

    if (status != STATUS_OK)
        return status;
    parameters = json_pack("{ss ss*}", "snapshot", reply_string(snapshot, "name"), "file",
                           *file ? file : NULL);
    status = remote_upgrade(remote, "Read", parameters, &reply);
    if (status != STATUS_OK)
        return status;
    left = reply_count(reply, "bytes");
    json_decref(reply);
    while (left > 0) {
        ssize_t n = remote_read(remote, chunk, MIN(left, (uint64_t)CHUNK));
        int r = n > 0 ? file_write_all(to, chunk, (size_t)n) : 0;

        if (n <= 0)
            return complain(STATUS_FAILED,
                            "profd stopped sending %" PRIu64 " bytes before the end: %s.", left,
                            n < 0 ? strerror((int)-n) : "the connection was closed");
        /* EPIPE means that the reader of our stream has left, which needs no message. */
        if (r < 0)
            return r == -EPIPE ? STATUS_FAILED : snapshot_save_write_complain(path, r);
        left -= (uint64_t)n;
    }
    return STATUS_OK;
}

static int snapshot_save_fetch_folder(const Context *c, const json_t *snapshot,
                                      const Target *target) {
    const json_t *files = reply_member(snapshot, "files"), *file;
    size_t i;

    json_array_foreach(files, i, file) {
        const char *name = json_string_value(file);
        _cleanup_close_ int fd = -1;
        int status;

        if (!name || !snapshot_save_is_file_name(name) || i >= FILES_MAX)
            return complain(STATUS_FAILED,
                            "profd sent a file name that is not part of a recording.");
        fd = openat(target->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
            return snapshot_save_write_complain(target->path, -errno);
        status = snapshot_save_fetch(c, snapshot, name, fd, target->path);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

int snapshot_save(const Context *c, const json_t *snapshot, const char *path, bool force) {
    bool folder = strcmp(reply_string(snapshot, "layout"), "directory") == 0;
    Target target = {.fd = -1};
    int status,
        r = target_open(&target, path, folder ? PD_LAYOUT_DIRECTORY : PD_LAYOUT_FILE, force);

    if (r < 0)
        return target_complain(&target, r);
    status = folder ? snapshot_save_fetch_folder(c, snapshot, &target)
                    : snapshot_save_fetch(c, snapshot, "", target.fd, path);
    if (status == STATUS_OK) {
        r = target_commit(&target);
        status = r < 0 ? target_complain(&target, r) : STATUS_OK;
    }
    target_done(&target);
    return status;
}

/* Opens an unlinked file where large files have room. */
static int snapshot_save_open_unlinked(void) {
    const char *folder = getenv("TMPDIR");
    int fd = file_open_unnamed(folder && *folder ? folder : "/var/tmp");

    if (fd < 0)
        fd = memfd_create("profctl", MFD_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int snapshot_pass_on(Context *c, const json_t *snapshot, bool stream) {
    _cleanup_close_ int fd = -1;
    char path[64];
    int status;

    if (!stream)
        return snapshot_save_fetch(c, snapshot, "", STDOUT_FILENO, "standard output");
    fd = snapshot_save_open_unlinked();
    if (fd < 0)
        return snapshot_save_write_complain("a temporary file", fd);
    status = snapshot_save_fetch(c, snapshot, "", fd, "a temporary file");
    if (status != STATUS_OK)
        return status;
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return convert_to_stream(c, path);
}

/* Gaps are also described here, for users who do not read the coverage. */
static void snapshot_save_describe_rest(Buffer *out, const json_t *snapshot, bool has_coverage) {
    static const char gap[] = "Not recorded from ";
    const json_t *reason;
    const char *separator = "; not complete: ";
    size_t i;

    json_array_foreach(reply_member(snapshot, "partial"), i, reason) {
        const char *text = json_string_value(reason) ? json_string_value(reason) : "?";

        if (has_coverage && strncmp(text, gap, strlen(gap)) == 0)
            continue;
        text_printf(out, "%s%s", separator, text);
        separator = "; ";
    }
}

static void snapshot_save_describe_window(Buffer *out, const json_t *snapshot,
                                          const PdCoverage *coverage, bool has_coverage) {
    uint64_t since = reply_count(snapshot, "sinceUsec"), until = reply_count(snapshot, "untilUsec");

    text_puts(out, "Saved ");
    if (has_coverage)
        coverage_times(out, coverage->from_ns / NS_PER_US, coverage->to_ns / NS_PER_US);
    else if (reply_has(snapshot, "sinceUsec") && until >= since)
        coverage_times(out, since, until);
    else
        text_puts(out, "nothing");
    if (has_coverage && pd_coverage_is_whole(coverage)) {
        text_puts(out, " (");
        figure_span_tenths(out, (coverage->to_ns - coverage->from_ns) / NS_PER_US);
        text_puts(out, ", no gaps)");
    }
    if (strcmp(reply_string(snapshot, "session"), "default") != 0)
        text_printf(out, " of session '%s'", reply_string(snapshot, "session"));
    text_puts(out, ": ");
}

uint64_t snapshot_unidentified(const json_t *snapshot) {
    return reply_has(snapshot, "unidentified") ? reply_count(snapshot, "unidentified") : 0;
}

void snapshot_describe(Buffer *out, const json_t *snapshot) {
    uint64_t samples = reply_count(snapshot, "samples"), lost = reply_count(snapshot, "lost");
    uint64_t unidentified = snapshot_unidentified(snapshot);
    PdCoverage coverage;
    bool has_coverage = coverage_of_reply(snapshot, &coverage);

    snapshot_save_describe_window(out, snapshot, &coverage, has_coverage);
    if (samples > 0)
        figure_count(out, samples);
    else
        text_puts(out, "no");
    text_puts(out, samples == 1 ? " sample, " : " samples, ");
    if (lost > 0)
        figure_count(out, lost);
    text_puts(out, lost > 0 ? " lost, " : "none lost, ");
    figure_size(out, reply_count(snapshot, "bytes"));
    if (has_coverage && !pd_coverage_is_whole(&coverage)) {
        text_puts(out, "; ");
        coverage_describe(out, &coverage);
    } else if (!has_coverage) {
        text_puts(out, "; whether there are gaps is not known");
    }
    snapshot_save_describe_rest(out, snapshot, has_coverage);
    if (unidentified > 0)
        text_printf(out, "; %" PRIu64 " %s without a build id", unidentified,
                    unidentified == 1 ? "file is" : "files are");
    text_putc(out, '.');
    pd_coverage_done(&coverage);
}

bool snapshot_hint(Buffer *out, const char *path) {
    struct stat st;

    /* An escaped string is no longer the path. */
    if (strchr(path, '\\') || stat(path, &st) < 0 || access(path, R_OK) < 0)
        return false;
    /* perf reads files of root or of the user without -f, others only with it. */
    text_printf(out, "perf report %s-i ", st.st_uid == 0 || st.st_uid == geteuid() ? "" : "-f ");
    shell_put_word(out, path, strlen(path));
    return true;
}

Progress progress_of(const Context *c) {
    return (Progress){.wanted = !c->quiet && isatty(STDERR_FILENO)};
}

void progress_show(Progress *progress, const char *phase, uint64_t done, uint64_t total) {
    _cleanup_(buffer_done) Buffer line = {};

    if (!progress->wanted)
        return;
    text_printf(&line, "\r\x1b[K%s", phase);
    if (total > 0) {
        text_printf(&line, " %" PRIu64 "%% of ", MIN(done, total) / MAX(total / 100, (uint64_t)1));
        figure_size(&line, total);
    }
    /* The next message begins in column 0 and overwrites this line. */
    text_putc(&line, '\r');
    if (buffer_error(&line) == 0)
        progress->shown |= file_write_all(STDERR_FILENO, line.data, line.size) == 0;
}

void progress_end(Progress *progress) {
    if (progress->shown)
        (void)!write(STDERR_FILENO, "\r\x1b[K", 4);
    progress->shown = false;
}
