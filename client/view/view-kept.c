/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/view/view-kept.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/file/archive-input.h"
#include "client/remote/kept-binary.h"
#include "perfdata/feature/environment.h"
#include "perfdata/reader/reader.h"
#include "util/array.h"
#include "util/file.h"

/*
 * A file appears complete or not at all, by renaming. Without a folder of our own what is fetched
 * goes to an unlinked file.
 */

static const uint64_t cache_bytes_max = 256ULL << 20; /* when it is trimmed; a run adds as much */

struct ViewKept {
    KeptBinaries *binaries;
    char *root, *folder; /* of all hosts, of this one; NULL: none */
    uint64_t added;      /* bytes in this run */
    bool is_trimmed;
};

/* The host of a recording, to be freed; NULL: not known. */
static char *view_kept_host_of(const char *path) {
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;
    _cleanup_(pd_reader_freep) PdReader *reader = NULL;

    if (strcmp(path, "-") == 0 || archive_is(path) != 0 ||
        pd_reader_open(path, NULL, &reader, NULL) < 0 || pd_environment_new(&env) < 0 ||
        pd_environment_read_feature(env, reader, PD_FEATURE_HOSTNAME) < 0)
        return NULL;
    return env->hostname ? strdup(env->hostname) : NULL;
}

char *view_kept_host(char **files) {
    char *host = files && *files ? view_kept_host_of(*files++) : NULL;

    for (; host && *files; files++) {
        _cleanup_free_ char *other = view_kept_host_of(*files);

        if (!other || strcmp(other, host) != 0) {
            free(host);
            return NULL;
        }
    }
    return host;
}

bool view_kept_is_this_host(const char *host) {
    char name[256] = "";

    return host && gethostname(name, sizeof(name) - 1) == 0 && strcmp(name, host) == 0;
}

static bool view_kept_is_name(const char *host) {
    return host && *host && host[0] != '.' && strlen(host) < NAME_MAX &&
           strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") ==
               strlen(host);
}

static bool view_kept_make_paths(ViewKept *kept, const char *host) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    bool has_cache = cache && cache[0] == '/';

    if (!has_cache && (!home || home[0] != '/'))
        return true;
    if (asprintf(&kept->root, "%s%s/profctl/kept", has_cache ? cache : home,
                 has_cache ? "" : "/.cache") < 0) {
        kept->root = NULL;
        return false;
    }
    if (asprintf(&kept->folder, "%s/%s", kept->root, view_kept_is_name(host) ? host : "any") < 0) {
        kept->folder = NULL;
        return false;
    }
    return true;
}

/* Does without a folder into which another user can write. */
static void view_kept_check_folder(ViewKept *kept) {
    struct stat st;

    if (!kept->folder)
        return;
    if (lstat(kept->folder, &st) < 0
            ? errno == ENOENT
            : S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & (S_IWGRP | S_IWOTH)))
        return;
    free(kept->folder);
    kept->folder = NULL;
}

int view_kept_new(const Context *c, const char *host, ViewKept **ret) {
    _cleanup_(view_kept_freep) ViewKept *kept = calloc(1, sizeof(*kept));
    int r = kept ? kept_binaries_new(c, &kept->binaries) : -ENOMEM;

    if (r == 0 && !view_kept_make_paths(kept, host))
        r = -ENOMEM;
    if (r < 0)
        return r;
    view_kept_check_folder(kept);
    *ret = TAKE_PTR(kept);
    return 0;
}

ViewKept *view_kept_free(ViewKept *kept) {
    if (!kept)
        return NULL;
    kept_binaries_free(kept->binaries);
    free(kept->root);
    free(kept->folder);
    free(kept);
    return NULL;
}

const char *view_kept_folder(const ViewKept *kept) {
    return kept->folder;
}

/* -- the bound -------------------------------------------------------------------------------- */

typedef struct KeptFile {
    char *path;
    int64_t modified_s;
    uint64_t bytes;
} KeptFile;

static int view_kept_compare_files(const void *a, const void *b) {
    const KeptFile *x = a, *y = b;

    return (x->modified_s > y->modified_s) - (x->modified_s < y->modified_s);
}

static void view_kept_remove_oldest(KeptFile *files, size_t n, uint64_t bytes) {
    if (n > 0)
        qsort(files, n, sizeof(*files), view_kept_compare_files);
    for (size_t i = 0; i < n && bytes > cache_bytes_max; i++) {
        (void)unlink(files[i].path);
        bytes -= files[i].bytes;
    }
}

static void view_kept_trim(ViewKept *kept) {
    char *roots[] = {kept->root, NULL};
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
    KeptFile *files = NULL, *added;
    uint64_t bytes = 0;
    size_t n = 0;

    kept->is_trimmed = true;
    for (FTSENT *e; tree && (e = fts_read(tree));) {
        if (e->fts_info != FTS_F || !(added = array_grow(&files, &n)))
            continue;
        *added = (KeptFile){.path = strdup(e->fts_path),
                            .modified_s = e->fts_statp->st_mtim.tv_sec,
                            .bytes = (uint64_t)e->fts_statp->st_size};
        bytes += added->bytes;
        if (!added->path)
            n--;
    }
    if (tree)
        (void)fts_close(tree);
    view_kept_remove_oldest(files, n, bytes);
    for (size_t i = 0; i < n; i++)
        free(files[i].path);
    free(files);
}

/* -- fetching --------------------------------------------------------------------------------- */

static bool view_kept_path(const ViewKept *kept, const KeptBinary *binary, char ret[PATH_MAX],
                           size_t *ret_folder) {
    int n = binary->kind == KEPT_MAP
                ? snprintf(ret, PATH_MAX, "%s/maps/%s.map", kept->folder, binary->name)
                : snprintf(ret, PATH_MAX, "%s/.build-id/%.2s/%s/%s", kept->folder, binary->name,
                           binary->name + 2, kept_kind_name(binary->kind));

    if (n < 0 || n >= PATH_MAX)
        return false;
    *ret_folder = (size_t)(strrchr(ret, '/') - ret);
    return true;
}

static int view_kept_fetch_unlinked(ViewKept *kept, const KeptBinary *binary) {
    const char *folder = getenv("TMPDIR");
    _cleanup_close_ int fd = file_open_unnamed(folder && *folder ? folder : "/var/tmp");
    int r = fd < 0 ? fd : kept_binaries_read(kept->binaries, binary, fd);

    return r < 0 ? r : TAKE_FD(fd);
}

/* A descriptor of the file, which then lies in the folder. */
static int view_kept_fetch(ViewKept *kept, const KeptBinary *binary) {
    char path[PATH_MAX], temporary[PATH_MAX];
    _cleanup_close_ int fd = -1;
    size_t folder;
    int r;

    if (!kept->folder || !view_kept_path(kept, binary, path, &folder) ||
        kept->added > cache_bytes_max)
        return view_kept_fetch_unlinked(kept, binary);
    if (!kept->is_trimmed)
        view_kept_trim(kept);
    path[folder] = '\0';
    r = file_make_folders(path, 0700);
    if (r < 0 || snprintf(temporary, sizeof(temporary), "%s/.%d", path, (int)getpid()) >= PATH_MAX)
        return view_kept_fetch_unlinked(kept, binary);
    path[folder] = '/';
    (void)unlink(temporary);
    fd = open(temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return view_kept_fetch_unlinked(kept, binary);
    r = kept_binaries_read(kept->binaries, binary, fd);
    if (r == 0 && rename(temporary, path) < 0)
        r = -errno;
    if (r < 0) {
        (void)unlink(temporary);
        return r;
    }
    kept->added += binary->bytes;
    return TAKE_FD(fd);
}

int view_kept_open(const uint8_t *build_id, size_t size, void *arg) {
    ViewKept *kept = arg;
    const KeptBinary *binary;
    char name[KEPT_NAME_MAX];

    if (size < 2 || 2 * size >= sizeof(name))
        return -ENOENT;
    for (size_t i = 0; i < size; i++)
        snprintf(name + 2 * i, 3, "%02x", build_id[i]);
    binary = kept_binaries_find(kept->binaries, name);
    return binary && binary->kind != KEPT_MAP ? view_kept_fetch(kept, binary) : -ENOENT;
}

/* A map grows as long as its process lives. */
void view_kept_fetch_maps(uint32_t pid, void *arg) {
    ViewKept *kept = arg;
    const KeptBinary *binary;
    char prefix[16], path[PATH_MAX];
    size_t from = 0, folder;
    int fd;

    if (!kept->folder)
        return;
    snprintf(prefix, sizeof(prefix), "%" PRIu32 "-", pid);
    while ((binary = kept_binaries_next(kept->binaries, prefix, &from))) {
        if (binary->kind != KEPT_MAP || !view_kept_path(kept, binary, path, &folder))
            continue;
        fd = view_kept_fetch(kept, binary);
        closep(&fd);
    }
}
