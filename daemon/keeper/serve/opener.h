/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Opens files that only the keeper may open, so that no path leads anywhere else. */

#include "keeper/request/keeper-request.h"
#include "keeper/rights/keeper-host.h"

/* All functions take a checked request and return 0 or a negative errno. */
int opener_file(const KeeperRequest *request, int *ret_fd);
/* -ENOEXEC: not a regular file or not an ELF file. -EOPNOTSUPP: on FUSE, or on an overlay that a
 * user has mounted. */
int opener_mapped(const KeeperRequest *request, KeeperFileId *ret_id, int *ret_fd);
int opener_image(const KeeperRequest *request, KeeperFileId *ret_id, int *ret_fd);
/* -EACCES: not a plain file with one link that belongs to the user of the process, or a link on the
 * way; -EFBIG: it is too large. */
int opener_code_map(const KeeperRequest *request, int *ret_fd);
int opener_tracefs(const KeeperHost *host, const KeeperRequest *request, int *ret_fd);
/* *ret_fd is -1 if the request has no cgroup. */
int opener_cgroup(const KeeperHost *host, const KeeperRequest *request, int *ret_fd);
int opener_namespaces(const KeeperRequest *request, KeeperNamespace ret[KEEPER_NAMESPACES]);
