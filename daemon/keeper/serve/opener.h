/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Files that only the keeper may open, each found in a way that leads nowhere else. */

#include "keeper/request/keeper-request.h"
#include "keeper/rights/keeper-host.h"

/* All take a checked request and return 0 or a negative errno. */
int opener_file(const KeeperRequest *request, int *ret_fd);
/* -ENOEXEC: no regular file, or no ELF file. -EOPNOTSUPP: on FUSE. */
int opener_mapped(const KeeperRequest *request, KeeperFileId *ret_id, int *ret_fd);
int opener_image(const KeeperRequest *request, KeeperFileId *ret_id, int *ret_fd);
int opener_tracefs(const KeeperHost *host, const KeeperRequest *request, int *ret_fd);
/* *ret_fd -1 when the request names none. */
int opener_cgroup(const KeeperHost *host, const KeeperRequest *request, int *ret_fd);
int opener_namespaces(const KeeperRequest *request, KeeperNamespace ret[KEEPER_NAMESPACES]);
