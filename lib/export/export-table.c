/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "export/export-format.h"

/* The table of formats. A format has a file of its own; the labels that it can show are known
 * before there is a profile. */

/* clang-format off */
const ExportFormat export_formats[] = {
    {"pprof",      ".pb.gz",           "Write a profile for pprof, Pyroscope, Parca and other readers of its format", false,
     EXPORT_ALL, EXPORT_ALL, 0, export_pprof},
    {"folded",     ".folded",          "Write stacks as folded lines, the input of flame graph tools", true,
     EXPORT_ALL, EXPORT_BIT(EVENT) | EXPORT_BIT(COMM), 0, export_folded},
    {"speedscope", ".speedscope.json", "Write a profile for speedscope", true,
     EXPORT_ALL | EXPORT_BIT(TIME), EXPORT_BIT(EVENT) | EXPORT_BIT(COMM), 10000000, export_speedscope},
    {"firefox",    ".firefox.json",    "Write a profile for the Firefox Profiler", true,
     EXPORT_FIREFOX, EXPORT_THREAD | EXPORT_BIT(EVENT) | EXPORT_BIT(TIME), 10000000, export_firefox},
    {},
};
/* clang-format on */

const ExportFormat *export_format_by_name(const char *name) {
    for (const ExportFormat *format = export_formats; format->name; format++)
        if (strcmp(format->name, name) == 0)
            return format;
    return NULL;
}
