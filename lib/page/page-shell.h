/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The page around the data: fills the slots of the template. */

#include "page/page-data.h"

/* `incident` is NULL for other pages. */
int page_shell_write(PageWriter *w, const PageData *data, const PageIncident *incident);
