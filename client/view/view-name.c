/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/view/view-work.h"
#include "symbol/symbol.h"
#include "util/text.h"

/*
 * Where the names of functions are looked for: in the files that the running profd has kept, in
 * perf's cache of this user, on this host, and on the servers of DEBUGINFOD_URLS.
 */

enum { SERVERS_MS = 60000 };

typedef struct ViewNaming {
    char *debug, *tables; /* folders; NULL: none */
    bool shown;           /* progress is shown on stderr */
} ViewNaming;

static void view_naming_done(ViewNaming *naming) {
    if (naming->shown)
        fputs("\r\x1b[K", stderr);
    free(naming->debug);
    free(naming->tables);
}

static char *view_name_path(const char *folder, const char *name) {
    char *path;

    return folder && folder[0] == '/' && asprintf(&path, "%s/%s", folder, name) >= 0 ? path : NULL;
}

static void view_name_show_progress(const char *what, void *arg) {
    ViewNaming *naming = arg;
    char text[80];

    /* Names from servers do not reach the terminal: only plain characters do. */
    snprintf(text, sizeof(text), "%s", what);
    for (char *p = text; *p; p++)
        if (*p < ' ' || *p > '~')
            *p = '?';
    fprintf(stderr, "\r\x1b[K%s", text);
    naming->shown = true;
}

/* "[gzip]", or "[gzip] [replaced]". */
static int view_name_put_file(const Profile *profile, FrameNames *names, uint32_t frame,
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
static int view_name_merge(const Profile *profile, FrameNames *names) {
    _cleanup_(buffer_done) Buffer text = {};
    int r = 0;

    for (uint32_t i = 0; i < names->n_names && r >= 0; i++)
        switch (names->names[i].naming) {
        case FRAME_UNNAMED:
        case FRAME_NO_FILE:
        case FRAME_REPLACED:
            r = view_name_put_file(profile, names, i, &text);
            break;
        default:
            break;
        }
    return r;
}

int view_name_frames(ViewWork *work) {
    _cleanup_(view_naming_done) ViewNaming naming = {};
    _cleanup_(symbol_resolver_freep) SymbolResolver *resolver = NULL;
    const char *caches[2], *cache = getenv("XDG_CACHE_HOME"), *servers = getenv("DEBUGINFOD_URLS");
    SymbolOptions options = {
        .caches = caches,
        .inlined = work->settings->inlined || row_keys_hold(&work->settings->by, ROW_SRCLINE),
        .local_files = true,
        .debuginfod = servers && *servers,
        .debuginfod_ms = SERVERS_MS,
        .arg = &naming,
    };
    int r;

    naming.debug = view_name_path(getenv("HOME"), ".debug");
    naming.tables =
        cache ? view_name_path(cache, "profctl") : view_name_path(getenv("HOME"), ".cache/profctl");
    if (work->binaries && access(work->binaries, R_OK | X_OK) == 0)
        caches[options.n_caches++] = work->binaries;
    if (naming.debug)
        caches[options.n_caches++] = naming.debug;
    options.table_cache = naming.tables;
    if (isatty(STDERR_FILENO) && !work->context->quiet)
        options.progress = view_name_show_progress;
    r = symbol_resolver_new(&options, &resolver);
    if (r == 0)
        r = frame_names_new(&work->view->names);
    if (r == 0)
        r = symbol_name_frames(resolver, work->view->profile, work->view->names);
    if (r == 0 && work->request->merges_unnamed)
        r = view_name_merge(work->view->profile, work->view->names);
    return r;
}
