/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Self-contained HTML: pages with their data, styles and scripts in one file, which need no network
 * and no server. Scripts and styles are files of this room that the build embeds.
 */

#include "page/page-input.h"

int page_flame_graph(const PageInput *input, const PageFlameOptions *options, PageSink sink,
                     void *arg);
/* A picture without a script. */
int page_flame_svg(const PageInput *input, const PageFlameOptions *options, PageSink sink,
                   void *arg);
/* Heat maps, and so incidents, show counts of samples, also where by_period is set. */
int page_heat_map(const PageInput *input, PageSink sink, void *arg);
int page_incident(const PageIncident *incident, PageSink sink, void *arg);
