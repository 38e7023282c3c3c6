/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "keeper/serve/acl.h"

#include <endian.h>
#include <errno.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/xattr.h>

/*
 * A file has one group, but recordings have two kinds of readers: members of profd-read, and
 * members of profd-admin, who need not be in the former. So the second group is in an access list.
 * The list has five entries of fixed size, as defined by the kernel; its mask, which the file mode
 * shows as the group's rights, stays the same as the rights of the group.
 */

static const char name[] = "system.posix_acl_access";

enum { ENTRIES = 5, READ_AND_ENTER = ACL_READ | ACL_EXECUTE };

typedef struct List {
    struct posix_acl_xattr_header header;
    struct posix_acl_xattr_entry entries[ENTRIES];
} List;

static struct posix_acl_xattr_entry acl_entry(uint16_t tag, mode_t permissions, uint32_t id) {
    return (struct posix_acl_xattr_entry){
        .e_tag = htole16(tag), .e_perm = htole16((uint16_t)(permissions & 7)), .e_id = htole32(id)};
}

int acl_admit(int fd, gid_t group) {
    struct stat status;
    mode_t mode;
    List list;

    if (fgetxattr(fd, name, NULL, 0) > 0)
        return 0;
    if (fstat(fd, &status) < 0)
        return -errno;
    mode = status.st_mode;
    list = (List){
        .header.a_version = htole32(POSIX_ACL_XATTR_VERSION),
        .entries = {acl_entry(ACL_USER_OBJ, mode >> 6, (uint32_t)ACL_UNDEFINED_ID),
                    acl_entry(ACL_GROUP_OBJ, mode >> 3, (uint32_t)ACL_UNDEFINED_ID),
                    acl_entry(ACL_GROUP, mode >> 3 & READ_AND_ENTER, group),
                    acl_entry(ACL_MASK, mode >> 3, (uint32_t)ACL_UNDEFINED_ID),
                    acl_entry(ACL_OTHER, mode, (uint32_t)ACL_UNDEFINED_ID)},
    };
    return fsetxattr(fd, name, &list, sizeof(list), 0) < 0 ? -errno : 0;
}
