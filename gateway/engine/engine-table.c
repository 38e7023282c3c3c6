/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "engine/engine.h"

#include <string.h>

#include "engine/engine-format.h"

/* The table of engines. Pyroscope refuses what is older than an hour; a minute of that is left for
 * a request to arrive, and for clocks that differ. */

#define ENGINE_MINUTE_NS 60000000000ULL

/* clang-format off */
const Engine engines[] = {
    {.name = "pyroscope", .path = "/push.v1.PusherService/Push", .content_type = "application/proto",
     .tenant_header = "X-Scope-OrgID", .max_age_ns = 59 * ENGINE_MINUTE_NS, .max_bytes = PYROSCOPE_BYTES_MAX,
     .max_stacks = PYROSCOPE_STACKS_MAX, .encode = pyroscope_encode},
    {.name = "parca", .path = "/api/profiles/writeraw", .content_type = "application/json",
     .is_compressed = true, .max_bytes = PARCA_BYTES_MAX, .encode = parca_encode},
    {.name = "otlp", .path = "/v1development/profiles", .content_type = "application/x-protobuf",
     .tenant_header = "X-Scope-OrgID", .max_bytes = OTLP_BYTES_MAX, .encode = otlp_encode,
     .rejection = otlp_rejection},
    {.name = "file", .is_compressed = true, .encode = file_encode},
    {},
};
/* clang-format on */

const Engine *engine_by_name(const char *name) {
    for (const Engine *engine = engines; engine->name; engine++)
        if (strcmp(engine->name, name) == 0)
            return engine;
    return NULL;
}
