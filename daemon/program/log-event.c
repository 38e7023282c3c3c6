/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "program/log-event.h"

#include "util/macro.h"

/*
 * The table of all log events. A log call names its event in a field, PROFD_EVENT; the message id
 * comes from this table, and `journalctl -x` finds the text in systemd/profd.catalog by it. An id
 * never changes its meaning, and the id of a removed event is not reused.
 */

/* clang-format off */
static const JournalEvent events[] = {
    { "started",                    "2b808725e29e4c86bc09d19810195acb" },
    { "stopped",                    "eed041ad674c47909927347bad014206" },
    { "paused",                     "8ad11b7c54574ff4a82396a422d5ff2a" },
    { "resumed",                    "84e539c53151482e828913c240d46218" },
    { "failed",                     "a279b946f2cf402ba0f50204e2490a91" },
    { "segment-finished",           "01afcc8abfd84d03b2623d8c20c67d1a" },
    { "segment-recovered",          "1a51173f6dcd4127ad09d3deddfd9a87" },
    { "segment-damaged",            "4531e46dc4774cf1875e9d1bdc07b3e2" },
    { "samples-lost",               "bb724a863d4940ff8be3ad270af4d7a6" },
    { "samples-dropped",            "9917415e02f3482bb2a74054f8ebd032" },
    { "degraded-lost",              "f80e80f61dcc48b185ff13553314e4e1" },
    { "degraded-throttled",         "72c778941c3e40ada33c49e416c3c443" },
    { "degraded-disk-full",         "438349be1aa44019a846e041b943d0fe" },
    { "degraded-writer-blocked",    "f16492b50f3045278a7d8b083c02938b" },
    { "degraded-partial-cpus",      "d13a7a1717d14a139fb9cdc0d7b5a65e" },
    { "degraded-fallback-event",    "94ff8346c88e4516a6c961716c9901cf" },
    { "degraded-short-reach",       "ade40de78bf541dda03a82afe0238701" },
    { "degraded-config",            "d369a8f42d9b4b7c90da4342d17b8430" },
    { "degraded-rate-lowered",      "5836ad0d2d1f4a4caa148c8fe49f7e2e" },
    { "degraded-small-rings",       "da02f8455c6a4736b4870481010c2c9b" },
    { "degraded-no-kernel",         "5555e912574a4585a1f411a0f26a21e1" },
    { "degraded-own-processes",     "dfce55bae332473abda93b7e27e47b45" },
    { "degraded-partial-processes", "4b0d13fab7c84905b3f9669663e090db" },
    { "degraded-small-memory",      "b31c299442c84c8cbf5058ebfe51f6be" },
    { "degraded-missing-events",    "2f0c3a0d6c7b4c0c8a1f6b0e5d7c9e41" },
    { "degraded-fallback-call-graph", "8d1e4b7a90c24f5bb2f36a7cf0d1e852" },
    { "degraded-absent-group",      "b0b68b56b82d46628456b79688382901" },
    { "degraded-no-cpus",           "5b1d0c7e7a8f4a0c9d2f9b1f0d6e3a41" },
    { "degraded-scan-stuck",        "c4d7a0f2b6f94c8c8a53e5e1d7b9f062" },
    { "degraded-no-build-ids",      "e39b7f1c54d24f6fae0c6a8d92c1b873" },
    { "degraded-short-stacks",      "29225de3fb4b4a42be315c317c65996b" },
    { "degraded-late-start",        "42483cd5ddd445688de8ba5f9dcb4665" },
    { "mended",                     "1d4ebe75ca264ce6b7d5909d909be207" },
    { "store-failed",               "f46e642770ec48e7ab9860aa5c5dac97" },
    { "disk-full",                  "c8eb828afb1d40248b897355b9f3e960" },
    { "store-mended",               "4c5a9f6577584480a2319766a6c777b1" },
    { "recorder-died",              "0cda6754c9e9458d8e9b64e69edccdbf" },
    { "recorder-replaced",          "30733ef39de94a0aa53c4e50bf4769fb" },
    { "upgrade-failed",             "bee4d40c6e6443e8a32922f13ab80fa3" },
    { "keeper-gone",                "81ce399f467e40a2bf6403b928c3b9f8" },
    { "drain-hung",                 "d001c39415f24846a27c79cbf17c948a" },
    { "watchdog",                   "4dccee5c24c44472bd770e00d1c1eadd" },
    { "config-problem",             "57b47f21cd9447d981b19ecc891d68f9" },
    { "reload-refused",             "c751d8f18de343c6984224b86dee4a2c" },
    { "reloaded",                   "114c2c4f2d42420fb2e12f9617ad6ae7" },
    { "snapshot-taken",             "66b1dc669e30457887c38a515cf1df90" },
    { "snapshot-removed",           "b34f528da52d43c3b1f8ca106f7ea1da" },
    { "call",                       "053a01bf301c471b854a40e152cce331" },
    { "call-refused",               "41af339ecad248c293bb42cfc16a1e7c" },
    { "cpus-changed",               "6936b7e018d94eeca285abba3ee41446" },
};
/* clang-format on */

const JournalProgram profd_journal = {
    .identifier = "profd", .events = events, .n_events = ARRAY_SIZE(events)};
