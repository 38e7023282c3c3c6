/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "symbol/line/line-find.h"
#include "symbol/resolver-private.h"
#include "symbol/text/demangle.h"
#include "symbol/text/frame-text.h"
#include "util/array.h"
#include "util/clock.h"

/*
 * Frames are looked up one mapping at a time, in the order of their addresses, so that a function
 * is demangled once. The names are then added in the order of the frames' numbers.
 */

/* A frame that gets its name, and the name. */
typedef struct ResolvedFrame {
    uint32_t number;
    uint32_t text; /* of the names */
    FrameNaming naming;
    Frame frame;
    uint64_t start;
    size_t first, n; /* its source lines; 0: none */
} ResolvedFrame;

typedef struct ResolverWork {
    SymbolResolver *resolver;
    const FrameTable *table;
    FrameNames *names;
    ResolvedFrame *frames;
    size_t n;
    Buffer text;
    FrameLine *lines;
    size_t n_lines;
} ResolverWork;

int symbol_resolver_new(const SymbolOptions *options, SymbolResolver **ret) {
    _cleanup_(symbol_resolver_freep) SymbolResolver *resolver = calloc(1, sizeof(*resolver));
    DebugServerOptions server = {.limit_ns = options->debuginfod_ms * NS_PER_MS,
                                 .progress = options->progress,
                                 .arg = options->arg};

    if (!resolver)
        return -ENOMEM;
    resolver->options = *options;
    resolver->find = (FindOptions){.root = "",
                                   .caches = options->caches,
                                   .n_caches = options->n_caches,
                                   .local_files = options->local_files,
                                   .local_processes = options->local_processes,
                                   .written_ns = options->written_ns,
                                   .wants_lines = options->inlined,
                                   .fetch = options->fetch,
                                   .fetch_maps = options->fetch_maps,
                                   .fetch_arg = options->arg};
    /* Without the library there are no servers. */
    if (options->debuginfod && debug_server_new(&server, &resolver->find.server) == -ENOMEM)
        return -ENOMEM;
    *ret = TAKE_PTR(resolver);
    return 0;
}

SymbolResolver *symbol_resolver_free(SymbolResolver *resolver) {
    if (!resolver)
        return NULL;
    loaded_names_done(resolver);
    debug_server_free(resolver->find.server);
    free(resolver);
    return NULL;
}

static int resolver_compare_place(const void *a, const void *b) {
    const ResolvedFrame *x = a, *y = b;

    if (x->frame.mapping != y->frame.mapping)
        return x->frame.mapping < y->frame.mapping ? -1 : 1;
    return x->frame.address < y->frame.address ? -1 : x->frame.address > y->frame.address;
}

static int resolver_compare_number(const void *a, const void *b) {
    const ResolvedFrame *x = a, *y = b;

    return x->number < y->number ? -1 : x->number > y->number;
}

static int resolver_text(ResolverWork *work, uint32_t *ret) {
    int r = buffer_error(&work->text) < 0
                ? -ENOMEM
                : text_set_add(work->names->texts, buffer_bytes(&work->text), ret);

    buffer_clear(&work->text);
    return r;
}

static int resolver_name_fixed(ResolverWork *work, ResolvedFrame *f, FrameKind kind,
                               const char *text) {
    f->start = f->frame.address;
    f->naming = kind == FRAME_OTHER ? FRAME_NAMED : FRAME_NOWHERE;
    buffer_append(&work->text, text, strlen(text));
    return resolver_text(work, &f->text);
}

/* The name of generated kernel code is that of its mapping. */
static int resolver_name_bpf(ResolverWork *work, ResolvedFrame *f, const FrameMapping *mapping) {
    f->naming = FRAME_NAMED;
    f->start = mapping->start > 0 ? mapping->start : f->frame.address;
    buffer_append(&work->text, mapping->path.data, mapping->path.size);
    return resolver_text(work, &f->text);
}

static bool resolver_name_begins(Bytes name, const char *with) {
    size_t size = strlen(with);

    return name.size >= size && memcmp(name.data, with, size) == 0;
}

static bool resolver_name_ends(Bytes name, const char *with) {
    size_t size = strlen(with);

    return name.size >= size && memcmp(name.data + name.size - size, with, size) == 0;
}

/* Whether code of the kernel surely does not end with a call: the padding before a function, which
 * has a name of its own, and the thunks through which the kernel returns on AMD. */
static bool resolver_ends_without_call(const LoadedNames *loaded, Bytes name) {
    if (resolver_name_begins(name, "__pfx_"))
        return true;
    return loaded->mapping.kind == FRAME_KERNEL &&
           (resolver_name_ends(name, "_safe_ret") || resolver_name_ends(name, "_return_thunk") ||
            resolver_name_ends(name, "_untrain_ret"));
}

/* A caller is looked up where its call is, right before the return address. Where nothing is called
 * there, it is no caller: a thunk jumped to it, or it was interrupted at its first instruction. */
static bool resolver_find(const LoadedNames *loaded, const Frame *frame, NameFound *ret) {
    if (!loaded_names_find(loaded, frame->address - frame->is_return, ret))
        return false;
    return !frame->is_return || !resolver_ends_without_call(loaded, ret->name) ||
           loaded_names_find(loaded, frame->address, ret);
}

/* Names a frame; `last` is the frame before it in the same mapping. */
static int resolver_name(ResolverWork *work, const LoadedNames *loaded, const ResolvedFrame *last,
                         ResolvedFrame *f) {
    NameFound found;

    if (resolver_find(loaded, &f->frame, &found)) {
        f->naming = FRAME_NAMED;
        f->start = found.start;
        if (last && last->naming == FRAME_NAMED && last->start == f->start) {
            f->text = last->text;
            return 0;
        }
        demangle(found.name, &work->text);
    } else {
        f->naming = loaded->missing;
        f->start = f->frame.address;
        frame_text_unnamed(&loaded->mapping, f->frame.address, f->naming, &work->text);
    }
    return resolver_text(work, &f->text);
}

/* -- lines of the source ---------------------------------------------------------------------- */

/* The function that holds the code keeps the name of its symbol, if it has one. */
static int resolver_take_line(ResolverWork *work, ResolvedFrame *f, const SourceLine *source,
                              bool is_last) {
    FrameLine *line = array_grow(&work->lines, &work->n_lines);
    int r;

    if (!line)
        return -ENOMEM;
    line->line = source->line;
    r = text_set_add(work->names->texts, source->file, &line->file);
    line->function = f->text;
    if (r >= 0 && source->function.size > 0 && (!is_last || f->naming != FRAME_NAMED)) {
        demangle(source->function, &work->text);
        r = resolver_text(work, &line->function);
        if (is_last)
            f->naming = FRAME_NAMED;
    }
    return r;
}

static int resolver_take_lines(ResolverWork *work, ResolvedFrame *f, Cursor *reply) {
    SourceLine lines[LINES_MAX];
    size_t n = line_next(reply, lines);
    int r = 0;

    f->first = work->n_lines;
    f->n = n;
    for (size_t i = 0; r >= 0 && i < n; i++)
        r = resolver_take_line(work, f, &lines[i], i + 1 == n);
    return r;
}

/* The addresses of the frames [begin, end) are in order, since their offsets are. */
static int resolver_find_lines(ResolverWork *work, const LoadedNames *loaded, size_t begin,
                               size_t end) {
    _cleanup_free_ uint64_t *addresses = calloc(end - begin, sizeof(*addresses));
    _cleanup_(buffer_done) Buffer reply = {};
    Cursor c;
    int r = 0;

    if (!addresses)
        return -ENOMEM;
    for (size_t i = begin; i < end; i++) {
        const Frame *f = &work->frames[i].frame;

        (void)loaded_names_address(loaded, f->address - f->is_return, &addresses[i - begin]);
    }
    /* Names are there without them, too. */
    if (line_find(loaded->lines, loaded->lines_alternate, addresses, end - begin, &reply) < 0)
        return 0;
    c = cursor_of(reply.data, reply.size, false);
    for (size_t i = begin; r >= 0 && i < end && cursor_left(&c) > 0; i++)
        r = resolver_take_lines(work, &work->frames[i], &c);
    return r;
}

/* The frames [begin, end) are all of one mapping. */
static int resolver_name_mapping(ResolverWork *work, size_t begin, size_t end) {
    const FrameMapping *mapping =
        frame_table_mapping(work->table, work->frames[begin].frame.mapping);
    const char *fixed = frame_text_fixed(mapping->kind);
    const LoadedNames *loaded = NULL;
    int r = 0;

    if (!fixed && mapping->kind != FRAME_BPF) {
        loaded = loaded_names_get(work->resolver, mapping);
        if (!loaded)
            return -ENOMEM;
    }
    for (size_t i = begin; r >= 0 && i < end; i++) {
        ResolvedFrame *f = &work->frames[i];

        if (fixed)
            r = resolver_name_fixed(work, f, mapping->kind, fixed);
        else if (!loaded)
            r = resolver_name_bpf(work, f, mapping);
        else
            r = resolver_name(work, loaded, i > begin ? f - 1 : NULL, f);
    }
    if (r >= 0 && loaded && loaded->lines >= 0)
        r = resolver_find_lines(work, loaded, begin, end);
    return r;
}

static int resolver_add_names(ResolverWork *work) {
    int r = 0;

    qsort(work->frames, work->n, sizeof(*work->frames), resolver_compare_number);
    for (size_t i = 0; r >= 0 && i < work->n; i++) {
        const ResolvedFrame *f = &work->frames[i];

        r = f->n > 0 ? frame_names_add(work->names, f->naming, f->start, work->lines + f->first,
                                       (uint32_t)f->n)
                     : frame_names_add(work->names, f->naming, f->start,
                                       &(FrameLine){.function = f->text}, 1);
    }
    return r;
}

static int resolver_run(ResolverWork *work) {
    int r = 0;

    qsort(work->frames, work->n, sizeof(*work->frames), resolver_compare_place);
    for (size_t begin = 0, end; r >= 0 && begin < work->n; begin = end) {
        for (end = begin + 1; end < work->n; end++)
            if (work->frames[end].frame.mapping != work->frames[begin].frame.mapping)
                break;
        r = resolver_name_mapping(work, begin, end);
    }
    return r < 0 ? r : resolver_add_names(work);
}

int symbol_name_frames(SymbolResolver *resolver, const Profile *profile, FrameNames *names) {
    uint32_t n = frame_table_n_frames(profile->frames), first = (uint32_t)names->n_names;
    ResolverWork work = {.resolver = resolver, .table = profile->frames, .names = names};
    int r;

    if (first >= n)
        return 0;
    work.frames = calloc(n - first, sizeof(*work.frames));
    if (!work.frames)
        return -ENOMEM;
    for (uint32_t i = first; i < n; i++)
        work.frames[work.n++] =
            (ResolvedFrame){.number = i, .frame = *frame_table_frame(profile->frames, i)};
    find_set_times(&resolver->find, profile, resolver->options.local_processes);
    resolver->namings++;
    loaded_names_forget_generated(resolver);
    r = resolver_run(&work);
    buffer_done(&work.text);
    free(work.frames);
    free(work.lines);
    return r;
}

void symbol_resolver_limit(SymbolResolver *resolver, size_t bytes_max, size_t mappings_max) {
    loaded_names_limit(resolver, bytes_max, mappings_max);
}

void symbol_resolver_rest(SymbolResolver *resolver) {
    for (size_t i = 0; i < resolver->by_mapping.n; i++) {
        const StoredTable *table = &resolver->loaded[i].table;

        if (table->map)
            (void)madvise(table->map, table->map_size, MADV_DONTNEED);
    }
}

int symbol_open_file(SymbolResolver *resolver, const FrameMapping *mapping, int *ret_fd) {
    _cleanup_(elf_file_freep) ElfFile *file = NULL;
    FileIdentity identity;
    int r = find_mapped(&resolver->find, mapping, &file, &identity), fd;

    if (r < 0)
        return r;
    fd = fcntl(elf_file_fd(file), F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    *ret_fd = fd;
    return 0;
}
