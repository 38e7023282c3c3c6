/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "client/file/archive-input.h"
#include "client/verify/verify-state.h"
#include "perfdata/feature/environment.h"

/*
 * Reads the sections that the header, the attrs and the feature table define again from the file:
 * the reader takes what it can use and does not check whether two sections share bytes. All of them
 * go into one list, which is sorted and checked in one pass.
 */

enum {
    SECTIONS_MAX = 70000, /* an ids section for each of the most events possible, and features */
    OVERLAPS_MAX = 10,    /* printed one by one */
    FILE_SECTION = 16,    /* struct perf_file_section */
};

typedef struct Section {
    uint64_t offset, end;
    char what[40];
} Section;

typedef struct Sections {
    int fd;
    bool swap;
    uint64_t file_size;
    Section behind;    /* the first one that ends after the file */
    uint64_t n_behind; /* their number: a file that was cut off has one flaw, not one for each
                        * section */
    Findings *findings;
    Section *items;
    size_t n, allocated;
    int error; /* the first error that is not about the file */
} Sections;

static bool verify_section_grow(Sections *s) {
    size_t n = s->allocated ? s->allocated * 2 : 64;
    Section *p = reallocarray(s->items, n, sizeof(*p));

    if (!p) {
        s->error = -ENOMEM;
        return false;
    }
    s->items = p;
    s->allocated = n;
    return true;
}

/* False if it is not within the file. */
_printf_(4, 5) static bool add(Sections *s, uint64_t offset, uint64_t size, const char *format,
                               ...) {
    Section section = {.offset = offset};
    va_list ap;

    va_start(ap, format);
    vsnprintf(section.what, sizeof(section.what), format, ap);
    va_end(ap);
    if (size == 0)
        return true;
    if (offset > s->file_size || size > s->file_size - offset) {
        section.end = size;
        if (s->n_behind++ == 0)
            s->behind = section;
        return false;
    }
    section.end = offset + size;
    if (s->n < SECTIONS_MAX && (s->n < s->allocated || verify_section_grow(s)))
        s->items[s->n++] = section;
    return true;
}

/* Fills with zeroes after the end of the file: a section there is reported by its bounds. */
static void verify_section_read_at(Sections *s, uint64_t offset, uint8_t *to, size_t n) {
    ssize_t got = pread(s->fd, to, n, (off_t)offset);

    if (got < 0) {
        s->error = s->error ?: -errno;
        got = 0;
    }
    memset(to + got, 0, n - (size_t)got);
}

static void verify_section_add_attrs(Sections *s, const uint8_t *header) {
    uint64_t entry = load_u64(header + 16, s->swap), at = load_u64(header + 24, s->swap),
             size = load_u64(header + 32, s->swap);
    uint8_t ids[FILE_SECTION];
    Place place = {.known = true, .offset = at};

    if (!add(s, at, size, "the attr section") || entry < PD_ATTR_SIZE_MIN)
        return;
    if (size % entry != 0)
        findings_add(s->findings, SEVERITY_ERROR, "section-size", &place, 1,
                     "the attr section of %" PRIu64 " bytes holds no whole number of entries of "
                     "%" PRIu64,
                     size, entry);
    for (uint64_t i = 0; i < size / entry && s->n < SECTIONS_MAX; i++) {
        verify_section_read_at(s, at + (i + 1) * entry - FILE_SECTION, ids, sizeof(ids));
        (void)add(s, load_u64(ids, s->swap), load_u64(ids + 8, s->swap),
                  "the ids section of event %" PRIu64, i);
    }
}

static void verify_section_add_features(Sections *s, const PdReader *reader, uint64_t table) {
    uint8_t entry[FILE_SECTION];
    char number[16];
    uint64_t n = 0;

    for (unsigned bit = 0; bit < PD_FEATURE_BITS; bit++)
        n += pd_reader_has_feature(reader, bit);
    if (!add(s, table, n * FILE_SECTION, "the feature table"))
        return;
    for (unsigned bit = 0; bit < PD_FEATURE_BITS; bit++) {
        const char *name = pd_feature_name(bit);

        if (!pd_reader_has_feature(reader, bit))
            continue;
        verify_section_read_at(s, table, entry, sizeof(entry));
        table += FILE_SECTION;
        snprintf(number, sizeof(number), "%u", bit);
        (void)add(s, load_u64(entry, s->swap), load_u64(entry + 8, s->swap), "feature %s",
                  name ?: number);
    }
}

static int verify_section_by_offset(const void *x, const void *y) {
    const Section *a = x, *b = y;

    return (a->offset > b->offset) - (a->offset < b->offset);
}

static void verify_section_find_overlaps(Sections *s) {
    const Section *reaching = NULL; /* the one with the highest end so far */
    uint64_t n = 0;

    if (s->n == 0)
        return;
    qsort(s->items, s->n, sizeof(*s->items), verify_section_by_offset);
    for (size_t i = 0; i < s->n; i++) {
        const Section *section = &s->items[i];
        Place place = {.known = true, .offset = section->offset};

        if (reaching && section->offset < reaching->end && n++ < OVERLAPS_MAX)
            findings_add(s->findings, SEVERITY_ERROR, "section-overlap", &place, 1,
                         "%s begins inside %s", section->what, reaching->what);
        if (!reaching || section->end > reaching->end)
            reaching = section;
    }
    if (n > OVERLAPS_MAX)
        findings_add(s->findings, SEVERITY_ERROR, "section-overlap", NULL, n - OVERLAPS_MAX,
                     "%" PRIu64 " further sections overlap", n - OVERLAPS_MAX);
}

static void verify_section_report_behind(Sections *s) {
    Place place = {.known = true, .offset = s->behind.offset};
    char others[48] = "";

    if (s->n_behind == 0)
        return;
    if (s->n_behind > 1)
        snprintf(others, sizeof(others), ", and so do %" PRIu64 " more sections", s->n_behind - 1);
    findings_add(s->findings, SEVERITY_ERROR, "section-bounds", &place, s->n_behind,
                 "%s of %" PRIu64 " bytes ends beyond the file, which has %" PRIu64 "%s",
                 s->behind.what, s->behind.end, s->file_size, others);
}

static int verify_section_walk(Sections *s, const PdReader *reader) {
    const PdHeader *header = pd_reader_header(reader);
    uint8_t bytes[PD_HEADER_SIZE];

    verify_section_read_at(s, 0, bytes, sizeof(bytes));
    (void)add(s, 0, PD_HEADER_SIZE, "the header");
    verify_section_add_attrs(s, bytes);
    if (!header->unfinished) {
        uint64_t at = load_u64(bytes + 40, s->swap), size = load_u64(bytes + 48, s->swap), end;

        (void)add(s, at, size, "the data section");
        if (!__builtin_add_overflow(at, size, &end))
            verify_section_add_features(s, reader, end);
    }
    verify_section_report_behind(s);
    verify_section_find_overlaps(s);
    return s->error ?: s->n_behind > 0;
}

int verify_sections(const char *path, const PdReader *reader, Findings *findings) {
    const PdHeader *header = pd_reader_header(reader);
    _cleanup_close_ int folder = AT_FDCWD, fd = -1;
    Sections s = {.swap = header->swap, .findings = findings};
    struct stat st;
    int r;

    if (header->mode == PD_MODE_PIPE || strcmp(path, "-") == 0)
        return 0;
    if (header->mode == PD_MODE_DIRECTORY) {
        folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (folder < 0)
            return -errno;
        path = "data";
    }
    r = header->mode == PD_MODE_FILE ? archive_is(path) : 0;
    if (r > 0)
        r = archive_open_recording(path, &fd);
    else if (r == 0 && (fd = openat(folder, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) < 0)
        r = -errno;
    if (r < 0)
        return r;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return 0;
    s.fd = fd;
    s.file_size = (uint64_t)st.st_size;
    r = verify_section_walk(&s, reader);
    free(s.items);
    return r;
}
