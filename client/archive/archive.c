/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "client/archive/archive-file.h"
#include "client/file/archive-input.h"
#include "client/file/target.h"
#include "client/view/view-kept.h"
#include "client/view/view-store.h"
#include "client/view/view.h"
#include "encode/gzip.h"
#include "symbol/find/open-regular.h"
#include "util/file.h"
#include "util/text.h"

/*
 * `profctl archive`: a recording and the files that name its code, in one tar, for another machine.
 * The recording is read once to know which files were sampled; then it and these files are written,
 * compressed, as they are found. The archive appears complete or not at all.
 */

enum { ARCHIVE_CACHES = 3 };

typedef struct ArchiveSettings {
    const char *output;
    bool force, reduced;
} ArchiveSettings;

typedef struct ArchiveSource {
    const char *path;
    int fd;
    View view;
    char *caches[ARCHIVE_CACHES];
    size_t n_caches;
    ViewKept *kept;
    bool is_of_this_host;
} ArchiveSource;

static void archive_source_done(ArchiveSource *source) {
    view_done(&source->view);
    view_kept_free(source->kept);
    for (size_t i = 0; i < source->n_caches; i++)
        free(source->caches[i]);
    if (source->fd >= 0)
        (void)close(source->fd);
}

static int archive_add_cache(ArchiveSource *source, const char *folder, const char *name) {
    char *path;

    if (!folder || folder[0] != '/')
        return 0;
    if (asprintf(&path, "%s/%s", folder, name) < 0)
        return -ENOMEM;
    source->caches[source->n_caches++] = path;
    return 0;
}

static int archive_find_caches(Context *c, ArchiveSource *source) {
    char *files[] = {(char *)source->path, NULL};
    _cleanup_free_ char *host = view_kept_host(files);
    _cleanup_free_ char *binaries = view_store_binaries(files);
    const char *copies;
    int r = view_kept_new(c, host, &source->kept);

    source->is_of_this_host = view_kept_is_this_host(host);
    if (r == 0 && binaries)
        r = archive_add_cache(source, binaries, ".");
    copies = r == 0 ? view_kept_folder(source->kept) : NULL;
    if (copies)
        r = archive_add_cache(source, copies, ".");
    return r < 0 ? r : archive_add_cache(source, getenv("HOME"), ".debug");
}

static int archive_open_source(Context *c, const char *path, ArchiveSource *source) {
    const ViewSettings settings = {};
    const ViewRequest request = {.nameless = true, .may_be_nothing = true, .ignores_gaps = true};
    char *files[] = {(char *)path, NULL};
    FileIdentity identity;
    int r, status;

    source->path = path;
    r = open_regular(path, &source->fd, &identity);
    if (r == -EINVAL)
        return complain(STATUS_FAILED,
                        "'%s' is no file; 'profctl convert --layout=file' makes one of a recording "
                        "in a folder or a stream.",
                        path);
    if (r < 0)
        return complain(STATUS_FAILED, "Failed to open '%s': %s.", path, strerror(-r));
    if (archive_is(path) > 0)
        return complain(STATUS_FAILED, "'%s' is an archive already.", path);
    status = view_load(c, &settings, files, &request, &source->view);
    if (!source->view.profile)
        return status;
    r = archive_find_caches(c, source);
    return r < 0 ? complain(STATUS_FAILED, "Failed to pack '%s': %s.", path, strerror(-r)) : status;
}

static int archive_sink_file(const void *data, size_t size, void *arg) {
    return file_write_all(*(const int *)arg, data, size);
}

static int archive_sink_gzip(const void *data, size_t size, void *arg) {
    return gzip_write(arg, data, size);
}

static int archive_write(const ArchiveSource *source, const ArchiveSettings *s, int fd,
                         ArchiveCount *ret) {
    _cleanup_(gzip_freep) Gzip *gzip = NULL;
    const ArchiveOptions options = {.caches = (const char *const *)source->caches,
                                    .n_caches = source->n_caches,
                                    .reduced = s->reduced,
                                    .is_of_this_host = source->is_of_this_host,
                                    .fetch = view_kept_open,
                                    .fetch_maps =
                                        source->is_of_this_host ? view_kept_fetch_maps : NULL,
                                    .arg = source->kept};
    TarWriter tar = {.sink = archive_sink_gzip, .mtime_s = (uint64_t)time(NULL)};
    int r = gzip_new(GZIP_LEVEL_DEFAULT, archive_sink_file, &fd, &gzip);

    if (r < 0)
        return r;
    tar.arg = gzip;
    r = tar_write_file(&tar, ARCHIVE_RECORDING, source->fd);
    if (r == 0)
        r = archive_write_files(&tar, &options, source->view.profile, ret);
    if (r == 0)
        r = tar_write_end(&tar);
    return r < 0 ? r : gzip_finish(gzip);
}

/* Prints how many files the archive lacks, and the command that unpacks it for perf. */
static void archive_explain(Context *c, const char *path, const ArchiveCount *count) {
    if (count->missing > 0)
        remark(c, "%u sampled files were not found here, or are other ones by now.",
               count->missing);
    if (count->nameless > 0)
        remark(c, "%u sampled files have no build id; an archive cannot hold them.",
               count->nameless);
    if (count->has_kernel && !count->kernel)
        remark(c, "The names of the kernel's functions are not packed; only root may read their "
                  "addresses here.");
    if (strcmp(path, "-") != 0 && !c->no_legend)
        remark(c, "For perf: tar xf %s -C ~/.debug; perf report -i ~/.debug/" ARCHIVE_RECORDING ".",
               path);
}

static int archive_put(Context *c, const ArchiveSettings *s, const ArchiveSource *source,
                       const char *path) {
    bool to_stdout = strcmp(path, "-") == 0;
    ArchiveCount count = {};
    Target target;
    int r = target_open(&target, path, to_stdout ? PD_LAYOUT_PIPE : PD_LAYOUT_FILE, s->force);

    if (r < 0)
        return target_complain(&target, r);
    r = archive_write(source, s, target.fd, &count);
    if (r < 0)
        (void)complain(STATUS_FAILED, "Failed to write '%s': %s.", path, strerror(-r));
    else if ((r = target_commit(&target)) < 0)
        (void)target_complain(&target, r);
    target_done(&target);
    if (r < 0)
        return STATUS_FAILED;
    archive_explain(c, path, &count);
    if (!to_stdout) {
        text_escape_str(&c->out.buffer, path);
        text_putc(&c->out.buffer, '\n');
    }
    return STATUS_OK;
}

static int archive_check(const Context *c) {
    if (c->json == JSON_OFF)
        return STATUS_OK;
    return complain(STATUS_USAGE, "An archive has a format of its own, leave out --json; 'profctl "
                                  "report --json' prints the same samples as rows.");
}

static int archive_run(Context *c, void *settings, char **arguments) {
    const ArchiveSettings *s = settings;
    _cleanup_(archive_source_done) ArchiveSource source = {.fd = -1};
    _cleanup_free_ char *made = NULL;
    int r, status = archive_check(c);

    if (status != STATUS_OK)
        return status;
    status = archive_open_source(c, arguments[0], &source);
    if (!source.view.profile)
        return status;
    if (!s->output && asprintf(&made, "%s.tar.gz", arguments[0]) < 0) {
        made = NULL;
        return complain(STATUS_FAILED, "Failed to pack '%s': %s.", arguments[0], strerror(ENOMEM));
    }
    r = archive_put(c, s, &source, s->output ? s->output : made);
    return r != STATUS_OK ? r : status;
}

static bool archive_streams(const void *settings, char **arguments) {
    const ArchiveSettings *s = settings;

    return s->output && strcmp(s->output, "-") == 0;
}

/* clang-format off */
static const Option archive_options[] = {
    {'o', "output",  "FILE", "Write to FILE, by default the name of the recording with .tar.gz; - is stdout", option_string, offsetof(ArchiveSettings, output)},
    {'f', "force",   NULL,   "Replace the archive if it exists", option_flag, offsetof(ArchiveSettings, force)},
    {0,   "reduced", NULL,   "Pack what names the code instead of whole files, which is smaller", option_flag, offsetof(ArchiveSettings, reduced)},
    {},
};
/* clang-format on */

const Command command_archive = {
    .name = "archive",
    .group = COMMAND_RECORDING,
    .arguments = "FILE",
    .n_min = 1,
    .n_max = 1,
    .summary = "Pack a recording with the files that name its code, for another machine",
    .notes = "FILE is a perf.data file. Every view takes the archive in place of a recording. For "
             "perf, unpack it into ~/.debug, as what 'perf archive' makes.\n\n"
             "Exit status: 8 when a part of the recording could not be read.",
    .options = archive_options,
    .settings_size = sizeof(ArchiveSettings),
    .run = archive_run,
    .streams = archive_streams,
};
