/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The block before each entry of a tar archive: POSIX.1-1988 (ustar), as GNU tar writes it. */

#include <assert.h>

enum { TAR_BLOCK = 512, TAR_FILE = '0', TAR_OLD_FILE = '\0', TAR_FOLDER = '5' };

typedef struct TarHeader {
    char name[100];
    char mode[8];
    char uid[8];
    char gid[8];
    char size[12];
    char mtime[12];
    char checksum[8];
    char type;
    char link[100];
    char magic[6];
    char version[2];
    char user[32];
    char group[32];
    char major[8];
    char minor[8];
    char prefix[155];
    char padding[12];
} TarHeader;
static_assert(sizeof(TarHeader) == TAR_BLOCK, "a header fills one block");

/* The sum of all bytes, those of the checksum counted as spaces. */
static inline unsigned tar_header_sum(const TarHeader *header) {
    const unsigned char *bytes = (const unsigned char *)header;
    unsigned sum = 0;

    for (unsigned i = 0; i < TAR_BLOCK; i++)
        sum += bytes[i];
    for (unsigned i = 0; i < sizeof(header->checksum); i++)
        sum += ' ' - (unsigned char)header->checksum[i];
    return sum;
}
