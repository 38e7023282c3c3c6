/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* `profctl snapshot --html`: a window as an incident page. */

#include "client/view/view.h"

/* Writes the page of a window of the running profd, five minutes by default. An ExitStatus. */
int snapshot_write_page(Context *c, const ViewSettings *view, const char *path, bool force);
