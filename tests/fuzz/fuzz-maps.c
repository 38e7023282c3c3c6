/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fuzz.h"
#include "scan/text/mapping.h"
#include "scan/text/stat.h"
#include "util/macro.h"

/* Lines of maps and of stat, whose names are chosen by whoever runs: each is parsed where a byte
 * beyond it would show. */

static void parse_line(const uint8_t *data, size_t size) {
    _cleanup_free_ char *line = malloc(size + 1);
    PdMmap map = {};

    if (!line)
        return;
    memcpy(line, data, size);
    line[size] = '\0';
    if (!mapping_parse(line, size, size % 2 == 0, &map))
        return;
    if (map.length == 0 || map.start + map.length < map.start || map.filename.size > size + 16)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ProcessStat stat;
    uint32_t id;
    _cleanup_free_ char *name = size > 0 ? strndup((const char *)data, size) : NULL;

    (void)process_stat_parse((Bytes){.data = data, .size = size}, &stat);
    if (name)
        (void)process_id_parse(name, &id);
    while (size > 0) {
        const uint8_t *newline = memchr(data, '\n', size);
        size_t n = newline ? (size_t)(newline - data) : size;

        parse_line(data, n);
        n += newline ? 1 : 0;
        data += n;
        size -= n;
    }
    return 0;
}
