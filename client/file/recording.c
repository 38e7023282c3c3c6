/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/file/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/file/archive-input.h"

/*
 * The messages about recordings in one place, so that every command prints the same about the same
 * file and exits with the same status.
 */

const char *recording_name(const char *path) {
    return strcmp(path, "-") == 0 ? "standard input" : path;
}

static int recording_open_stdin(PdReader **ret, PdDamage *ret_why) {
    _cleanup_close_ int fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    int r;

    if (fd < 0)
        return -errno;
    r = pd_reader_open_fd(fd, NULL, ret, ret_why);
    if (r >= 0)
        (void)TAKE_FD(fd);
    return r;
}

/* The recording in an archive: 1; 0: it is no archive; or a negative errno. */
static int recording_open_archive(const char *path, PdReader **ret, PdDamage *ret_why) {
    _cleanup_close_ int fd = -1;
    int r = archive_is(path);

    if (r > 0)
        r = archive_open_recording(path, &fd);
    else
        return MIN(r, 0);
    if (r == 0)
        r = pd_reader_open_fd(fd, NULL, ret, ret_why);
    if (r < 0)
        return r;
    (void)TAKE_FD(fd);
    return 1;
}

static int recording_open_path(const char *path, PdReader **ret, PdDamage *ret_why) {
    PdDamage inside = {};
    int q, r = pd_reader_open(path, NULL, ret, ret_why);

    if (r != -EBADMSG)
        return r;
    q = recording_open_archive(path, ret, &inside);
    if (q == -ENOENT) {
        snprintf(ret_why->text, sizeof(ret_why->text),
                 "and the archive has no file named " ARCHIVE_RECORDING);
        return r;
    }
    if (q == -EBADMSG)
        *ret_why = inside;
    return q == 0 ? r : MIN(q, 0);
}

int recording_open(const char *path, PdReader **ret) {
    PdDamage why = {};
    int r = strcmp(path, "-") == 0 ? recording_open_stdin(ret, &why)
                                   : recording_open_path(path, ret, &why);

    if (r >= 0)
        return STATUS_OK;
    if (r == -EBADMSG)
        return complain(STATUS_FAILED, "Failed to read '%s': it is no perf.data, %s.",
                        recording_name(path), why.text[0] ? why.text : "it holds no known header");
    if (r == -ESPIPE)
        return complain(STATUS_FAILED,
                        "Failed to read '%s': the file layout cannot be read from a pipe; name the "
                        "file instead.",
                        recording_name(path));
    return complain(STATUS_FAILED, "Failed to open '%s': %s.", recording_name(path), strerror(-r));
}

int recording_verdict(const char *path, const PdReader *reader, const PdDamage *more) {
    const PdDamage *damage = pd_reader_damage(reader);
    char file[32] = "";

    if (!damage && more && more->text[0])
        damage = more;
    if (damage && damage->file > 0)
        snprintf(file, sizeof(file), " of data.%" PRIu32, damage->file - 1);
    if (damage)
        return complain(STATUS_PARTIAL,
                        "Only a part of '%s' could be read: %s (offset %" PRIu64 "%s).",
                        recording_name(path), damage->text, damage->offset, file);
    if (pd_reader_header(reader)->unfinished)
        return complain(
            STATUS_PARTIAL,
            "The recorder did not finish '%s', so it ends early and does not describe its host.",
            recording_name(path));
    return STATUS_OK;
}

bool recording_event_matches(const char *word, const char *name) {
    size_t n = strlen(word);

    return fnmatch(word, name, 0) == 0 || (strncmp(word, name, n) == 0 && name[n] == ':');
}

const char *recording_mode_name(PdMode mode) {
    static const char *const names[] = {
        [PD_MODE_FILE] = "file",
        [PD_MODE_PIPE] = "pipe",
        [PD_MODE_DIRECTORY] = "directory",
    };

    return names[mode];
}
