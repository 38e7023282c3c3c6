/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Copies of what the running profd keeps, for users who cannot read its store. They lie in a folder
 * of the user's cache, laid out as perf's build-id cache, and are bounded: the oldest are removed.
 */

#include <stdint.h>

#include "client/frame/context.h"
#include "util/macro.h"

typedef struct ViewKept ViewKept;

/* `host` is that of the recording, which has a folder of its own; NULL: not known. */
int view_kept_new(const Context *c, const char *host, ViewKept **ret);
ViewKept *view_kept_free(ViewKept *kept);
DEFINE_CLEANUP(ViewKept *, view_kept_free);

/* The folder of the copies; NULL: there can be none. */
const char *view_kept_folder(const ViewKept *kept);
/* For SymbolOptions, with the ViewKept as argument: */
/* Opens the copy of a file, which is fetched: a descriptor or a negative errno. */
int view_kept_open(const uint8_t *build_id, size_t size, void *kept);
/* Brings all maps of a pid into the folder. */
void view_kept_fetch_maps(uint32_t pid, void *kept);

/* The host of all recordings, to be freed; NULL: they differ, or one does not say. */
char *view_kept_host(char **files);
bool view_kept_is_this_host(const char *host);
