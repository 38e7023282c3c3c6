/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The formats, for the table alone. */

#include "export/export.h"

int export_pprof(const ExportInput *input, ExportSink sink, void *arg);
int export_folded(const ExportInput *input, ExportSink sink, void *arg);
int export_speedscope(const ExportInput *input, ExportSink sink, void *arg);
int export_firefox(const ExportInput *input, ExportSink sink, void *arg);
