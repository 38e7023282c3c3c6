/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <sys/types.h>

/* Lets the members of one more group read a file, or read and enter a folder, that its own group
 * may read. Call it as the owner. A file that has an access list keeps it. 0, or a negative errno
 * (-EOPNOTSUPP: the file system has no access lists). */
int acl_admit(int fd, gid_t group);
