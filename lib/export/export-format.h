/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The formats, for the table alone, and the labels that they can show. */

#include "export/export.h"

#define EXPORT_BIT(key) (1U << PROFILE_##key)

/* Labels: who owns a thread, which one it is, and all that a format can show. */
enum {
    EXPORT_OWNER = EXPORT_BIT(CGROUP) | EXPORT_BIT(UNIT) | EXPORT_BIT(CONTAINER),
    EXPORT_THREAD = EXPORT_BIT(COMM) | EXPORT_BIT(PID) | EXPORT_BIT(TID),
    EXPORT_ALL = EXPORT_OWNER | EXPORT_THREAD | EXPORT_BIT(EVENT) | EXPORT_BIT(CPU),
    EXPORT_FIREFOX = EXPORT_OWNER | EXPORT_THREAD | EXPORT_BIT(EVENT) | EXPORT_BIT(TIME),
};

int export_pprof(const ExportInput *input, ExportSink sink, void *arg);
int export_folded(const ExportInput *input, ExportSink sink, void *arg);
int export_speedscope(const ExportInput *input, ExportSink sink, void *arg);
int export_firefox(const ExportInput *input, ExportSink sink, void *arg);
