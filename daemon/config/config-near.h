/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The key that was probably meant; NULL: none is similar. */
const char *config_near_key(const char *section, const char *name);
