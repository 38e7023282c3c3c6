/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scan/text/kallsyms.h"

#include <errno.h>

#include "scan/text/line.h"
#include "util/array.h"

/*
 * "ADDRESS TYPE NAME" or, in a module, "ADDRESS TYPE NAME\t[MODULE]"; compiled BPF programs come
 * last, as module [bpf]. The file has megabytes, so each line is parsed only as far as needed to
 * skip it, and skipped lines are not kept.
 *
 * kallsyms has no length of an image. An image ends at the latest where the next one begins, and no
 * other code follows the end of the program, so the length may be too large, within reason.
 */

enum {
    LENGTH_MAX = 64 << 10,   /* of a program with no other after it */
    TRAMPOLINE_BYTES = 4096, /* trampolines and dispatchers take one page each */
};

typedef struct Symbol {
    uint64_t address;
    char type;
    Bytes name;
    bool bpf;
} Symbol;

static bool kallsyms_parse_address(const char **at, const char *end, uint64_t *ret) {
    const char *p = *at;
    uint64_t v = 0;

    for (; p < end && *p != ' '; p++) {
        unsigned d = (unsigned)(*p <= '9' ? *p - '0' : *p - 'a' + 10);

        if (d > 15 || v >> 60)
            return false;
        v = v << 4 | d;
    }
    if (p == *at)
        return false;
    *at = p;
    *ret = v;
    return true;
}

static bool kallsyms_parse_symbol(const char *line, size_t size, Symbol *ret) {
    static const char of_bpf[] = "\t[bpf]";
    const char *at = line, *end = line + size;
    size_t suffix = sizeof(of_bpf) - 1;

    if (!kallsyms_parse_address(&at, end, &ret->address) || end - at < 4 || at[2] != ' ')
        return false;
    ret->type = at[1];
    at += 3;
    ret->bpf = (size_t)(end - at) > suffix && memcmp(end - suffix, of_bpf, suffix) == 0;
    if (ret->bpf)
        end -= suffix;
    ret->name = (Bytes){.data = (const uint8_t *)at, .size = (size_t)(end - at)};
    return true;
}

static bool kallsyms_is_function(const Symbol *symbol) {
    return strchr("TtWw", symbol->type) != NULL;
}

static void kallsyms_note_bound(Kallsyms *k, const Symbol *s) {
    if (bytes_equal_str(s->name, "_text") && kallsyms_is_function(s))
        k->text = s->address;
    else if (bytes_equal_str(s->name, "_stext") && kallsyms_is_function(s))
        k->stext = s->address;
    else if (bytes_equal_str(s->name, "_etext"))
        k->etext = s->address;
}

static int kallsyms_add_image(Kallsyms *k, const Symbol *s) {
    BpfImage *image;

    if (s->address == 0 || s->name.size > BPF_NAME_MAX || k->n_images >= BPF_IMAGES_MAX)
        return 0;
    image = array_grow(&k->images, &k->n_images);
    if (!image)
        return -ENOMEM;
    *image = (BpfImage){.address = s->address, .name = k->names.size, .name_size = s->name.size};
    buffer_append(&k->names, s->name.data, s->name.size);
    return buffer_error(&k->names);
}

static int kallsyms_by_address(const void *a, const void *b) {
    uint64_t x = ((const BpfImage *)a)->address, y = ((const BpfImage *)b)->address;

    return x < y ? -1 : x > y;
}

static bool kallsyms_is_program(const Kallsyms *k, const BpfImage *image) {
    static const char prefix[] = "bpf_prog_";

    return image->name_size >= sizeof(prefix) - 1 &&
           memcmp(k->names.data + image->name, prefix, sizeof(prefix) - 1) == 0;
}

static void kallsyms_measure_images(Kallsyms *k) {
    if (k->n_images > 0)
        qsort(k->images, k->n_images, sizeof(*k->images), kallsyms_by_address);
    for (size_t i = 0; i < k->n_images; i++) {
        BpfImage *image = &k->images[i];
        uint64_t next = i + 1 < k->n_images ? image[1].address : UINT64_MAX;
        uint64_t longest = kallsyms_is_program(k, image) ? LENGTH_MAX : TRAMPOLINE_BYTES;

        image->length = MIN(next - image->address, longest);
    }
}

int kallsyms_read(int fd, Kallsyms *ret) {
    _cleanup_free_ LineReader *lines = malloc(sizeof(*lines));
    Symbol symbol;
    size_t size;
    char *line;
    int r = 0, more = 0;

    if (!lines)
        return -ENOMEM;
    line_reader_init(lines, fd);
    while (r == 0 && (more = line_reader_next(lines, &line, &size)) > 0) {
        if (!kallsyms_parse_symbol(line, size, &symbol))
            continue;
        if (symbol.bpf)
            r = kallsyms_add_image(ret, &symbol);
        else if (symbol.name.data[0] == '_')
            kallsyms_note_bound(ret, &symbol);
    }
    kallsyms_measure_images(ret);
    return r < 0 ? r : more;
}

void kallsyms_done(Kallsyms *kallsyms) {
    free(kallsyms->images);
    buffer_done(&kallsyms->names);
    *kallsyms = (Kallsyms){};
}
