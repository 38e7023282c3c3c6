/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Who is at the other end of a connection, by the word of the kernel, and what he may do. */

#include <stdbool.h>
#include <sys/types.h>

/* Each includes those before it. */
typedef enum Right {
    RIGHT_NOTHING, /* not even to connect */
    RIGHT_ANYONE,
    RIGHT_READ,  /* group profd-read */
    RIGHT_ADMIN, /* root, group profd-admin, and the user that the recorder runs as */
} Right;

typedef struct Peer {
    uid_t uid;
    gid_t gid;
    pid_t pid;
    Right right;
} Peer;

/* The groups that give rights; each may be missing. */
typedef struct Groups {
    gid_t read, admin;
    bool has_read, has_admin;
} Groups;

/* By name: profd-read, profd-admin. */
Groups groups_find(void);
/* Credentials are those of the moment when the other end connected. */
int peer_of(int fd, const Groups *groups, Peer *ret);
