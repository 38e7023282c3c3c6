/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "program/gateway-event.h"

#include "util/macro.h"

/*
 * The table of all log events of the gateway. A log call names its event in a field, PROFD_EVENT;
 * the message id comes from this table, and `journalctl -x` finds the text in
 * systemd/profd-gateway.catalog by it. An id never changes its meaning, and the id of a removed
 * event is not reused.
 */

/* clang-format off */
static const JournalEvent events[] = {
    { "gateway-started",            "04629802390344ea95314a56ff3aed2f" },
    { "gateway-stopped",            "0786b0a896b7462989f0c74016e6d41a" },
    { "gateway-config-problem",     "f5e95ba8f20f4d53a1b7f34b280b1451" },
    { "gateway-reloaded",           "5988546243204709a1a23af5be4741ef" },
    { "gateway-reload-refused",     "773ed3f7b2d44a648ef582d7f8f1e642" },
    { "gateway-source-lost",        "207f0a0fb7f44e72835c81414f53b7b7" },
    { "gateway-source-back",        "7a7f96e7dca344fea76852dcb0412349" },
    { "gateway-destination-failed", "b9842f0eb6d84648a8771776d3160c08" },
    { "gateway-destination-waits",  "fb4307b88c7d44819216ec851a56c782" },
    { "gateway-destination-back",   "7db6469d452e473d9d8c79b95befa138" },
    { "gateway-profiles-lost",      "a7de1409a06941d58ceca5a91113a55e" },
    { "gateway-state-damaged",      "73b9957794fb4b0d99da0f4e9a0c78b9" },
};
/* clang-format on */

const JournalProgram gateway_journal = {
    .identifier = "profd-gateway", .events = events, .n_events = ARRAY_SIZE(events)};
