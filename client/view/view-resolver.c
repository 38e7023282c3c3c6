/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/view/view-resolver.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/file/archive-input.h"
#include "client/view/view-kept.h"
#include "client/view/view-store.h"
#include "symbol/symbol.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/text.h"

/*
 * Where the names of functions are looked for: in the archives that are read, in the files that the
 * running profd has kept (in its store, or copies that it sends), in perf's cache of this user, on
 * this host, and on the servers of DEBUGINFOD_URLS. An archive is unpacked for as long as names are
 * looked for.
 */

enum { SERVERS_MS = 60000 };

struct ViewResolver {
    SymbolResolver *symbols;
    char *debug, *tables, *binaries; /* folders; NULL: none */
    ViewKept *kept;
    ArchiveFolder **archives;
    size_t n_archives;
    const char **caches;
    bool merges_unnamed;
    bool shown; /* progress is shown on stderr */
};

ViewResolver *view_resolver_free(ViewResolver *resolver) {
    if (!resolver)
        return NULL;
    if (resolver->shown)
        fputs("\r\x1b[K", stderr);
    symbol_resolver_free(resolver->symbols);
    for (size_t i = 0; i < resolver->n_archives; i++)
        archive_folder_free(resolver->archives[i]);
    free(resolver->archives);
    view_kept_free(resolver->kept);
    free((void *)resolver->caches);
    free(resolver->debug);
    free(resolver->tables);
    free(resolver->binaries);
    free(resolver);
    return NULL;
}

static char *view_resolver_path(const char *folder, const char *name) {
    char *path;

    return folder && folder[0] == '/' && asprintf(&path, "%s/%s", folder, name) >= 0 ? path : NULL;
}

static void view_resolver_show_progress(const char *what, void *arg) {
    ViewResolver *resolver = arg;
    char text[80];

    /* Names from servers do not reach the terminal: only plain characters do. */
    snprintf(text, sizeof(text), "%s", what);
    for (char *p = text; *p; p++)
        if (*p < ' ' || *p > '~')
            *p = '?';
    fprintf(stderr, "\r\x1b[K%s", text);
    resolver->shown = true;
}

static int view_resolver_unpack(ViewResolver *resolver, char **files) {
    for (; files && *files; files++) {
        ArchiveFolder *folder, **added;
        int r = strcmp(*files, "-") == 0 ? 0 : archive_is(*files);

        if (r <= 0)
            continue;
        r = archive_unpack(*files, &folder);
        if (r < 0)
            return r;
        added = array_grow(&resolver->archives, &resolver->n_archives);
        if (!added) {
            archive_folder_free(folder);
            return -ENOMEM;
        }
        *added = folder;
    }
    return 0;
}

static int view_resolver_set_folders(ViewResolver *resolver, const ViewResolverOptions *options,
                                     SymbolOptions *symbols) {
    const char *cache = getenv("XDG_CACHE_HOME");
    size_t n = 0;

    resolver->caches = calloc(resolver->n_archives + 3, sizeof(*resolver->caches));
    if (!resolver->caches)
        return -ENOMEM;
    resolver->debug = view_resolver_path(getenv("HOME"), ".debug");
    resolver->tables = cache ? view_resolver_path(cache, "profctl")
                             : view_resolver_path(getenv("HOME"), ".cache/profctl");
    for (size_t i = 0; i < resolver->n_archives; i++)
        resolver->caches[n++] = archive_folder_path(resolver->archives[i]);
    if (!options->binaries)
        resolver->binaries = view_store_binaries(options->files);
    else if (access(options->binaries, R_OK | X_OK) == 0 &&
             !(resolver->binaries = strdup(options->binaries)))
        return -ENOMEM;
    if (resolver->binaries)
        resolver->caches[n++] = resolver->binaries;
    if (resolver->kept && view_kept_folder(resolver->kept))
        resolver->caches[n++] = view_kept_folder(resolver->kept);
    if (resolver->debug)
        resolver->caches[n++] = resolver->debug;
    symbols->caches = resolver->caches;
    symbols->n_caches = n;
    /* Somebody else chose what an archive calls a kernel, by its build id alone. It names this
     * view, and no later one. */
    symbols->table_cache = resolver->n_archives == 0 ? resolver->tables : NULL;
    return 0;
}

static int view_resolver_fetch(const uint8_t *build_id, size_t size, void *arg) {
    return view_kept_open(build_id, size, ((ViewResolver *)arg)->kept);
}

static void view_resolver_fetch_maps(uint32_t pid, void *arg) {
    view_kept_fetch_maps(pid, ((ViewResolver *)arg)->kept);
}

/* When the only file of the view was last written; 0: not known. */
static uint64_t view_resolver_written_ns(char **files) {
    struct stat st;

    if (!files || !files[0] || files[1] || stat(files[0], &st) < 0 || !S_ISREG(st.st_mode))
        return 0;
    return (uint64_t)st.st_mtim.tv_sec * NS_PER_SECOND + (uint64_t)st.st_mtim.tv_nsec;
}

/* Files of a build id are asked for wherever they come from; processes only of their own host. */
static int view_resolver_set_kept(ViewResolver *resolver, const ViewResolverOptions *options,
                                  SymbolOptions *symbols) {
    _cleanup_free_ char *found = options->host ? NULL : view_kept_host(options->files);
    const char *host = options->host ? options->host : found;
    int r = 0;

    symbols->local_processes = view_kept_is_this_host(host);
    if (!options->context || (options->binaries && access(options->binaries, R_OK | X_OK) == 0))
        return 0;
    r = view_kept_new(options->context, host, &resolver->kept);
    if (r < 0)
        return r;
    symbols->fetch = view_resolver_fetch;
    if (options->host || symbols->local_processes)
        symbols->fetch_maps = view_resolver_fetch_maps;
    return 0;
}

int view_resolver_new(const ViewResolverOptions *options, ViewResolver **ret) {
    _cleanup_(view_resolver_freep) ViewResolver *resolver = calloc(1, sizeof(*resolver));
    const char *servers = getenv("DEBUGINFOD_URLS");
    SymbolOptions symbols = {
        .inlined = options->inlined,
        .local_files = true,
        .written_ns = view_resolver_written_ns(options->files),
        .debuginfod = options->servers && servers && *servers,
        .debuginfod_ms = SERVERS_MS,
        .progress = options->progress ? view_resolver_show_progress : NULL,
        .arg = resolver,
    };
    int r = resolver ? view_resolver_unpack(resolver, options->files) : -ENOMEM;

    if (resolver)
        resolver->merges_unnamed = options->merges_unnamed;
    if (r == 0)
        r = view_resolver_set_kept(resolver, options, &symbols);
    if (r == 0)
        r = view_resolver_set_folders(resolver, options, &symbols);
    if (r == 0)
        r = symbol_resolver_new(&symbols, &resolver->symbols);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(resolver);
    return 0;
}

/* "[gzip]", or "[gzip] [replaced]". */
static int view_resolver_put_file(const Profile *profile, FrameNames *names, uint32_t frame,
                                  Buffer *text) {
    const Frame *f = frame_table_frame(profile->frames, frame);
    Bytes dso = frame_table_mapping(profile->frames, f->mapping)->dso;
    bool is_bare = dso.size > 0 && dso.data[0] != '[';

    buffer_clear(text);
    buffer_append(text, "[", is_bare);
    buffer_append(text, dso.data, dso.size);
    buffer_append(text, "]", is_bare);
    if (names->names[frame].naming == FRAME_REPLACED)
        text_puts(text, " [replaced]");
    return buffer_error(text)
               ?: text_set_add(names->texts, buffer_bytes(text),
                               &names->lines[names->names[frame].first].function);
}

/* Where functions begin is not known in a file without symbols, so an address more or less says
 * nothing to people. */
static int view_resolver_merge(const Profile *profile, FrameNames *names, size_t first) {
    _cleanup_(buffer_done) Buffer text = {};
    int r = 0;

    for (size_t i = first; i < names->n_names && r >= 0; i++)
        switch (names->names[i].naming) {
        case FRAME_UNNAMED:
        case FRAME_NO_FILE:
        case FRAME_REPLACED:
            r = view_resolver_put_file(profile, names, (uint32_t)i, &text);
            break;
        default:
            break;
        }
    return r;
}

int view_resolver_name(ViewResolver *resolver, const Profile *profile, FrameNames *names) {
    size_t first = names->n_names;
    int r = symbol_name_frames(resolver->symbols, profile, names);

    return r == 0 && resolver->merges_unnamed ? view_resolver_merge(profile, names, first) : r;
}
