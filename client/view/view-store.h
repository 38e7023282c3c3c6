/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The folder of the symbols that profd has kept, by the store in which one of the recordings lies,
 * else of the usual store, to be freed; NULL: there is none that can be read. */
char *view_store_binaries(char **files);
