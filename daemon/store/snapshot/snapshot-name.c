/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>

#include "store/snapshot/snapshot-private.h"
#include "util/parse.h"

/*
 * The names of a snapshot and of its files: which names are valid, and which files belong to a
 * name.
 */

bool snapshot_name_is_valid(const char *name) {
    return parse_is_name(name, SNAPSHOT_NAME_MAX - 1);
}

void snapshot_data_name(const SnapshotInfo *info, char ret[SNAPSHOT_FILE_MAX]) {
    snprintf(ret, SNAPSHOT_FILE_MAX, "%s%.*s" SNAPSHOT_DATA, info->transient ? "." : "",
             SNAPSHOT_NAME_MAX, info->name);
}

void snapshot_manifest_name(const char *name, char ret[SNAPSHOT_FILE_MAX]) {
    snprintf(ret, SNAPSHOT_FILE_MAX, "%.*s" SNAPSHOT_MANIFEST, SNAPSHOT_NAME_MAX, name);
}
