/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Compares names of control groups, as users write them, with the paths of groups. */

#include "util/bytes.h"
#include "util/near.h"

/* Whether `path` is the group that `pattern` names, or lies below it. The leading slash is optional
 * in both. `*`, `?` and `[…]` match within one part of the path. */
bool cgroup_path_matches(Bytes path, const char *pattern);
/* Whether `path` is the group of the systemd unit, or lies below it, wherever it is in the tree.
 * `shop` means shop.service; globs match whole names, as in journalctl. */
bool cgroup_unit_matches(Bytes path, const char *unit);
/* ".service" if the name of a unit has no suffix, else "". */
const char *cgroup_unit_suffix(const char *unit);
/* Offers the groups on the way to `path` that are similar to `wanted`: with `by_unit` by the name
 * of the unit, else by their paths. */
void cgroup_path_offer(NearNames *near, Bytes path, const char *wanted, bool by_unit);
