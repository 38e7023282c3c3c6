/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scan/text/mapping.h"

#include <sys/mman.h>

/*
 * "START-END rwxp PGOFF MAJ:MIN INODE   NAME". The kernel chooses everything but the name, in which
 * only a newline is escaped, so a name may look like anything, even like another line.
 *
 * A process whose mappings are read here and one whose mappings came as MMAP2 records must look the
 * same. So memory without a file is "//anon" wherever the kernel's record has that name, even if it
 * was named with prctl(), with its own address as the offset; named shared memory has its path; and
 * [vsyscall], which no record contains, is left out.
 */

typedef struct Text {
    char *at;
    char *end;
} Text;

static inline bool mapping_get_char(Text *t, char c) {
    if (t->at == t->end || *t->at != c)
        return false;
    t->at++;
    return true;
}

static inline unsigned mapping_digit_of(char c) {
    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0');
    return c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 : 16;
}

/* At least one digit, and at most as many as fit. */
static bool mapping_get_number(Text *t, unsigned base, uint64_t *ret) {
    const char *first = t->at;
    uint64_t v = 0;

    for (unsigned d; t->at < t->end && (d = mapping_digit_of(*t->at)) < base; t->at++)
        if (__builtin_mul_overflow(v, base, &v) || __builtin_add_overflow(v, d, &v))
            return false;
    *ret = v;
    return t->at > first;
}

static bool mapping_get_range(Text *t, PdMmap *m) {
    uint64_t end;

    if (!mapping_get_number(t, 16, &m->start) || !mapping_get_char(t, '-') ||
        !mapping_get_number(t, 16, &end) || !mapping_get_char(t, ' ') || end <= m->start)
        return false;
    m->length = end - m->start;
    return true;
}

static bool mapping_get_permissions(Text *t, PdMmap *m) {
    if (t->end - t->at < 5 || t->at[4] != ' ')
        return false;
    m->prot = (t->at[0] == 'r' ? PROT_READ : 0U) | (t->at[1] == 'w' ? PROT_WRITE : 0U) |
              (t->at[2] == 'x' ? PROT_EXEC : 0U);
    m->flags = t->at[3] == 's' ? MAP_SHARED : MAP_PRIVATE;
    t->at += 5;
    return true;
}

static bool mapping_get_identity(Text *t, PdMmap *m) {
    uint64_t major, minor;

    if (!mapping_get_number(t, 16, &m->pgoff) || !mapping_get_char(t, ' ') ||
        !mapping_get_number(t, 16, &major) || !mapping_get_char(t, ':') ||
        !mapping_get_number(t, 16, &minor) || !mapping_get_char(t, ' ') ||
        !mapping_get_number(t, 10, &m->inode) || major > UINT32_MAX || minor > UINT32_MAX)
        return false;
    m->major = (uint32_t)major;
    m->minor = (uint32_t)minor;
    return true;
}

static Bytes mapping_unescape_newlines(Text t) {
    const char *from = t.at < t.end ? memchr(t.at, '\\', (size_t)(t.end - t.at)) : NULL;
    char *to = t.at + (from ? from - t.at : t.end - t.at);

    while (from && from < t.end) {
        if (t.end - from >= 4 && memcmp(from, "\\012", 4) == 0) {
            *to++ = '\n';
            from += 4;
        } else
            *to++ = *from++;
    }
    return (Bytes){.data = (const uint8_t *)t.at, .size = (size_t)(to - t.at)};
}

static bool mapping_begins_with(const Text *t, const char *s) {
    size_t n = strlen(s);

    return (size_t)(t->end - t->at) >= n && memcmp(t->at, s, n) == 0;
}

bool mapping_parse_any(char *line, size_t size, PdMmap *ret) {
    Text t = {.at = line, .end = line + size};
    PdMmap m = {};

    if (!mapping_get_range(&t, &m) || !mapping_get_permissions(&t, &m) ||
        !mapping_get_identity(&t, &m))
        return false;
    while (mapping_get_char(&t, ' '))
        ;
    m.filename = (Bytes){.data = (const uint8_t *)t.at, .size = (size_t)(t.end - t.at)};
    *ret = m;
    return true;
}

static Bytes mapping_constant(const char *s) {
    return (Bytes){.data = (const uint8_t *)s, .size = strlen(s)};
}

/* Changes the name to that in the kernel's record; newlines are no longer escaped. */
static void mapping_name_as_record(PdMmap *m) {
    Text t = {.at = (char *)m->filename.data, .end = (char *)m->filename.data + m->filename.size};

    if (m->inode == 0 && (t.at == t.end || mapping_begins_with(&t, "[anon:"))) {
        m->filename = mapping_constant("//anon");
        m->pgoff = m->start;
    } else if (mapping_begins_with(&t, "[anon_shmem:"))
        m->filename = mapping_constant("/dev/zero (deleted)");
}

static bool mapping_is_wanted(const PdMmap *m, bool with_data) {
    if (m->prot & PROT_EXEC)
        return true;
    return with_data && m->inode != 0 && m->prot == PROT_READ && m->flags == MAP_PRIVATE;
}

bool mapping_parse(char *line, size_t size, bool with_data, PdMmap *ret) {
    PdMmap m;
    Text t;

    if (!mapping_parse_any(line, size, &m) || !mapping_is_wanted(&m, with_data))
        return false;
    t = (Text){.at = line + size - m.filename.size, .end = line + size};
    if (m.inode == 0 && mapping_begins_with(&t, "[vsyscall]"))
        return false;
    m.filename = mapping_unescape_newlines(t);
    mapping_name_as_record(&m);
    *ret = m;
    return true;
}
